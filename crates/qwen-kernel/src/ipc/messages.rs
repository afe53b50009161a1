//! The messages on a worker's commit socket, in both directions. The protocol is private to a worker and its hub:
//! both sides use these types, one JSON object a line.
//!
//! Rationale: a worker knows what happens in its session, so it reports that, and the hub infers nothing from the
//! text on standard output. Two streams need an order. A [`Report`] names its place on standard output
//! ([`Place`]), counted in lines since the process image started. The worker writes a report before the lines
//! that the report is about, and the hub reads the socket before it looks at output that it has read. So a report
//! is there when its line is relayed, and the hub applies it with that line: neither earlier, while lines of the
//! turn before are on their way, nor later. Reports whose line never comes are dropped with their worker.

use qwen_events::EndStatus;
use serde::{Deserialize, Serialize};

use crate::store::Appended;

/// The prefix of the ids of the hub's own requests, whose answers no client receives.
pub const HUB_REQUEST: &str = "hub.";

/// The reason why a worker's log must be durable before the worker continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "lowercase")]
pub enum CommitReason {
    /// The log contains the start of a prompt's turn.
    Start { prompt_id: String },
    /// A tool is about to run.
    Effect { tool: String, call: String },
    /// The log contains the end of a prompt's turn.
    End { prompt_id: String },
}

/// A message of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerMessage {
    /// The worker waits for a sign of life before it starts something.
    Alive,
    /// The answer to [`HubMessage::Ping`].
    Pong,
    /// The worker waits until its log is durable up to byte `bytes`.
    Commit {
        id: u64,
        /// The session whose log it is, if the worker names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        #[serde(default)]
        bytes: u64,
        #[serde(flatten)]
        reason: CommitReason,
    },
    /// The worker reports what happened in its session, and does not wait.
    Report(Report),
}

/// A fact that a worker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    #[serde(default, skip_serializing_if = "Place::is_anywhere")]
    pub at: Place,
    #[serde(flatten)]
    pub fact: ReportedFact,
}

/// The place of a report on the worker's standard output. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// No particular place: the report applies when it arrives.
    #[default]
    Anywhere,
    /// After this many lines.
    After(u64),
    /// At this line, which is about the same fact.
    Line(u64),
}

impl Place {
    fn is_anywhere(&self) -> bool {
        *self == Self::Anywhere
    }
}

/// What a worker reports. Inputs count the lines that the worker has read from standard input, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum ReportedFact {
    /// The worker accepts lines. On a wire with a handshake, the place is that line.
    Ready {
        version: String,
    },
    /// A prompt was read.
    PromptRead {
        input: u64,
    },
    /// A line of input was refused. The line of output contains the error.
    Refused {
        /// The line of input, if the worker knows it.
        input: Option<u64>,
        prompt_id: Option<String>,
        code: String,
        message: String,
    },
    TurnStarted {
        prompt_id: String,
    },
    /// A prompt joined the running turn; it gets no terminal record.
    PromptJoined {
        prompt_id: String,
    },
    /// The line sends the client a control request.
    QuestionOpened {
        request_id: String,
    },
    /// The line withdraws a control request.
    QuestionClosed {
        request_id: String,
    },
    /// The line answers a control request of the client or of the hub.
    RequestAnswered {
        request_id: String,
        /// For `continue_last_turn` of the hub: true if the turn continues.
        #[serde(default)]
        accepted: bool,
    },
    /// A slash command ended, with or without submitting a prompt.
    CommandEnded {
        /// The prompt that contained the command.
        prompt_id: String,
        /// True if it submitted a prompt, whose turn follows.
        submits_prompt: bool,
    },
    /// A turn ended; the line is its terminal record.
    TurnEnded {
        prompt_id: String,
        status: String,
        input_tokens: u64,
        output_tokens: u64,
    },
    /// The worker is about to end because of an error.
    Failed {
        message: String,
    },
    /// A warning for the user. Workers that give the same warning report the same code and text.
    Warned {
        code: String,
        text: String,
    },
    /// The process image is replaced: lines of output and input count from 1 again.
    Restarting,
}

impl ReportedFact {
    /// The end of a turn.
    pub fn turn_ended(prompt_id: &str, status: EndStatus, (input_tokens, output_tokens): (u64, u64)) -> Self {
        let status = status.name().to_owned();
        Self::TurnEnded { prompt_id: prompt_id.to_owned(), status, input_tokens, output_tokens }
    }
}

/// A message of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubMessage {
    /// The answer to [`WorkerMessage::Alive`].
    Alive,
    /// Requests a [`WorkerMessage::Pong`] from a worker that has been silent.
    Ping,
    /// The answer to [`WorkerMessage::Commit`]. `fenced` is final: another process owns the session. After
    /// `unknown` the worker asks again.
    Committed { id: u64, outcome: Appended },
    /// Takes the session away: the worker ends it and starts anew in the same process.
    Discard,
}

impl WorkerMessage {
    /// Parses a line; none if it is not a message of this protocol.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The message as a line.
    pub fn to_line(&self) -> Vec<u8> {
        to_line(self)
    }
}

impl HubMessage {
    /// Parses a line; none if it is not a message of this protocol.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The message as a line.
    pub fn to_line(&self) -> Vec<u8> {
        to_line(self)
    }
}

fn to_line(message: &impl Serialize) -> Vec<u8> {
    // Every message has text keys and no other value that JSON cannot express.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
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
            WorkerMessage::parse(start),
            Some(WorkerMessage::Commit { id: 1, session_id: Some("s".to_owned()), bytes: 12, reason })
        );
        let effect = br#"{"type":"commit","id":2,"bytes":40,"reason":"effect","tool":"edit","call":"c"}"#;
        let reason = CommitReason::Effect { tool: "edit".to_owned(), call: "c".to_owned() };
        assert_eq!(
            WorkerMessage::parse(effect),
            Some(WorkerMessage::Commit { id: 2, session_id: None, bytes: 40, reason })
        );
        assert_eq!(WorkerMessage::parse(br#"{"type":"alive"}"#), Some(WorkerMessage::Alive));
        for wrong in ["", "[1]", r#"{"id":3}"#, r#"{"type":"commit","id":3,"reason":"start"}"#] {
            assert_eq!(WorkerMessage::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn every_message_is_one_line_that_is_read_as_the_same_message() {
        let text = || "a \"text\"\nof two lines".to_owned();
        let facts = [
            ReportedFact::Ready { version: text() },
            ReportedFact::PromptRead { input: 7 },
            ReportedFact::Refused { input: Some(3), prompt_id: None, code: text(), message: text() },
            ReportedFact::TurnStarted { prompt_id: text() },
            ReportedFact::PromptJoined { prompt_id: text() },
            ReportedFact::QuestionOpened { request_id: text() },
            ReportedFact::QuestionClosed { request_id: text() },
            ReportedFact::RequestAnswered { request_id: text(), accepted: true },
            ReportedFact::CommandEnded { prompt_id: text(), submits_prompt: false },
            ReportedFact::turn_ended("p", EndStatus::Done, (1, u64::MAX)),
            ReportedFact::Failed { message: text() },
            ReportedFact::Warned { code: text(), text: text() },
            ReportedFact::Restarting,
        ];
        let places = [Place::Anywhere, Place::After(0), Place::Line(u64::MAX)];
        for fact in facts {
            for at in places {
                let message = WorkerMessage::Report(Report { at, fact: fact.clone() });
                let line = message.to_line();
                assert_eq!(memchr::memchr_iter(b'\n', &line).count(), 1);
                assert_eq!(WorkerMessage::parse(&line), Some(message), "{}", String::from_utf8_lossy(&line));
            }
        }
        let committed = HubMessage::Committed { id: 1, outcome: Appended::Fenced };
        assert_eq!(committed.to_line(), b"{\"type\":\"committed\",\"id\":1,\"outcome\":\"fenced\"}\n");
        for message in [committed, HubMessage::Alive, HubMessage::Ping, HubMessage::Discard] {
            assert_eq!(HubMessage::parse(&message.to_line()), Some(message));
        }
    }
}
