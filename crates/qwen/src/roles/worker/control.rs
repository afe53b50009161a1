//! Answering what the host asks on the control channel. Each answer carries the words of both families of SDKs, which
//! look only at their own.

use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::subagent;
use qwen_engine::{AnswerSchema, Stop};
use qwen_events::{
    Body, ControlBody, ControlReply, ErrorInfo, ErrorKind, Initialize, Json, PermissionUpdate, SessionEvent,
};
use qwen_permissions::Mode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mcp::{self, Change, OpenChange};
use super::serve::{Flow, Running, Worker};
use crate::runtime::exit;
use crate::session::agent_definitions;
use crate::session::setup;
use crate::settings::NEVER_ASK;

/// The version of Claude's executable whose wire we speak.
const CLAUDE_CODE_VERSION: &str = "2.1.325";

impl Worker {
    pub(super) async fn control(
        &mut self,
        request_id: Arc<str>,
        nested: bool,
        body: ControlBody,
        running: Option<Running<'_>>,
    ) -> Flow {
        let after = After::of(&body);
        let body = match body {
            ControlBody::McpReconnect(name) => {
                return self.change_mcp(request_id, nested, Change::Reconnect(name));
            }
            ControlBody::McpToggle { server, enabled } => {
                return self.change_mcp(request_id, nested, Change::Toggle(server, enabled));
            }
            ControlBody::SessionControl(wish) => return self.steer(request_id, nested, *wish).await,
            ControlBody::StopTask(id) => return self.stop_task(request_id, nested, &id).await,
            ControlBody::McpMessage { server, message } => {
                let taken = self.parts.mcp.receive(&server, &message).await;
                let result = taken
                    .map(|()| Json::empty_object())
                    .map_err(|error| ErrorInfo::new(ErrorKind::Input, "mcp_failed", error.to_string()));
                self.reply(request_id, nested, result).await;
                return Flow::On;
            }
            body => body,
        };
        let problems = match &body {
            ControlBody::Initialize(initialize) => mcp::register(&self.parts.mcp, initialize),
            _ => Vec::new(),
        };
        // Before the answer, which a slow reader may hold up.
        match (&after, running) {
            (After::Interrupt, Some(turn)) => turn.cancel.stop(Stop::cancelled()),
            (After::Interrupt, None) => drop(self.stop_agents()),
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
            // The Qwen Code SDKs for Java read exactly one line for a request.
            After::ModeChanged if succeeded && !self.config.qwen_sdk => {
                let notice = SessionEvent::ModeChanged { mode: self.parts.permissions.mode().into() };
                self.emit.emit(Body::Session(Box::new(notice))).await;
            }
            After::EndSession => return Flow::Exit(0),
            After::Interrupt | After::ModeChanged | After::Nothing => {}
        }
        Flow::On
    }

    pub(super) async fn reply(&self, request_id: Arc<str>, nested: bool, result: Result<Json, ErrorInfo>) {
        self.emit.emit(Body::ControlReply(Box::new(ControlReply { request_id, nested, result }))).await;
    }

    /// Changes an MCP server beside everything else: starting one may take its time, and nothing waits for it.
    pub(super) fn change_mcp(&mut self, request_id: Arc<str>, nested: bool, change: Change) -> Flow {
        let (servers, emit) = (self.parts.mcp.clone(), self.emit.clone());
        let (name, taken_back) = (request_id.clone(), CancellationToken::new());
        let withdrawn = taken_back.clone();
        let task = tokio::spawn(async move {
            let reply = |result| Body::ControlReply(Box::new(ControlReply { request_id, nested, result }));
            let change = mcp::change(&servers, change);
            tokio::pin!(change);
            tokio::select! {
                result = &mut change => {
                    emit.emit(reply(result.map(|value| Json::trusted(value.to_string())))).await;
                }
                () = withdrawn.cancelled() => {
                    let message = "the request was taken back";
                    emit.emit(reply(Err(ErrorInfo::new(ErrorKind::Input, "cancelled", message)))).await;
                    // A server is not left half started: what was begun comes to its end, and nobody hears of it.
                    let _ = change.await;
                }
            }
        });
        self.changes.retain(|change| !change.task.is_finished());
        self.changes.push(OpenChange { request_id: name, taken_back, task: task.abort_handle() });
        Flow::On
    }

    /// Takes back a request of the host, which still gets its one answer. One that was answered already is none any more.
    pub(super) fn control_cancel(&self, request_id: &str) {
        let meant = self.changes.iter().filter(|change| *change.request_id == *request_id);
        meant.for_each(|change| change.taken_back.cancel());
    }

    fn respond(&mut self, body: ControlBody) -> Result<Value, ErrorInfo> {
        Ok(match body {
            ControlBody::Initialize(initialize) => {
                if let Some(schema) = &initialize.json_schema {
                    let form = AnswerSchema::parse(schema.as_str())?;
                    self.parts.overrides.set_answer_schema(Some(Arc::new(form)));
                }
                self.initialize(&initialize)
            }
            ControlBody::Interrupt => {
                let waiting = self.queue.iter().filter(|queued| !queued.withdrawn);
                let names: Vec<&str> = waiting.filter_map(|queued| queued.prompt.uuid.as_deref()).collect();
                json!({"subtype": "interrupt", "still_queued": names})
            }
            ControlBody::SetModel(model) => {
                // So Claude's SDKs name the configured one.
                let model = model.filter(|name| &**name != "default");
                self.parts.overrides.set_model(model.clone());
                let now = model.unwrap_or_else(|| self.config.model_name.clone());
                json!({"subtype": "set_model", "model": &*now})
            }
            ControlBody::SetPermissionMode(word) => {
                Mode::parse(&word).ok_or_else(|| {
                    let message = format!(
                        "Invalid permission mode: {}. Valid values are: plan, default, auto-edit, auto, yolo",
                        shown(&word)
                    );
                    ErrorInfo::new(ErrorKind::Input, "invalid_mode", message).with_param("mode")
                })?;
                self.parts.permissions.update(&PermissionUpdate::SetMode(word.clone()))?;
                self.host.set_silent(&*word == NEVER_ASK);
                json!({"subtype": "set_permission_mode", "status": "updated", "mode": &*word})
            }
            ControlBody::SetEffort(effort) => {
                self.parts.overrides.set_effort(effort.clone());
                json!({"subtype": "set_effort", "effort": effort.as_deref(), "applied": true, "override": null})
            }
            ControlBody::SupportedCommands => {
                // The SDKs that ask for this take names alone, unlike in the handshake.
                let commands: Value = if self.config.dialect == Dialect::Claude {
                    self.parts.commands.list().iter().map(|command| &*command.name).collect()
                } else {
                    self.commands().into()
                };
                json!({"subtype": "supported_commands", "commands": commands})
            }
            ControlBody::McpStatus => mcp::status(&self.parts.mcp),
            ControlBody::ContextUsage { details } => self.context_usage(details),
            ControlBody::AvailableModels => self.available_models(),
            ControlBody::UsageInfo { range } => self.usage_info(range.as_deref())?,
            ControlBody::ContinueLastTurn => self.continue_last_turn(),
            ControlBody::EndSession => json!({"subtype": "end_session"}),
            ControlBody::McpReconnect(name) | ControlBody::McpToggle { server: name, .. } => {
                return Err(unknown("MCP server", &name));
            }
            ControlBody::StopTask(name) => return Err(unknown("task", &name)),
            ControlBody::SessionControl(_) => json!({}),
            ControlBody::RewindFiles { message_id, dry_run } => self.rewind_files(&message_id, dry_run)?,
            ControlBody::McpMessage { server, .. } => return Err(unknown("MCP server", &server)),
            ControlBody::Unknown(subtype) => {
                let message = format!("Unknown control request subtype: {}", shown(&subtype));
                return Err(
                    ErrorInfo::new(ErrorKind::Input, "unknown_subtype", message).with_param("subtype")
                );
            }
            ControlBody::Malformed { error, .. } => return Err(*error),
        })
    }

    fn initialize(&mut self, initialize: &Initialize) -> Value {
        if let Some(milliseconds) = initialize.permission_timeout_ms {
            self.host.set_patience(milliseconds.clamp(1, 600_000));
        }
        self.beat_every(initialize.heartbeat_ms);
        self.config.await_initialize = false;
        if initialize.effort.is_some() {
            self.parts.overrides.set_effort(initialize.effort.clone());
        }
        self.config
            .agents
            .extend(initialize.agents.iter().map(|(name, json)| agent_definitions::read(name, json)));
        if let Some(text) = &initialize.system_prompt {
            self.config.system_prompt = Some(text.to_string());
        }
        if let Some(text) = &initialize.append_system_prompt {
            self.config.append_system_prompt = Some(text.to_string());
        }
        self.config.environment_in_prompt |= initialize.environment_in_prompt;
        if !initialize.tool_aliases.is_empty() {
            self.parts.overrides.set_aliases(initialize.tool_aliases.clone());
        }
        for name in &initialize.ignored_options {
            exit::say(&format!("qwen: {name} is accepted and changes nothing here"));
        }
        if let Some(wanted) = &initialize.skills {
            self.config.skills.retain(|skill| wanted.contains(&skill.name));
            self.parts.skills = setup::skills(&self.config);
        }
        let unknown_events = self.config.hooks.set_host_hooks(&initialize.hooks);
        let unknown_events: Vec<&str> = unknown_events.iter().map(|event| &**event).collect();
        let model = &*self.config.model_name;
        let agents: Vec<Value> =
            subagent::gathered(subagent::builtin().into_iter().chain(self.config.agents.clone()))
                .iter()
                .map(|agent| json!({"name": &*agent.name, "description": &*agent.description}))
                .collect();
        json!({
            "subtype": "initialize",
            "session_id": self.session_id.as_str(),
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
            "effort_status": {"effort": self.parts.overrides.effort().as_deref(), "applied": true, "override": null},
            "commands": self.commands(),
            "agents": agents,
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": model, "displayName": model, "description": "The configured model"}],
            "account": {"apiKeySource": &*self.config.key_source},
            "pid": std::process::id(),
            "claude_code_version": CLAUDE_CODE_VERSION,
            "hook_on_failure_supported": true,
            "unknown_hook_events": unknown_events,
        })
    }

    fn commands(&self) -> Vec<Value> {
        let listed = self.parts.commands.list().into_iter();
        let described = listed.map(|command| {
            json!({"name": &*command.name, "description": &*command.description, "argumentHint": &*command.argument_hint})
        });
        described.collect()
    }
}

/// What follows an answer.
enum After {
    Nothing,
    Interrupt,
    ModeChanged,
    EndSession,
}

impl After {
    fn of(body: &ControlBody) -> Self {
        match body {
            ControlBody::Interrupt => Self::Interrupt,
            ControlBody::SetPermissionMode(_) => Self::ModeChanged,
            ControlBody::EndSession => Self::EndSession,
            _ => Self::Nothing,
        }
    }
}

pub(super) fn unknown(what: &str, name: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "not_found", format!("there is no {what} '{}'", shown(name)))
}

/// A word of the host's as an error repeats it: a huge one is not sent back whole.
fn shown(word: &str) -> String {
    word.chars().take(80).collect()
}
