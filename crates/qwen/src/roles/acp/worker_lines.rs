//! Lines of the workers: most are passed on as they are.

use memchr::memmem;
use qwen_dialects::acp::owning_session;
use qwen_dialects::acp::wire::SessionUpdate;
use qwen_events::SessionId;
use serde_json::{Value, json};

use super::connection::{EditorConnection, PendingControl};
use super::kernel;
use super::questions::ClientQuestion;
use super::session::{EFFORT_OPTION, MODE_OPTION, MODEL_OPTION, commands};
use super::turn::INJECTED;
use qwen_dialects::acp::rpc::{INTERNAL_ERROR, RpcError};

/// The beginning of every update; its session id follows.
const UPDATE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"";

/// Between the session id and the kind of an update.
const KIND: &[u8] = b"\",\"update\":{\"sessionUpdate\":\"";

/// Updates that do not belong to a turn.
const OUTSIDE_TURNS: [&[u8]; 3] = [b"current_mode_update\"", b"notice\"", b"config_option_update\""];

/// Updates that a replay does not have.
const NOT_REPLAYED: [&[u8]; 2] = [b"usage_update\"", b"available_commands_update\""];

/// True for an update that belongs to the history of its session.
fn is_history(kind: &[u8]) -> bool {
    !OUTSIDE_TURNS.iter().chain(&NOT_REPLAYED).any(|other| kind.starts_with(other))
}

impl EditorConnection<'_> {
    /// Processes a line of a worker, without its line break.
    pub fn worker_line(&mut self, line: &[u8]) {
        if let Some(rest) = line.strip_prefix(UPDATE) {
            return self.worker_update(line, rest);
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = message.get("params").unwrap_or(&Value::Null);
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        match method {
            "" => self.prompt_response(&message),
            "session/request_permission" | "elicitation/create" => self.ask_client(line, &message),
            "$/cancel_request" if self.questions.remove(text("requestId")).is_some() => self.pass_on(line),
            "_qwen/steered" => self.steered(text("promptId"), INJECTED),
            "_qwen/control_response" => self.control_response(text("requestId"), params),
            _ => {}
        }
    }

    fn pass_on(&mut self, line: &[u8]) {
        let out = self.out();
        out.extend_from_slice(line);
        out.push(b'\n');
    }

    fn worker_update(&mut self, line: &[u8], rest: &[u8]) {
        let Some(end) = memchr::memchr(b'"', rest) else { return };
        let Some(kind) = rest[end..].strip_prefix(KIND) else { return };
        let id = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        // Updates of a sub-agent that the client shows as a separate session.
        let id = owning_session(id).unwrap_or(id);
        let Some(session) = SessionId::parse(id).ok().and_then(|id| self.sessions.get_mut(&id)) else {
            return;
        };
        if kind.starts_with(b"current_mode_update\"") {
            let (id, mode) = (session.id.clone(), update_field(line, "currentModeId"));
            // A change that the client asked for was reported with its answer.
            if mode != session.mode.as_str() {
                self.mode_changed(&id, mode.as_str().unwrap_or_default());
            }
            return;
        }
        // Work that continues after a turn, such as a background command, has no place in the client.
        if session.turn.is_none() && !OUTSIDE_TURNS.iter().any(|outside| kind.starts_with(outside)) {
            return;
        }
        if kind.starts_with(b"usage_update\"") {
            // A worker counts what it spent; the session may have been continued by several.
            let turn = update_field(line, "_meta");
            session.spent += turn.pointer("/qwen/turnCostUsd").and_then(Value::as_f64).unwrap_or_default();
            if session.spent > 0.0 {
                let (id, spent) = (session.id.clone(), session.spent);
                return self.usage(&id, line, spent);
            }
        }
        if let Some(turn) = session.turn.as_mut().filter(|_| is_history(kind)) {
            turn.shown.push(line);
        }
        self.pass_on(line);
    }

    /// Writes a usage update with the cost of the whole session.
    fn usage(&mut self, id: &SessionId, line: &[u8], spent: f64) {
        let count = |name: &str| update_field(line, name).as_u64().unwrap_or_default();
        let cost = qwen_dialects::acp::wire::Cost { amount: spent, currency: "USD".into() };
        let (used, size) = (count("used"), count("size"));
        self.update(id, &SessionUpdate::UsageUpdate { used, size, cost: Some(cost), meta: None });
    }

    /// Passes a question on, if its turn still runs.
    fn ask_client(&mut self, line: &[u8], message: &Value) {
        let id = message.pointer("/params/sessionId").and_then(Value::as_str);
        let id = id.and_then(|id| SessionId::parse(id).ok());
        let request_id = message.get("id").and_then(Value::as_str);
        let (Some(id), Some(request_id)) = (id, request_id) else { return };
        let runs = self
            .sessions
            .get(&id)
            .and_then(|session| session.turn.as_ref())
            .is_some_and(|turn| !turn.is_cancelled);
        let question = ClientQuestion::read(id, message);
        if let Some(question) = question.filter(|_| runs) {
            self.questions.insert(request_id.to_owned(), question);
            self.pass_on(line);
        }
    }

    fn prompt_response(&mut self, message: &Value) {
        let Some(prompt_id) = message.get("id").and_then(Value::as_str) else { return };
        let result = match (message.get("result"), message.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, error) => {
                let error = error.unwrap_or(&Value::Null);
                let code = error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR);
                let message = error.get("message").and_then(Value::as_str).unwrap_or("the prompt failed");
                Err(RpcError::new(code, message))
            }
        };
        let is_command = message.pointer("/result/_meta/qwen/command").is_some();
        let session = self.prompts.get(prompt_id).cloned().filter(|_| is_command);
        self.turn_ended(prompt_id, result);
        // A command may have changed the model or the thought level.
        if let Some(id) = session {
            let request = self.mint_id("settings");
            self.controls.insert(request.clone(), (id.clone(), PendingControl::Settings));
            kernel::control(&self.hub, &request, &id, json!({"subtype": "get_settings"}));
        }
    }

    /// Compares the options with the settings that a worker reports after a command.
    fn settings_reported(&mut self, id: &SessionId, params: &Value) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let effective = params.pointer("/result/effective").unwrap_or(&Value::Null);
        let reported = |name: &str| effective.get(name).and_then(Value::as_str);
        let effort = reported("effortLevel").unwrap_or("default").to_owned();
        let Some(model) = reported("model") else { return };
        if *model == *session.model && effort == session.effort {
            return;
        }
        session.model = model.into();
        session.effort = effort;
        self.options_changed(id);
    }

    fn control_response(&mut self, request_id: &str, params: &Value) {
        let Some((id, pending)) = self.controls.remove(request_id) else { return };
        let failure = params.get("error").filter(|error| !error.is_null()).map(|error| {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("the request failed");
            RpcError::new(error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR), message)
        });
        match (pending, failure) {
            (PendingControl::Initialize, None) => self.worker_initialized(&id, params),
            // The first prompt reports why the worker cannot start.
            (PendingControl::Initialize | PendingControl::Open, _) => {}
            (PendingControl::Settings, None) => self.settings_reported(&id, params),
            (PendingControl::Settings, Some(_)) => {}
            (PendingControl::Close, _) => self.closed(&id),
            (
                PendingControl::SetMode { request, .. } | PendingControl::SetOption { request, .. },
                Some(error),
            ) => {
                self.respond(&request, &Err(error));
            }
            (PendingControl::SetMode { request, mode }, None) => {
                self.respond(&request, &Ok(json!({})));
                self.mode_changed(&id, &mode);
            }
            (PendingControl::SetOption { request, option, value }, None) => {
                let Some(session) = self.sessions.get_mut(&id) else { return };
                match option.as_str() {
                    MODE_OPTION => session.mode.clone_from(&value),
                    MODEL_OPTION => session.model = value.as_str().into(),
                    EFFORT_OPTION => session.effort.clone_from(&value),
                    _ => {}
                }
                let result = json!({"configOptions": session.config_options()});
                self.respond(&request, &Ok(result));
                if option == MODE_OPTION {
                    self.mode_changed(&id, &value);
                } else {
                    self.options_changed(&id);
                }
            }
        }
    }

    /// The session's worker has started and reports its commands and its model.
    fn worker_initialized(&mut self, id: &SessionId, params: &Value) {
        let result = params.get("result").unwrap_or(&Value::Null);
        let available_commands = commands(result.get("commands").unwrap_or(&Value::Null));
        self.update(id, &SessionUpdate::AvailableCommandsUpdate { available_commands });
        let Some(session) = self.sessions.get_mut(id) else { return };
        // A server that offers one model decides which one it is.
        let model = result.pointer("/models/0/value").and_then(Value::as_str);
        if let Some(model) = model.filter(|model| **model != *session.settings.model) {
            let was_default = session.model == session.settings.model;
            session.settings.model = model.into();
            if was_default {
                session.model = model.into();
            }
            self.options_changed(id);
        }
    }
}

/// A field of the update in a line.
fn update_field(line: &[u8], name: &str) -> Value {
    // Most lines do not need to be parsed.
    if memmem::find(line, name.as_bytes()).is_none() {
        return Value::Null;
    }
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    message.pointer(&format!("/params/update/{name}")).cloned().unwrap_or_default()
}
