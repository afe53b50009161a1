//! The lines on the commit socket of a worker: it asks whether its log is durable before it continues, and
//! whether the kernel is alive.

use serde::{Deserialize, Serialize};

use crate::store::Appended;

/// The reason why a worker's log must be durable before the worker continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "lowercase")]
pub enum CommitReason {
    /// A turn started.
    Start { prompt_id: String },
    /// A tool is about to run.
    Effect { tool: String, call: String },
    /// A turn ended.
    End { prompt_id: String },
}

/// A line of a worker on its commit socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitMessage {
    /// The worker wants a sign of life before it starts something.
    Alive,
    /// The worker waits until its log is durable up to byte `bytes`.
    Commit {
        id: u64,
        /// The session whose log it is, if the worker names it.
        session_id: Option<String>,
        bytes: u64,
        reason: CommitReason,
    },
}

#[derive(Deserialize)]
struct Line {
    id: Option<u64>,
    session_id: Option<String>,
    #[serde(default)]
    bytes: u64,
    #[serde(flatten)]
    reason: Option<CommitReason>,
}

impl CommitMessage {
    /// Parses a line; none if it is not one of this protocol.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        match line {
            Line { id: Some(id), session_id, bytes, reason: Some(reason) } => {
                Some(Self::Commit { id, session_id, bytes, reason })
            }
            Line { id: None, reason: None, .. } => Some(Self::Alive),
            Line { .. } => None,
        }
    }
}

/// The answer to [`CommitMessage::Alive`].
pub fn alive() -> Vec<u8> {
    b"{\"type\":\"alive\"}\n".to_vec()
}

/// The request to discard the session: the worker ends it and starts anew as if it had just been started.
pub fn discard() -> Vec<u8> {
    b"{\"type\":\"discard\"}\n".to_vec()
}

/// The answer to [`CommitMessage::Commit`].
pub fn committed(id: u64, outcome: Appended) -> Vec<u8> {
    let outcome = match outcome {
        Appended::Ok => "ok",
        Appended::Fenced => "fenced",
        Appended::Unknown => "unknown",
    };
    format!("{{\"type\":\"committed\",\"id\":{id},\"outcome\":\"{outcome}\"}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_questions_are_read() {
        let start =
            br#"{"type":"commit","id":1,"session_id":"s","bytes":12,"reason":"start","prompt_id":"p"}"#;
        let reason = CommitReason::Start { prompt_id: "p".to_owned() };
        assert_eq!(
            CommitMessage::parse(start),
            Some(CommitMessage::Commit { id: 1, session_id: Some("s".to_owned()), bytes: 12, reason })
        );
        let effect = br#"{"type":"commit","id":2,"bytes":40,"reason":"effect","tool":"edit","call":"c"}"#;
        let reason = CommitReason::Effect { tool: "edit".to_owned(), call: "c".to_owned() };
        assert_eq!(
            CommitMessage::parse(effect),
            Some(CommitMessage::Commit { id: 2, session_id: None, bytes: 40, reason })
        );
        assert_eq!(CommitMessage::parse(br#"{"type":"alive"}"#), Some(CommitMessage::Alive));
        for wrong in ["", "[1]", r#"{"id":3}"#, r#"{"id":3,"reason":"start"}"#] {
            assert_eq!(CommitMessage::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
