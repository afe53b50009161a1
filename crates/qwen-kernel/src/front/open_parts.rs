//! What a client has seen begin and not end in the running turn. A turn that its worker cannot end any more
//! must end these too, so that the stream stays one that a client can read.

/// The open parts of a turn.
#[derive(Debug, Default)]
pub struct OpenParts {
    calls: Vec<ShownCall>,
    /// True while a message has begun and its last piece has not come.
    pub is_message_open: bool,
    /// True if the last message was shown whole and has tool calls.
    pub has_shown_calls: bool,
    /// The block of that message that has not ended, on a wire that has such.
    pub block: Option<u32>,
}

/// A tool call that has no end yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCall {
    pub id: String,
    pub name: String,
}

impl OpenParts {
    /// The calls that have no end, in the order in which they were shown.
    pub fn calls(&self) -> &[ShownCall] {
        &self.calls
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && !self.is_message_open
    }

    /// A call was shown.
    pub fn open_call(&mut self, id: &str, name: &str) {
        if !self.calls.iter().any(|call| call.id == id) {
            self.calls.push(ShownCall { id: id.to_owned(), name: name.to_owned() });
        }
    }

    /// A call has its end.
    pub fn end_call(&mut self, id: &str) {
        self.calls.retain(|call| call.id != id);
    }
}
