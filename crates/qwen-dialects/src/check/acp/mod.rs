//! The rules of `acp`. Updates of a turn open it; the response to its prompt ends it. Updates about the session
//! itself may stand anywhere.

use serde_json::Value;

use super::Rules;
use super::bounded::{Idle, Names, Sessions};
use super::calls::Calls;
use super::report::Report;
use super::syntax::{Object, Violation, word};
use crate::acp::wire::{
    CancelMethod, CancelParams, Elicitation, ElicitationMethod, ErrorResponse, Internal, InternalMethod,
    Notification, PermissionMethod, PermissionRequest, PromptResponse, Request, SessionUpdate, ToolUpdate,
    UpdateMethod, UpdateParams,
};

const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];

#[derive(Default)]
pub(super) struct AcpRules {
    sessions: Sessions<SessionState>,
    /// The prompts that were answered.
    prompts: Names,
    /// The session of the last update, to which a response belongs.
    current: Option<String>,
}

#[derive(Default)]
struct SessionState {
    in_turn: bool,
    calls: Calls,
}

impl Idle for SessionState {
    fn is_idle(&self) -> bool {
        !self.in_turn
    }
}

/// One message.
enum Message<'a> {
    Update(Box<UpdateParams<'a>>),
    Response(String),
    /// The process ends, and with it every turn.
    Fatal,
    Other,
}

fn read<'a>(object: &'a Object<'_>) -> Result<Message<'a>, Violation> {
    let Some(method) = object.str("method") else {
        return match (object.has("result"), object.has("error")) {
            (true, false) => {
                object.read::<PromptResponse<'_>>().map(|response| Message::Response(response.id.into()))
            }
            (false, true) => {
                object.read::<ErrorResponse<'_>>().map(|response| Message::Response(response.id.into()))
            }
            _ => Err(Violation::new("shape", "a response has exactly one of `result` and `error`")),
        };
    };
    match method {
        "session/update" => {
            let kind = object.get("params").and_then(|params| params.get("update")?.get("sessionUpdate"));
            let update = object.read::<Notification<UpdateMethod, UpdateParams<'_>>>().map_err(
                |violation| match kind.and_then(Value::as_str) {
                    Some(kind) if violation.message.contains("unknown variant") => {
                        Violation::new("unknown-type", format!("the dialect has no update `{kind}`"))
                    }
                    _ => violation,
                },
            )?;
            check_words(&update.params.update)?;
            Ok(Message::Update(Box::new(update.params)))
        }
        "session/request_permission" => {
            let request = object.read::<Request<'_, PermissionMethod, PermissionRequest<'_>>>()?;
            for option in &request.params.options {
                let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
                word("options[].kind", &option.kind, &kinds)?;
            }
            Ok(Message::Other)
        }
        "elicitation/create" => {
            object.read::<Request<'_, ElicitationMethod, Elicitation<'_>>>().map(|_| Message::Other)
        }
        "$/cancel_request" => {
            object.read::<Notification<CancelMethod, CancelParams<'_>>>().map(|_| Message::Other)
        }
        method if method.starts_with("_qwen/") => {
            let read = object.read::<Notification<InternalMethod, Internal<'_>>>()?;
            Ok(if read.method == InternalMethod::Fatal { Message::Fatal } else { Message::Other })
        }
        method if method.starts_with('_') => Ok(Message::Other),
        other => Err(Violation::new("unknown-type", format!("the dialect has no method `{other}`"))),
    }
}

fn check_words(update: &SessionUpdate<'_>) -> Result<(), Violation> {
    match update {
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
            if let Some(kind) = &call.kind {
                word("kind", kind, &KINDS)?;
            }
            if let Some(status) = &call.status {
                word("status", status, &STATUSES)?;
            }
            let is_new = matches!(update, SessionUpdate::ToolCall(_));
            if is_new && call.title.is_none() {
                return Err(Violation::new("shape", "a `tool_call` has a `title`"));
            }
            Ok(())
        }
        SessionUpdate::Plan { entries } => entries.iter().try_for_each(|entry| {
            word("entries[].priority", &entry.priority, &["high", "medium", "low"])?;
            word("entries[].status", &entry.status, &["pending", "in_progress", "completed"])
        }),
        _ => Ok(()),
    }
}

impl SessionState {
    fn update(&mut self, update: &SessionUpdate<'_>, report: &mut Report) {
        match update {
            SessionUpdate::ToolCall(call) => {
                self.in_turn = true;
                self.calls.record_call(&call.tool_call_id, report);
                self.end(call, report);
            }
            SessionUpdate::ToolCallUpdate(call) => {
                self.in_turn = true;
                self.calls.check_question(&call.tool_call_id, report);
                self.end(call, report);
            }
            SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::Plan { .. } => self.in_turn = true,
            SessionUpdate::AvailableCommandsUpdate { .. }
            | SessionUpdate::CurrentModeUpdate { .. }
            | SessionUpdate::ConfigOptionUpdate { .. }
            | SessionUpdate::SessionInfoUpdate { .. }
            | SessionUpdate::UsageUpdate { .. }
            | SessionUpdate::SubagentSpawned { .. }
            | SessionUpdate::SubagentStateUpdate { .. }
            | SessionUpdate::Notice { .. }
            | SessionUpdate::CompactionUpdate { .. } => {}
        }
    }

    fn end(&mut self, call: &ToolUpdate<'_>, report: &mut Report) {
        if matches!(call.status.as_deref(), Some("completed" | "failed")) {
            self.calls.answered(&call.tool_call_id, report);
        }
    }
}

impl Rules for AcpRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        read(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        match read(object) {
            Ok(Message::Update(params)) => {
                self.sessions.get_or_insert(&params.session_id).update(&params.update, report);
                self.current = Some(params.session_id.into());
            }
            Ok(Message::Response(id)) => {
                if !self.prompts.insert(&id) {
                    report.error("one-terminal", "this response answers a prompt that was answered already");
                }
                if let Some(current) = &self.current {
                    let state = self.sessions.get_or_insert(current);
                    state.calls.must_be_answered(report);
                    state.calls.clear();
                    state.in_turn = false;
                }
            }
            Ok(Message::Fatal) => {
                for (_, state) in self.sessions.all() {
                    *state = SessionState::default();
                }
            }
            Ok(Message::Other) => {}
            Err(violation) => report.violation(violation),
        }
    }

    fn reply(&mut self, _: &str, report: &mut Report) {
        self.finish(report);
        for (_, state) in self.sessions.all() {
            state.in_turn = false;
        }
    }

    fn finish(&mut self, report: &mut Report) {
        if self.sessions.all().into_iter().any(|(_, state)| state.in_turn) {
            report.error("no-terminal", "the stream ends before the response to the prompt of its turn");
        }
    }
}
