//! Questions of the workers, and the client's answers.

use qwen_dialects::acp::{AskedQuestion, rpc};
use qwen_events::SessionId;
use serde_json::Value;

use super::connection::EditorConnection;
use super::kernel;
use crate::runtime::exit;
use crate::settings::add_allow_rule;

/// A question that the client has not answered.
pub struct ClientQuestion {
    pub session: SessionId,
    asked: AskedQuestion,
}

impl ClientQuestion {
    /// The question in a request to the client.
    pub fn read(session: SessionId, request: &Value) -> Option<Self> {
        AskedQuestion::read(request).map(|asked| Self { session, asked })
    }
}

impl EditorConnection<'_> {
    /// The client answered the request `id`; none is an error. An answer to nothing is ignored.
    pub(super) fn answer(&mut self, id: &Value, result: Option<&Value>) {
        let Some(request_id) = id.as_str() else { return };
        let Some(question) = self.questions.remove(request_id) else { return };
        let session_id = question.session;
        let answer = question.asked.answer(result);
        if answer.cancels
            && let Some(turn) = self.sessions.get_mut(&session_id).and_then(|session| session.turn.as_mut())
        {
            turn.is_cancelled = true;
        }
        if let Some(rule) = &answer.save_rule {
            self.save_rule(&session_id, rule);
        }
        kernel::answer(&self.hub, &session_id, request_id, &answer.reply);
        if let Some(mode) = answer.mode {
            self.mode_changed(&session_id, mode);
        }
    }

    /// Withdraws the questions of a session whose turn has ended: they cannot be answered any more.
    pub(super) fn withdraw_questions(&mut self, id: &SessionId) {
        let open: Vec<String> =
            self.questions.extract_if(|_, of| of.session == *id).map(|(id, _)| id).collect();
        for request_id in open {
            rpc::push_cancel(&request_id, self.out());
        }
    }

    /// Writes a rule to the user's settings. The session has it already.
    fn save_rule(&self, id: &SessionId, rule: &str) {
        let file = self.sessions.get(id).and_then(|session| session.settings.settings_file.as_ref());
        let Some(file) = file else { return };
        if let Err(error) = add_allow_rule(file, rule) {
            exit::report(&format!("qwen: the rule {rule} applies to this session only: {error}"));
        }
    }
}
