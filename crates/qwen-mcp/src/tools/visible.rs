//! Makes hidden characters in a server's text visible, because users and models base decisions on it.

use std::fmt::Write;

use serde_json::Value;

use qwen_events::is_hidden;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub text: String,
    /// Number of hidden characters.
    pub hidden: usize,
    /// True if the end was cut off.
    pub cut: bool,
}

/// Makes hidden characters visible as `\u{…}` and cuts after `limit` characters. Carriage returns are removed
/// and unusual spaces become plain ones, because legitimate text contains them too.
pub(crate) fn visible(text: &str, limit: usize) -> Visible {
    let mut made = Visible { text: String::with_capacity(text.len().min(limit)), hidden: 0, cut: false };
    let mut room = limit;
    for character in text.chars() {
        if character == '\r' {
            continue;
        }
        if room == 0 {
            made.cut = true;
            break;
        }
        room -= 1;
        if character.is_whitespace() && !character.is_ascii() {
            made.text.push(' ');
        } else if is_hidden(character) {
            made.hidden += 1;
            // Writing to a string cannot fail.
            let _ = write!(made.text, "\\u{{{:x}}}", u32::from(character));
        } else {
            made.text.push(character);
        }
    }
    made
}

/// Makes hidden characters visible in every string of a value, including field names. Returns their number.
pub(crate) fn reveal(value: &mut Value) -> usize {
    match value {
        Value::String(text) => reveal_text(text),
        Value::Array(items) => items.iter_mut().map(reveal).sum(),
        Value::Object(fields) => {
            let mut hidden = 0;
            for (mut name, mut value) in std::mem::take(fields) {
                hidden += reveal_text(&mut name) + reveal(&mut value);
                fields.insert(name, value);
            }
            hidden
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn reveal_text(text: &mut String) -> usize {
    if !text.chars().any(|c| is_hidden(c) && c != '\r') {
        return 0;
    }
    let made = visible(text, usize::MAX);
    *text = made.text;
    made.hidden
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_counted() {
        for (text, shown, hidden) in [
            ("plain\n\ttext", "plain\n\ttext", 0),
            ("a\r\nb", "a\nb", 0),
            ("no\u{a0}break", "no break", 0),
            ("\u{26a0}\u{fe0f} warning", "\u{26a0}\u{fe0f} warning", 0),
            ("ze\u{200b}ro", "ze\\u{200b}ro", 1),
            ("\u{e0041}\u{e0042}", "\\u{e0041}\\u{e0042}", 2),
            ("\u{202e}abc", "\\u{202e}abc", 1),
            ("\u{1b}[31m\u{7}", "\\u{1b}[31m\\u{7}", 2),
        ] {
            let made = visible(text, 1000);
            assert_eq!((made.text.as_str(), made.hidden, made.cut), (shown, hidden, false), "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(visible("äöü", 2), Visible { text: "äö".into(), hidden: 0, cut: true });
        assert!(!visible("äöü", 3).cut);
    }

    #[test]
    fn nothing_stays_hidden_in_a_schema() {
        let mut schema =
            json!({"properties": {"a\u{200b}": {"description": "x\u{e0041}", "enum": ["\u{202e}"]}}});
        assert_eq!(reveal(&mut schema), 3);
        let text = schema.to_string();
        assert!(!text.chars().any(is_hidden), "{text}");
    }
}
