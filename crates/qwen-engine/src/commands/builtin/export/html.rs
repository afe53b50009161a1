//! The conversation as one HTML page without scripts or references.

use std::fmt::Write;

use qwen_events::{Message, Part, Role};

const HEAD: &str = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>Conversation</title>\n<style>\n\
    body { max-width: 50em; margin: 2em auto; font-family: sans-serif; }\n\
    pre { white-space: pre-wrap; overflow-wrap: anywhere; }\n\
    </style>\n</head>\n<body>\n<h1>Conversation</h1>\n";

pub(super) fn write(messages: &[Message]) -> String {
    let mut page = String::from(HEAD);
    for message in messages {
        let (class, who) = match message.role {
            Role::User => ("user", "User"),
            Role::Assistant => ("assistant", "Assistant"),
            Role::Tool => ("tool", "Tools"),
        };
        // Writing to a `String` cannot fail.
        let _ = write!(page, "<section class=\"{class}\">\n<h2>{who}</h2>\n");
        for part in &message.parts {
            let _ = match part {
                Part::Text(words) => writeln!(page, "<pre>{}</pre>", escaped(words)),
                Part::Thought { .. } => Ok(()),
                Part::Media(media) => writeln!(page, "<p>({})</p>", escaped(&media.mime_type)),
                Part::Call(call) => writeln!(
                    page,
                    "<p><code>{}</code></p>\n<pre>{}</pre>",
                    escaped(&call.name),
                    escaped(call.arguments.as_str())
                ),
                Part::Result(result) => writeln!(
                    page,
                    "<details>\n<summary><code>{}</code></summary>\n<pre>{}</pre>\n</details>",
                    escaped(&result.name),
                    escaped(&result.text)
                ),
            };
        }
        page.push_str("</section>\n");
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
