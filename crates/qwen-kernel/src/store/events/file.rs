//! Numbered lines in files: one directory, one file per session.
//!
//! The file is a sequence of records: a header line `@ EPOCH FIRST COUNT BYTES OPEN`, then that many bytes of
//! lines. A take, and a turn that starts, is a record without lines. The next owner truncates a torn last
//! record. If the file has grown since an owner's last access, the owner reads the new records before it
//! appends; a higher epoch there means that the owner is fenced. Appends are handed to the system before the
//! lines are sent, so they survive the death of the hub.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qwen_events::SessionId;
use rustix::fs::FlockOperation;

use crate::store::Appended;

use super::owners::Owners;
use super::{Events, Follower, Read, Taken, count_lines};

/// Stores numbered lines in files below a directory.
#[derive(Debug)]
pub struct FileEvents {
    directory: PathBuf,
    limit: u64,
    open: RefCell<HashMap<SessionId, Chain>>,
    owners: Owners,
}

#[derive(Debug)]
struct Chain {
    file: File,
    state: State,
    /// The length of the file that `state` reflects.
    length: u64,
    /// Where the last read ended, so that the next one does not begin at the start of the file.
    cursor: Cursor,
    /// The epoch that this process took; 0 if it did not take the lines.
    own_epoch: u64,
    /// True while the process from which the lines were taken is still marked as their owner.
    lacks_mark: bool,
}

/// The place of a record.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    offset: u64,
    /// The number of its first line.
    first: u64,
}

#[derive(Debug, Clone, Default)]
struct State {
    epoch: u64,
    /// The number of the first stored line; 0 if there is none.
    first: u64,
    last: u64,
    open: Option<String>,
}

struct Header {
    epoch: u64,
    first: u64,
    count: u64,
    bytes: usize,
    open: Option<String>,
}

impl Header {
    fn text(&self) -> String {
        // A turn's id may contain any character; as JSON it is one line.
        let open = serde_json::to_string(&self.open).unwrap_or_else(|_| "null".to_owned());
        format!("@ {} {} {} {} {open}\n", self.epoch, self.first, self.count, self.bytes)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("@ ")?.splitn(5, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (epoch, first, count, bytes) = (number()?, number()?, number()?, number()?);
        let open = serde_json::from_str(words.next()?).ok()?;
        Some(Self { epoch, first, count, bytes: usize::try_from(bytes).ok()?, open })
    }
}

impl FileEvents {
    /// A store in `directory`, which is created with mode 0700. About `limit` bytes per session are stored.
    pub fn open(directory: &Path, limit: u64) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let owners = Owners::open(directory)?;
        Ok(Self { directory: directory.to_owned(), limit, open: RefCell::default(), owners })
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.directory.join(format!("{session}.events"))
    }

    fn with_chain<T>(
        &self,
        session: &SessionId,
        create: bool,
        work: impl FnOnce(&mut Chain) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut open = self.open.borrow_mut();
        if !open.contains_key(session) {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(create).mode(0o600);
            let file = options.open(self.path(session))?;
            open.insert(
                session.clone(),
                Chain {
                    file,
                    state: State::default(),
                    length: 0,
                    cursor: Cursor::default(),
                    own_epoch: 0,
                    lacks_mark: false,
                },
            );
        }
        let Some(chain) = open.get_mut(session) else { return Err(io::ErrorKind::NotFound.into()) };
        rustix::fs::flock(&chain.file, FlockOperation::LockExclusive)?;
        let done = chain.catch_up().and_then(|()| work(chain));
        let unlocked = rustix::fs::flock(&chain.file, FlockOperation::Unlock);
        let done = done?;
        unlocked?;
        Ok(done)
    }
}

impl Chain {
    /// Reads records that were appended since the last access, by this or another owner, and truncates a
    /// torn end.
    fn catch_up(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length == self.length {
            return Ok(());
        }
        if length < self.length {
            // Another owner trimmed the file.
            self.state = State::default();
            self.length = 0;
            self.cursor = Cursor::default();
        }
        let mut records = Records::open(&self.file, self.length, length)?;
        while let Some((_, header)) = records.next()? {
            if !records.skip(&header)? {
                break;
            }
            self.state.apply(&header);
            self.length = records.offset;
        }
        if self.length < length {
            self.file.set_len(self.length)?;
        }
        Ok(())
    }

    /// Collects lines after `after`, about `limit` bytes.
    fn read_page(&mut self, after: u64, limit: usize) -> io::Result<Vec<u8>> {
        let is_near = self.cursor.first <= after + 1;
        let from = if is_near { self.cursor } else { Cursor::default() };
        let mut records = Records::open(&self.file, from.offset, self.length)?;
        let mut page = Vec::new();
        while let Some((offset, header)) = records.next()? {
            if header.count == 0 || header.first + header.count <= after + 1 {
                records.skip(&header)?;
                continue;
            }
            self.cursor = Cursor { offset, first: header.first };
            if page.len() >= limit {
                break;
            }
            let lines = records.lines(&header)?;
            for (number, line) in (header.first..).zip(lines.split_inclusive(|byte| *byte == b'\n')) {
                if number > after && !page.is_empty() && page.len() + line.len() > limit {
                    return Ok(page);
                }
                if number > after {
                    page.extend_from_slice(line);
                }
            }
        }
        Ok(page)
    }

    fn push(&mut self, header: &Header, lines: &[u8]) -> io::Result<()> {
        let mut record = header.text().into_bytes();
        record.extend_from_slice(lines);
        if let Err(error) = self.file.write_all(&record) {
            // The next record must not follow a partial one.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += record.len() as u64;
        self.state.apply(header);
        Ok(())
    }

    /// Drops the older half of the lines.
    fn trim(&mut self, limit: u64) -> io::Result<()> {
        if self.length <= limit {
            return Ok(());
        }
        let mut text = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut text)?;
        let keep_from = text.len() - usize::try_from(limit / 2).unwrap_or(0).min(text.len());
        let mut kept = Vec::new();
        let mut state = State::default();
        let mut at = 0;
        scan(&text, |header, lines| {
            let size = header.text().len() + lines.len();
            if at >= keep_from {
                kept.extend_from_slice(&text[at..at + size]);
                state.apply(header);
            }
            at += size;
        });
        if state.first == 0 {
            // The last record alone exceeds the limit; only its state remains.
            let header = Header {
                epoch: self.state.epoch,
                first: self.state.last + 1,
                count: 0,
                bytes: 0,
                open: self.state.open.clone(),
            };
            kept = header.text().into_bytes();
            state = State {
                epoch: self.state.epoch,
                first: self.state.last + 1,
                last: self.state.last,
                open: self.state.open.clone(),
            };
        }
        self.file.set_len(0)?;
        self.file.write_all(&kept)?;
        self.length = kept.len() as u64;
        self.state = state;
        self.cursor = Cursor::default();
        Ok(())
    }
}

/// Reads records one after the other, without the lines of those that are not wanted.
struct Records<'a> {
    file: BufReader<&'a File>,
    /// The offset of the next record.
    offset: u64,
    end: u64,
}

impl<'a> Records<'a> {
    fn open(file: &'a File, offset: u64, end: u64) -> io::Result<Self> {
        let mut file = BufReader::new(file);
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { file, offset, end })
    }

    /// The next header and the offset of its record; none at the end, or before a torn record. The record's lines
    /// must be read or skipped before the next call.
    fn next(&mut self) -> io::Result<Option<(u64, Header)>> {
        let mut line = Vec::new();
        let rest = self.end.saturating_sub(self.offset);
        (&mut self.file).take(rest).read_until(b'\n', &mut line)?;
        let header = line.strip_suffix(b"\n").and_then(|line| Header::parse(std::str::from_utf8(line).ok()?));
        let at = self.offset;
        self.offset += line.len() as u64;
        Ok(header.map(|header| (at, header)))
    }

    /// Skips the lines of a record. Returns false if they are torn.
    fn skip(&mut self, header: &Header) -> io::Result<bool> {
        let bytes = header.bytes as u64;
        if self.offset + bytes > self.end {
            return Ok(false);
        }
        self.offset += bytes;
        self.file.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)?;
        Ok(true)
    }

    fn lines(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        let mut lines = vec![0; header.bytes];
        self.file.read_exact(&mut lines)?;
        self.offset += header.bytes as u64;
        Ok(lines)
    }
}

impl State {
    fn apply(&mut self, header: &Header) {
        self.epoch = header.epoch;
        if header.count > 0 {
            if self.first == 0 {
                self.first = header.first;
            }
            self.last = header.first + header.count - 1;
        } else if self.first == 0 && header.first > 0 {
            // Lines that were trimmed earlier.
            self.last = header.first - 1;
        }
        self.open.clone_from(&header.open);
    }
}

/// Passes each whole record to `each` and returns their total size in bytes.
fn scan(text: &[u8], mut each: impl FnMut(&Header, &[u8])) -> usize {
    let mut at = 0;
    while let Some(end) = memchr::memchr(b'\n', &text[at..]) {
        let line = std::str::from_utf8(&text[at..at + end]).ok();
        let Some(header) = line.and_then(Header::parse) else { break };
        let start = at + end + 1;
        let Some(lines) = text.get(start..start + header.bytes) else { break };
        each(&header, lines);
        at = start + header.bytes;
    }
    at
}

impl Events for FileEvents {
    fn take(&self, session: &SessionId) -> io::Result<Taken> {
        self.with_chain(session, true, |chain| {
            let epoch = chain.state.epoch + 1;
            let header = Header {
                epoch,
                first: chain.state.last + 1,
                count: 0,
                bytes: 0,
                open: chain.state.open.clone(),
            };
            chain.push(&header, &[])?;
            chain.own_epoch = epoch;
            chain.lacks_mark = !self.owners.mark(session);
            Ok(Taken { epoch, last: chain.state.last, open: chain.state.open.clone(), ..Taken::default() })
        })
    }

    fn append(&self, id: &SessionId, epoch: u64, first: u64, lines: &[u8], open: Option<&str>) -> Appended {
        let done = self.with_chain(id, true, |chain| {
            if chain.state.epoch != epoch || first > chain.state.last + 1 {
                self.owners.unmark(id);
                return Ok(Appended::Fenced);
            }
            chain.lacks_mark = chain.lacks_mark && !self.owners.mark(id);
            if first <= chain.state.last {
                return Ok(Appended::Ok);
            }
            let header = Header {
                epoch,
                first,
                count: count_lines(lines),
                bytes: lines.len(),
                open: open.map(str::to_owned),
            };
            chain.push(&header, lines)?;
            chain.trim(self.limit)?;
            Ok(Appended::Ok)
        });
        done.unwrap_or(Appended::Unknown)
    }

    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Read {
        let none = if after == 0 {
            Read::Lines { first: 1, lines: Vec::new(), last: 0 }
        } else {
            Read::Future { last: 0 }
        };
        if !self.path(session).exists() {
            return none;
        }
        let read = self.with_chain(session, false, |chain| {
            let state = chain.state.clone();
            if after > state.last {
                return Ok(Read::Future { last: state.last });
            }
            if after + 1 < state.first {
                return Ok(Read::TooOld { oldest: state.first });
            }
            let lines = chain.read_page(after, limit)?;
            Ok(Read::Lines { first: after + 1, lines, last: state.last })
        });
        read.unwrap_or_else(|error| Read::Failed(error.to_string()))
    }

    fn follow(&self, session: &SessionId, after: u64) -> Follower<'_> {
        Follower::new(self, session, after)
    }

    fn last(&self, session: &SessionId) -> u64 {
        if !self.path(session).exists() {
            return 0;
        }
        self.with_chain(session, false, |chain| Ok(chain.state.last)).unwrap_or(0)
    }

    fn open_turn(&self, session: &SessionId) -> Option<String> {
        if !self.path(session).exists() {
            return None;
        }
        self.with_chain(session, false, |chain| Ok(chain.state.open.clone())).ok().flatten()
    }

    fn has_live_owner(&self, session: &SessionId) -> bool {
        let is_taken = |chain: &mut Chain| Ok(chain.own_epoch == 0 || chain.own_epoch != chain.state.epoch);
        self.owners.is_marked_elsewhere(session) && self.with_chain(session, false, is_taken).unwrap_or(true)
    }

    fn release(&self, session: &SessionId) {
        if let Some(chain) = self.open.borrow_mut().get_mut(session) {
            chain.lacks_mark = false;
            chain.own_epoch = 0;
        }
        self.owners.unmark(session);
    }

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        self.open.borrow_mut().remove(session);
        match std::fs::remove_file(self.path(session)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
