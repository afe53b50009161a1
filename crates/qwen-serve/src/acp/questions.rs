//! Permission requests that the client was asked, and its answers.

use qwen_dialects::acp::{AskedQuestion, OptionId};
use qwen_events::SessionId;
use serde_json::{Map, Value};

use super::AcpConnection;

/// A question that the client has not answered.
pub struct PendingQuestion {
    session: SessionId,
    asked: AskedQuestion,
}

impl PendingQuestion {
    /// Reads the question in a request to the client, and removes the options that this server cannot carry
    /// out: it writes no settings.
    pub fn read(session: SessionId, request: &mut Value) -> Option<Self> {
        if let Some(options) = request.pointer_mut("/params/options").and_then(Value::as_array_mut) {
            options.retain(|option| option["optionId"] != OptionId::AllowAlways.name());
        }
        AskedQuestion::read(request).map(|asked| Self { session, asked })
    }
}

impl AcpConnection {
    /// The client answered a question; none is an error. An answer to nothing is ignored.
    pub(super) fn answer(&self, id: &Value, result: Option<&Value>) {
        let Some(id) = id.as_str() else { return };
        let Some(question) = self.open.questions.borrow_mut().remove(id) else { return };
        let answer = question.asked.answer(result);
        if answer.cancels {
            for prompt in self.open.prompts.borrow_mut().values_mut() {
                prompt.is_cancelled |= prompt.session == question.session;
            }
        }
        let mut reply: Map<String, Value> = serde_json::from_str(answer.reply.as_str()).unwrap_or_default();
        let decision = match reply.remove("behavior").as_ref().and_then(Value::as_str) {
            Some("allow") => "allow",
            _ => "deny",
        };
        // Someone else may have answered first.
        let _ = self.server.sessions.decide(id, decision, reply);
    }
}
