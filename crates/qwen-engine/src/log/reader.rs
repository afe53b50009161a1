//! Reading a log from its start, entry by entry, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};

use qwen_events::SessionId;

use super::entry::{self, Entry, EntryBody, LoggedContext, Unreadable};
use super::{LogError, LogHeader};

/// The maximum length of a line in bytes; a prompt may contain several large images. A longer line counts as
/// damaged.
const MAX_LINE: usize = 256 * 1024 * 1024;

/// A log, read from its start.
pub struct LogReader {
    input: BufReader<Take<File>>,
    line: Vec<u8>,
    header: LogHeader,
    context: LoggedContext,
    /// The offset after the last complete line that was read.
    end: u64,
    damaged: u64,
}

/// The result of reading a line.
pub(super) enum NextLine {
    Entry(Box<Entry>),
    /// A damaged line, or one of a type that a later version added.
    Other,
    End,
}

/// The result of reading raw bytes up to a line break.
enum Line {
    Whole,
    TooLong,
    /// The end of the file, possibly after an incomplete line.
    None,
}

impl LogReader {
    /// Reads the log of `id`, at most up to the offset `until`.
    pub(super) fn new(file: File, id: &SessionId, until: u64) -> Result<Self, LogError> {
        let mut input = BufReader::with_capacity(64 * 1024, file.take(until));
        let mut line = Vec::new();
        let mut end = 0;
        let header = match next_line(&mut input, &mut line, &mut end) {
            Ok(Line::Whole) => LogHeader::read(&line, id)?,
            Ok(Line::TooLong) => return Err(LogError::Damaged(id.clone())),
            // The process that created it died before the first line was complete, so the session is empty.
            Ok(Line::None) => return Err(LogError::Unknown(id.clone())),
            Err(error) => return Err(LogError::io(id, "read", error)),
        };
        Ok(Self { input, line, header, context: LoggedContext::default(), end, damaged: 0 })
    }

    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The offset after the last complete line that was read.
    pub fn offset(&self) -> u64 {
        self.end
    }

    /// How many lines could not be read and were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The line that was read last, without its line break; initially the header line.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The next entry; `None` at the end. Lines that are not entries are skipped: damaged ones are counted,
    /// and those of a type that a later version introduced are not. An incomplete line at the end of the file
    /// is left by a process that died while writing; it is not an entry.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        loop {
            match self.next_line()? {
                NextLine::End => return Ok(None),
                NextLine::Other => {}
                NextLine::Entry(entry) => return Ok(Some(*entry)),
            }
        }
    }

    /// The next line, parsed as an entry if it is one.
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
        match entry::read(&self.line, &self.context, id) {
            Ok(entry) => {
                if let EntryBody::Event(body) = &entry.what {
                    self.context.note(&entry.scope, body);
                }
                return Ok(NextLine::Entry(Box::new(entry)));
            }
            Err(Unreadable::Unknown) => {}
            Err(Unreadable::Damaged) => self.damaged += 1,
        }
        Ok(NextLine::Other)
    }
}

/// Reads a line without its line break into `line` and advances `end` past it.
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
