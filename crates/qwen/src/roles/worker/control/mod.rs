//! The control channel: answers the host's control requests. Each answer carries the fields of both SDK
//! families, which read only their own.

mod files;
mod host_settings;
mod mcp;
mod reports;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use qwen_dialects::Dialect;
use qwen_engine::subagent::AgentDefinition;
use qwen_engine::{AnswerSchema, Stop};
use qwen_events::{
    Body, CallId, ControlBody, ControlReply, ErrorInfo, ErrorKind, Initialize, Json, PermissionUpdate,
    SessionControl, SessionEvent, SessionReport,
};
use qwen_permissions::Mode;
use serde_json::{Value, json};

use self::host_settings::HostSettings;
use self::mcp::{McpChange, McpControl};
use super::usage;
use super::worker::{Flow, RunningTurn, Worker};
use crate::runtime::exit;
use crate::session::agent_definitions;
use crate::session::setup;
use crate::settings::OutputStyle;

/// The version of Claude's executable whose wire we implement.
const CLAUDE_CODE_VERSION: &str = "2.1.325";

/// The state of the control channel.
#[derive(Default)]
pub(super) struct ControlChannel {
    mcp: McpControl,
    settings: HostSettings,
    /// The only skills that the host wants; none if it wants all.
    wanted_skills: Option<Vec<Arc<str>>>,
    /// True if skills were read again since the session was last used.
    skills_changed: bool,
}

impl ControlChannel {
    /// True if the session must get the skills of the process; it then counts as done.
    pub fn take_changed_skills(&mut self) -> bool {
        std::mem::take(&mut self.skills_changed)
    }

    /// Cancels a request of the host, which is still answered once.
    pub fn cancel(&self, request_id: &str) {
        self.mcp.cancel(request_id);
    }
}

impl Worker {
    pub(super) async fn control(
        &mut self,
        request_id: Arc<str>,
        nested: bool,
        body: ControlBody,
        running: Option<RunningTurn<'_>>,
    ) -> Flow {
        let after = AfterReply::decide(&body);
        let Some(body) = self.control_in_background(&request_id, nested, body).await else {
            return Flow::Continue;
        };
        let problems = match &body {
            ControlBody::Initialize(initialize) => mcp::register(&self.process.services.mcp, initialize),
            _ => Vec::new(),
        };
        // Before the reply, which a slow reader may delay.
        match (&after, running) {
            (AfterReply::Interrupt, Some(turn)) => turn.cancel.stop(Stop::cancelled()),
            (AfterReply::Interrupt, None) => drop(self.stop_agents()),
            _ => {}
        }
        let result = self.respond(body);
        let succeeded = result.is_ok();
        let result = result.map(|value| Json::trusted(value.to_string()));
        self.reply(request_id, nested, result).await;
        for problem in problems {
            self.emit.emit(Body::Error(Box::new(problem))).await;
        }
        match after {
            // The Qwen Code SDK for Java reads exactly one line per request.
            AfterReply::ModeChanged if succeeded && !self.process.config.claude.qwen_sdk => {
                let notice =
                    SessionEvent::ModeChanged { mode: self.process.services.permissions.mode().into() };
                self.emit.emit(Body::Session(Box::new(notice))).await;
            }
            AfterReply::EndSession => return Flow::Exit(0),
            AfterReply::Interrupt | AfterReply::ModeChanged | AfterReply::Nothing => {}
        }
        Flow::Continue
    }

    /// Handles the requests that are answered when their work is done, or whose answer needs a wait. Returns all
    /// others.
    async fn control_in_background(
        &mut self,
        request_id: &Arc<str>,
        nested: bool,
        body: ControlBody,
    ) -> Option<ControlBody> {
        let request_id = request_id.clone();
        match body {
            ControlBody::McpReconnect(name) => {
                self.change_mcp(request_id, nested, McpChange::Reconnect(name));
            }
            ControlBody::McpToggle { server, enabled } => {
                self.change_mcp(request_id, nested, McpChange::Toggle(server, enabled));
            }
            ControlBody::SessionControl(request) => match *request {
                SessionControl::McpServers(servers) => {
                    let change = self.control.mcp.replacement(servers, &self.process.services.mcp);
                    self.change_mcp(request_id, nested, change);
                }
                SessionControl::ReadResource { server, uri } => {
                    self.change_mcp(request_id, nested, McpChange::Read { server, uri });
                }
                SessionControl::Report(SessionReport::TaskOutput(id)) => {
                    let output = self.task_output(&id).await;
                    self.reply(request_id, nested, output.map(|value| Json::trusted(value.to_string())))
                        .await;
                }
                SessionControl::Report(SessionReport::Files(typed)) => {
                    self.hints.suggest_files(&typed, request_id, nested, &self.process, &self.emit);
                }
                request => return Some(ControlBody::SessionControl(Box::new(request))),
            },
            ControlBody::StopTask(id) => {
                self.stop_task(request_id, nested, &id).await;
            }
            ControlBody::McpMessage { server, message } => {
                let taken = self.process.services.mcp.receive(&server, &message).await;
                let result = taken
                    .map(|()| Json::empty_object())
                    .map_err(|error| ErrorInfo::new(ErrorKind::Input, "mcp_failed", error.to_string()));
                self.reply(request_id, nested, result).await;
            }
            body @ (ControlBody::Initialize(..)
            | ControlBody::Interrupt
            | ControlBody::SetModel(..)
            | ControlBody::SetPermissionMode(..)
            | ControlBody::SetEffort(..)
            | ControlBody::SupportedCommands
            | ControlBody::McpStatus
            | ControlBody::ContextUsage { .. }
            | ControlBody::AvailableModels
            | ControlBody::UsageInfo { .. }
            | ControlBody::ContinueLastTurn { .. }
            | ControlBody::RewindFiles { .. }
            | ControlBody::BackgroundTasks(..)
            | ControlBody::EndSession
            | ControlBody::Unknown(..)
            | ControlBody::Malformed { .. }) => return Some(body),
        }
        None
    }

    pub(super) async fn reply(&self, request_id: Arc<str>, nested: bool, result: Result<Json, ErrorInfo>) {
        self.emit.emit(Body::ControlReply(Box::new(ControlReply { request_id, nested, result }))).await;
    }

    fn change_mcp(&mut self, request_id: Arc<str>, nested: bool, change: McpChange) {
        let (servers, emit) = (self.process.services.mcp.clone(), self.emit.clone());
        self.control.mcp.start(change, request_id, nested, servers, emit);
    }

    /// Stops a background task. The reply does not wait for its end, which is reported as an event.
    async fn stop_task(&self, request_id: Arc<str>, nested: bool, id: &str) {
        let Some(task) = self.resources.upgrade().and_then(|resources| resources.tasks.get(id)) else {
            return self.reply(request_id, nested, Err(unknown("task", id))).await;
        };
        self.reply(request_id, nested, Ok(Json::empty_object())).await;
        task.stop();
    }

    /// Moves the command of a call, or of all calls that wait for one, to the background. Claude's SDKs read from the
    /// answer whether there was such a call; for other hosts it is an error if there was none.
    fn move_to_background(&self, call: Option<&CallId>) -> Result<Value, ErrorInfo> {
        let moved = self.resources.upgrade().map_or(0, |resources| resources.tasks.move_to_background(call));
        match call {
            Some(call) if moved == 0 && !self.process.config.claude.claude_family => {
                Err(unknown("running command", call.as_str()))
            }
            _ => {
                let backgrounded = call.is_none() || moved > 0;
                Ok(json!({"subtype": "background_tasks", "moved": moved, "backgrounded": backgrounded}))
            }
        }
    }

    /// Stops the sub-agents that run between turns. Returns false if none runs.
    pub(super) fn stop_agents(&self) -> bool {
        self.resources.upgrade().is_some_and(|resources| resources.tasks.stop_agents())
    }

    fn respond(&mut self, body: ControlBody) -> Result<Value, ErrorInfo> {
        Ok(match body {
            ControlBody::Initialize(initialize) => {
                if let Some(schema) = &initialize.json_schema {
                    let form = AnswerSchema::parse(schema.as_str())?;
                    self.process.services.overrides.set_answer_schema(Some(Arc::new(form)));
                }
                self.initialize(&initialize)
            }
            ControlBody::Interrupt => {
                json!({"subtype": "interrupt", "still_queued": self.queue.waiting_uuids()})
            }
            ControlBody::SetModel(model) => {
                // The Claude SDKs use this name for the configured model.
                let model = model.filter(|name| &**name != "default");
                self.process.services.overrides.set_model(model.clone());
                let now = model.unwrap_or_else(|| self.process.config.model.name.clone());
                json!({"subtype": "set_model", "model": &*now})
            }
            ControlBody::SetPermissionMode(word) => {
                Mode::parse(&word).ok_or_else(|| {
                    let message = format!(
                        "Invalid permission mode: {}. Valid values are: plan, default, auto-edit, auto, yolo",
                        shorten(&word)
                    );
                    ErrorInfo::new(ErrorKind::Input, "invalid_mode", message).with_param("mode")
                })?;
                self.process.services.permissions.update(&PermissionUpdate::SetMode(word.clone()))?;
                json!({"subtype": "set_permission_mode", "status": "updated", "mode": &*word})
            }
            ControlBody::SetEffort(effort) => {
                self.process.services.overrides.set_effort(effort.clone());
                json!({"subtype": "set_effort", "effort": effort.as_deref(), "applied": true, "override": null})
            }
            ControlBody::SupportedCommands => {
                // The SDKs that send this request expect names only, unlike in the handshake.
                let commands: Value = if self.process.config.stream.dialect == Dialect::Claude {
                    self.process.commands.list().iter().map(|command| &*command.name).collect()
                } else {
                    self.commands().into()
                };
                json!({"subtype": "supported_commands", "commands": commands})
            }
            ControlBody::McpStatus => mcp::status(&self.process.services.mcp),
            ControlBody::ContextUsage { details } => {
                self.usage.context_usage(&self.process, self.sessions.claimed_tokens(), details)
            }
            ControlBody::AvailableModels => usage::available_models(&self.process),
            ControlBody::UsageInfo { range } => {
                self.usage.usage_info(range.as_deref(), self.changed_lines())?
            }
            ControlBody::ContinueLastTurn { replay } => self.continue_last_turn(replay),
            ControlBody::EndSession => json!({"subtype": "end_session"}),
            ControlBody::McpReconnect(name) | ControlBody::McpToggle { server: name, .. } => {
                return Err(unknown("MCP server", &name));
            }
            ControlBody::BackgroundTasks(call) => self.move_to_background(call.as_ref())?,
            ControlBody::StopTask(name) => return Err(unknown("task", &name)),
            ControlBody::SessionControl(request) => self.apply_host_request(*request)?,
            ControlBody::RewindFiles { message_id, dry_run } => self.rewind_files(&message_id, dry_run)?,
            ControlBody::McpMessage { server, .. } => return Err(unknown("MCP server", &server)),
            ControlBody::Unknown(subtype) => {
                let message = format!("Unknown control request subtype: {}", shorten(&subtype));
                return Err(
                    ErrorInfo::new(ErrorKind::Input, "unknown_subtype", message).with_param("subtype")
                );
            }
            ControlBody::Malformed { error, .. } => return Err(*error),
        })
    }

    /// Handles requests that only Claude hosts send.
    fn apply_host_request(&mut self, request: SessionControl) -> Result<Value, ErrorInfo> {
        match request {
            SessionControl::Thinking { tokens, display } => {
                HostSettings::set_thinking(&self.process, &tokens, &display)
            }
            SessionControl::FlagSettings(settings) => self.control.settings.apply(&self.process, &settings),
            SessionControl::SeenFile { path, mtime_ms } => {
                if let Some(resources) = self.resources.upgrade() {
                    files::record_read(&self.process, &resources, &path, mtime_ms);
                }
                Ok(json!({}))
            }
            SessionControl::ReadFile { path, max_bytes, base64 } => {
                files::read(&self.process, &path, max_bytes, base64)
            }
            SessionControl::ReloadOutputStyles => {
                Ok(json!({"available_output_styles": OutputStyle::available().collect::<Vec<_>>()}))
            }
            SessionControl::WithdrawPrompt(uuid) => Ok(json!({"cancelled": self.queue.forget(&uuid)})),
            SessionControl::Report(report) => self.report(&report),
            SessionControl::ReloadSkills => Ok(self.reload_skills()),
            SessionControl::ReloadPlugins { adds_some: true } => {
                let message = "plugins are loaded at the start only; name them with --plugin-dir";
                Err(ErrorInfo::new(ErrorKind::Input, "unsupported", message).with_param("add_plugins"))
            }
            SessionControl::ReloadPlugins { adds_some: false } => Ok(self.plugin_state()),
            SessionControl::Rename(title) => self.rename_session(&title),
            SessionControl::AddDirectory(directory) => self.add_directory(&directory),
            SessionControl::ServerMode { server, mode } => self.set_server_mode(&server, mode.as_deref()),
            // Server changes are applied in a separate task, see `control`.
            SessionControl::Watched | SessionControl::McpServers(_) | SessionControl::ReadResource { .. } => {
                Ok(json!({}))
            }
        }
    }

    fn continue_last_turn(&mut self, replay: bool) -> Value {
        let interruption = match self.sessions.unfinished() {
            None => "none",
            Some(unfinished) if unfinished.model_calls == 0 => "interrupted_prompt",
            Some(_) => "interrupted_turn",
        };
        let accepted = interruption != "none";
        if accepted {
            self.queue.push_continuation(replay);
        }
        json!({"subtype": "continue_last_turn", "accepted": accepted, "interruption": interruption})
    }

    fn rewind_files(&self, message_id: &str, dry_run: bool) -> Result<Value, ErrorInfo> {
        let session = self.sessions.idle().ok_or_else(|| {
            let message = "there is no session, or a turn runs in it; files are restored between turns";
            ErrorInfo::new(ErrorKind::Input, "no_idle_session", message)
        })?;
        let rewound = session.rewind(message_id, dry_run)?;
        let texts = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let changed = [texts(&rewound.restored), texts(&rewound.removed)].concat();
        Ok(json!({
            "subtype": "rewind_files",
            "canRewind": true,
            "filesChanged": changed,
            "skippedLinks": texts(&rewound.skipped),
            "skippedEdited": texts(&rewound.edited),
            "commandsNotUndone": rewound.commands,
        }))
    }

    fn initialize(&mut self, initialize: &Initialize) -> Value {
        if let Some(milliseconds) = initialize.permission_timeout_ms {
            self.host.set_timeout(milliseconds.clamp(1, 600_000));
        }
        self.set_heartbeat_interval(initialize.heartbeat_ms);
        self.awaits_initialize = false;
        self.apply_agent_options(initialize);
        if initialize.effort.is_some() {
            self.process.services.overrides.set_effort(initialize.effort.clone());
        }
        if !initialize.tool_aliases.is_empty() {
            self.process.services.overrides.set_aliases(initialize.tool_aliases.clone());
        }
        for name in &initialize.ignored_options {
            exit::report(&format!("qwen: {name} is accepted and changes nothing here"));
        }
        let unknown_events = self.process.config.extensions.hooks.set_host_hooks(&initialize.hooks);
        let unknown_events: Vec<&str> = unknown_events.iter().map(|event| &**event).collect();
        for event in &unknown_events {
            exit::report(&format!("qwen: hooks for the event {event} never run here"));
        }
        json!({
            "subtype": "initialize",
            "session_id": self.sessions.id().as_str(),
            "capabilities": {
                "can_handle_can_use_tool": true,
                "can_handle_hook_callback": true,
                "can_set_permission_mode": true,
                "can_set_model": true,
                "can_set_effort": true,
                "can_get_context_usage": true,
                "can_get_available_models": true,
                "can_get_usage_info": true,
                "can_handle_mcp_message": true,
            },
            "effort_status": {"effort": self.process.services.overrides.effort().as_deref(), "applied": true, "override": null},
            "commands": self.commands(),
            "agents": self.agents(),
            "output_style": self.process.config.agent.output_style.name,
            "available_output_styles": OutputStyle::available().collect::<Vec<_>>(),
            "models": self.models(),
            "account": {"apiKeySource": &*self.process.config.model.key_source},
            "pid": std::process::id(),
            "claude_code_version": CLAUDE_CODE_VERSION,
            "hook_on_failure_supported": true,
            "unknown_hook_events": unknown_events,
        })
    }

    /// Applies the agent options of the handshake: prompts, sub-agents and skills.
    fn apply_agent_options(&mut self, initialize: &Initialize) {
        let config = Arc::make_mut(&mut self.process.config);
        if let (Some(forwards), Some(wanted)) =
            (&config.claude.forwards_agent_text, initialize.forward_agent_text)
        {
            forwards.store(wanted, Ordering::Relaxed);
        }
        let agent = &mut config.agent;
        agent.has_agents &= !initialize.without_agents;
        let definitions = initialize.agents.iter();
        agent.definitions.extend(definitions.map(|(name, json)| agent_definitions::read(name, json)));
        if let Some(text) = &initialize.system_prompt {
            agent.system_prompt = Some(text.to_string());
        }
        if let Some(text) = &initialize.append_system_prompt {
            agent.append_system_prompt = Some(text.to_string());
        }
        if let Some(text) = &initialize.policy_description {
            self.process.services.overrides.set_policy_description(Some(text));
        }
        agent.environment_in_prompt |= initialize.environment_in_prompt;
        if let Some(wanted) = &initialize.skills {
            agent.skills.retain(|skill| wanted.contains(&skill.name));
            self.control.wanted_skills = Some(wanted.clone());
            self.process.skills = setup::skills(&self.process.config);
        }
    }

    fn agents(&self) -> Vec<Value> {
        let agents = setup::agents(&self.process.config);
        let described =
            |agent: &AgentDefinition| json!({"name": &*agent.name, "description": &*agent.description});
        agents.iter().map(described).collect()
    }

    fn commands(&self) -> Vec<Value> {
        let listed = self.process.commands.list().into_iter();
        let described = listed.map(|command| {
            json!({"name": &*command.name, "description": &*command.description, "argumentHint": &*command.argument_hint})
        });
        described.collect()
    }
}

/// The action after a reply.
enum AfterReply {
    Nothing,
    Interrupt,
    ModeChanged,
    EndSession,
}

impl AfterReply {
    fn decide(body: &ControlBody) -> Self {
        match body {
            ControlBody::Interrupt => Self::Interrupt,
            ControlBody::SetPermissionMode(_) => Self::ModeChanged,
            ControlBody::EndSession => Self::EndSession,
            _ => Self::Nothing,
        }
    }
}

fn unknown(what: &str, name: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "not_found", format!("there is no {what} '{}'", shorten(name)))
}

/// Shortens a string of the host for an error message.
fn shorten(word: &str) -> String {
    word.chars().take(80).collect()
}
