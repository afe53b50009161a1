//! Line length limits. The SDKs reject longer lines or crash on them: long content is truncated or split.

use std::borrow::Cow;

use crate::StreamInfo;

/// The longest line, newline included, that the reader accepts: Python's SDKs have a fixed buffer, 1 MiB in
/// Claude's and 64 KiB in Qwen's, and it must not be full. A reader that sends a prompt as text is not one
/// of these SDKs and gets everything.
pub(in crate::claude) fn line_limit(info: &StreamInfo) -> usize {
    match (info.qwen_sdk, info.input_format) {
        (true, _) => (1 << 16) - 1,
        (false, "text") => usize::MAX,
        (false, _) => (1 << 20) - 1,
    }
}

/// The longest text, in bytes of JSON, for a line of at most `line` bytes whose other fields are short.
pub(in crate::claude) fn text_limit(line: usize) -> usize {
    line - 4096
}

/// `text` in pieces of at most `room` bytes of JSON each; at least one piece.
pub(in crate::claude) fn pieces(text: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        // A character takes at most six times its bytes, so most texts need no counting.
        let fits = if rest.len() <= room / 6 { rest.len() } else { fitting(rest.chars(), room) };
        let (piece, tail) = rest.split_at(fits);
        pieces.push(piece);
        if tail.is_empty() || fits == 0 {
            return pieces;
        }
        rest = tail;
    }
}

/// `text` if it fits into `room` bytes of JSON, otherwise the result of [`cut_middle`].
pub(in crate::claude) fn fitted(text: &str, room: usize) -> Cow<'_, str> {
    if text.len() <= room / 6 || json_len(text) <= room {
        text.into()
    } else {
        cut_middle(text, room, None).into()
    }
}

/// The beginning and the end of `text` with a note about the omission between them, in at most `room` bytes
/// of JSON. If `room` is too small for the note, the note alone.
pub(in crate::claude) fn cut_middle(text: &str, room: usize, whole: Option<&str>) -> String {
    let missing = text.len();
    let note = match whole {
        Some(file) => format!(
            "\n\n[… about {missing} bytes in all; the middle is left out. The whole is in {file} …]\n\n"
        ),
        None => format!("\n\n[… about {missing} bytes in all; the middle is left out …]\n\n"),
    };
    let half = room.saturating_sub(json_len(&note)) / 2;
    let head = fitting(text.chars(), half);
    let tail = fitting(text.chars().rev(), half);
    [&text[..head], &note, &text[text.len() - tail..]].concat()
}

/// How many bytes of `chars` fit into `room` bytes of JSON.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += json_char_len(*c);
            used <= room
        })
        .map(char::len_utf8)
        .sum()
}

/// How many bytes `text` takes inside a JSON string.
pub(in crate::claude) fn json_len(text: &str) -> usize {
    text.chars().map(json_char_len).sum()
}

fn json_char_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_length_in_json_is_what_serde_writes(text in any::<String>()) {
            prop_assert_eq!(json_len(&text) + 2, serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn pieces_fit_and_add_up(text in any::<String>(), room in 8_usize..40) {
            let pieces = pieces(&text, room);
            prop_assert_eq!(pieces.concat(), text.as_str());
            prop_assert!(pieces.iter().all(|piece| json_len(piece) <= room));
        }

        #[test]
        fn a_cut_text_fits_and_keeps_both_ends(text in "[a-zé\"\n\u{1}\u{1F600}]{300,600}", room in 150_usize..280) {
            let cut = cut_middle(&text, room, None);
            prop_assert!(json_len(&cut) <= room, "{} > {room}", json_len(&cut));
            prop_assert_eq!(cut.chars().next(), text.chars().next());
            prop_assert_eq!(cut.chars().last(), text.chars().last());
        }
    }
}
