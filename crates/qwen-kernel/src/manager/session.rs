//! One session of a Rust host.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::AgentError;
use super::thread::{Command, Lines};
use crate::control_plane::ControlPlane;

pub struct Session {
    id: String,
    commands: mpsc::UnboundedSender<Command>,
    lines: Lines,
    control: Arc<ControlPlane>,
    prompts: u64,
}

/// The result of a turn.
#[derive(Debug, Clone)]
pub struct TurnResult {
    pub text: String,
    /// `done`, `error`, `cancelled`, `interrupted`, …
    pub status: String,
    /// The error's code and message, if there is one.
    pub error: Option<(String, String)>,
    pub record: Value,
}

impl Session {
    pub(super) fn new(
        id: String,
        commands: mpsc::UnboundedSender<Command>,
        lines: Lines,
        control: Arc<ControlPlane>,
    ) -> Self {
        Self { id, commands, lines, control, prompts: 0 }
    }

    /// The id for [`AgentManager::resume_session`](super::AgentManager::resume_session).
    pub fn id(&self) -> &str {
        &self.id
    }

    fn send(&self, line: &Value) -> Result<(), AgentError> {
        self.commands.send(Command::Line(line.to_string())).map_err(|_| AgentError::Ended)
    }

    /// Declares the host's hooks and tool servers to the worker. Sent only if there are any, so that a
    /// session without them needs no worker before its first task.
    pub(super) fn initialize(&self) -> Result<(), AgentError> {
        if self.control.hooks.is_empty() && self.control.servers.is_empty() {
            return Ok(());
        }
        let mut line = self.control.initialize();
        for (key, value) in [
            ("type", json!("control_request")),
            ("subtype", json!("initialize")),
            ("request_id", json!(format!("init-{}", self.id))),
            ("session_id", json!(self.id)),
        ] {
            line[key] = value;
        }
        self.send(&line)
    }

    /// Sends the agent a task and streams its events.
    pub fn stream(&mut self, task: &str) -> Result<TurnStream<'_>, AgentError> {
        self.prompts += 1;
        let prompt_id = format!("{}-{}-{:08x}", self.id, self.prompts, fastrand::u32(..));
        let line = json!({"session_id": self.id, "prompt_id": prompt_id,
            "input": {"parts": [{"type": "text", "text": task}]}});
        self.send(&line)?;
        Ok(TurnStream { session: self, prompt_id, ended: false })
    }

    /// Sends the agent a task and waits for the result.
    pub async fn run(&mut self, task: &str) -> Result<TurnResult, AgentError> {
        let mut stream = self.stream(task)?;
        while let Some(line) = stream.next().await? {
            if line["metadata"]["turn"].is_object() {
                return Ok(TurnResult::read(line));
            }
        }
        Err(AgentError::Ended)
    }

    /// Cancels the running turn; its terminal record reports that.
    pub fn interrupt(&self) -> Result<(), AgentError> {
        self.send(&json!({"type": "control/cancel", "session_id": self.id}))
    }

    /// Ends the session. Its log remains.
    pub async fn close(mut self) -> Result<(), AgentError> {
        let request = format!("close-{}", self.id);
        self.send(&json!({"type": "control_request", "subtype": "close", "request_id": request, "session_id": self.id}))?;
        while let Some(line) = self.lines.next().await {
            if line["type"] == "control_response" && line["request_id"] == request.as_str() {
                return Ok(());
            }
        }
        Err(AgentError::Ended)
    }
}

/// The lines of one turn, up to and including its terminal record.
pub struct TurnStream<'a> {
    session: &'a mut Session,
    prompt_id: String,
    ended: bool,
}

impl TurnStream<'_> {
    pub fn prompt_id(&self) -> &str {
        &self.prompt_id
    }

    /// Cancels the turn.
    pub fn interrupt(&self) -> Result<(), AgentError> {
        self.session.interrupt()
    }

    /// The next line as JSON; none after the terminal record. The control plane answers control requests,
    /// which are returned too.
    pub async fn next(&mut self) -> Result<Option<Value>, AgentError> {
        if self.ended {
            return Ok(None);
        }
        let line = self.session.lines.next().await.ok_or(AgentError::Ended)?;
        if line["type"] == "control_request" {
            let control = self.session.control.clone();
            let commands = self.session.commands.clone();
            let question = line.clone();
            tokio::spawn(async move {
                let response = control.answer(&question).await;
                let line = json!({"type": "control_response", "request_id": question["request_id"],
                    "session_id": question["session_id"], "response": response});
                // The kernel may already have ended.
                let _ = commands.send(Command::Line(line.to_string()));
            });
        }
        self.ended = line["metadata"]["turn"].is_object() && line["prompt_id"] == self.prompt_id.as_str();
        Ok(Some(line))
    }
}

impl TurnResult {
    fn read(record: Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let error = &record["metadata"]["error"];
        Self {
            text: text(&record["choices"][0]["message"]["content"]),
            status: text(&record["metadata"]["turn"]["status"]),
            error: error.is_object().then(|| (text(&error["code"]), text(&error["message"]))),
            record,
        }
    }
}
