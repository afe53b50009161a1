//! One session of a Rust host.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::messages::TurnResult;
use super::options::TurnOptions;
use super::store::StoreMirror;
use super::thread::{Command, Lines};
use super::turn::TurnStream;
use super::{AgentError, SessionTimeouts};

/// One conversation. Prompts are worked on one after the other.
///
/// Callbacks of the [`ControlPlane`](crate::control_plane::ControlPlane) run on the runtime in which the
/// session was created, whether or not a stream is being read. Dropping a session closes it without waiting.
pub struct Session {
    id: String,
    commands: mpsc::UnboundedSender<Command>,
    pub(super) lines: Lines,
    timeouts: SessionTimeouts,
    pub(super) store: Option<StoreMirror>,
    /// Prompts whose stream was dropped: their lines are skipped.
    pub(super) abandoned: HashSet<String>,
    pub(super) last_result: Option<TurnResult>,
    is_closed: bool,
}

impl Session {
    pub(super) fn new(
        id: String,
        commands: mpsc::UnboundedSender<Command>,
        lines: Lines,
        timeouts: SessionTimeouts,
        store: Option<StoreMirror>,
    ) -> Self {
        Self {
            id,
            commands,
            lines,
            timeouts,
            store,
            abandoned: HashSet::new(),
            last_result: None,
            is_closed: false,
        }
    }

    /// The id for [`AgentManager::resume_session`](super::AgentManager::resume_session). It changes when the
    /// session continues in a fork ([`OnCrash::Fork`](crate::OnCrash::Fork)).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The result of the last turn that ended; kept when a worker dies.
    pub fn last_result(&self) -> Option<&TurnResult> {
        self.last_result.as_ref()
    }

    /// The session continues in this fork, because its worker died.
    pub(super) fn follow_fork(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        if let Some(store) = &mut self.store {
            store.follow_fork(id);
        }
    }

    pub(super) fn send(&self, line: &Value) -> Result<(), AgentError> {
        self.commands.send(Command::Line(line.to_string())).map_err(|_| AgentError::Ended)
    }

    /// Sends a prompt and returns its id.
    pub(super) fn send_prompt(
        &self,
        text: &str,
        options: &TurnOptions,
        delivery: Option<&str>,
    ) -> Result<String, AgentError> {
        let prompt_id = format!("{}########{:016x}", self.id, fastrand::u64(..));
        let mut line = json!({"session_id": self.id, "prompt_id": prompt_id,
            "input": {"parts": [{"type": "text", "text": text}]}});
        options.write(&mut line);
        if let Some(delivery) = delivery {
            line["delivery"] = json!(delivery);
        }
        self.send(&line)?;
        Ok(prompt_id)
    }

    /// Sends the agent a task and streams its messages.
    pub fn stream(&mut self, task: &str) -> Result<TurnStream<'_>, AgentError> {
        self.stream_with(task, TurnOptions::default())
    }

    /// Like [`stream`](Self::stream), with options for this turn.
    pub fn stream_with(&mut self, task: &str, options: TurnOptions) -> Result<TurnStream<'_>, AgentError> {
        let prompt_id = self.send_prompt(task, &options, None)?;
        Ok(TurnStream::new(self, Some(prompt_id), None, options))
    }

    /// Sends the prompts of a channel as they come, and streams the messages of all of them. The stream ends
    /// when the channel is closed and every prompt has its result.
    pub fn stream_input(&mut self, prompts: mpsc::Receiver<String>) -> TurnStream<'_> {
        TurnStream::new(self, None, Some(prompts), TurnOptions::default())
    }

    /// Sends the agent a task and waits for the result.
    pub async fn run(&mut self, task: &str) -> Result<TurnResult, AgentError> {
        self.run_with(task, TurnOptions::default()).await
    }

    /// Like [`run`](Self::run), with options for this turn.
    pub async fn run_with(&mut self, task: &str, options: TurnOptions) -> Result<TurnResult, AgentError> {
        self.stream_with(task, options)?.result().await
    }

    /// Cancels the running turn; its terminal record reports that, and the session continues.
    pub fn interrupt(&self) -> Result<(), AgentError> {
        self.send(&json!({"type": "control/cancel", "session_id": self.id}))
    }

    /// Another model for the session; none returns to the first one.
    pub async fn set_model(&self, model: Option<&str>) -> Result<(), AgentError> {
        self.request("set_model", json!({"model": model})).await.map(drop)
    }

    /// `plan`, `default`, `auto-edit` or `yolo`.
    pub async fn set_permission_mode(&self, mode: &str) -> Result<(), AgentError> {
        self.request("set_permission_mode", json!({"mode": mode})).await.map(drop)
    }

    /// Restores files to their state before a prompt, and returns their paths. With `dry_run`, only returns
    /// them.
    pub async fn rewind_files(&self, prompt_id: &str, dry_run: bool) -> Result<Vec<String>, AgentError> {
        let fields = json!({"user_message_id": prompt_id, "dry_run": dry_run});
        let result = self.request("rewind_files", fields).await?;
        let paths = result["filesChanged"].as_array().into_iter().flatten();
        Ok(paths.filter_map(|path| path.as_str().map(str::to_owned)).collect())
    }

    /// Sends any control request of the protocol, such as `mcp_status`, and returns its result.
    pub async fn request(&self, subtype: &str, fields: Value) -> Result<Value, AgentError> {
        self.ask(subtype, fields, self.timeouts.request).await
    }

    /// Sends `initialize` with these fields.
    pub(super) async fn initialize(&self, fields: Value) -> Result<(), AgentError> {
        self.ask("initialize", fields, self.timeouts.start).await.map(drop)
    }

    async fn ask(&self, subtype: &str, fields: Value, timeout: Duration) -> Result<Value, AgentError> {
        let request_id = format!("{subtype}-{:016x}", fastrand::u64(..));
        let mut line = if fields.is_object() { fields } else { json!({}) };
        for (key, value) in [
            ("type", "control_request"),
            ("subtype", subtype),
            ("request_id", &request_id),
            ("session_id", &self.id),
        ] {
            line[key] = json!(value);
        }
        let (reply, answered) = oneshot::channel();
        let ask = Command::Ask { session: self.id.clone(), request_id, line: line.to_string(), reply };
        self.commands.send(ask).map_err(|_| AgentError::Ended)?;
        let answer = match tokio::time::timeout(timeout, answered).await {
            Ok(answer) => answer.map_err(|_| AgentError::Ended)?,
            Err(_) => return Err(AgentError::Timeout { what: subtype.to_owned(), limit: timeout }),
        };
        let response = &answer["response"];
        if response["subtype"] == "success" {
            return Ok(response["result"].clone());
        }
        Err(AgentError::refused(&response["error"]))
    }

    /// Ends the session and its worker; a running turn is cancelled. The session's log remains.
    ///
    /// Returns within the time-out for closing. What the worker had not finished then, it ends without being
    /// awaited.
    pub async fn close(mut self) -> Result<(), AgentError> {
        self.is_closed = true;
        // No one reads the rest, so it must not hold the worker up.
        self.lines.stop();
        self.ask("close", json!({}), self.timeouts.close).await?;
        if let Some(store) = self.store.take() {
            store.flush().await?;
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_closed {
            let request = format!("close-{:016x}", fastrand::u64(..));
            let line = json!({"type": "control_request", "subtype": "close", "request_id": request, "session_id": self.id});
            // A kernel that has ended has no session left.
            let _ = self.send(&line);
        }
    }
}
