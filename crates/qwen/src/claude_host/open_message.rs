//! The blocks of a message that is not complete yet.

use serde_json::{Map, Value};

/// Holds the blocks of a message back until its usage is known. Each block is an entry of a transcript with
/// the usage of the whole message, and programs that add tokens up count only one entry of a message.
#[derive(Default)]
pub(super) struct OpenMessage {
    blocks: Vec<Map<String, Value>>,
}

impl OpenMessage {
    /// Takes the next message or block. Returns what can be written now, in order.
    pub fn push(&mut self, message: Map<String, Value>) -> Vec<Map<String, Value>> {
        let mut ready = match self.blocks.first() {
            Some(first) if !is_same_message(first, &message) => self.take(),
            _ => Vec::new(),
        };
        let is_open = is_open(&message);
        self.blocks.push(message);
        if !is_open {
            ready.extend(self.take());
        }
        ready
    }

    /// What is held back, with the usage of the last block.
    pub fn take(&mut self) -> Vec<Map<String, Value>> {
        let mut blocks = std::mem::take(&mut self.blocks);
        if let Some((last, others)) = blocks.split_last_mut()
            && let Some(usage) = last.get("message").and_then(|message| message.get("usage"))
        {
            for block in others {
                if let Some(Value::Object(message)) = block.get_mut("message") {
                    message.insert("usage".to_owned(), usage.clone());
                }
            }
        }
        blocks
    }
}

/// True if further blocks of the message follow.
fn is_open(message: &Map<String, Value>) -> bool {
    message.get("type").is_some_and(|kind| kind == "assistant")
        && message.get("aborted").is_none_or(|aborted| *aborted != true)
        && message.get("message").and_then(|message| message.get("stop_reason")).is_some_and(Value::is_null)
}

fn is_same_message(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let id = |line: &Map<String, Value>| line.get("message").and_then(|message| message.get("id")).cloned();
    id(one).is_some_and(|one| id(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn block(id: &str, stop_reason: Option<&str>, tokens: u64) -> Map<String, Value> {
        let usage = json!({"output_tokens": tokens});
        line(&json!({"type": "assistant", "message": {"id": id, "stop_reason": stop_reason, "usage": usage}}))
    }

    fn tokens(lines: &[Map<String, Value>]) -> Vec<Option<u64>> {
        lines.iter().map(|line| line["message"]["usage"]["output_tokens"].as_u64()).collect()
    }

    #[test]
    fn all_blocks_of_a_message_have_its_usage() {
        let mut open = OpenMessage::default();
        assert!(open.push(block("a", None, 0)).is_empty());
        assert_eq!(tokens(&open.push(block("a", Some("tool_use"), 5))), [Some(5), Some(5)]);
        assert_eq!(tokens(&open.push(line(&json!({"type": "user", "message": {}})))), [None]);
        assert!(open.push(block("b", None, 0)).is_empty());
        assert_eq!(tokens(&open.push(block("c", Some("end_turn"), 7))), [Some(0), Some(7)]);
        assert!(open.push(block("d", None, 1)).is_empty());
        assert_eq!(tokens(&open.take()), [Some(1)]);
        assert!(open.take().is_empty());
    }
}
