//! Writes JSON straight into bytes: no tree in between, and texts that are JSON already go in as they are.

use std::fmt;

use qwen_events::Json;

/// A JSON text being written. Commas come by themselves.
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

    /// A field's name; its value follows.
    pub fn key(&mut self, name: &'static str) -> &mut Self {
        self.string(name);
        self.buf.push(b':');
        self
    }

    pub fn string(&mut self, text: &str) {
        self.separate();
        self.value(text);
    }

    /// One string out of several pieces.
    pub fn formatted(&mut self, pieces: fmt::Arguments<'_>) {
        self.separate();
        self.value(pieces);
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

    fn raw(&mut self, text: &str) {
        self.separate();
        self.buf.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: impl serde::Serialize) {
        // Writing a text or a number to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.buf, &value);
    }

    fn separate(&mut self) {
        if !matches!(self.buf.last(), None | Some(b'{' | b'[' | b':')) {
            self.buf.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_json() {
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
}
