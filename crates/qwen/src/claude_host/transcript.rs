//! Reads conversations that Claude's SDKs stored, for sessions without a log of ours: sessions from another
//! machine that the host's store copied here, or sessions created by the SDK's functions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{CallId, Json, Media, MediaSource, Message, Part, Role, SessionId, ToolCall, ToolResult};
use serde_json::Value;

/// Finds the transcript of a session in the folders of all projects, that of `folder` first.
pub fn find(folder: &Path, id: &SessionId) -> Option<PathBuf> {
    let name = format!("{id}.jsonl");
    let own = folder.join(&name);
    if own.is_file() {
        return Some(own);
    }
    let folders = std::fs::read_dir(folder.parent()?).ok()?;
    folders.flatten().map(|entry| entry.path().join(&name)).find(|path| path.is_file())
}

/// The conversation in a transcript, up to and including the entry `until`, or all of it. None if there is no
/// such entry or the conversation is empty.
pub fn read(text: &str, until: Option<&str>) -> Option<Vec<Message>> {
    let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let places: HashMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(at, entry)| Some((entry["uuid"].as_str()?, at))).collect();
    let mut at = match until {
        Some(uuid) => Some(*places.get(uuid)?),
        None => entries.iter().rposition(is_message),
    };
    // Each entry names its predecessor. Following these links skips the branches that a rewind abandoned.
    let mut way = Vec::new();
    while let Some(entry) = at.and_then(|at| entries.get(at)) {
        if way.len() > entries.len() {
            return None;
        }
        way.push(entry);
        let parent = entry["parentUuid"].as_str().or_else(|| entry["logicalParentUuid"].as_str());
        at = parent.and_then(|parent| places.get(parent).copied());
    }
    let mut conversation = TranscriptReader::default();
    for entry in way.into_iter().rev().filter(|entry| is_message(entry)) {
        conversation.add(&entry["message"], entry["type"] == "assistant");
    }
    Some(conversation.messages).filter(|messages| !messages.is_empty())
}

/// The time of the last message in a transcript, as written there.
pub fn last_message_time(text: &str) -> Option<String> {
    let message_of = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        entry["timestamp"].as_str().filter(|_| is_message(&entry)).map(str::to_owned)
    };
    text.lines().rev().find_map(message_of)
}

fn is_message(entry: &Value) -> bool {
    matches!(entry["type"].as_str(), Some("user" | "assistant")) && entry["isSidechain"] != true
}

/// A partially read conversation.
#[derive(Default)]
struct TranscriptReader {
    messages: Vec<Message>,
    /// The id of the assistant message that was read last, because each of its blocks is a separate entry.
    open: Option<String>,
    /// The names of the tools that were called.
    names: HashMap<String, Arc<str>>,
}

impl TranscriptReader {
    fn add(&mut self, message: &Value, assistant: bool) {
        if message["model"] == "<synthetic>" {
            return;
        }
        let mut parts = Vec::new();
        let mut results = Vec::new();
        match &message["content"] {
            Value::String(text) => parts.push(Part::Text(text.as_str().into())),
            Value::Array(blocks) => {
                for block in blocks {
                    if block["type"] == "tool_result" {
                        results.push(Part::Result(self.result(block)));
                    } else {
                        parts.extend(self.part(block));
                    }
                }
            }
            _ => {}
        }
        let id = message["id"].as_str().filter(|_| assistant).map(str::to_owned);
        if !results.is_empty() {
            self.push(Role::Tool, results, false);
        }
        if !parts.is_empty() {
            let goes_on = id.is_some() && id == self.open;
            self.push(if assistant { Role::Assistant } else { Role::User }, parts, goes_on);
        }
        self.open = id;
    }

    fn push(&mut self, role: Role, parts: Vec<Part>, goes_on: bool) {
        match self.messages.last_mut() {
            Some(last) if last.role == role && (goes_on || role == Role::Tool) => last.parts.extend(parts),
            _ => self.messages.push(Message { role, parts }),
        }
    }

    fn part(&mut self, block: &Value) -> Option<Part> {
        let text = |field: &str| -> Arc<str> { block[field].as_str().unwrap_or_default().into() };
        Some(match block["type"].as_str()? {
            "text" => Part::Text(text("text")),
            "thinking" => Part::Thought {
                text: text("thinking"),
                signature: block["signature"].as_str().filter(|proof| !proof.is_empty()).map(Arc::from),
            },
            "tool_use" => {
                let id = block["id"].as_str()?;
                self.names.insert(id.to_owned(), text("name"));
                let arguments =
                    if block["input"].is_object() { block["input"].to_string() } else { "{}".to_owned() };
                Part::Call(Arc::new(ToolCall::new(CallId::new(id), text("name"), Json::trusted(arguments))))
            }
            "image" | "document" => Part::Media(media(block)?),
            _ => return None,
        })
    }

    fn result(&self, block: &Value) -> ToolResult {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let inner = block["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = match &block["content"] {
            Value::String(text) => text.clone(),
            _ => inner.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        };
        ToolResult {
            call_id: CallId::new(id),
            name: self.names.get(id).cloned().unwrap_or_default(),
            text: text.into(),
            media: inner.iter().filter_map(media).collect(),
            is_error: block["is_error"] == true,
        }
    }
}

fn media(block: &Value) -> Option<Media> {
    let source = &block["source"];
    let of = |field: &str| source[field].as_str().map(Arc::<str>::from);
    let place = match source["type"].as_str()? {
        "base64" => MediaSource::Base64(of("data")?),
        "url" => MediaSource::Url(of("url")?),
        _ => return None,
    };
    Some(Media { mime_type: of("media_type").unwrap_or_else(|| "image/png".into()), source: place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uuid: &str, parent: Option<&str>, role: &str, message: &str) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        format!(
            r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":{parent},"isSidechain":false,"message":{message}}}"#
        )
    }

    fn transcript() -> String {
        [
            entry("u1", None, "user", r#"{"role":"user","content":"look"}"#),
            entry(
                "a1",
                Some("u1"),
                "assistant",
                r#"{"id":"m1","content":[{"type":"text","text":"I look."}]}"#,
            ),
            entry(
                "a2",
                Some("a1"),
                "assistant",
                r#"{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"p":1}}]}"#,
            ),
            entry(
                "r1",
                Some("a2"),
                "user",
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"found"}]}"#,
            ),
            "no JSON".to_owned(),
            entry(
                "left",
                Some("r1"),
                "assistant",
                r#"{"id":"m2","content":[{"type":"text","text":"left"}]}"#,
            ),
            entry("a3", Some("r1"), "assistant", r#"{"id":"m3","content":[{"type":"text","text":"done"}]}"#),
        ]
        .join("\n")
    }

    #[test]
    fn a_transcript_is_the_conversation_that_its_last_entry_follows() {
        let conversation = read(&transcript(), None).expect("a conversation");
        let roles: Vec<Role> = conversation.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
        assert!(
            matches!(conversation[1].parts.as_slice(), [Part::Text(_), Part::Call(call)] if &*call.name == "Read")
        );
        assert!(
            matches!(conversation[2].parts.as_slice(), [Part::Result(result)] if &*result.name == "Read" && &*result.text == "found")
        );
        assert_eq!(conversation[3], Message::text(Role::Assistant, "done"));
    }

    #[test]
    fn reading_a_transcript_ends_at_the_given_message() {
        assert_eq!(read(&transcript(), Some("a2")).expect("a part").len(), 2);
        assert_eq!(read(&transcript(), Some("nowhere")), None);
        assert_eq!(read("", None), None);
    }

    #[test]
    fn entries_that_follow_each_other_in_a_ring_have_an_end() {
        let ring = [
            entry("a", Some("b"), "user", r#"{"content":"x"}"#),
            entry("b", Some("a"), "user", r#"{"content":"y"}"#),
        ];
        assert_eq!(read(&ring.join("\n"), None), None);
    }
}
