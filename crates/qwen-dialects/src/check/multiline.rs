//! A JSON value that spans several lines, as in printed examples. Only in fragment mode: in a stream every
//! value is one line.

/// The longest value that is assembled.
const LONGEST: usize = 1 << 20;

/// A JSON value that spans several lines and is still incomplete.
#[derive(Debug)]
pub(super) struct MultilineValue {
    /// The line on which it began.
    pub(super) line: u64,
    pub(super) text: String,
    depth: Depth,
}

/// Counts open brackets.
#[derive(Debug, Default)]
struct Depth {
    open: usize,
    in_string: bool,
    escaped: bool,
}

impl MultilineValue {
    /// Starts a value with this line, if the line begins an object and does not end it.
    pub(super) fn begin(line: u64, text: &str) -> Option<Self> {
        if !text.trim_ascii_start().starts_with('{') {
            return None;
        }
        let mut multiline = Self { line, text: String::new(), depth: Depth::default() };
        multiline.add(text);
        (!multiline.is_whole() && !multiline.depth.in_string).then_some(multiline)
    }

    /// True if `text` can be the next line: an unindented line starts something new.
    pub(super) fn accepts(&self, text: &str) -> bool {
        !text.starts_with('{') && self.text.len() + text.len() < LONGEST
    }

    /// Adds the next line.
    pub(super) fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.depth.step(byte);
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn is_whole(&self) -> bool {
        self.depth.open == 0
    }
}

impl Depth {
    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.open += 1,
            b'}' | b']' => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }
}
