//! An incremental reader of server-sent events: any line ending, any chunking, bounded event size.

use std::ops::Range;

use memchr::memchr2;

/// The longest event that is accepted; a longer one means that the server is broken.
pub const MAX_EVENT: usize = 64 * 1024 * 1024;

/// A larger buffer is freed once it is empty.
const MAX_RETAINED_CAPACITY: usize = 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event. The texts are slices of the reader's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty if absent.
    pub name: &'a str,
    /// The `data` lines, joined by newlines.
    pub data: &'a str,
}

/// The reason why a stream cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// The event exceeds the limit.
    #[error("one event is longer than {0} bytes")]
    TooLarge(usize),
    #[error("an event is not valid UTF-8")]
    InvalidUtf8,
}

/// An incremental reader: [`SseReader::push`] bytes, then call [`SseReader::next_event`] until it returns
/// none. Every byte is examined once and moved at most once more, however the stream is chunked.
#[derive(Debug)]
pub struct SseReader {
    buf: Vec<u8>,
    /// The start of the current event; the bytes before it are consumed.
    start: usize,
    /// The start of the current line.
    line: usize,
    /// How far the current line has been searched for its end.
    scanned: usize,
    name: Range<usize>,
    data: Data,
    joined: Vec<u8>,
    after_cr: bool,
    has_started: bool,
    limit: usize,
}

/// The location of the current event's data.
#[derive(Debug, Clone)]
enum Data {
    None,
    /// One line, in the buffer.
    Line(Range<usize>),
    /// Several lines, joined in `joined`.
    Joined,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT)
    }
}

impl SseReader {
    /// A reader that refuses events longer than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            line: 0,
            scanned: 0,
            name: 0..0,
            data: Data::None,
            joined: Vec::new(),
            after_cr: false,
            has_started: false,
            limit,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.buf.extend_from_slice(bytes);
    }

    /// Marks the end of input: an event without its closing blank line then counts as complete.
    pub fn end(&mut self) {
        self.has_started = true;
        self.push(b"\n\n");
    }

    /// The next complete event.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        let Some((name, data)) = self.advance()? else { return Ok(None) };
        let bytes = match data {
            Data::None => &[][..],
            Data::Line(range) => &self.buf[range],
            Data::Joined => &self.joined,
        };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| SseError::InvalidUtf8);
        Ok(Some(SseEvent { name: text(&self.buf[name])?, data: text(bytes)? }))
    }

    /// Reads lines up to the end of an event and returns the location of its parts.
    fn advance(&mut self) -> Result<Option<(Range<usize>, Data)>, SseError> {
        if !self.has_started && !self.skip_bom() {
            return Ok(None);
        }
        loop {
            let Some(found) = memchr2(b'\n', b'\r', &self.buf[self.scanned..]) else {
                self.scanned = self.buf.len();
                self.check_length(self.scanned)?;
                return Ok(None);
            };
            let end = self.scanned + found;
            self.check_length(end)?;
            let content = self.line..end;
            let second_half = self.after_cr && content.is_empty() && self.buf[end] == b'\n';
            self.after_cr = self.buf[end] == b'\r';
            self.line = end + 1;
            self.scanned = self.line;
            if !second_half {
                if content.is_empty() {
                    let name = std::mem::replace(&mut self.name, 0..0);
                    let data = std::mem::replace(&mut self.data, Data::None);
                    self.start = self.line;
                    if !matches!(data, Data::None) {
                        return Ok(Some((name, data)));
                    }
                } else {
                    self.field(content);
                }
            }
            if self.name.is_empty() && matches!(self.data, Data::None) {
                self.start = self.line;
            }
        }
    }

    /// Processes one line.
    fn field(&mut self, content: Range<usize>) {
        let line = &self.buf[content.clone()];
        let (name_len, value_at) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (colon, colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))),
            None => (line.len(), line.len()),
        };
        let value = content.start + value_at..content.end;
        match &line[..name_len] {
            b"data" => match std::mem::replace(&mut self.data, Data::Joined) {
                Data::None => self.data = Data::Line(value),
                Data::Line(first) => {
                    self.joined.clear();
                    self.joined.extend_from_slice(&self.buf[first]);
                    self.join(value);
                }
                Data::Joined => self.join(value),
            },
            b"event" => self.name = value,
            // Not in the standard, but llama.cpp writes its errors this way: the field's name becomes the
            // event's.
            b"error" if matches!(self.data, Data::None) => {
                self.name = content.start..content.start + name_len;
                self.data = Data::Line(value);
            }
            // Comments, ids and reconnection times are irrelevant to an answer.
            _ => {}
        }
    }

    fn join(&mut self, value: Range<usize>) {
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buf[value]);
    }

    fn check_length(&self, end: usize) -> Result<(), SseError> {
        if end - self.start > self.limit { Err(SseError::TooLarge(self.limit)) } else { Ok(()) }
    }

    /// Skips a byte order mark at the very beginning; false while the bytes may still become one.
    fn skip_bom(&mut self) -> bool {
        if self.buf.len() < BOM.len() && BOM.starts_with(&self.buf) {
            return false;
        }
        if self.buf.starts_with(BOM) {
            self.start = BOM.len();
            self.line = BOM.len();
            self.scanned = BOM.len();
        }
        self.has_started = true;
        true
    }

    /// Drops consumed bytes once there are at least as many of them as bytes to move.
    fn make_room(&mut self) {
        if self.start == self.buf.len() {
            self.buf.clear();
            if self.buf.capacity() > MAX_RETAINED_CAPACITY {
                self.buf = Vec::new();
            }
        } else if self.start >= self.buf.len() - self.start {
            self.buf.drain(..self.start);
        } else {
            return;
        }
        let moved = std::mem::take(&mut self.start);
        self.line -= moved;
        self.scanned -= moved;
        self.name = self.name.start.saturating_sub(moved)..self.name.end.saturating_sub(moved);
        if let Data::Line(range) = &mut self.data {
            *range = range.start - moved..range.end - moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of a stream that arrives in these pieces, then the error if there is one.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> (Vec<(String, String)>, Option<SseError>) {
        let mut reader = SseReader::with_limit(limit);
        let mut events = Vec::new();
        let mut drain = |reader: &mut SseReader| loop {
            match reader.next_event() {
                Ok(Some(event)) => events.push((event.name.to_owned(), event.data.to_owned())),
                Ok(None) => return None,
                Err(error) => return Some(error),
            }
        };
        for piece in pieces {
            reader.push(piece);
            if let Some(error) = drain(&mut reader) {
                return (events, Some(error));
            }
        }
        reader.end();
        let error = drain(&mut reader);
        (events, error)
    }

    fn data(text: &str) -> Vec<String> {
        let (events, error) = read([text.as_bytes()], MAX_EVENT);
        assert_eq!(error, None, "{text:?}");
        events.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_spelling_of_an_event_is_read() {
        for (text, events) in [
            ("data: a\n\n", vec!["a"]),
            ("data:a\n\n", vec!["a"]),
            ("data:  a\n\n", vec![" a"]),
            ("data: a\r\n\r\n", vec!["a"]),
            ("data: a\r\r", vec!["a"]),
            ("data: a\r\n\ndata: b\n\r\n", vec!["a", "b"]),
            ("data: a\ndata: b\ndata\ndata: c\n\n", vec!["a\nb\n\nc"]),
            ("data\n\n", vec![""]),
            ("data:\n\n", vec![""]),
            (": comment\n\n:\n\ndata: a\n: inside\n\n", vec!["a"]),
            ("id: 7\nretry: 10\ndata: a\nunknown: x\n\n", vec!["a"]),
            ("event: lonely\n\ndata: a\n\n", vec!["a"]),
            ("\u{feff}data: a\n\n", vec!["a"]),
            ("data: a", vec!["a"]),
            ("data: a\n", vec!["a"]),
            ("data: a: b\n\n", vec!["a: b"]),
            ("datax: a\n\nDATA: b\n\n", vec![]),
            ("\n\n\n", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(data(text), events, "{text:?}");
        }
    }

    #[test]
    fn names_belong_to_their_event_only() {
        let text = "event: first\ndata: a\n\ndata: b\n\nevent: lost\n\ndata: c\nevent: late\n\nevent: x\nevent:\ndata: d\n\n";
        let (events, _) = read([text.as_bytes()], MAX_EVENT);
        let names: Vec<_> = events.iter().map(|(name, data)| (name.as_str(), data.as_str())).collect();
        assert_eq!(names, [("first", "a"), ("", "b"), ("late", "c"), ("", "d")]);
    }

    #[test]
    fn the_limit_is_on_one_event_and_not_on_the_stream() {
        let event = b"data: 1234\n\n";
        let many = event.repeat(1000);
        assert_eq!(read([&many[..]], 11).0.len(), 1000);
        assert_eq!(read([&many[..]], 10), (vec![], Some(SseError::TooLarge(10))));
        let comments = b": 123456\n".repeat(1000);
        assert_eq!(read([&comments[..]], 8), (vec![], None));
    }

    #[test]
    fn text_that_is_not_utf_8_is_an_error() {
        assert_eq!(read([&b"data: ok\n\ndata: \xff\n\n"[..]], MAX_EVENT).1, Some(SseError::InvalidUtf8));
    }

    /// Streams made of the significant pieces, with some noise.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(b"data: ".to_vec()),
            2 => Just(b"data:".to_vec()),
            1 => Just(b"event: e".to_vec()),
            1 => Just(b": c".to_vec()),
            5 => Just(b"\n".to_vec()),
            3 => Just(b"\r\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            2 => "[a-z{}\"é你😀]{0,8}".prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 0..4),
            1 => Just(b"\xef\xbb\xbf".to_vec()),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_events(
            stream in streams(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
            limit in prop_oneof![Just(MAX_EVENT), 1_usize..40],
        ) {
            let whole = read([&stream[..]], limit);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(&read(bytes, limit), &whole);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            at.extend([0, stream.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
            prop_assert_eq!(&read(pieces, limit), &whole);
        }
    }
}
