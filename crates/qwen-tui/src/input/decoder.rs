//! Decodes a terminal's bytes into inputs.
//!
//! A state machine over single bytes with bounded state: a sequence that is longer than any known one is
//! dropped, a paste is truncated at [`MAX_PASTE`], and [`Decoder::idle`] ends what a terminal never
//! finished. Unknown sequences are ignored as a whole, so a terminal's reply to another program's query
//! never becomes typing.

use super::key::{Key, KeyCode, TerminalInput};
use crate::Millis;

/// The maximum size of one paste; the rest is dropped up to the paste's end.
pub const MAX_PASTE: usize = 16 * 1024 * 1024;

/// The longest accepted control sequence.
const MAX_SEQUENCE: usize = 64;

/// How long a lone ESC may be the start of a sequence.
const ESCAPE_WAIT: Millis = 25;

/// How long a paste may be silent before it counts as ended.
const PASTE_WAIT: Millis = 250;

const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, PartialEq, Eq)]
enum State {
    Ground,
    /// After ESC.
    Escape,
    /// After `ESC [`; `alt` if another ESC preceded it.
    Csi {
        alt: bool,
    },
    /// After `ESC O`.
    Ss3 {
        alt: bool,
    },
    /// Inside a string (OSC, DCS, APC, PM, SOS) up to its terminator; `escaped` after an ESC inside it.
    Str {
        escaped: bool,
    },
    /// Inside a bracketed paste.
    Paste,
    /// Inside a UTF-8 character, with this many bytes missing.
    Utf8 {
        missing: u8,
        alt: bool,
    },
    /// X10 mouse bytes that another program enabled, with this many bytes missing.
    Mouse(u8),
}

/// Turns bytes into inputs.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    buffer: Vec<u8>,
    /// In a paste over the limit: the rest is dropped, but its last bytes are stored to find the end.
    tail: Vec<u8>,
    last: Millis,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Ground, buffer: Vec::new(), tail: Vec::new(), last: 0 }
    }
}

impl Decoder {
    /// Decodes `bytes` that arrived at `now`.
    pub fn feed(&mut self, bytes: &[u8], now: Millis, out: &mut Vec<TerminalInput>) {
        self.last = now;
        let mut rest = bytes;
        while let Some((byte, behind)) = rest.split_first() {
            if self.state == State::Paste {
                rest = self.paste(rest, out);
                continue;
            }
            rest = behind;
            self.byte(*byte, out);
        }
    }

    /// When [`Decoder::idle`] is due if no bytes arrive before.
    pub fn deadline(&self) -> Option<Millis> {
        match self.state {
            State::Ground => None,
            State::Paste => Some(self.last + PASTE_WAIT),
            _ => Some(self.last + ESCAPE_WAIT),
        }
    }

    /// Ends an incomplete sequence, because no bytes arrived until `now`.
    pub fn idle(&mut self, now: Millis, out: &mut Vec<TerminalInput>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Ground) {
            State::Escape => out.push(TerminalInput::Key(Key::plain(KeyCode::Escape))),
            State::Paste => self.end_paste(out),
            // ESC and then a bracket or an O, typed manually.
            State::Csi { .. } if self.buffer.is_empty() => out.push(TerminalInput::Key(Key::alt('['))),
            State::Ss3 { .. } => out.push(TerminalInput::Key(Key::alt('O'))),
            State::Ground | State::Csi { .. } | State::Str { .. } | State::Utf8 { .. } | State::Mouse(_) => {}
        }
        self.buffer.clear();
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<TerminalInput>) {
        match self.state {
            State::Ground => self.ground(byte, false, out),
            State::Escape => self.escape(byte, out),
            State::Csi { alt } => self.csi(byte, alt, out),
            State::Ss3 { alt } => {
                self.state = State::Ground;
                if let Some(code) = letter(byte).or_else(|| ss3(byte)) {
                    out.push(TerminalInput::Key(Key { alt, ..Key::plain(code) }));
                }
            }
            State::Str { escaped } => match byte {
                0x07 | 0x18 | 0x1a => self.state = State::Ground,
                b'\\' if escaped => self.state = State::Ground,
                0x1b => self.state = State::Str { escaped: true },
                // A key inside an unterminated reply: the reply is dropped, Ctrl+C is not.
                0x03 => {
                    self.state = State::Ground;
                    self.ground(byte, false, out);
                }
                _ => self.state = State::Str { escaped: false },
            },
            State::Utf8 { missing, alt } => self.utf8(byte, missing, alt, out),
            State::Mouse(left) => {
                self.state = if left > 1 { State::Mouse(left - 1) } else { State::Ground };
            }
            // Pastes are read in pieces by `feed`.
            State::Paste => {}
        }
    }

    fn ground(&mut self, byte: u8, alt: bool, out: &mut Vec<TerminalInput>) {
        self.state = State::Ground;
        let key = match byte {
            0x1b => {
                self.state = State::Escape;
                return;
            }
            b'\r' => Key::plain(KeyCode::Enter),
            b'\n' => Key::ctrl('j'),
            b'\t' => Key::plain(KeyCode::Tab),
            0x7f => Key::plain(KeyCode::Backspace),
            0x08 => Key { ctrl: true, ..Key::plain(KeyCode::Backspace) },
            0 => Key::ctrl(' '),
            1..=0x1a => Key::ctrl(char::from(byte + 0x60)),
            0x1c..=0x1f => Key::ctrl(char::from(byte + 0x40)),
            0x20..=0x7e => Key::plain(KeyCode::Char(char::from(byte))),
            0xc2..=0xf4 => {
                self.buffer.clear();
                self.buffer.push(byte);
                let missing = if byte < 0xe0 {
                    1
                } else if byte < 0xf0 {
                    2
                } else {
                    3
                };
                self.state = State::Utf8 { missing, alt };
                return;
            }
            // Not UTF-8: shown as the replacement character.
            0x80..=0xff => Key::plain(KeyCode::Char('\u{fffd}')),
        };
        out.push(TerminalInput::Key(Key { alt: alt || key.alt, ..key }));
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<TerminalInput>) {
        self.buffer.clear();
        match byte {
            b'[' => self.state = State::Csi { alt: false },
            b'O' => self.state = State::Ss3 { alt: false },
            b']' | b'P' | b'_' | b'^' | b'X' => self.state = State::Str { escaped: false },
            // ESC ESC: the first one is a separate key, unless a sequence follows.
            0x1b => out.push(TerminalInput::Key(Key::plain(KeyCode::Escape))),
            byte => self.ground(byte, true, out),
        }
    }

    fn utf8(&mut self, byte: u8, missing: u8, alt: bool, out: &mut Vec<TerminalInput>) {
        if byte & 0xc0 != 0x80 {
            out.push(TerminalInput::Key(Key::plain(KeyCode::Char('\u{fffd}'))));
            self.state = State::Ground;
            self.byte(byte, out);
            return;
        }
        self.buffer.push(byte);
        if missing > 1 {
            self.state = State::Utf8 { missing: missing - 1, alt };
            return;
        }
        self.state = State::Ground;
        let c = std::str::from_utf8(&self.buffer).ok().and_then(|text| text.chars().next());
        out.push(TerminalInput::Key(Key { alt, ..Key::plain(KeyCode::Char(c.unwrap_or('\u{fffd}'))) }));
        self.buffer.clear();
    }

    fn csi(&mut self, byte: u8, alt: bool, out: &mut Vec<TerminalInput>) {
        match byte {
            // Linux console function keys: `ESC [ [ A`.
            b'[' if self.buffer.is_empty() => self.buffer.push(byte),
            0x20..=0x3f if self.buffer.len() < MAX_SEQUENCE => self.buffer.push(byte),
            0x20..=0x3f => {}
            0x40..=0x7e => {
                self.state = State::Ground;
                let too_long = self.buffer.len() >= MAX_SEQUENCE;
                let parameters = std::mem::take(&mut self.buffer);
                if !too_long {
                    self.sequence(&parameters, byte, alt, out);
                }
                self.buffer = parameters;
                self.buffer.clear();
            }
            0x1b => self.state = State::Escape,
            // A control character inside a sequence aborts it and is processed itself.
            byte => {
                self.state = State::Ground;
                self.buffer.clear();
                self.byte(byte, out);
            }
        }
    }

    /// Handles a complete `CSI parameters final`.
    fn sequence(&mut self, parameters: &[u8], last: u8, alt: bool, out: &mut Vec<TerminalInput>) {
        if parameters == b"[" {
            if let Some(n @ 1..=5) = last.checked_sub(b'@') {
                out.push(TerminalInput::Key(Key { alt, ..Key::plain(KeyCode::Function(n)) }));
            }
            return;
        }
        match (parameters, last) {
            (b"", b'I') => return out.push(TerminalInput::Focus(true)),
            (b"", b'O') => return out.push(TerminalInput::Focus(false)),
            (b"", b'M') => {
                self.state = State::Mouse(3);
                return;
            }
            (b"", b'Z') => {
                return out.push(TerminalInput::Key(Key { shift: true, alt, ..Key::plain(KeyCode::Tab) }));
            }
            (b"200", b'~') => {
                self.state = State::Paste;
                return;
            }
            _ => {}
        }
        // Anything with a private marker or an intermediate is a reply, not a key.
        let Some(numbers) = numbers(parameters) else { return };
        let first = numbers.first().copied().unwrap_or(1);
        let mut modifiers = numbers.get(1).copied().unwrap_or(1);
        let code = match last {
            b'~' if first == 27 => {
                // modifyOtherKeys: CSI 27 ; modifiers ; code ~
                let code = numbers.get(2).copied().unwrap_or(0);
                from_codepoint(code)
            }
            b'~' => tilde(first),
            b'u' => from_codepoint(first),
            // A cursor report looks like a function key with modifiers: row 1 is the only ambiguity.
            b'R' if numbers.len() == 2 && first != 1 => None,
            b'A'..=b'H' | b'P'..=b'S' => {
                if numbers.len() == 1 && first != 1 {
                    modifiers = first;
                }
                letter(last)
            }
            _ => None,
        };
        let Some(code) = code else { return };
        let bits = modifiers.saturating_sub(1);
        let mut key =
            Key { code, shift: bits & 1 != 0, alt: alt || bits & 0b10_0010 != 0, ctrl: bits & 4 != 0 };
        if let KeyCode::Char(c) = key.code {
            if key.shift && !key.ctrl {
                key.code = KeyCode::Char(c.to_uppercase().next().unwrap_or(c));
            }
            if key.ctrl {
                key.code = KeyCode::Char(c.to_ascii_lowercase());
            }
            key.shift = false;
        }
        out.push(TerminalInput::Key(key));
    }

    /// Reads as much of a paste as `bytes` contains, and returns the bytes after it.
    fn paste<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<TerminalInput>) -> &'a [u8] {
        // Ctrl+C ends a paste, in case its end never arrives.
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == 0x03 {
                self.state = State::Ground;
                self.end_paste(out);
                return &bytes[at + 1..];
            }
            let held = if self.buffer.len() < MAX_PASTE { &mut self.buffer } else { &mut self.tail };
            held.push(*byte);
            if *byte == b'~' {
                let mut last: Vec<u8> = self.tail.clone();
                if last.len() < PASTE_END.len() {
                    let from = self.buffer.len().saturating_sub(PASTE_END.len());
                    last = [&self.buffer[from..], &last].concat();
                }
                if last.ends_with(PASTE_END) {
                    let in_buffer = PASTE_END.len().saturating_sub(self.tail.len());
                    self.buffer.truncate(self.buffer.len() - in_buffer);
                    self.state = State::Ground;
                    self.end_paste(out);
                    return &bytes[at + 1..];
                }
            }
            if self.tail.len() > 4 * PASTE_END.len() {
                self.tail.drain(..2 * PASTE_END.len());
            }
        }
        &[]
    }

    fn end_paste(&mut self, out: &mut Vec<TerminalInput>) {
        self.tail.clear();
        let bytes = std::mem::take(&mut self.buffer);
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n");
        if !text.is_empty() {
            out.push(TerminalInput::Paste(text));
        }
    }
}

/// The numbers of a sequence; none if it contains anything else. Sub-parameters (`:`) are dropped.
fn numbers(parameters: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(parameters).ok()?;
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')) {
        return None;
    }
    let number = |part: &str| {
        let digits = part.split(':').next().unwrap_or_default();
        if digits.is_empty() { Some(1) } else { digits.parse().ok() }
    };
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(';').map(number).collect()
}

fn letter(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::Function(1),
        b'Q' => KeyCode::Function(2),
        b'R' => KeyCode::Function(3),
        b'S' => KeyCode::Function(4),
        _ => return None,
    })
}

/// The keypad in application mode.
fn ss3(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'M' => KeyCode::Enter,
        b'j'..=b'y' => KeyCode::Char(char::from(last - 0x40)),
        _ => return None,
    })
}

fn tilde(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        n @ 11..=15 => KeyCode::Function(u8::try_from(n - 10).ok()?),
        n @ 17..=21 => KeyCode::Function(u8::try_from(n - 11).ok()?),
        n @ 23..=24 => KeyCode::Function(u8::try_from(n - 12).ok()?),
        _ => return None,
    })
}

fn from_codepoint(number: u32) -> Option<KeyCode> {
    Some(match number {
        9 => KeyCode::Tab,
        10 | 13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        8 | 127 => KeyCode::Backspace,
        // Keys without a character are in a private-use area.
        0..=31 | 57344..=63743 => return None,
        number => KeyCode::Char(char::from_u32(number).filter(|c| !c.is_control())?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Vec<TerminalInput> {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        decoder.feed(bytes, 0, &mut out);
        decoder.idle(1000, &mut out);
        out
    }

    fn keys(bytes: &[u8]) -> String {
        let names = decode(bytes).into_iter().map(|input| match input {
            TerminalInput::Key(key) => key.name(),
            TerminalInput::Paste(text) => format!("paste:{text}"),
            TerminalInput::Focus(on) => format!("focus:{on}"),
        });
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_forms_of_a_key_mean_the_same() {
        for (bytes, expected) in [
            (&b"a\r\n\t\x7f"[..], "a enter ctrl+j tab backspace"),
            (b"\x1b", "esc"),
            (b"\x1b\x1b", "esc esc"),
            (b"\x1ba\x1b\r", "alt+a alt+enter"),
            (b"\x1b[A\x1bOA\x1b[1;5C", "up up ctrl+right"),
            (b"\x1b[13;2u\x1b[27;2;13~", "shift+enter shift+enter"),
            (b"\x1b[99;5u\x1b[97;3u\x1b[97;2u", "ctrl+c alt+a A"),
            (b"\x1b[Z\x1b[3~\x1b[5~\x1b[24~", "shift+tab delete pageup f12"),
            ("é日🙂".as_bytes(), "é 日 🙂"),
            (b"\xff\xc3(x", "\u{fffd} \u{fffd} ( x"),
            (b"\x1b[I\x1b[O", "focus:true focus:false"),
            (b"\x1b[200~a\x1b[Ab\r\nc\x1b[201~d", "paste:a\x1b[Ab\nc d"),
        ] {
            assert_eq!(keys(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn answers_of_the_terminal_are_not_typing() {
        for bytes in [
            &b"\x1b[?62;22c"[..],
            b"\x1b[24;80R",
            b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
            b"\x1bP1$r0m\x1b\\",
            b"\x1b[?2026;2$y",
            b"\x1b[M !!",
            b"\x1b_Gi=1;OK\x1b\\",
            b"\x1b[<0;10;10M",
        ] {
            assert_eq!(keys(bytes), "", "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_paste_without_an_end_ends_by_silence_or_ctrl_c() {
        assert_eq!(keys(b"\x1b[200~half"), "paste:half");
        assert_eq!(keys(b"\x1b[200~half\x03x"), "paste:half x");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_inputs(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b'~')], 0..200),
            cut in 0usize..200,
        ) {
            let whole = decode(&bytes);
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            let cut = cut.min(bytes.len());
            decoder.feed(&bytes[..cut], 0, &mut out);
            decoder.feed(&bytes[cut..], 1, &mut out);
            decoder.idle(1000, &mut out);
            prop_assert_eq!(whole, out);
            prop_assert_eq!(decoder.deadline(), None);
        }

        #[test]
        fn typing_after_any_bytes_still_arrives(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            decoder.feed(&bytes, 0, &mut out);
            decoder.idle(1000, &mut out);
            out.clear();
            decoder.feed(b"x", 1001, &mut out);
            prop_assert_eq!(out, vec![TerminalInput::Key(Key::plain(KeyCode::Char('x')))]);
        }
    }
}
