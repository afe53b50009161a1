//! Slash commands and `@` references in prompts, shared by workers and `-p`.

use std::path::Path;
use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::commands::at::ResourceName;
use qwen_engine::commands::{CommandAction, CommandContext, CommandOutcome, SessionTotals, at, parse};
use qwen_engine::{Cancel, Emitter, Session};
use qwen_events::{
    Body, CommandCall, CommandKind, CommandResult, CommandResultBody, ErrorInfo, Json, Part,
    PermissionUpdate, PromptId, SessionEvent, SessionId,
};

use crate::session::ProcessContext;
use crate::session::setup::{agents, tools};
use crate::session::{rewind_command, stored};

/// The context in which a command runs.
pub struct CommandRun<'a> {
    pub process: &'a ProcessContext,
    /// None while a turn uses the session, or if no session can be opened.
    pub session: Option<&'a mut Session>,
    pub session_id: SessionId,
    pub prompt_id: PromptId,
    pub message: HostMessage,
    pub spent: SessionTotals,
    pub emit: &'a Emitter,
    pub cancel: &'a Cancel,
}

/// What a host specifies for the message that contains a command.
#[derive(Default)]
pub struct HostMessage {
    /// The id that the host gave the message.
    pub uuid: Option<Arc<str>>,
    /// The author of the message, as the host described it.
    pub origin: Option<Json>,
}

/// What happens after a command.
pub enum NextStep {
    /// The command needs no turn.
    Over {
        failed: bool,
    },
    /// A turn with this prompt.
    Turn(Arc<str>),
    /// A turn that consists of this shell command.
    TypedCommand(Arc<str>),
    /// Continue in another session, or in a copy of this one under a new name.
    Switch(Box<Session>),
    Quit,
}

/// Returns the command that a prompt contains, either declared by the host or typed.
pub fn command(
    process: &ProcessContext,
    prompt_parts: &[Part],
    declared: Option<&CommandCall>,
) -> Option<CommandCall> {
    if let Some(call) = declared {
        return Some(call.clone());
    }
    let mut texts = prompt_parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    let first = texts.next()?;
    parse(first, &process.commands).filter(|_| texts.next().is_none())
}

/// A parsed command that may still have work to do.
pub struct StartedCommand<'a> {
    process: &'a ProcessContext,
    session: Option<&'a mut Session>,
    session_id: SessionId,
    prompt_id: PromptId,
    message: HostMessage,
    emit: &'a Emitter,
    cancel: &'a Cancel,
    call: CommandCall,
    body: CommandResultBody,
    action: Option<CommandAction>,
    /// If the command switches sessions: the other session, or why it cannot be opened.
    other: Option<Result<Box<Session>, ErrorInfo>>,
}

impl<'a> CommandRun<'a> {
    /// Runs a command and reports its result.
    pub async fn run(self, call: CommandCall) -> NextStep {
        self.begin(call).finish().await
    }

    /// Parses a command. Slow work is left to [`StartedCommand::finish`].
    pub fn begin(self, call: CommandCall) -> StartedCommand<'a> {
        let done = {
            let context = self.session.as_ref().map(|session| session.context());
            let tools = match context {
                Some(context) => context.base_tools.specs(),
                None => tools(&self.process.config, self.process.skills.as_ref()).specs(),
            };
            let agents = agents(&self.process.config);
            let mut servers = self.process.services.mcp.status();
            servers.extend(self.process.config.extensions.unused_mcp_servers());
            let cx = CommandContext {
                session_id: &self.session_id,
                cwd: &self.process.config.workspace.cwd,
                model: self
                    .process
                    .services
                    .overrides
                    .model()
                    .unwrap_or_else(|| self.process.config.model.name.clone()),
                mode: self.process.services.permissions.mode(),
                history: self.session.as_ref().map(|session| session.history()),
                spent: self.spent,
                tools: &tools,
                agents: &agents,
                mcp_servers: &servers,
                hooks: &self.process.config.extensions.hooks,
                memory_files: &self.process.memory.files,
                rules: self.process.services.permissions.rules(),
                store: self
                    .process
                    .config
                    .session
                    .store
                    .as_ref()
                    .filter(|_| self.process.config.session.record),
                redactor: context.map(|context| &*context.resources.redactor),
            };
            self.process.commands.run(&call, &cx)
        };
        let CommandOutcome { mut body, mut action } = done;
        if call.kind == CommandKind::At
            && let Some(CommandAction::Submit(prompt)) = &action
            && let Some(session) = &self.session
            && !has_attachment(prompt, self.process, session)
        {
            let paths = call.path.join(" ");
            let problem = format!("'{paths}' names nothing in the workspace that may be read.");
            CommandOutcome { body, action } = CommandOutcome::error(problem);
        }
        let other = self.other(&mut action, &mut body);
        let Self { process, session, session_id, prompt_id, message, emit, cancel, .. } = self;
        StartedCommand {
            process,
            session,
            session_id,
            prompt_id,
            message,
            emit,
            cancel,
            call,
            body,
            action,
            other,
        }
    }

    /// Opens the session that the command switches to, if any. Its result is reported only after that.
    fn other(
        &self,
        action: &mut Option<CommandAction>,
        body: &mut CommandResultBody,
    ) -> Option<Result<Box<Session>, ErrorInfo>> {
        let open = |id: &SessionId| stored::open(self.process, id, None).map(Box::new);
        let copy = |id: &SessionId| stored::copy(&self.process.config, &self.session_id, id);
        let (words, other) = match action.take()? {
            CommandAction::Resume(id) if id == self.session_id => return None,
            CommandAction::Resume(id) => (format!("Continuing with {id}."), open(&id).map(Some)),
            CommandAction::Fork => {
                let id = SessionId::from_random(fastrand::u128(..));
                let copied = copy(&id).and_then(|()| open(&id));
                (format!("The session continues in a copy, {id}."), copied.map(Some))
            }
            CommandAction::Save(id) => {
                (format!("A copy of this session is stored as {id}."), copy(&id).map(|()| None))
            }
            other => {
                *action = Some(other);
                return None;
            }
        };
        *body = match &other {
            // The command's own result is more specific.
            Ok(_) if matches!(body, CommandResultBody::Dialog { .. }) => return other.transpose(),
            Ok(_) => CommandOutcome::info(words).body,
            Err(error) => CommandOutcome::error(error.to_string()).body,
        };
        other.transpose()
    }
}

impl StartedCommand<'_> {
    /// Does the remaining work and reports the result of the command.
    pub async fn finish(mut self) -> NextStep {
        let mut next = NextStep::Over { failed: is_error(&self.body) };
        let mut cleared_session = None;
        match self.action.take() {
            None => {
                if let Some(Ok(session)) = self.other.take() {
                    next = NextStep::Switch(session);
                }
            }
            Some(CommandAction::Submit(prompt)) => next = NextStep::Turn(prompt),
            Some(CommandAction::TypedCommand(command)) => next = NextStep::TypedCommand(command),
            Some(CommandAction::Quit) => next = NextStep::Quit,
            Some(CommandAction::Clear) if self.renews_session() => match self.renew_session().await {
                Ok(session) => {
                    cleared_session =
                        Some(std::mem::replace(&mut self.session_id, session.context().id.clone()));
                    next = NextStep::Switch(session);
                }
                Err(error) => {
                    self.body = CommandOutcome::error(error.to_string()).body;
                    next = NextStep::Over { failed: true };
                }
            },
            Some(action) => match self.act(action).await {
                Ok(None) => {}
                Ok(Some(body)) => self.body = body,
                Err(problem) => {
                    self.body = CommandOutcome::error(problem).body;
                    next = NextStep::Over { failed: true };
                }
            },
        }
        let Self { session_id, prompt_id, message, call: command, body, .. } = self;
        let result = CommandResult {
            session_id,
            prompt_id,
            command,
            body,
            message_uuid: message.uuid,
            message_origin: message.origin,
            cleared_session,
        };
        self.emit.emit(Body::CommandResult(Box::new(result))).await;
        next
    }

    /// True if the conversation continues under a new session id after `/clear`. Claude's hosts expect that;
    /// other hosts address the session by its id.
    fn renews_session(&self) -> bool {
        let config = &self.process.config;
        config.stream.structured_input
            && config.stream.dialect == Dialect::Claude
            && !config.claude.qwen_sdk
            && self.session.is_some()
    }

    /// Ends the session and opens an empty one.
    async fn renew_session(&mut self) -> Result<Box<Session>, ErrorInfo> {
        let id = SessionId::from_random(fastrand::u128(..));
        let renewed = stored::open(self.process, &id, None).map(Box::new)?;
        if let Some(session) = self.session.as_deref_mut() {
            session.end("clear", self.emit).await;
        }
        Ok(renewed)
    }

    /// Performs the deferred action of a command in the session. Returns the result to report, if it depends
    /// on the outcome.
    async fn act(&mut self, action: CommandAction) -> Result<Option<CommandResultBody>, String> {
        let say = |words: String| Some(CommandOutcome::info(words).body);
        let overrides = &self.process.services.overrides;
        match (action, self.session.as_deref_mut()) {
            (CommandAction::SwitchModel(model), _) => overrides.set_model(model),
            (CommandAction::SetMode(mode), _) => {
                let update = PermissionUpdate::SetMode(mode.clone());
                self.process.services.permissions.update(&update).map_err(|error| error.to_string())?;
                self.emit.emit(Body::Session(Box::new(SessionEvent::ModeChanged { mode }))).await;
            }
            (CommandAction::Clear, Some(session)) => {
                session.end("clear", self.emit).await;
                session.replace_history(Vec::new());
            }
            (CommandAction::Run(call), Some(session)) => {
                return session.run_tool(&call, self.cancel).await.map(say);
            }
            (CommandAction::Undo, Some(session)) => {
                let last = session.rewind_points().pop();
                let report = session.undo().map_err(|error| error.to_string())?;
                return Ok(say(rewind_command::undone(last.as_ref(), report.as_ref())));
            }
            (CommandAction::Redo, Some(session)) => {
                let report = session.redo().map_err(|error| error.to_string())?;
                return Ok(say(rewind_command::redone(&report)));
            }
            (CommandAction::Rewind(request), Some(session)) => {
                return rewind_command::run(session, request).map(Some);
            }
            (CommandAction::Compress(wish), Some(session)) => {
                let compressed = session.compress(&wish, self.emit, self.cancel).await;
                let (before, after) = compressed.map_err(|error| error.to_string())?;
                let words = format!("The conversation was compressed from {before} to {after} tokens.");
                return Ok(say(words));
            }
            _ => return Err("This needs a session, which starts with the first prompt.".to_owned()),
        }
        Ok(None)
    }
}

fn is_error(body: &CommandResultBody) -> bool {
    matches!(body, CommandResultBody::Message { level: qwen_events::Level::Error, .. })
}

/// The targets of the references in a prompt.
#[derive(Default)]
pub struct Attachments {
    /// The contents of files and directories.
    pub parts: Vec<Part>,
    /// Resources of MCP servers that are still to be read.
    pub resources: Vec<ResourceName>,
}

/// True if a reference in the prompt names something that can be attached.
fn has_attachment(prompt: &Arc<str>, process: &ProcessContext, session: &Session) -> bool {
    let Attachments { parts, resources } = read_attachments(&[Part::Text(prompt.clone())], process, session);
    !(parts.is_empty() && resources.is_empty())
}

fn read_attachments(prompt_parts: &[Part], process: &ProcessContext, session: &Session) -> Attachments {
    let shared = &session.context().resources;
    let may_read = |path: &Path| process.services.permissions.may_read(path);
    let servers: Vec<Arc<str>> =
        process.services.mcp.status().into_iter().map(|server| server.name).collect();
    let resources = at::resources(prompt_parts, &servers);
    Attachments {
        parts: at::attachments(prompt_parts, &shared.cwd, &shared.extra_roots, &servers, may_read),
        resources,
    }
}

/// The contents of the files that a prompt refers to, for a prompt that joins the running turn. References to
/// resources of MCP servers are left as text.
pub fn attached_files(prompt_parts: &[Part], process: &ProcessContext) -> Vec<Part> {
    let workspace = &process.config.workspace;
    let may_read = |path: &Path| process.services.permissions.may_read(path);
    let servers: Vec<Arc<str>> =
        process.services.mcp.status().into_iter().map(|server| server.name).collect();
    at::attachments(prompt_parts, &workspace.cwd, &workspace.extra_roots, &servers, may_read)
}

/// Resolves the references of a prompt so that their contents are sent with it. A prompt that starts with a
/// reference is reported as a command, unless `reported` says that a command has submitted it.
pub async fn attach(
    prompt_parts: &[Part],
    process: &ProcessContext,
    session: &Session,
    prompt_id: &PromptId,
    reported: bool,
    emit: &Emitter,
) -> Attachments {
    let attached = read_attachments(prompt_parts, process, session);
    let is_empty = attached.parts.is_empty() && attached.resources.is_empty();
    if !reported
        && !is_empty
        && let Some(Part::Text(text)) = prompt_parts.first()
        && let Some((path, rest)) = at::leading(text)
    {
        let command = CommandCall { kind: CommandKind::At, path: vec![path.into()], args: rest.into() };
        let body = CommandResultBody::SubmitPrompt { content: text.clone() };
        let result = CommandResult {
            session_id: session.context().id.clone(),
            prompt_id: prompt_id.clone(),
            command,
            body,
            message_uuid: None,
            message_origin: None,
            cleared_session: None,
        };
        emit.emit(Body::CommandResult(Box::new(result))).await;
    }
    attached
}
