//! The limits on what one line carries.

use std::borrow::Cow;

use qwen_events::{CallId, visible_text};

/// The maximum size of one line, in bytes.
pub const MAX_FRAME: usize = 1024 * 1024;

/// The maximum size of raw input, of raw output and of one text, in bytes as they are written.
pub(super) const MAX_PART: usize = 256 * 1024;

/// The maximum length of a title or of the name of an option, in characters.
const MAX_TITLE: usize = 200;

/// The maximum length of the explanation of an error, in characters.
const MAX_EXPLANATION: usize = 1000;

/// The maximum size of a path, in bytes: longer ones name no file.
const MAX_PATH: usize = 4096;

/// The maximum size of a call's id, in bytes. The model chooses it.
const MAX_CALL_ID: usize = 200;

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
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
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

/// The beginning of a text, with at most `limit` bytes as they are written.
pub(super) fn beginning(text: &str, limit: usize) -> Cow<'_, str> {
    let (kept, rest) = split_at_size(text, limit);
    if rest.is_empty() { text.into() } else { format!("{kept}…").into() }
}

/// A path, cut if it is too long to name a file.
pub(super) fn path(path: &str) -> Cow<'_, str> {
    beginning(path, MAX_PATH)
}

/// The name of a tool, which the model may have invented.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    beginning(name, MAX_TITLE)
}

/// The id of a call on the wire: a very long one is replaced by its beginning and a hash of all of it.
pub(super) fn call_id(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    let (kept, rest) = split_at_size(id, MAX_CALL_ID);
    if rest.is_empty() {
        return id.into();
    }
    format!("{kept}-{}", hash(id)).into()
}

/// A hash (FNV-1a) in hexadecimal. The same text has the same hash in every process, live and in a replay.
pub(super) fn hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The text on one line, bounded in length, with every hidden character written out.
pub fn one_line(text: &str) -> String {
    bounded_line(text, MAX_TITLE)
}

/// The explanation of an error on one line, which may be longer than a title.
pub fn explanation(text: &str) -> String {
    bounded_line(text, MAX_EXPLANATION)
}

fn bounded_line(text: &str, limit: usize) -> String {
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
    if let Some((end, _)) = line.char_indices().nth(limit) {
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
    fn long_ids_stay_different_and_short_ones_unchanged() {
        let long = |end: &str| CallId::new(format!("{}{end}", "i".repeat(5000)));
        let (one, two) = (long("1"), long("2"));
        assert_ne!(call_id(&one), call_id(&two));
        assert!(call_id(&one).len() <= MAX_CALL_ID + 17);
        assert_eq!(call_id(&CallId::new("call-1")), "call-1");
        assert_eq!(path(&"p".repeat(9000)).chars().count(), MAX_PATH + 1);
    }

    #[test]
    fn a_title_is_one_visible_line() {
        assert_eq!(one_line("a\nb\u{202e}c"), "a b⟨U+202E⟩c");
        assert_eq!(one_line(&"x".repeat(500)).chars().count(), MAX_TITLE + 1);
        assert_eq!(tail("äb", 2), "b");
    }
}
