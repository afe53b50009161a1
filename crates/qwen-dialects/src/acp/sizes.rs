//! The limits on what one line carries.

use qwen_events::visible_text;

/// The maximum size of one line, in bytes.
pub const MAX_FRAME: usize = 1024 * 1024;

/// The maximum size of raw input, of raw output and of one text, in bytes as they are written.
pub(super) const MAX_PART: usize = 256 * 1024;

/// The maximum length of a title or of the name of an option, in characters.
const MAX_TITLE: usize = 200;

/// The size of a character inside a JSON string.
fn written_size(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Splits a text so that the first part takes at most `limit` bytes inside a JSON string.
pub(super) fn split_at_size(text: &str, limit: usize) -> (&str, &str) {
    // A byte is written as at most six.
    if text.len() <= limit / 6 {
        return (text, "");
    }
    let mut size = 0;
    for (at, character) in text.char_indices() {
        size += written_size(character);
        if size > limit {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// The text, or its beginning and a note about what was left out.
pub(super) fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    let (kept, rest) = split_at_size(text, MAX_PART - 64);
    if rest.is_empty() { text.into() } else { format!("{kept}\n[{} more bytes]", rest.len()).into() }
}

/// The end of a text, with at most `limit` bytes.
pub(super) fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The text on one line, bounded in length, with every hidden character written out.
pub fn one_line(text: &str) -> String {
    let visible = visible_text(text.trim());
    let mut line = visible.split(['\n', '\t']).map(str::trim).filter(|part| !part.is_empty()).fold(
        String::new(),
        |mut line, part| {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(part);
            line
        },
    );
    if let Some((end, _)) = line.char_indices().nth(MAX_TITLE) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_by_its_size_on_the_wire() {
        assert_eq!(split_at_size("abc", 6), ("abc", ""));
        assert_eq!(split_at_size("\u{1}\u{1}\u{1}", 12), ("\u{1}\u{1}", "\u{1}"));
        assert_eq!(split_at_size("ääää", 5), ("ää", "ää"));
    }

    #[test]
    fn a_title_is_one_visible_line() {
        assert_eq!(one_line("a\nb\u{202e}c"), "a b⟨U+202E⟩c");
        assert_eq!(one_line(&"x".repeat(500)).chars().count(), MAX_TITLE + 1);
        assert_eq!(tail("äb", 2), "b");
    }
}
