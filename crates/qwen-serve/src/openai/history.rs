//! Which session continues a conversation that a client repeats in full.
//!
//! Chat completions have no session. A client that was not told one repeats the whole conversation, so the
//! server remembers with each session the digest of the conversation that its client has seen.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use serde_json::Value;

use crate::sessions::{Session, Sessions};

/// The key in a session's record.
pub const KEY: &str = "chat";

/// How many sessions at rest that were created for conversations are kept.
const KEPT: usize = 200;

/// A conversation, divided into what was said before and what is new.
#[derive(Debug)]
pub struct Conversation<'a> {
    pub before: &'a [Value],
    pub new: &'a [Value],
}

impl<'a> Conversation<'a> {
    /// Divides a conversation after the last message of the assistant.
    pub fn divide(messages: &'a [Value]) -> Self {
        let at = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        let (before, new) = messages.split_at(at);
        Self { before, new }
    }
}

/// The digest of a conversation: roles, texts and calls, whatever else a client changes.
pub fn digest(messages: &[Value]) -> String {
    let mut hasher = DefaultHasher::new();
    for message in messages {
        message["role"].as_str().hash(&mut hasher);
        content_text(&message["content"]).hash(&mut hasher);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            call["id"].as_str().hash(&mut hasher);
        }
        message["tool_call_id"].as_str().hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// The text of a message.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect(),
        _ => String::new(),
    }
}

/// The session at rest that has exactly this conversation.
pub fn find(sessions: &Sessions, before: &[Value]) -> Option<Rc<Session>> {
    if before.is_empty() {
        return None;
    }
    sessions.find(KEY, &digest(before))
}

/// Deletes the oldest sessions at rest that were created for conversations.
pub async fn prune(sessions: &Sessions) {
    let of_chats: Vec<Rc<Session>> = sessions
        .all()
        .into_iter()
        .filter(|session| session.record.borrow().front.contains_key(KEY))
        .collect();
    for session in of_chats.iter().skip(KEPT).filter(|session| !session.is_busy()) {
        // One that cannot be deleted now is tried again with the next conversation.
        let _ = sessions.delete(session).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_conversation_is_recognised_whatever_form_its_texts_have() {
        let plain = [json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": "yo"})];
        let parts = [
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "x"}),
            json!({"role": "assistant", "content": "yo", "refusal": null}),
        ];
        assert_eq!(digest(&plain), digest(&parts));
        assert_ne!(digest(&plain), digest(&plain[..1]));
        let longer = [&plain[..], &[json!({"role": "user", "content": "more"})]].concat();
        let divided = Conversation::divide(&longer);
        assert_eq!((divided.before.len(), divided.new.len()), (2, 1));
    }
}
