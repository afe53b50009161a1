//! The encodings in which a known secret value is searched for.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shortest value, in bytes, that is treated as a secret.
const SHORTEST: usize = 8;

/// A longer value is searched for in pieces of this many bytes, which bounds how much a stream holds back.
const LONGEST: usize = 512;

/// Lines of a multi-line value that are at least this long, in bytes, are secrets themselves.
const SHORTEST_LINE: usize = 16;

/// Common placeholder values. They are not redacted because they also occur in ordinary text.
const COMMON: &[&str] = &[
    "changeit",
    "changeme",
    "default",
    "development",
    "disabled",
    "example",
    "lm-studio",
    "localhost",
    "no-key",
    "not-needed",
    "not-required",
    "password",
    "placeholder",
    "postgres",
    "postgresql",
    "production",
    "required",
    "sk-no-key-required",
    "staging",
    "undefined",
    "unlimited",
    "your-api-key",
    "your_api_key",
];

/// A known value in one encoding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub bytes: Box<[u8]>,
    /// True for encodings that programs wrap into lines.
    pub broken: bool,
    /// In JSON text this pattern could only match across string boundaries, so it is skipped there.
    pub text_only: bool,
}

pub(super) enum Compared {
    No,
    /// The text ends before the pattern does, and matches up to there.
    SoFar,
    /// A full match of this many bytes of the text.
    Whole(usize),
}

impl Pattern {
    /// Compares the pattern with the start of `text`.
    pub fn compare(&self, text: &[u8]) -> Compared {
        if !self.broken {
            let shared = self.bytes.len().min(text.len());
            return match self.bytes[..shared] == text[..shared] {
                false => Compared::No,
                true if shared == self.bytes.len() => Compared::Whole(shared),
                true => Compared::SoFar,
            };
        }
        let mut at = 0;
        for &byte in &*self.bytes {
            if at > 0 && text.get(at).is_some_and(|found| *found != byte) {
                match line_break(&text[at..]) {
                    Some(length) => at += length,
                    None => return Compared::No,
                }
            }
            match text.get(at) {
                None => return Compared::SoFar,
                Some(found) if *found == byte => at += 1,
                Some(_) => return Compared::No,
            }
        }
        Compared::Whole(at)
    }
}

/// The length of the line break that `text` starts with, written plainly or as JSON writes it. If the text
/// ends inside a line break, the part that is present counts.
fn line_break(text: &[u8]) -> Option<usize> {
    let whole = ["\n", "\r\n", "\\n", "\\r\\n"].iter().find(|form| text.starts_with(form.as_bytes()));
    let is_prefix = || ["\r\n", "\\n", "\\r\\n"].iter().any(|form| form.as_bytes().starts_with(text));
    whole.map(|form| form.len()).or_else(|| is_prefix().then_some(text.len()))
}

/// Adds the encodings of `value`, unless it is too common to be a secret.
pub(super) fn forms(value: &str, patterns: &mut Vec<Pattern>) {
    let value = value.trim();
    if is_ordinary(value) {
        return;
    }
    if value.contains('\n') {
        for line in value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE) {
            pieces(line, patterns);
        }
    }
    pieces(value, patterns);
}

fn is_ordinary(value: &str) -> bool {
    let number = value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E'));
    let repeats = value.as_bytes().windows(2).all(|pair| pair[0] == pair[1]);
    value.len() < SHORTEST
        || number
        || repeats
        || value.starts_with("file:")
        || COMMON.contains(&value.to_ascii_lowercase().as_str())
}

fn pieces(value: &str, patterns: &mut Vec<Pattern>) {
    let mut rest = value;
    while rest.len() > LONGEST {
        let mut at = LONGEST;
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (piece, more) = rest.split_at(at);
        forms_of_piece(piece, patterns);
        rest = more;
    }
    if rest.len() >= SHORTEST {
        forms_of_piece(rest, patterns);
    }
}

fn forms_of_piece(value: &str, patterns: &mut Vec<Pattern>) {
    let escapes = value.contains(['"', '\\']) || value.chars().any(char::is_control);
    let mut add = |form: &[u8], broken: bool, text_only: bool| {
        if form.len() >= SHORTEST {
            patterns.push(Pattern { bytes: form.into(), broken, text_only });
        }
    };
    add(value.as_bytes(), false, escapes);
    if escapes {
        let quoted = serde_json::Value::from(value).to_string();
        add(&quoted.as_bytes()[1..quoted.len() - 1], false, false);
    }
    for (keep_slash, lower) in [(false, false), (false, true), (true, false)] {
        let form = percent_encoded(value, keep_slash, lower);
        if form != value {
            add(form.as_bytes(), false, false);
        }
    }
    for digits in [b"0123456789abcdef", b"0123456789ABCDEF"] {
        let pairs =
            value.bytes().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
        add(&pairs.collect::<Vec<u8>>(), true, false);
    }
    for offset in 0..3 {
        let standard = base64_inside(value, offset, &STANDARD_NO_PAD);
        let url_safe = base64_inside(value, offset, &URL_SAFE_NO_PAD);
        add(standard.as_bytes(), true, false);
        if url_safe != standard {
            add(url_safe.as_bytes(), true, false);
        }
    }
}

/// The base64 encoding of `value` inside a longer input, with `offset` bytes (modulo three) before it. Only
/// the characters that do not depend on the neighbouring bytes are returned.
fn base64_inside(value: &str, offset: usize, engine: &impl Engine) -> String {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value.as_bytes());
    let all = engine.encode(&bytes);
    all[(offset * 8).div_ceil(6)..bytes.len() * 8 / 6].to_owned()
}

fn percent_encoded(value: &str, keep_slash: bool, lower: bool) -> String {
    let digits = if lower { b"0123456789abcdef" } else { b"0123456789ABCDEF" };
    let mut form = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        if plain || (keep_slash && byte == b'/') {
            form.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(digits[usize::from(value)]);
            form.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    form
}
