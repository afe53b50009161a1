//! The lines of a client on a WebSocket: prompts, control requests and answers, as to the hub.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use qwen_events::SessionId;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::respond::Refusal;
use crate::server::Server;
use crate::sessions::{NewPrompt, NewSession, Session, SessionLines};

/// The maximum length of a prompt's id.
const MAX_ID: usize = 128;

/// Carries out the lines of one connection.
pub struct Commands {
    server: Rc<Server>,
    /// Takes the lines of sessions.
    out: mpsc::Sender<Bytes>,
    /// False for watchers, who may only follow sessions.
    may_change: bool,
    /// The sessions whose lines this connection receives.
    followed: HashMap<SessionId, JoinHandle<()>>,
}

impl Drop for Commands {
    fn drop(&mut self) {
        for (_, task) in self.followed.drain() {
            task.abort();
        }
    }
}

impl Commands {
    pub fn new(server: Rc<Server>, out: mpsc::Sender<Bytes>, may_change: bool) -> Self {
        Self { server, out, may_change, followed: HashMap::new() }
    }

    /// Carries out a line and returns what answers it. Whatever is wrong with it is answered.
    pub async fn run(&mut self, line: &[u8]) -> Option<Bytes> {
        let parsed = serde_json::from_slice::<Map<String, Value>>(line).map(Value::Object);
        let line = match parsed {
            Ok(line) => line,
            Err(error) => {
                let message = format!("The message is not a JSON object: {error}.");
                return Some(refusal_line(&Value::Null, &Refusal::bad_request("invalid_json", message)));
            }
        };
        let response = match self.carry_out(&line).await {
            Ok(None) => return None,
            Ok(Some(result)) => json!({"subtype": "success", "result": result}),
            Err(refusal) if line["type"] == "control_request" => {
                json!({"subtype": "error", "error": {"code": refusal.code, "message": refusal.message}})
            }
            Err(refusal) => return Some(refusal_line(&line, &refusal)),
        };
        let answer =
            json!({"type": "control_response", "request_id": line["request_id"], "response": response});
        Some(answer.to_string().into())
    }

    /// Returns the result of a request; none for other lines.
    async fn carry_out(&mut self, line: &Value) -> Result<Option<Value>, Refusal> {
        let sessions = self.server.sessions.clone();
        let kind = line["type"].as_str().unwrap_or_default();
        let subtype = line["subtype"].as_str().unwrap_or_default();
        if kind == "control_request" {
            match subtype {
                "attach" => return self.attach(line).map(Some),
                "hub/status" => {
                    let all = sessions.all();
                    let shown: Vec<Value> =
                        all.iter().map(|session| crate::api::session_json(&self.server, session)).collect();
                    return Ok(Some(json!({"sessions": shown, "approvals": sessions.approvals_json(None)})));
                }
                _ => {}
            }
        }
        if !self.may_change {
            let message = "The token for watching may only attach to sessions.";
            return Err(Refusal::new(hyper::StatusCode::FORBIDDEN, "read_only", message));
        }
        match (kind, subtype) {
            ("control_request", "open") => self.open(line).await.map(Some),
            ("control_request", _) => {
                let message = format!("There is no request '{subtype}'. Use open, attach and hub/status.");
                Err(Refusal::bad_request("unknown_request", message))
            }
            ("control_response", _) => self.decide(line).map(|()| None),
            ("control/cancel", _) => {
                let session = self.session(line)?;
                match line["prompt_id"].as_str() {
                    Some(prompt_id) if session.running().as_deref() != Some(prompt_id) => {
                        sessions.withdraw(&session, prompt_id)?;
                    }
                    _ => drop(sessions.cancel(&session)),
                }
                Ok(None)
            }
            ("" | "user", _) => self.prompt(line).await.map(|()| None),
            (other, _) => {
                let message = format!("Messages of the type '{other}' are not known.");
                Err(Refusal::bad_request("unknown_type", message))
            }
        }
    }

    fn session(&self, line: &Value) -> Result<Rc<Session>, Refusal> {
        self.server.sessions.get(line["session_id"].as_str().unwrap_or_default())
    }

    async fn open(&mut self, line: &Value) -> Result<Value, Refusal> {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        let new = NewSession {
            workspace: text("cwd"),
            model: text("model"),
            mode: text("mode"),
            agent: text("agent"),
            ..NewSession::default()
        };
        let session = self.server.sessions.create(new).await?;
        self.follow(&session, session.last());
        Ok(json!({"session_id": session.id.as_str()}))
    }

    /// Follows a session: its lines after `after`, or those from now on.
    fn attach(&mut self, line: &Value) -> Result<Value, Refusal> {
        let session = self.session(line)?;
        let last = session.last();
        let after = match &line["after"] {
            Value::Null => last,
            after => after.as_u64().filter(|after| *after <= last).ok_or_else(|| {
                Refusal::bad_request(
                    "invalid_event_id",
                    "`after` is not the number of a line of this session.",
                )
            })?,
        };
        self.follow(&session, after);
        Ok(json!({"session_id": session.id.as_str(), "last": last}))
    }

    fn follow(&mut self, session: &Rc<Session>, after: u64) {
        let mut reader = self.server.sessions.follow(session, after);
        let (out, server, followed) = (self.out.clone(), self.server.clone(), session.clone());
        let task = tokio::task::spawn_local(async move {
            loop {
                match reader.next().await {
                    SessionLines::Lines(lines) => {
                        for line in lines {
                            if out.send(line.text).await.is_err() {
                                return;
                            }
                        }
                    }
                    SessionLines::TooOld { .. } => {
                        let mut snapshot = server.sessions.snapshot(&followed);
                        reader.skip_to(snapshot["last_event_id"].as_u64().unwrap_or_default());
                        snapshot["type"] = "snapshot".into();
                        if out.send(snapshot.to_string().into()).await.is_err() {
                            return;
                        }
                    }
                    SessionLines::Ended => return,
                }
            }
        });
        if let Some(former) = self.followed.insert(session.id.clone(), task) {
            former.abort();
        }
    }

    async fn prompt(&mut self, line: &Value) -> Result<(), Refusal> {
        let session = self.session(line)?;
        let parts = [&line["input"]["parts"], &line["prompt"]].into_iter().find(|parts| !parts.is_null());
        let is_valid = |parts: &&Value| match parts {
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(parts) => !parts.is_empty() && parts.iter().all(Value::is_object),
            _ => false,
        };
        let parts = parts.filter(is_valid).cloned().ok_or_else(|| {
            Refusal::bad_request("invalid_prompt", "`input.parts` must be a text or a list of parts.")
        })?;
        let is_name =
            |id: &str| (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        let prompt_id = match &line["prompt_id"] {
            Value::Null => None,
            Value::String(id) if is_name(id) => Some(id.clone()),
            _ => {
                let message = "`prompt_id` must have 1 to 128 printable characters.";
                return Err(Refusal::bad_request("invalid_prompt_id", message));
            }
        };
        if !self.followed.contains_key(&session.id) {
            self.follow(&session, session.last());
        }
        let steers = line["delivery"] == "steer";
        let prompt = NewPrompt { prompt_id, steers, ..NewPrompt::parts(parts) };
        self.server.sessions.submit(&session, prompt).await.map(drop)
    }

    fn decide(&self, line: &Value) -> Result<(), Refusal> {
        let result = &line["response"]["result"];
        let decision = match result["behavior"].as_str() {
            Some("allow" | "approve") => "allow",
            // A malformed answer to the right question is a denial.
            _ => "deny",
        };
        let mut response = Map::new();
        if decision == "allow" && result["updatedInput"].is_object() {
            response.insert("updatedInput".to_owned(), result["updatedInput"].clone());
        }
        if result["message"].is_string() {
            response.insert("message".to_owned(), result["message"].clone());
        }
        self.server.sessions.decide(line["request_id"].as_str().unwrap_or_default(), decision, response)
    }
}

/// An error about a line that is not a request, as the `qwen` dialect reports it.
fn refusal_line(line: &Value, refusal: &Refusal) -> Bytes {
    let mut answer = json!({"object": "chat.completion", "choices": [], "metadata": refusal.body()});
    for key in ["session_id", "prompt_id", "request_id"] {
        if line[key].is_string() {
            answer[key] = line[key].clone();
        }
    }
    answer.to_string().into()
}
