//! Splits a byte stream into lines.

/// The longest line that is relayed; a longer one is skipped and reported.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// A buffer that grew beyond this for one huge line is freed.
const MAX_RETAINED_BYTES: usize = 64 * 1024;

/// One piece of a split chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum FramedLine<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// A line over the limit, which was skipped.
    TooLong,
}

/// Buffers the incomplete last line between two reads.
#[derive(Debug, Default)]
pub struct LineBuffer {
    partial: Vec<u8>,
    skipping: bool,
}

impl LineBuffer {
    /// Passes the whole lines in `bytes` (joined to the buffered rest) to `each`.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(FramedLine<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if std::mem::take(&mut self.skipping) || self.partial.len() + line.len() > MAX_LINE {
                self.partial = Vec::new();
                each(FramedLine::TooLong);
            } else if self.partial.is_empty() {
                each(FramedLine::Line(trim(line)));
            } else {
                self.partial.extend_from_slice(line);
                each(FramedLine::Line(trim(&self.partial)));
                self.partial.clear();
                self.partial.shrink_to(MAX_RETAINED_BYTES);
            }
        }
        if self.skipping {
            return;
        }
        if self.partial.len() + bytes.len() > MAX_LINE {
            self.partial = Vec::new();
            self.skipping = true;
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// True if an incomplete line is buffered.
    pub fn is_partial(&self) -> bool {
        self.skipping || !self.partial.is_empty()
    }

    /// The number of buffered bytes.
    pub fn len(&self) -> usize {
        self.partial.len()
    }

    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_across_reads() {
        let mut buffer = LineBuffer::default();
        let mut seen = Vec::new();
        for bytes in [&b"a\nb"[..], b"c", b"\r\n\nd"] {
            buffer.push(bytes, |piece| {
                if let FramedLine::Line(line) = piece {
                    seen.push(String::from_utf8(line.to_vec()).unwrap());
                }
            });
        }
        assert_eq!(seen, ["a", "bc", ""]);
        assert!(buffer.is_partial());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let mut buffer = LineBuffer::default();
        let mut seen = Vec::new();
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..66 {
            buffer.push(&chunk, |_| seen.push("early"));
        }
        assert!(buffer.len() <= MAX_LINE);
        buffer
            .push(b"\nnext\n", |piece| seen.push(if piece == FramedLine::TooLong { "long" } else { "line" }));
        assert_eq!(seen, ["long", "line"]);
    }
}
