//! The conversation as Markdown.

use std::fmt::Write;

use qwen_events::{Message, Part, Role};

pub(super) fn write(messages: &[Message]) -> String {
    let mut text = String::from("# Conversation\n");
    for message in messages {
        let who = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Tools",
        };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n## {who}\n");
        for part in &message.parts {
            let _ = match part {
                Part::Text(words) => write!(text, "\n{words}\n"),
                Part::Thought { .. } => Ok(()),
                Part::Media(media) => write!(text, "\n({})\n", media.mime_type),
                Part::Call(call) => write!(text, "\n`{}` {}\n", call.name, call.arguments.as_str()),
                Part::Result(result) => write!(text, "\n`{}`:\n\n{}\n", result.name, indented(&result.text)),
            };
        }
    }
    text
}

/// An indented block, which no text can end early.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
