//! Commands and references in what the user says: the same for a worker and for `-p`.

use std::path::Path;
use std::sync::Arc;

use qwen_engine::commands::{Action, CommandCx, Done, Spent, at, parse};
use qwen_engine::{Cancel, Emitter, Session};
use qwen_events::{
    Body, CallId, CommandCall, CommandKind, CommandResult, CommandResultBody, Json, McpServer, Part,
    PermissionUpdate, PromptId, SessionEvent, SessionId, ToolCall, Verdict,
};
use qwen_tools::Registry;

use crate::settings::Config;
use crate::setup::Parts;

/// Where a command runs.
pub struct Desk<'c, 'a> {
    pub config: &'c Config,
    pub parts: &'a Parts,
    /// None while a turn runs in it, or where none can be had.
    pub session: Option<&'a mut Session>,
    pub session_id: SessionId,
    pub prompt_id: PromptId,
    pub spent: Spent,
    pub emit: &'a Emitter,
    pub cancel: &'a Cancel,
}

/// What follows a command.
pub enum Next {
    /// Nothing; whether it went well.
    Over { failed: bool },
    /// A turn with this prompt.
    Turn(Arc<str>),
    /// Another session: the one that is named, or a copy of this one.
    Switch(Option<SessionId>),
    /// The end.
    Quit,
}

/// The command that a prompt is: declared, or typed.
pub fn command(parts: &Parts, said: &[Part], declared: Option<&CommandCall>) -> Option<CommandCall> {
    if let Some(call) = declared {
        return Some(call.clone());
    }
    let mut texts = said.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    let first = texts.next()?;
    parse(first, &parts.commands).filter(|_| texts.next().is_none())
}

/// A command that has been understood, and may still have something to do.
pub struct Begun<'a> {
    parts: &'a Parts,
    session: Option<&'a mut Session>,
    session_id: SessionId,
    prompt_id: PromptId,
    emit: &'a Emitter,
    cancel: &'a Cancel,
    call: CommandCall,
    body: CommandResultBody,
    action: Option<Action>,
}

impl<'a> Desk<'_, 'a> {
    /// Runs a command and tells what came of it.
    pub async fn run(self, call: CommandCall) -> Next {
        self.begin(call).finish().await
    }

    /// Understands a command. What takes its time is left to [`Begun::finish`].
    pub fn begin(self, call: CommandCall) -> Begun<'a> {
        let done = {
            let setup = self.session.as_ref().map(|session| session.setup());
            let tools = setup.map_or_else(|| Registry::builtin().specs(), |setup| setup.tools.specs());
            let status = self.parts.mcp.status();
            let servers: Vec<McpServer> = status
                .iter()
                .map(|server| McpServer { name: server.name.clone(), status: server.status.name().into() })
                .collect();
            let cx = CommandCx {
                session_id: &self.session_id,
                cwd: &self.config.cwd,
                model: self.parts.dials.model().unwrap_or_else(|| self.config.model_name.clone()),
                mode: self.parts.permissions.mode(),
                history: self.session.as_ref().map(|session| session.history()),
                spent: self.spent,
                tools: &tools,
                agents: setup.map_or(&[], |setup| &setup.agents),
                mcp_servers: &servers,
                hooks: &self.config.hooks,
                memory_files: &self.parts.memory.files,
                rules: self.parts.permissions.rules(),
                store: self.config.store.as_ref().filter(|_| self.config.record),
            };
            self.parts.commands.run(&call, &cx)
        };
        let Self { parts, session, session_id, prompt_id, emit, cancel, .. } = self;
        let Done { body, action } = done;
        Begun { parts, session, session_id, prompt_id, emit, cancel, call, body, action }
    }
}

impl Begun<'_> {
    /// Does what is left to do, and tells what came of the command.
    pub async fn finish(mut self) -> Next {
        let mut next = Next::Over { failed: is_error(&self.body) };
        match self.action.take() {
            None => {}
            Some(Action::Submit(prompt)) => next = Next::Turn(prompt),
            Some(Action::Quit) => next = Next::Quit,
            Some(Action::Resume(id)) => next = Next::Switch(Some(id)),
            Some(Action::Fork) => next = Next::Switch(None),
            Some(action) => {
                if let Err(problem) = self.act(action).await {
                    self.body = Done::fail(problem).body;
                    next = Next::Over { failed: true };
                }
            }
        }
        let Self { session_id, prompt_id, call: command, body, .. } = self;
        let result = CommandResult { session_id, prompt_id, command, body };
        self.emit.emit(Body::CommandResult(Box::new(result))).await;
        next
    }

    /// Does what a command left to do in the session.
    async fn act(&mut self, action: Action) -> Result<(), String> {
        let dials = &self.parts.dials;
        match (action, self.session.as_deref_mut()) {
            (Action::SwitchModel(model), _) => dials.set_model(model),
            (Action::SetMode(mode), _) => {
                let update = PermissionUpdate::SetMode(mode.clone());
                self.parts.permissions.update(&update).map_err(|error| error.to_string())?;
                self.emit.emit(Body::Session(Box::new(SessionEvent::ModeChanged { mode }))).await;
            }
            (Action::Clear, Some(session)) => {
                session.end("clear", self.emit).await;
                session.replace_history(Vec::new());
            }
            (Action::Undo, Some(session)) => session.undo(),
            (Action::Compress(wish), Some(session)) => {
                let compressed = session.compress(&wish, self.emit, self.cancel).await;
                compressed.map_err(|error| error.to_string())?;
            }
            _ => return Err("This needs a session, and there is none yet.".to_owned()),
        }
        Ok(())
    }
}

fn is_error(body: &CommandResultBody) -> bool {
    matches!(body, CommandResultBody::Message { level: qwen_events::Level::Error, .. })
}

/// What the references of a prompt name, to be sent along with it. A prompt that starts with one is told as a command.
pub async fn attach(
    said: &[Part],
    parts: &Parts,
    session: &Session,
    prompt_id: &PromptId,
    emit: &Emitter,
) -> Vec<Part> {
    let place = &session.setup().place;
    let may_read = |path: &Path| {
        let call = ToolCall {
            id: CallId::new("@"),
            name: "read_file".into(),
            arguments: Json::trusted(serde_json::json!({"file_path": path.to_string_lossy()}).to_string()),
            malformed: None,
        };
        parts.permissions.judge(&call).decision.verdict == Verdict::Allow
    };
    let attached = at::attachments(said, &place.cwd, &place.extra_roots, may_read);
    if !attached.is_empty()
        && let Some(Part::Text(text)) = said.first()
        && let Some((path, rest)) = at::leading(text)
    {
        let command = CommandCall { kind: CommandKind::At, path: vec![path.into()], args: rest.into() };
        let body = CommandResultBody::SubmitPrompt { content: text.clone() };
        let result = CommandResult {
            session_id: session.setup().id.clone(),
            prompt_id: prompt_id.clone(),
            command,
            body,
        };
        emit.emit(Body::CommandResult(Box::new(result))).await;
    }
    attached
}
