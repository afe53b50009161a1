//! Text of others on a terminal: models, tools, servers, files and their names.

mod approval;

use std::fmt::Write;

pub use approval::{shorten_middle, visible_text};

/// Sanitises `text` for a terminal: escape sequences are removed, other control characters and those that
/// reorder or hide text are made visible. Line breaks and tabs remain.
pub fn terminal_text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\u{1b}'
            && let Some(length) = escape_sequence(rest)
        {
            rest = &rest[length..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' if rest.starts_with('\n') => {}
            '\0'..='\u{1f}' => safe.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => safe.push('␡'),
            '\u{80}'..='\u{9f}' => safe.push('\u{fffd}'),
            c if is_misleading(c) => push_code_point(c, &mut safe),
            c => safe.push(c),
        }
    }
    safe
}

/// Removes escape sequences and stray escape characters; everything else remains.
pub fn without_escapes(text: &str) -> std::borrow::Cow<'_, str> {
    let is_escape = |c: char| matches!(c, '\u{1b}' | '\u{9b}' | '\u{9d}' | '\u{90}');
    if !text.contains(is_escape) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_escape) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        // A sequence may also begin with one character of the C1 set instead of ESC and a letter.
        let (start, opener) = match rest.chars().next() {
            Some('\u{9b}') => (2, Some("\u{1b}[")),
            Some('\u{9d}') => (2, Some("\u{1b}]")),
            Some('\u{90}') => (2, Some("\u{1b}P")),
            _ => (1, None),
        };
        let length = match opener {
            Some(opener) => {
                escape_sequence(&format!("{opener}{}", &rest[start..])).map(|length| length - 2 + start)
            }
            None => escape_sequence(rest),
        };
        rest = &rest[length.unwrap_or(start)..];
    }
    kept.push_str(rest);
    kept.into()
}

/// Appends a character that must not be printed by its number, `⟨U+202E⟩`.
pub fn push_code_point(c: char, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(text, "⟨U+{:04X}⟩", u32::from(c));
}

/// True if `c` reorders the text around it or is invisible. The joiners that scripts and emoji need are
/// excluded.
pub fn is_misleading(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The length of the escape sequence at the start of `text`, if it is complete.
fn escape_sequence(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.get(1)? {
        // Control sequences: parameters, then one final byte.
        b'[' => {
            let end = bytes[2..].iter().position(|byte| !matches!(byte, 0x20..=0x3f))?;
            matches!(bytes[2 + end], 0x40..=0x7e).then_some(3 + end)
        }
        // Strings to the terminal: up to a bell or a string terminator.
        b']' | b'P' | b'_' | b'^' | b'X' => {
            let end = bytes[2..].iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
            match bytes[2 + end] {
                0x07 => Some(3 + end),
                _ => (bytes.get(3 + end) == Some(&b'\\')).then_some(4 + end),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_harm_a_terminal_is_taken_out_or_made_visible() {
        for (text, safe) in [
            ("plain\n\ttext äöü 日本", "plain\n\ttext äöü 日本"),
            ("\u{1b}[32mok\u{1b}[0m", "ok"),
            ("\u{1b}]52;c;aGk=\u{7}x", "x"),
            ("\u{1b}]0;title\u{1b}\\x", "x"),
            ("\u{1b}[", "␛["),
            ("\u{1b}]never closed", "␛]never closed"),
            ("a\r\nb\rc", "a\nb␍c"),
            ("\0\u{7}\u{7f}\u{9b}", "␀␇␡\u{fffd}"),
            ("\u{202e}evil", "⟨U+202E⟩evil"),
            ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
        ] {
            assert_eq!(terminal_text(text), safe, "{text:?}");
        }
    }
}
