//! Colours, widths, and sanitising of untrusted text.

pub(super) use qwen_events::terminal_text as harmless;

use super::ViewOptions;

/// The style of a piece of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Red => Some("31"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::Cyan => Some("36"),
        }
    }
}

/// Writes styled text as the options allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Painter {
    color: bool,
    width: usize,
}

impl Painter {
    pub(super) fn new(options: ViewOptions) -> Self {
        Self { color: options.color, width: options.width.clamp(20, 1000) }
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    /// Writes `text`, which must already be sanitised.
    pub(super) fn push(self, out: &mut Vec<u8>, look: Style, text: &str) {
        match look.code().filter(|_| self.color && !text.is_empty()) {
            Some(code) => {
                out.extend_from_slice(b"\x1b[");
                out.extend_from_slice(code.as_bytes());
                out.push(b'm');
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\x1b[0m");
            }
            None => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// `text` on one line, truncated to `width` characters.
pub(super) fn one_line(text: &str, width: usize) -> String {
    let text = harmless(text.trim_end());
    let mut line = String::with_capacity(text.len().min(4 * width));
    for (count, c) in text.chars().enumerate() {
        if count + 1 >= width && text.chars().nth(count + 1).is_some() {
            line.push('…');
            break;
        }
        line.push(if c == '\n' || c == '\t' { ' ' } else { c });
    }
    line
}

/// An upper estimate of the terminal columns of a text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Sanitised `text` on one line, truncated to `room` columns.
pub(super) fn fit(text: &str, room: usize) -> String {
    let shown = |c: char| if c == '\n' || c == '\t' { ' ' } else { c };
    if columns(text) <= room {
        return text.chars().map(shown).collect();
    }
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars().map(shown) {
        if used + width_of(c) + 1 > room {
            break;
        }
        used += width_of(c);
        line.push(c);
    }
    line.push('…');
    line
}

/// The columns of a character: two for East Asian scripts and emoji, one for all others, although some have
/// none. Overestimating is harmless; underestimating would break a line.
fn width_of(c: char) -> usize {
    let wide = matches!(c,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f000}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}');
    if wide { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_line_is_one_line_and_fits() {
        assert_eq!(one_line("short", 10), "short");
        assert_eq!(one_line("a\nb\tc", 10), "a b c");
        assert_eq!(one_line("0123456789", 10), "0123456789");
        assert_eq!(one_line("0123456789a", 10), "012345678…");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_a_terminal_acts_on(text in any::<String>()) {
            let safe = harmless(&text);
            prop_assert!(!safe.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(harmless(&safe), safe);
        }
    }
}
