//! Server-sent events, read as they come in: any line ending, any split, one bound.

use std::ops::Range;

use memchr::memchr2;

/// The longest event that is read: beyond it a server has lost its way.
pub const MAX_EVENT: usize = 64 * 1024 * 1024;

/// A buffer larger than this is given back once it is empty.
const KEEP_CAPACITY: usize = 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event. The texts are slices of the reader's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty where there was none.
    pub name: &'a str,
    /// The `data` lines, joined by newlines.
    pub data: &'a str,
}

/// Why a stream is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The event is over the limit.
    #[error("one event is longer than {0} bytes")]
    TooLarge(usize),
    /// The event is not UTF-8.
    #[error("an event is not valid UTF-8")]
    InvalidUtf8,
}

/// An incremental reader: [`Reader::push`] bytes, then take events until there is none. Every byte is looked at once and
/// moved at most once more, however the stream is cut.
#[derive(Debug)]
pub struct Reader {
    buf: Vec<u8>,
    /// Where the event being read begins; what is before it is done with.
    start: usize,
    /// Where the line being read begins.
    line: usize,
    /// How far that line was searched for its end.
    scanned: usize,
    name: Range<usize>,
    data: Data,
    joined: Vec<u8>,
    after_cr: bool,
    begun: bool,
    limit: usize,
}

/// Where the data of the event being read are.
#[derive(Debug, Clone)]
enum Data {
    None,
    /// One line, in the buffer.
    Line(Range<usize>),
    /// Several, put together in `joined`.
    Joined,
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT)
    }
}

impl Reader {
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
            begun: false,
            limit,
        }
    }

    /// Adds what came in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.buf.extend_from_slice(bytes);
    }

    /// Says that nothing more comes in: an event whose closing blank line is missing is then whole.
    pub fn end(&mut self) {
        self.begun = true;
        self.push(b"\n\n");
    }

    /// The next whole event.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        let Some((name, data)) = self.advance()? else { return Ok(None) };
        let bytes = match data {
            Data::None => &[][..],
            Data::Line(range) => &self.buf[range],
            Data::Joined => &self.joined,
        };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Error::InvalidUtf8);
        Ok(Some(Event { name: text(&self.buf[name])?, data: text(bytes)? }))
    }

    /// Reads lines up to the end of an event, and says where its parts are.
    fn advance(&mut self) -> Result<Option<(Range<usize>, Data)>, Error> {
        if !self.begun && !self.skip_bom() {
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

    /// Takes one line in.
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
            // Comments, ids and reconnection times say nothing about an answer.
            _ => {}
        }
    }

    fn join(&mut self, value: Range<usize>) {
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buf[value]);
    }

    fn check_length(&self, end: usize) -> Result<(), Error> {
        if end - self.start > self.limit { Err(Error::TooLarge(self.limit)) } else { Ok(()) }
    }

    /// Steps over a byte order mark at the very beginning; false while it may still be one.
    fn skip_bom(&mut self) -> bool {
        if self.buf.len() < BOM.len() && BOM.starts_with(&self.buf) {
            return false;
        }
        if self.buf.starts_with(BOM) {
            self.start = BOM.len();
            self.line = BOM.len();
            self.scanned = BOM.len();
        }
        self.begun = true;
        true
    }

    /// Drops what is done with, when that is at least as much as what must be moved.
    fn make_room(&mut self) {
        if self.start == self.buf.len() {
            self.buf.clear();
            if self.buf.capacity() > KEEP_CAPACITY {
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
