//! The lines of a session on their way to the client.

use std::rc::Rc;

use bytes::Bytes;
use qwen_dialects::Dialect;
use qwen_dialects::acp::rpc::{RpcError, RpcId};
use qwen_events::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::questions::PendingQuestion;
use super::sessions::session_state;
use super::{AcpConnection, OpenPrompt, OpenRequests, response};
use crate::dialect::{DialectStream, StreamForm};
use crate::sessions::{Line, Session, SessionLines, SessionReader, Sessions};

/// The beginning of an update, the most frequent line.
const UPDATE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"";

/// A session that the client follows.
struct Follow {
    sessions: Rc<Sessions>,
    session: Rc<Session>,
    open: Rc<OpenRequests>,
    out: mpsc::Sender<Bytes>,
    reader: SessionReader,
    /// Writes what happened before the client came; none if it does not want it.
    history: Option<DialectStream>,
    /// Writes what happens. It reads the lines before, on which its state depends.
    live: DialectStream,
    /// The number of the last line before the client came.
    start: u64,
    /// The request that is answered after the history.
    request: Option<RpcId>,
}

impl AcpConnection {
    /// Follows a session from now on, or with its history, after which `request` is answered.
    pub(super) fn follow(&mut self, session: &Rc<Session>, request: Option<RpcId>, with_history: bool) {
        let sessions = self.server.sessions.clone();
        let form = StreamForm {
            dialect: Dialect::Acp,
            is_partial: true,
            shows_prompts: false,
            acp: self.client.unwrap_or_default(),
        };
        let history =
            with_history.then(|| DialectStream::new(session, StreamForm { shows_prompts: true, ..form }));
        let follow = Follow {
            reader: sessions.follow(session, 0),
            sessions,
            session: session.clone(),
            open: self.open.clone(),
            out: self.out.clone(),
            history,
            live: DialectStream::new(session, form),
            start: session.last(),
            request,
        };
        let task = tokio::task::spawn_local(follow.run());
        if let Some(former) = self.followed.insert(session.id.clone(), task) {
            former.abort();
        }
    }
}

impl Follow {
    async fn run(mut self) {
        if self.start == 0 && !self.answer_request().await {
            return;
        }
        loop {
            match self.reader.next().await {
                SessionLines::Lines(lines) => {
                    for line in lines {
                        if !self.pass(&line).await {
                            return;
                        }
                    }
                    // A long history must not hold up other clients.
                    tokio::task::yield_now().await;
                }
                SessionLines::TooOld { oldest } => self.reader.skip_to(oldest - 1),
                SessionLines::Ended => return,
            }
        }
    }

    /// Writes what a line becomes. False if the client is gone.
    async fn pass(&mut self, line: &Line) -> bool {
        let is_past = line.number <= self.start;
        let mut lines = Vec::new();
        self.live.write(line, &mut lines);
        let mut questions = Vec::new();
        if is_past {
            // Only questions that are still open concern a client that comes later.
            std::mem::swap(&mut questions, &mut lines);
            if let Some(history) = &mut self.history {
                history.write(line, &mut lines);
            }
        }
        let updates = lines.split(|byte| *byte == b'\n').filter(|line| !is_past || line.starts_with(UPDATE));
        let asked = questions.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(UPDATE));
        for line in updates.chain(asked).filter(|line| !line.is_empty()) {
            let passed = if line.starts_with(UPDATE) {
                Some(Bytes::copy_from_slice(line))
            } else {
                self.open.pass(&self.sessions, &self.session.id, line, is_past)
            };
            if let Some(passed) = passed
                && self.out.send(passed).await.is_err()
            {
                return false;
            }
        }
        line.number != self.start || self.answer_request().await
    }

    async fn answer_request(&mut self) -> bool {
        let Some(request) = self.request.take() else { return true };
        self.out.send(response(&request, &Ok(session_state(&self.session)))).await.is_ok()
    }
}

impl OpenRequests {
    /// The form in which a line that is not an update reaches the client, if it concerns it.
    fn pass(&self, sessions: &Sessions, session: &SessionId, line: &[u8], is_past: bool) -> Option<Bytes> {
        let mut message: Value = serde_json::from_slice(line).ok()?;
        match message["method"].as_str() {
            Some("session/request_permission" | "elicitation/create") => {
                let id = message["id"].as_str()?.to_owned();
                sessions.approvals.borrow().get(&id)?;
                let question = PendingQuestion::read(session.clone(), &mut message)?;
                self.questions.borrow_mut().insert(id, question);
                Some(message.to_string().into())
            }
            _ if is_past => None,
            Some("$/cancel_request") => {
                let id = message["params"]["requestId"].as_str()?;
                self.questions.borrow_mut().remove(id)?;
                Some(message.to_string().into())
            }
            Some(_) => {
                let id = message["params"]["promptId"].as_str()?;
                let is_steered = message["method"] == "_qwen/steered";
                let prompt = is_steered.then(|| self.prompts.borrow_mut().remove(id)).flatten()?;
                Some(response(&prompt.request, &Ok(json!({"outcome": "injected"}))))
            }
            None => {
                let prompt = self.prompts.borrow_mut().remove(message["id"].as_str()?)?;
                Some(end_prompt(&prompt, &message))
            }
        }
    }

    /// Answers the prompts of a session that the client leaves.
    pub(super) fn cancel_prompts(&self, session: &SessionId) -> Vec<Bytes> {
        let mut prompts = self.prompts.borrow_mut();
        let own: Vec<String> = prompts
            .iter()
            .filter(|(_, prompt)| prompt.session == *session)
            .map(|(id, _)| id.clone())
            .collect();
        let ended = own.iter().filter_map(|id| prompts.remove(id));
        ended.map(|prompt| response(&prompt.request, &Ok(json!({"stopReason": "cancelled"})))).collect()
    }
}

/// The answer to a prompt whose turn has ended.
fn end_prompt(prompt: &OpenPrompt, message: &Value) -> Bytes {
    let result = match (&message["result"], &message["error"]) {
        _ if prompt.steers => Ok(json!({"outcome": "startedNewTurn"})),
        (_, error) if error.is_object() => {
            let code = error["code"].as_i64().unwrap_or_default();
            Err(RpcError::new(code, error["message"].as_str().unwrap_or_default()))
        }
        (result, _) => Ok(result.clone()),
    };
    let result = match result {
        Ok(mut result) if prompt.is_cancelled && !prompt.steers => {
            result["stopReason"] = "cancelled".into();
            Ok(result)
        }
        Err(_) if prompt.is_cancelled => Ok(json!({"stopReason": "cancelled"})),
        result => result,
    };
    response(&prompt.request, &result)
}
