//! Writes JSON directly into bytes: without a tree, and without parsing texts that are JSON already.

use std::fmt;

use qwen_events::Json;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// True if a byte needs no escape in a JSON string.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// The number of bytes before the first one that needs an escape. Eight are examined at once: subtracting
/// marks the high bit of a byte that was too small. The lowest mark of a word is exact; a borrow may add
/// marks above it.
fn plain_length(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let (words, end) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, backslash) = (word ^ (0x22 * EACH), word ^ (0x5c * EACH));
        let below_space = word.wrapping_sub(0x20 * EACH);
        let found = below_space | quote.wrapping_sub(EACH) | backslash.wrapping_sub(EACH);
        // Bytes beyond ASCII are plain.
        let found = found & !word & HIGH;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let checked = words.len() * 8;
    checked + end.iter().position(|byte| !is_plain(*byte)).unwrap_or(end.len())
}

/// A JSON text under construction. Commas are inserted automatically.
#[derive(Default)]
pub(crate) struct JsonWriter {
    buf: Vec<u8>,
}

impl JsonWriter {
    pub fn with_capacity(capacity: usize) -> Self {
        Self { buf: Vec::with_capacity(capacity) }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.buf
    }

    /// An object; `fill` writes its fields.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.nested(b'{', b'}', fill);
    }

    /// An array; `fill` writes its values.
    pub fn array(&mut self, fill: impl FnOnce(&mut Self)) {
        self.nested(b'[', b']', fill);
    }

    fn nested(&mut self, open: u8, close: u8, fill: impl FnOnce(&mut Self)) {
        self.separate();
        self.buf.push(open);
        fill(self);
        self.buf.push(close);
    }

    /// A field's name, which needs no escaping; its value follows.
    pub fn key(&mut self, name: &'static str) -> &mut Self {
        debug_assert!(name.bytes().all(is_plain), "{name} would have to be escaped");
        self.separate();
        self.buf.push(b'"');
        self.buf.extend_from_slice(name.as_bytes());
        self.buf.extend_from_slice(b"\":");
        self
    }

    /// A field's name that may need escaping; its value follows.
    pub fn dynamic_key(&mut self, name: &str) -> &mut Self {
        self.string(name);
        self.buf.push(b':');
        self
    }

    pub fn string(&mut self, text: &str) {
        self.separate();
        self.buf.push(b'"');
        self.text(text);
        self.buf.push(b'"');
    }

    /// A piece of a string. A conversation is sent whole with each call and nearly all of it needs no
    /// escaping, so what lies between two escapes is copied at once.
    fn text(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        loop {
            let (plain, others) = rest.split_at(plain_length(rest));
            self.buf.extend_from_slice(plain);
            let Some((byte, after)) = others.split_first() else { return };
            self.escaped(*byte);
            rest = after;
        }
    }

    /// Escapes a byte.
    fn escaped(&mut self, byte: u8) {
        let short = match byte {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            b'"' | b'\\' => byte,
            _ => {
                let digit = |value: u8| HEX[usize::from(value & 15)];
                let escape = [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte)];
                return self.buf.extend_from_slice(&escape);
            }
        };
        self.buf.extend_from_slice(&[b'\\', short]);
    }

    /// One string from formatted pieces.
    pub fn formatted(&mut self, pieces: fmt::Arguments<'_>) {
        self.separate();
        self.buf.push(b'"');
        // Writing to memory cannot fail.
        let _ = fmt::Write::write_fmt(&mut Pieces(self), pieces);
        self.buf.push(b'"');
    }

    pub fn number(&mut self, number: impl serde::Serialize) {
        self.separate();
        self.value(number);
    }

    pub fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    pub fn null(&mut self) {
        self.raw("null");
    }

    /// A value that is JSON already.
    pub fn json(&mut self, json: &Json) {
        self.raw(json.as_str());
    }

    pub fn json_value(&mut self, value: &serde_json::Value) {
        self.raw(&value.to_string());
    }

    fn raw(&mut self, text: &str) {
        self.separate();
        self.buf.extend_from_slice(text.as_bytes());
    }

    /// Any other value, through serde.
    fn value(&mut self, value: impl serde::Serialize) {
        // Writing a number to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.buf, &value);
    }

    fn separate(&mut self) {
        if !matches!(self.buf.last(), None | Some(b'{' | b'[' | b':')) {
            self.buf.push(b',');
        }
    }
}

/// The inside of a string that comes in pieces.
struct Pieces<'a>(&'a mut JsonWriter);

impl fmt::Write for Pieces<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0.text(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_produces_valid_json() {
        let mut w = JsonWriter::default();
        w.object(|w| {
            w.key("a").string("x\"{\n");
            w.key("b").array(|w| {
                w.number(1);
                w.number(0.5);
                w.bool(true);
                w.null();
                w.object(|_| {});
            });
            w.key("c").json(&Json::trusted(r#"{"d":[]}"#));
            w.key("e").formatted(format_args!("data:{}", "\""));
        });
        let text = String::from_utf8(w.into_bytes()).unwrap();
        assert_eq!(text, r#"{"a":"x\"{\n","b":[1,0.5,true,null,{}],"c":{"d":[]},"e":"data:\""}"#);
    }

    #[test]
    fn a_text_is_escaped_as_serde_escapes_it_wherever_in_a_word_that_is() {
        let all: String = (0..=0x250).filter_map(char::from_u32).collect();
        let texts = (0..200).map(|before| format!("{}\"{all}\n漢", "x".repeat(before)));
        for text in texts.chain([String::new(), "plain".repeat(100), all.repeat(3)]) {
            let mut w = JsonWriter::default();
            w.string(&text);
            assert_eq!(String::from_utf8(w.into_bytes()).unwrap(), serde_json::to_string(&text).unwrap());
            let mut w = JsonWriter::default();
            let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
            w.formatted(format_args!("{one}{other}"));
            assert_eq!(String::from_utf8(w.into_bytes()).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}
