//! Reading a log from its start, entry by entry, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};

use qwen_events::SessionId;

use super::entry::{self, Entry, EntryBody, LoggedContext, Unreadable};
use super::{LogError, LogHeader};

/// The longest line that is read; a prompt may bring along a few large images. A longer one is damage.
const MAX_LINE: usize = 256 * 1024 * 1024;

/// A log, read from its start.
pub struct Reader {
    input: BufReader<Take<File>>,
    line: Vec<u8>,
    header: LogHeader,
    told: LoggedContext,
    /// The offset behind the last whole line that was read.
    end: u64,
    damaged: u64,
}

/// What a line is.
pub(super) enum NextLine {
    /// An entry.
    Entry(Box<Entry>),
    /// Damage, or what a later version knows.
    Other,
    /// There are no more.
    End,
}

/// How a line came.
enum Line {
    Whole,
    TooLong,
    /// The end of the file, with or without the beginning of a line before it.
    None,
}

impl Reader {
    /// Reads the log of `id`, at most up to the offset `until`.
    pub(super) fn new(file: File, id: &SessionId, until: u64) -> Result<Self, LogError> {
        let mut input = BufReader::with_capacity(64 * 1024, file.take(until));
        let mut line = Vec::new();
        let mut end = 0;
        let header = match next_line(&mut input, &mut line, &mut end) {
            Ok(Line::Whole) => LogHeader::read(&line, id)?,
            Ok(Line::TooLong) => return Err(LogError::Damaged(id.clone())),
            // The process that began it died before the first line was whole, so nothing was ever said in it.
            Ok(Line::None) => return Err(LogError::Unknown(id.clone())),
            Err(error) => return Err(LogError::io(id, "read", error)),
        };
        Ok(Self { input, line, header, told: LoggedContext::default(), end, damaged: 0 })
    }

    /// Whose log it is.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The offset behind the last whole line that was read.
    pub fn offset(&self) -> u64 {
        self.end
    }

    /// How many lines could not be read and were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The line that was read last, without its line break; at first the one that says whose log it is.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The next entry; none at the end. Lines that are no entries are skipped: damaged ones are counted, and those of
    /// a kind that a later version knows are not. The beginning of a line at the end of the file is what a process
    /// left that died while it wrote; it is no entry.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        loop {
            match self.next_line()? {
                NextLine::End => return Ok(None),
                NextLine::Other => {}
                NextLine::Entry(entry) => return Ok(Some(*entry)),
            }
        }
    }

    /// The next line, and the entry that it is, if it is one.
    pub(super) fn next_line(&mut self) -> Result<NextLine, LogError> {
        let id = &self.header.session_id;
        match next_line(&mut self.input, &mut self.line, &mut self.end) {
            Ok(Line::Whole) => {}
            Ok(Line::TooLong) => {
                self.damaged += 1;
                return Ok(NextLine::Other);
            }
            Ok(Line::None) => return Ok(NextLine::End),
            Err(error) => return Err(LogError::io(id, "read", error)),
        }
        match entry::read(&self.line, &self.told, id) {
            Ok(entry) => {
                if let EntryBody::Event(body) = &entry.what {
                    self.told.note(&entry.scope, body);
                }
                return Ok(NextLine::Entry(Box::new(entry)));
            }
            Err(Unreadable::Unknown) => {}
            Err(Unreadable::Damaged) => self.damaged += 1,
        }
        Ok(NextLine::Other)
    }
}

/// Reads a line without its line break into `line` and moves `end` behind it.
fn next_line(input: &mut BufReader<Take<File>>, line: &mut Vec<u8>, end: &mut u64) -> io::Result<Line> {
    line.clear();
    if line.capacity() > 1024 * 1024 {
        *line = Vec::new();
    }
    let mut length: u64 = 0;
    let mut too_long = false;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok(Line::None);
        }
        let found = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..found.unwrap_or(buffer.len())];
        too_long |= line.len() + piece.len() > MAX_LINE;
        if too_long {
            *line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = piece.len() + usize::from(found.is_some());
        length += used as u64;
        input.consume(used);
        if found.is_some() {
            *end += length;
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}
