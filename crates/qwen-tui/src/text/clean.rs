//! Sanitises untrusted text (from models, tools, servers, files and their names) for display.
//!
//! The result cannot move the cursor, change a mode, a title or the clipboard, make the terminal reply, or
//! reorder the text around it.

use std::borrow::Cow;

use qwen_events::{is_misleading, push_code_point, visible_text};

use super::style::{Color, Style, StyledLine};

/// Removes everything that a terminal would act on, except line feeds and tabs. What would reorder the text
/// is written out (`⟨U+202E⟩`), because without it the text would mean something else than its source. A
/// carriage return inside a line restarts the line, as a progress bar intends; before a line feed it
/// disappears.
pub fn clean(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) || !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                out.push('\n');
                line_start = out.len();
            }
            '\t' => out.push('\t'),
            '\r' => {
                if chars.peek().is_some_and(|next| *next != '\n' && *next != '\r') {
                    out.truncate(line_start);
                }
            }
            '\u{1b}' => {
                skip_escape(&mut chars);
            }
            '\u{9b}' => {
                skip_csi(&mut chars);
            }
            // DCS, SOS, OSC, PM and APC as single characters.
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            c if reorders(c) => push_code_point(c, &mut out),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A line of a tool's output with the tool's colours, if they are among the terminal's 16; all other
/// control sequences are removed.
pub fn colored(text: &str) -> StyledLine {
    let mut line = StyledLine::default();
    let mut style = Style::PLAIN;
    let text = text.trim_end_matches('\r');
    let text = text.rsplit('\r').next().unwrap_or(text);
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        line.push(&rest[..at], style);
        let mut chars = rest[at + 2..].chars().peekable();
        if let Some(parameters) = skip_csi(&mut chars) {
            style = select(style, &parameters);
        }
        let left: usize = chars.map(char::len_utf8).sum();
        rest = &rest[rest.len() - left..];
    }
    line.push(rest, style);
    line
}

fn select(style: Style, parameters: &str) -> Style {
    let mut style = style;
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u8>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => style = Style::PLAIN,
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.reverse = true,
            9 => style.strike = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            29 => style.strike = false,
            31 | 91 => style.color = Some(Color::Red),
            32 | 92 => style.color = Some(Color::Green),
            33 | 93 => style.color = Some(Color::Yellow),
            34 | 94 => style.color = Some(Color::Blue),
            35 | 95 => style.color = Some(Color::Magenta),
            36 | 96 => style.color = Some(Color::Cyan),
            30 | 37 | 39 | 90 | 97 => style.color = None,
            // A colour of a larger palette: its parameters are skipped.
            38 | 48 => {
                let skip = if numbers.next() == Some(2) { 3 } else { 1 };
                numbers.by_ref().take(skip).for_each(drop);
            }
            _ => {}
        }
    }
    style
}

/// Cleaned text on one line: line breaks and tabs become blanks.
pub fn clean_line(text: &str) -> String {
    let cleaned = clean(text);
    cleaned.trim().replace(['\n', '\t'], " ")
}

/// [`visible_text`] on one line, for names and titles that a user must judge.
pub fn visible_line(text: &str) -> String {
    visible_text(text.trim_end_matches('\n')).replace('\n', "^J").replace('\t', " ")
}

/// Embeddings, overrides and isolates, which change the order of the text around them.
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters that are never printed: controls, and those that reorder or hide text.
fn is_unsafe(c: char) -> bool {
    !matches!(c, '\n' | '\t') && (c.is_control() || is_misleading(c))
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows ESC.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        // Intermediates, then one final character.
        Some(' '..='/') => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Skips what follows `ESC [`. Returns the parameters where that was a plain `CSI … m`.
fn skip_csi(chars: &mut Chars<'_>) -> Option<String> {
    let mut parameters = String::new();
    let mut plain = true;
    while let Some(c) = chars.next_if(|c| (' '..='?').contains(c)) {
        plain &= matches!(c, '0'..='9' | ';' | ':');
        if parameters.len() < 64 {
            parameters.push(c);
        } else {
            plain = false;
        }
    }
    let last = chars.next_if(|c| ('@'..='~').contains(c))?;
    (plain && last == 'm').then_some(parameters)
}

/// Skips a string up to its terminator (ST, BEL), or to the end of the line where there is none: an
/// unterminated sequence must not hide the rest of a text.
fn skip_string(chars: &mut Chars<'_>) {
    loop {
        match chars.peek() {
            None | Some('\n') => return,
            Some('\u{7}' | '\u{9c}') => {
                chars.next();
                return;
            }
            Some('\u{1b}') => {
                chars.next();
                if chars.next_if_eq(&'\\').is_some() {
                    return;
                }
            }
            Some(_) => {
                chars.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_disappear_whole_and_text_stays() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\x1b[2Jb", "ab"),
            ("a\x1b]0;title\x07b", "ab"),
            ("a\x1b]52;c;eA==\x1b\\b", "ab"),
            ("a\u{9b}31mb\u{9d}0;t\u{9c}c", "abc"),
            ("a\x1bP1$r\x1b\\b", "ab"),
            ("an \x1b]unterminated\nnext", "an \nnext"),
            ("10%\r20%\r\ndone", "20%\ndone"),
            ("\u{202e}evil\u{2066}", "⟨U+202E⟩evil⟨U+2066⟩"),
            ("\u{200f}mark", "mark"),
            ("\x1b", ""),
            ("\x1b[", ""),
            ("\x1b(0x", "x"),
            ("\x08\x00\x7f\u{85}x", "x"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn colours_of_tools_become_styles_and_nothing_else_survives() {
        let line = colored("a\x1b[1;31mred\x1b[0m\x1b[5n\x1b]0;t\x07b\x1b[38;5;200mc\x1b[2J");
        assert_eq!(line.text(), "aredbc");
        assert_eq!(line.spans[1].style, Style::color(Color::Red).bold());
        assert_eq!(colored("10%\r20%\r").text(), "20%");
    }
}
