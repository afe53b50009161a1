//! One turn: its messages, and the state of its calls.

use super::super::bounded::Open;
use super::super::report::Report;
use super::read::Completion;
use super::records::Record;
use crate::qwen::wire::record::ToolDisplayRecord;

/// The state of a running turn that later lines are checked against.
#[derive(Default)]
pub(super) struct Turn {
    /// True if the stream may begin in the middle of the turn.
    is_cut: bool,
    /// True while the stream may be in a message whose beginning it does not have.
    is_message_cut: bool,
    /// Chunks: true while a message is incomplete.
    message_open: bool,
    /// Chunks: the indices of the calls that have begun in the open message.
    begun_calls: Vec<u64>,
    /// The state of each call.
    calls: Open<CallStatus>,
}

/// The state of a call, in the order of its life cycle.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum CallStatus {
    Pending,
    Confirming,
    Executing,
    Over,
}

impl CallStatus {
    fn from_record(record: &ToolDisplayRecord<'_>) -> Self {
        match &*record.status {
            "pending" => Self::Pending,
            "confirming" => Self::Confirming,
            "executing" => Self::Executing,
            _ => Self::Over,
        }
    }
}

impl Turn {
    /// A turn; with `is_cut`, one whose first lines the stream may not have.
    pub(super) fn new(is_cut: bool) -> Self {
        Self { is_cut, is_message_cut: is_cut, ..Self::default() }
    }

    /// Checks a message other than the turn's last, or a piece of one.
    pub(super) fn message(&mut self, completion: &Completion<'_>, report: &mut Report) {
        if completion.metadata.is_some() {
            report.error(
                "metadata",
                "a message has no `metadata`; the terminal record has, with `metadata.turn`",
            );
        }
        self.pieces(completion, report);
        let Some(choice) = &completion.choice else { return };
        let wants = completion.finish_reason() == Some("tool_calls");
        if !completion.is_chunk
            && wants != choice.calls
            && !matches!(completion.finish_reason(), Some("length" | "content_filter"))
        {
            report.error(
                "finish-reason",
                "a message with calls, and only one with calls, has `finish_reason` \"tool_calls\"",
            );
        }
        for arguments in &choice.arguments {
            let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments);
            if object.is_err() {
                report.error("arguments", "the `arguments` of a call are a JSON object as text");
            }
        }
    }

    pub(super) fn record(&mut self, record: &Record<'_>, report: &mut Report) {
        match record {
            Record::ToolDisplay(record) => self.display(record, report),
            Record::Terminal(record) => {
                let call = record.tool_call_id.as_deref().filter(|_| record.source == "tool");
                let running = |call: &str| match self.calls.get(call) {
                    Some(status) => *status == CallStatus::Executing,
                    None => self.is_cut,
                };
                if let Some(call) = call.filter(|call| !running(call)) {
                    report.error("tool", format!("output of {call:?}, which is not running"));
                }
            }
            Record::Thought(_) | Record::SessionEvent(_) => {}
        }
    }

    /// Checks the terminal record. In a document nothing precedes it.
    pub(super) fn end(&mut self, completion: &Completion<'_>, document: bool, report: &mut Report) {
        if !document {
            self.pieces(completion, report);
        }
        if completion.finish_reason().is_none() {
            report.error("finish-reason", "the terminal record has a `finish_reason`");
        }
        if completion.usage.is_none() {
            report.error("usage", "the terminal record has the `usage` of the whole turn");
        }
        let turn = completion.metadata.as_ref().and_then(|metadata| metadata.turn.as_ref());
        let done = turn.is_some_and(|turn| turn.status == "done");
        let pauses = completion.finish_reason() == Some("tool_calls");
        let must_be_over = |at: &CallStatus| match at {
            CallStatus::Executing => true,
            CallStatus::Pending | CallStatus::Confirming => done && !pauses,
            CallStatus::Over => false,
        };
        for call in self.calls.names(must_be_over) {
            report.error("tool", format!("the call {call:?} is not over when its turn is"));
        }
    }

    fn display(&mut self, record: &ToolDisplayRecord<'_>, report: &mut Report) {
        let status = CallStatus::from_record(record);
        let call = &*record.tool_call_id;
        match self.calls.get_mut(call) {
            None => {
                self.calls.insert(call, status);
            }
            Some(before) if *before == CallStatus::Over || status < *before => {
                report.error("tool", format!("the call {call:?} is {} after it was further", record.status));
            }
            Some(before) => *before = status,
        }
    }

    /// Checks the order of a message's pieces: the role, then the content, then the finish reason.
    fn pieces(&mut self, completion: &Completion<'_>, report: &mut Report) {
        let Some(choice) = completion.choice.as_ref().filter(|_| completion.is_chunk) else { return };
        if choice.role {
            if self.message_open {
                report.error("role", "a message begins before the one before it has its `finish_reason`");
            }
            self.message_open = true;
            self.is_message_cut = false;
            self.begun_calls.clear();
        }
        for (index, begins) in &choice.call_pieces {
            if *begins {
                self.begun_calls.push(*index);
            } else if !self.begun_calls.contains(index) && !self.is_message_cut {
                report.error(
                    "tool",
                    format!("a piece of call {index}, whose first chunk with its id and name is missing"),
                );
            }
        }
        if !self.message_open && !self.is_message_cut {
            report.error("role", "the first chunk of a message declares the role");
        }
        if choice.finish_reason.is_some() {
            if choice.says {
                report.error("finish-reason", "the chunk with the `finish_reason` contains nothing else");
            }
            self.message_open = false;
            self.is_message_cut = false;
        } else if choice.says || choice.role {
            self.message_open = true;
        }
    }
}
