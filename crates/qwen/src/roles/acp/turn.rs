//! Prompts, steering, cancellation, and changes of mode, model and thought level.

use qwen_dialects::acp::wire::SessionUpdate;
use qwen_dialects::acp::{one_line, prompt_parts};
use qwen_engine::log::derive_title;
use qwen_events::SessionId;
use serde_json::{Value, json};

use super::connection::{EditorConnection, PendingControl};
use super::kernel;
use super::session::{EFFORT_OPTION, MODE_OPTION, MODEL_OPTION, Session, ShownUpdates, Steering, Turn};
use qwen_dialects::acp::rpc::{INVALID_REQUEST, RpcError, RpcId, list, text};

/// The outcome of a prompt that joined the running turn.
pub(super) const INJECTED: &str = "injected";

/// The longest name of a model.
const MAX_MODEL: usize = 200;

impl EditorConnection<'_> {
    pub(super) fn prompt(&mut self, request: &RpcId, params: &Value) -> Result<(), RpcError> {
        let prompt_id = self.mint_id("prompt");
        let session = self.named_session(params)?;
        if session.turn.is_some() {
            let message = "a prompt runs in this session; wait for its answer, cancel it with session/cancel, or join it \
                           with _session/steering";
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        let content = prompt_parts(list(params, "prompt", true)?)?;
        if session.title.is_none() {
            let text = content.parts.iter().find_map(|part| part.as_text()).unwrap_or_default();
            session.title = Some(one_line(&derive_title(text)));
        }
        let id = session.id.clone();
        session.turn = Some(Turn {
            prompt_id: prompt_id.clone(),
            request: request.clone(),
            is_cancelled: false,
            steering: Vec::new(),
            content: content.clone(),
            shown: ShownUpdates::default(),
            held_result: None,
        });
        self.prompts.insert(prompt_id.clone(), id.clone());
        kernel::prompt(&self.hub, &id, &prompt_id, &content, false);
        Ok(())
    }

    /// Sends a prompt that joins the running turn. Without a turn the client is to send it as a prompt.
    pub(super) fn steer(&mut self, request: &RpcId, params: &Value) -> Result<Option<Value>, RpcError> {
        let prompt_id = self.mint_id("steer");
        let session = self.named_session(params)?;
        let content = prompt_parts(list(params, "prompt", true)?)?;
        let id = session.id.clone();
        let Some(turn) =
            session.turn.as_mut().filter(|turn| !turn.is_cancelled && turn.held_result.is_none())
        else {
            return Ok(Some(json!({"outcome": "promptRequired"})));
        };
        let steering =
            Steering { prompt_id: prompt_id.clone(), request: request.clone(), content: content.clone() };
        turn.steering.push(steering);
        self.prompts.insert(prompt_id.clone(), id.clone());
        kernel::prompt(&self.hub, &id, &prompt_id, &content, true);
        Ok(None)
    }

    /// A prompt joined the turn, or could not.
    pub(super) fn steered(&mut self, prompt_id: &str, outcome: &str) {
        let Some(id) = self.prompts.remove(prompt_id) else { return };
        let Some(turn) = self.sessions.get_mut(&id).and_then(|session| session.turn.as_mut()) else { return };
        let Some(at) = turn.steering.iter().position(|steering| steering.prompt_id == prompt_id) else {
            return;
        };
        let steering = turn.steering.remove(at);
        if outcome == INJECTED {
            turn.shown.push_prompt(&id, &steering);
        }
        let held = if turn.steering.is_empty() { turn.held_result.take() } else { None };
        self.respond(&steering.request, &Ok(json!({"outcome": outcome})));
        if let Some(result) = held {
            self.finish_turn(&id, result);
        }
    }

    /// Cancels the turn of a session, if there is one.
    pub(super) fn cancel_turn(&mut self, id: &SessionId) {
        let Some(turn) = self.sessions.get_mut(id).and_then(|session| session.turn.as_mut()) else { return };
        turn.is_cancelled = true;
        let prompts = std::iter::once(turn.prompt_id.clone());
        let prompts: Vec<String> =
            prompts.chain(turn.steering.iter().map(|steering| steering.prompt_id.clone())).collect();
        for prompt_id in prompts {
            kernel::cancel(&self.hub, id, &prompt_id);
        }
    }

    /// Cancels the turns of all sessions: the client has gone.
    pub fn cancel_all(&mut self) {
        let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.cancel_turn(&id);
        }
    }

    /// The turn of a prompt has ended with this result.
    pub(super) fn turn_ended(&mut self, prompt_id: &str, result: Result<Value, RpcError>) {
        let Some(id) = self.prompts.get(prompt_id).cloned() else { return };
        let Some(turn) = self.sessions.get_mut(&id).and_then(|session| session.turn.as_mut()) else {
            self.prompts.remove(prompt_id);
            return;
        };
        if turn.prompt_id != prompt_id {
            // A steered prompt that came too late and became a turn, or was refused.
            let is_cancelled =
                |value: &Value| value.get("stopReason").is_some_and(|reason| reason == "cancelled");
            let outcome = match &result {
                Ok(value) if !is_cancelled(value) => "startedNewTurn",
                _ => "failed",
            };
            return self.steered(prompt_id, outcome);
        }
        self.prompts.remove(prompt_id);
        if turn.steering.is_empty() {
            self.finish_turn(&id, result);
        } else {
            turn.held_result = Some(result);
        }
    }

    /// Answers the prompt.
    fn finish_turn(&mut self, id: &SessionId, result: Result<Value, RpcError>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.take() else { return };
        let is_command = matches!(&result, Ok(value) if value.pointer("/_meta/qwen/command").is_some());
        if is_command && session.title.as_ref().is_some_and(|title| !title.is_empty()) {
            // The first message of the conversation names the session.
            session.title = None;
        }
        let title = session.title.as_mut().map(std::mem::take).filter(|title| !title.is_empty());
        let result = match result {
            Ok(mut value) if turn.is_cancelled => {
                value["stopReason"] = "cancelled".into();
                Ok(value)
            }
            Err(_) if turn.is_cancelled => Ok(json!({"stopReason": "cancelled"})),
            result => result,
        };
        if let Some(title) = title {
            let title = Some(title.into());
            self.update(id, &SessionUpdate::SessionInfoUpdate { title, updated_at: None });
        }
        self.withdraw_questions(id);
        self.respond(&turn.request, &result);
        self.close_if_idle(id);
    }

    pub(super) fn set_mode(&mut self, request: &RpcId, params: &Value) -> Result<Option<Value>, RpcError> {
        let control = self.mint_id("mode");
        let session = self.named_session(params)?;
        let mode = text(params, "modeId")?.to_owned();
        require_mode(session, &mode)?;
        let id = session.id.clone();
        let pending = PendingControl::SetMode { request: request.clone(), mode: mode.clone() };
        self.controls.insert(control.clone(), (id.clone(), pending));
        kernel::control(&self.hub, &control, &id, json!({"subtype": "set_permission_mode", "mode": mode}));
        Ok(None)
    }

    pub(super) fn set_config_option(
        &mut self,
        request: &RpcId,
        params: &Value,
    ) -> Result<Option<Value>, RpcError> {
        let control = self.mint_id("option");
        let session = self.named_session(params)?;
        let option = text(params, "configId")?.to_owned();
        let value = text(params, "value")?.to_owned();
        let body = match option.as_str() {
            MODE_OPTION => {
                require_mode(session, &value)?;
                json!({"subtype": "set_permission_mode", "mode": value})
            }
            MODEL_OPTION => {
                if value.trim().is_empty() || value.chars().count() > MAX_MODEL || one_line(&value) != value {
                    return Err(RpcError::params("`value` is not the name of a model"));
                }
                json!({"subtype": "set_model", "model": value})
            }
            EFFORT_OPTION => {
                if !session.has_effort(&value) {
                    return Err(RpcError::params(format!("there is no thought level `{value}`")));
                }
                let effort = (value != "default").then_some(&value);
                json!({"subtype": "set_effort", "effort": effort})
            }
            other => {
                let shown: String = other.chars().take(80).collect();
                return Err(RpcError::params(format!("there is no option `{shown}`")));
            }
        };
        let id = session.id.clone();
        let pending = PendingControl::SetOption { request: request.clone(), option, value };
        self.controls.insert(control.clone(), (id.clone(), pending));
        kernel::control(&self.hub, &control, &id, body);
        Ok(None)
    }

    /// Records the mode of a session and tells the client in both forms.
    pub(super) fn mode_changed(&mut self, id: &SessionId, mode: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        mode.clone_into(&mut session.mode);
        let mut lines = Vec::new();
        let update = SessionUpdate::CurrentModeUpdate { current_mode_id: mode.into() };
        qwen_dialects::acp::push_update(id.as_str(), &update, &mut lines);
        self.out().extend_from_slice(&lines);
        self.options_changed(id);
    }

    /// Sends all options of a session.
    pub(super) fn options_changed(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        let mut lines = Vec::new();
        let update = SessionUpdate::ConfigOptionUpdate { config_options: session.config_options() };
        qwen_dialects::acp::push_update(id.as_str(), &update, &mut lines);
        self.out().extend_from_slice(&lines);
    }
}

fn require_mode(session: &Session, mode: &str) -> Result<(), RpcError> {
    if session.has_mode(mode) {
        return Ok(());
    }
    let modes = session.modes().available_modes;
    let names: Vec<&str> = modes.iter().map(|mode| &*mode.id).collect();
    let shown: String = mode.chars().take(80).collect();
    Err(RpcError::params(format!("there is no mode `{shown}`; the modes are {}", names.join(", "))))
}
