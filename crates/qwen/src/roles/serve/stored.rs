//! The stored conversations, as the server shows them.

use qwen_engine::log::{LogError, LogHeader, Parent, Store};
use qwen_events::{Media, MediaSource, Message, Part, Role, SessionId};
use qwen_serve::StoredSessions;
use qwen_thoughts::ThoughtAgents;
use serde_json::{Value, json};

use crate::runtime::clock::now;

/// The logs of the sessions.
pub struct Logs(pub Store);

impl StoredSessions for Logs {
    fn messages(&self, session: &SessionId) -> Result<Value, String> {
        let folded = self.0.fold(session).map_err(|error| error.to_string())?;
        Ok(folded.messages.iter().flat_map(chat_messages).collect())
    }

    fn holds(&self, session: &SessionId) -> bool {
        self.0.holds(session)
    }

    fn fork(&self, of: &SessionId, prompt_id: &str, fork: &SessionId) -> Result<(), String> {
        let folded = self.0.fold(of).map_err(|error| error.to_string())?;
        let header = LogHeader {
            session_id: fork.clone(),
            created: now(),
            version: env!("CARGO_PKG_VERSION").into(),
            parent: Some(Parent { session_id: of.clone(), point: Some(prompt_id.into()) }),
            ..folded.header
        };
        self.0
            .fork_edited(of, Some(prompt_id), header, &[], &ThoughtAgents::default())
            .map_err(|error| error.to_string())
    }

    fn delete(&self, session: &SessionId) -> Result<(), String> {
        if !self.0.holds(session) {
            return Ok(());
        }
        self.0.delete(session).map_err(|error: LogError| error.to_string())
    }
}

/// A message in OpenAI's form. The results of several calls are several messages there.
fn chat_messages(message: &Message) -> Vec<Value> {
    let results: Vec<Value> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Result(result) => Some(json!({
                "role": "tool", "tool_call_id": result.call_id.as_str(), "name": &*result.name,
                "content": &*result.text, "is_error": result.is_error,
            })),
            Part::Text(_) | Part::Thought { .. } | Part::Media(_) | Part::Call(_) => None,
        })
        .collect();
    if !results.is_empty() {
        return results;
    }
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let has_media = message.parts.iter().any(|part| matches!(part, Part::Media(_)));
    let text: String = message.parts.iter().filter_map(Part::as_text).collect();
    let content =
        if has_media { message.parts.iter().filter_map(content_part).collect() } else { Value::String(text) };
    let mut written = json!({"role": role, "content": content});
    let calls: Vec<Value> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Call(call) => Some(json!({
                "id": call.id.as_str(), "type": "function",
                "function": {"name": &*call.name, "arguments": call.arguments.as_str()},
            })),
            Part::Text(_) | Part::Thought { .. } | Part::Media(_) | Part::Result(_) => None,
        })
        .collect();
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    vec![written]
}

fn content_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"type": "text", "text": &**text})),
        Part::Media(media) => Some(json!({"type": "image_url", "image_url": {"url": media_url(media)}})),
        Part::Thought { .. } | Part::Call(_) | Part::Result(_) => None,
    }
}

fn media_url(media: &Media) -> String {
    match &media.source {
        MediaSource::Base64(data) => format!("data:{};base64,{data}", media.mime_type),
        MediaSource::Url(url) => url.to_string(),
    }
}
