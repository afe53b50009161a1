//! The calls of the running turn, as the client has seen them.

use qwen_events::{CallId, Timestamp};

use super::sizes::tail;

/// How much of a running command's output is shown as text.
const SHOWN_OUTPUT: usize = 16 * 1024;

/// Output beyond this many bytes is shown again only after [`PAUSE_MS`], because each update repeats all that
/// is shown.
const PROMPT_OUTPUT: usize = 2 * 1024;

/// The shortest time between two updates about long output.
const PAUSE_MS: u64 = 250;

/// A call without an end.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub id: CallId,
    /// The call that started the sub-agent that makes this call.
    pub parent: Option<CallId>,
    /// The name of the sub-agent that this call starts.
    pub agent: Option<String>,
    /// The message that this sub-agent is writing.
    pub message_id: Option<String>,
    /// True once the complete arguments were shown.
    pub is_described: bool,
    /// True if the output goes to a display-only terminal.
    pub has_terminal: bool,
    /// The end of the output so far; empty with a terminal.
    output: String,
    shown_at: Timestamp,
}

impl OpenCall {
    /// Adds output. Returns the text to show, if it is to be shown now.
    pub(super) fn add_output(&mut self, text: &str, at: Timestamp) -> Option<&str> {
        self.output.push_str(text);
        if self.output.len() > 2 * SHOWN_OUTPUT {
            self.output = tail(&self.output, SHOWN_OUTPUT).to_owned();
        }
        let waits = self.output.len() > PROMPT_OUTPUT && at.0 < self.shown_at.0 + PAUSE_MS;
        if waits {
            return None;
        }
        self.shown_at = at;
        Some(tail(&self.output, SHOWN_OUTPUT))
    }
}

/// The calls that were shown and have no end.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

impl OpenCalls {
    pub(super) fn find(&self, id: &CallId) -> Option<&OpenCall> {
        self.0.iter().find(|call| call.id == *id)
    }

    pub(super) fn find_mut(&mut self, id: &CallId) -> Option<&mut OpenCall> {
        self.0.iter_mut().find(|call| call.id == *id)
    }

    /// Adds a call of the agent that `parent` started.
    pub(super) fn open(&mut self, id: CallId, parent: Option<CallId>) -> &mut OpenCall {
        let at = self.0.iter().position(|call| call.id == id).unwrap_or_else(|| {
            self.0.push(OpenCall {
                id,
                parent,
                agent: None,
                message_id: None,
                is_described: false,
                has_terminal: false,
                output: String::new(),
                shown_at: Timestamp(0),
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    pub(super) fn close(&mut self, id: &CallId) -> Option<OpenCall> {
        let at = self.0.iter().position(|call| call.id == *id)?;
        Some(self.0.remove(at))
    }

    /// Removes the calls of the agent that `parent` started whose arguments never became complete.
    pub(super) fn take_undescribed(&mut self, parent: Option<&CallId>) -> Vec<OpenCall> {
        self.0.extract_if(.., |call| !call.is_described && call.parent.as_ref() == parent).collect()
    }

    pub(super) fn take_all(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_shown_with_pauses_and_short_output_at_once() {
        let mut calls = OpenCalls::default();
        let call = calls.open(CallId::new("c"), None);
        assert_eq!(call.add_output("a", Timestamp(1)), Some("a"));
        assert_eq!(call.add_output("b", Timestamp(2)), Some("ab"));
        let long = "x".repeat(4000);
        assert_eq!(call.add_output(&long, Timestamp(3)), None);
        assert!(call.add_output("y", Timestamp(500)).is_some_and(|text| text.ends_with("xy")));
    }
}
