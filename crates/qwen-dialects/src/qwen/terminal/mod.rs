//! Splits terminal output into its text, its styled ranges and its escapes.

mod style;

use std::borrow::Cow;

use self::style::Style;
use crate::qwen::wire::record::{AnsiCode, Span, SpanStyle};

/// The longest piece of an escape sequence that is buffered while its end is awaited. A longer one, such as
/// an image, is recorded piece by piece.
const LONGEST_PIECE: usize = 64 * 1024;

/// Reads one stream of output, piece by piece; an escape may be split anywhere.
#[derive(Debug, Default)]
pub(in crate::qwen) struct Terminal {
    state: State,
    /// The sequence so far, while `state` is inside one.
    code: String,
    style: Style,
}

/// The position inside an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Outside.
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate: one final character is expected.
    Intermediate,
    /// In the parameters of a control sequence.
    Csi,
    /// In a string that ends with BEL or ST (an OSC) or with ST alone (the others).
    Str { bel: bool },
    /// After an ESC inside such a string: a backslash ends it.
    StrEscape,
}

/// The effect of a character inside a sequence.
enum Step {
    /// It belongs to the sequence, which continues.
    Goes(State),
    /// It ends the sequence.
    Ends,
    /// The sequence was aborted before it.
    Breaks,
    /// The sequence was aborted at the preceding ESC, which starts another one.
    Restarts,
}

/// A decoded piece of output.
#[derive(Debug, Default)]
pub(in crate::qwen) struct Rendered<'t> {
    /// The text, escapes removed.
    pub text: Cow<'t, str>,
    /// The styled ranges of the text.
    pub spans: Vec<Span<'static>>,
    /// The escape sequences that were removed from the text.
    pub ansi: Vec<AnsiCode<'static>>,
}

impl Terminal {
    /// Decodes a piece of output. An incomplete sequence at its end is stored for the next piece.
    pub(in crate::qwen) fn render<'t>(&mut self, piece: &'t str) -> Rendered<'t> {
        let mut page = Page { style: self.style, ..Page::default() };
        if self.state == State::Text && introducer(piece).is_none() {
            page.length = length_if(self.style.theme_token().is_some(), piece);
            return Rendered { text: Cow::Borrowed(piece), spans: page.finish(), ansi: Vec::new() };
        }
        let mut text = String::with_capacity(piece.len());
        let mut rest = piece;
        while let Some(character) = rest.chars().next() {
            if self.state == State::Text {
                let Some((at, width, state)) = introducer(rest) else {
                    page.push(&mut text, rest);
                    break;
                };
                page.push(&mut text, &rest[..at]);
                self.code.push_str(&rest[at..at + width]);
                self.state = state;
                rest = &rest[at + width..];
                continue;
            }
            let step = self.state.step(character);
            if matches!(step, Step::Goes(_) | Step::Ends) {
                self.code.push(character);
                rest = &rest[character.len_utf8()..];
            }
            match step {
                Step::Goes(state) => {
                    self.state = state;
                    if self.code.len() >= LONGEST_PIECE && !matches!(state, State::StrEscape) {
                        page.record(std::mem::take(&mut self.code));
                    }
                }
                Step::Restarts => {
                    self.state = State::Escape;
                    self.code.pop();
                    page.record(std::mem::replace(&mut self.code, "\u{1b}".to_owned()));
                }
                Step::Ends | Step::Breaks => {
                    self.state = State::Text;
                    let code = std::mem::take(&mut self.code);
                    if let Some(parameters) = sgr(&code) {
                        self.style.apply(parameters);
                        page.restyle(self.style);
                    }
                    page.record(code);
                }
            }
        }
        let ansi = std::mem::take(&mut page.ansi);
        Rendered { text: Cow::Owned(text), spans: page.finish(), ansi }
    }

    /// The incomplete sequence at the end of the output.
    pub(in crate::qwen) fn leftover(&mut self) -> Option<String> {
        self.state = State::Text;
        (!self.code.is_empty()).then(|| std::mem::take(&mut self.code))
    }
}

impl State {
    fn step(self, character: char) -> Step {
        match (self, character) {
            (Self::Escape, '[') => Step::Goes(Self::Csi),
            (Self::Escape, ']') => Step::Goes(Self::Str { bel: true }),
            (Self::Escape, 'P' | 'X' | '^' | '_') => Step::Goes(Self::Str { bel: false }),
            (Self::Escape | Self::Intermediate, ' '..='/') => Step::Goes(Self::Intermediate),
            (Self::Escape | Self::Intermediate, '0'..='~') => Step::Ends,
            (Self::Csi, ' '..='?') => Step::Goes(Self::Csi),
            (Self::Csi, '@'..='~') => Step::Ends,
            (Self::Str { bel: true }, '\u{7}') => Step::Ends,
            // CAN and SUB abort, U+009C is ST in one character.
            (Self::Str { .. }, '\u{18}' | '\u{1a}' | '\u{9c}') => Step::Ends,
            (Self::Str { .. }, '\u{1b}') => Step::Goes(Self::StrEscape),
            (Self::Str { bel }, _) => Step::Goes(Self::Str { bel }),
            (Self::StrEscape, '\\') => Step::Ends,
            (Self::StrEscape, _) => Step::Restarts,
            (Self::Text | Self::Escape | Self::Intermediate | Self::Csi, _) => Step::Breaks,
        }
    }
}

/// Where the first escape of `text` starts, how many bytes introduce it and what it is inside.
fn introducer(text: &str) -> Option<(usize, usize, State)> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|byte| matches!(byte, 0x1b | 0xc2)) {
        let at = from + found;
        // The eight-bit forms of ESC [, ESC ] and so on are U+0080 to U+009F, two bytes in UTF-8.
        let state = match (bytes[at], bytes.get(at + 1)) {
            (0x1b, _) => return Some((at, 1, State::Escape)),
            (_, Some(0x9b)) => State::Csi,
            (_, Some(0x9d)) => State::Str { bel: true },
            (_, Some(0x90 | 0x98 | 0x9e | 0x9f)) => State::Str { bel: false },
            _ => {
                from = at + 1;
                continue;
            }
        };
        return Some((at, 2, state));
    }
    None
}

/// The parameters, where `code` is an SGR sequence.
fn sgr(code: &str) -> Option<&str> {
    let parameters =
        code.strip_prefix("\u{1b}[").or_else(|| code.strip_prefix('\u{9b}'))?.strip_suffix('m')?;
    parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).then_some(parameters)
}

/// Counts characters only if requested.
fn length_if(asked: bool, text: &str) -> u64 {
    if asked { text.chars().count() as u64 } else { 0 }
}

/// The spans and escapes of one piece as they are found.
#[derive(Default)]
struct Page {
    /// Unicode scalar values of text so far.
    length: u64,
    style: Style,
    /// Where the current style began.
    since: u64,
    spans: Vec<Span<'static>>,
    ansi: Vec<AnsiCode<'static>>,
}

impl Page {
    fn push(&mut self, text: &mut String, more: &str) {
        text.push_str(more);
        self.length += length_if(true, more);
    }

    fn record(&mut self, code: String) {
        self.ansi.push(AnsiCode { offset: self.length, code: Cow::Owned(code) });
    }

    fn restyle(&mut self, style: Style) {
        if style.theme_token() != self.style.theme_token() {
            self.close();
        }
        self.style = style;
    }

    fn close(&mut self) {
        if let Some(token) = self.style.theme_token()
            && self.length > self.since
        {
            let style = SpanStyle { theme_token: Cow::Borrowed(token) };
            self.spans.push(Span { start: self.since, end: self.length, style });
        }
        self.since = self.length;
    }

    fn finish(mut self) -> Vec<Span<'static>> {
        self.close();
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Spans = Vec<(u64, u64, &'static str)>;
    type Expected<'a> = (&'a str, Spans, Vec<(u64, &'a str)>);
    /// A record's text, spans and escapes.
    type Record = (String, Vec<(u64, u64, String)>, Vec<(u64, String)>);

    /// Renders pieces of one stream; what is left over at the end is an escape too.
    fn rendered(pieces: &[&str]) -> Vec<Record> {
        let mut terminal = Terminal::default();
        let mut records: Vec<_> = pieces
            .iter()
            .map(|piece| {
                let page = terminal.render(piece);
                let spans =
                    page.spans.iter().map(|s| (s.start, s.end, s.style.theme_token.to_string())).collect();
                let ansi = page.ansi.iter().map(|a| (a.offset, a.code.to_string())).collect();
                (page.text.into_owned(), spans, ansi)
            })
            .collect();
        if let Some(code) = terminal.leftover() {
            records.push((String::new(), Vec::new(), vec![(0, code)]));
        }
        records
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &[Expected<'_>]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(text, spans, ansi)| {
                (
                    (*text).to_owned(),
                    spans
                        .iter()
                        .map(|(start, end, token)| (*start, *end, (*token).to_owned()))
                        .collect::<Vec<_>>(),
                    ansi.iter().map(|(offset, code)| (*offset, (*code).to_owned())).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(rendered(pieces), expected, "{pieces:?}");
    }

    #[test]
    fn plain_text_is_left_alone() {
        check(&["héllo\r\n\tworld"], &[("héllo\r\n\tworld", vec![], vec![])]);
    }

    #[test]
    fn colours_become_spans_and_their_codes_are_kept() {
        check(
            &["\u{1b}[32mok\u{1b}[0m done"],
            &[("ok done", vec![(0, 2, "AccentGreen")], vec![(0, "\u{1b}[32m"), (2, "\u{1b}[0m")])],
        );
    }

    #[test]
    fn offsets_count_scalar_values_and_not_bytes() {
        check(
            &["äö\u{1b}[31m🦀x\u{1b}[mü"],
            &[("äö🦀xü", vec![(2, 4, "AccentRed")], vec![(2, "\u{1b}[31m"), (4, "\u{1b}[m")])],
        );
    }

    #[test]
    fn an_escape_may_be_split_anywhere_and_a_colour_goes_on() {
        check(
            &["a\u{1b}", "[3", "2mb", "c\u{1b}[0m"],
            &[
                ("a", vec![], vec![]),
                ("", vec![], vec![]),
                ("b", vec![(0, 1, "AccentGreen")], vec![(0, "\u{1b}[32m")]),
                ("c", vec![(0, 1, "AccentGreen")], vec![(1, "\u{1b}[0m")]),
            ],
        );
    }

    #[test]
    fn titles_links_cursor_moves_and_eight_bit_forms_are_removed_and_recorded() {
        check(
            &[
                "\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\u{1b}[2Kc\u{1b}(Bd\u{9b}31me\u{1b}Pq#1\u{1b}\\f",
            ],
            &[(
                "abcdef",
                vec![(4, 6, "AccentRed")],
                vec![
                    (0, "\u{1b}]0;title\u{7}"),
                    (1, "\u{1b}]8;;http://x\u{1b}\\"),
                    (2, "\u{1b}[2K"),
                    (3, "\u{1b}(B"),
                    (4, "\u{9b}31m"),
                    (5, "\u{1b}Pq#1\u{1b}\\"),
                ],
            )],
        );
    }

    #[test]
    fn a_broken_sequence_costs_no_text() {
        check(&["\u{1b}[3\nx"], &[("\nx", vec![], vec![(0, "\u{1b}[3")])]);
        check(&["a\u{1b}\u{1b}[1mb"], &[("ab", vec![], vec![(1, "\u{1b}"), (1, "\u{1b}[1m")])]);
        check(
            &["\u{1b}]0;no end\u{1b}", "[31mred"],
            &[
                ("", vec![], vec![]),
                ("red", vec![(0, 3, "AccentRed")], vec![(0, "\u{1b}]0;no end"), (0, "\u{1b}[31m")]),
            ],
        );
    }

    #[test]
    fn an_escape_that_never_ends_is_recorded_at_the_end() {
        check(&["x\u{1b}]0;never"], &[("x", vec![], vec![]), ("", vec![], vec![(0, "\u{1b}]0;never")])]);
    }

    #[test]
    fn a_very_long_sequence_is_recorded_in_pieces_and_never_shown() {
        let image = format!("\u{1b}_G{}\u{1b}\\", "A".repeat(3 * LONGEST_PIECE));
        let records = rendered(&[&format!("a{image}b")]);
        assert_eq!(records[0].0, "ab");
        let joined: String = records[0].2.iter().map(|(_, code)| code.as_str()).collect();
        assert_eq!(joined, image);
        assert!(records[0].2.iter().all(|(_, code)| code.len() <= LONGEST_PIECE + 2));
    }

    proptest! {
        #[test]
        fn putting_the_escapes_back_gives_what_was_written(
            pieces in prop::collection::vec("([a-zé🦀\n]|\u{1b}|\u{1b}\\[|[0-9;m\\]\\\\]|\u{7}|\u{9b}|\u{9c}|\u{c2}a){0,12}", 0..6),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let mut again = String::new();
            for (text, spans, ansi) in rendered(&pieces) {
                let length = text.chars().count() as u64;
                prop_assert!(spans.iter().all(|(start, end, _)| start < end && *end <= length));
                let mut codes = ansi.into_iter().peekable();
                for (at, character) in text.chars().map(Some).chain([None]).enumerate() {
                    while let Some((_, code)) = codes.next_if(|(offset, _)| *offset == at as u64) {
                        again.push_str(&code);
                    }
                    again.extend(character);
                }
                prop_assert!(codes.next().is_none());
            }
            prop_assert_eq!(again, pieces.concat());
        }
    }
}
