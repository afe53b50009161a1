//! Renders a conversation as one text, for a model that only reads it.

use std::fmt::Write;

use qwen_events::{Message, Part, Role};

/// The maximum length of one tool result, in bytes.
const MAX_RESULT: usize = 4_000;

/// The conversation as one text of at most about `most` bytes; the middle of a longer text is cut.
pub(super) fn render(messages: &[Message], most: usize) -> String {
    let mut text = String::from("The conversation:\n");
    for message in messages {
        let who = match message.role {
            Role::User => "USER",
            Role::Assistant => "AGENT",
            Role::Tool => "TOOL",
        };
        for part in &message.parts {
            // Writing to a `String` cannot fail.
            let _ = match part {
                Part::Text(words) => write!(text, "\n{who}: {words}\n"),
                Part::Thought { .. } => Ok(()),
                Part::Media(media) => write!(text, "\n{who}: ({})\n", media.mime_type),
                Part::Call(call) => {
                    write!(
                        text,
                        "\nAGENT calls {}: {}\n",
                        call.name,
                        cut(call.arguments.as_str(), MAX_RESULT)
                    )
                }
                Part::Result(result) => {
                    write!(text, "\n{} answers: {}\n", result.name, cut(&result.text, MAX_RESULT))
                }
            };
        }
    }
    if text.len() > most { cut(&text, most) } else { text }
}

/// The beginning and the end of a long text.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (mut head, mut tail) = (most / 2, text.len() - most / 2);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{} […] {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_keep_their_ends() {
        let text = format!("begin{}end", "ä".repeat(MAX_RESULT));
        let shown = cut(&text, MAX_RESULT);
        assert!(shown.starts_with("begin") && shown.ends_with("end") && shown.len() < MAX_RESULT + 20);
        assert_eq!(cut("short", MAX_RESULT), "short");
    }
}
