//! The syntax of PDF: numbers, names, strings, arrays, dictionaries and operators.

use std::collections::BTreeMap;

/// How deeply arrays and dictionaries may be nested.
const MAX_DEPTH: usize = 64;

/// A value, or an operator of a content stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Number(f64),
    Name(Vec<u8>),
    Text(Vec<u8>),
    Array(Vec<Self>),
    Dictionary(Dictionary),
    /// The number of an object.
    Reference(u32),
    /// Any other word, such as `true`, `null`, `Tj`.
    Operator(Vec<u8>),
}

pub(super) type Dictionary = BTreeMap<Vec<u8>, Object>;

impl Object {
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub fn name(&self) -> Option<&[u8]> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub fn array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    pub fn dictionary(&self) -> Option<&Dictionary> {
        if let Self::Dictionary(entries) = self { Some(entries) } else { None }
    }
}

/// Reads objects from bytes. What is malformed is skipped, so that reading always ends.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
    depth: usize,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_delimiter(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, depth: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|byte| byte != b'\n' && byte != b'\r') {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// The next object; none at the end, and at the end of an array or a dictionary.
    pub fn next(&mut self) -> Option<Object> {
        self.skip_space();
        match self.peek()? {
            b'/' => Some(Object::Name(self.name())),
            b'(' => Some(Object::Text(self.literal())),
            b'<' if self.rest().starts_with(b"<<") => self.dictionary(),
            b'<' => Some(Object::Text(self.hexadecimal())),
            b'[' => self.array(),
            b']' | b'>' | b')' | b'{' | b'}' => {
                self.at += 1;
                None
            }
            byte if byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.') => Some(self.number()),
            _ => Some(Object::Operator(self.word().to_vec())),
        }
    }

    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| is_delimiter(*byte)).unwrap_or(rest.len()).max(1);
        self.at += end;
        &rest[..end.min(rest.len())]
    }

    fn name(&mut self) -> Vec<u8> {
        self.at += 1;
        let rest = self.rest();
        let end = rest.iter().position(|byte| is_delimiter(*byte)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_vec()
    }

    /// A number, or a reference such as `12 0 R`.
    fn number(&mut self) -> Object {
        let word = String::from_utf8_lossy(self.word()).into_owned();
        let Ok(number) = word.parse::<f64>() else { return Object::Operator(word.into_bytes()) };
        let after = self.at;
        if let Ok(object) = word.parse::<u32>() {
            self.skip_space();
            let is_generation = !self.word_is_empty() && self.word().iter().all(u8::is_ascii_digit);
            self.skip_space();
            if is_generation && self.peek() == Some(b'R') {
                let next = self.bytes.get(self.at + 1);
                if next.is_none_or(|byte| is_delimiter(*byte)) {
                    self.at += 1;
                    return Object::Reference(object);
                }
            }
        }
        self.at = after;
        Object::Number(number)
    }

    fn word_is_empty(&self) -> bool {
        self.peek().is_none_or(is_delimiter)
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut open = 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.escape(&mut text),
                b'(' => {
                    open += 1;
                    text.push(byte);
                }
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                    text.push(byte);
                }
                _ => text.push(byte),
            }
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'\n' => {}
            b'\r' => self.at += usize::from(self.peek() == Some(b'\n')),
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push(u8::try_from(code & 0xff).unwrap_or_default());
            }
            other => text.push(other),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        self.at += 1;
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        decode_hexadecimal(&rest[..end])
    }

    fn array(&mut self) -> Option<Object> {
        self.at += 1;
        self.nested(|reader| {
            let mut items = Vec::new();
            loop {
                reader.skip_space();
                if reader.peek() == Some(b']') {
                    reader.at += 1;
                    break;
                }
                match reader.next() {
                    Some(item) => items.push(item),
                    None if reader.peek().is_none() => break,
                    None => {}
                }
            }
            Object::Array(items)
        })
    }

    fn dictionary(&mut self) -> Option<Object> {
        self.at += 2;
        self.nested(|reader| {
            let mut entries = Dictionary::new();
            loop {
                reader.skip_space();
                if reader.rest().starts_with(b">>") {
                    reader.at += 2;
                    break;
                }
                match reader.next() {
                    Some(Object::Name(key)) => {
                        reader.skip_space();
                        if let Some(value) =
                            (!reader.rest().starts_with(b">>")).then(|| reader.next()).flatten()
                        {
                            entries.insert(key, value);
                        }
                    }
                    Some(_) => {}
                    None if reader.peek().is_none() => break,
                    None => {}
                }
            }
            Object::Dictionary(entries)
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Object) -> Option<Object> {
        if self.depth == MAX_DEPTH {
            self.at = self.bytes.len();
            return None;
        }
        self.depth += 1;
        let object = read(self);
        self.depth -= 1;
        Some(object)
    }
}

/// The bytes of hexadecimal digits; other characters are skipped.
pub(super) fn decode_hexadecimal(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}
