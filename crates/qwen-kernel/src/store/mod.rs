//! Where numbered lines are kept.
//!
//! Rationale: ownership is a number, the *epoch*, that grows with every take; the store refuses what a former owner still
//! appends. No clock is part of it. The interface knows no pid, path or pipe, and every call may be repeated, so that a
//! store on another machine can stand behind it.

mod file;
mod memory;

use std::io;

use qwen_events::SessionId;

pub use crate::router::Appended;
pub use file::FileEvents;
pub use memory::MemoryEvents;

/// What a new owner learns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Its epoch.
    pub epoch: u64,
    /// The number of the last line.
    pub last: u64,
    /// The turn that was open behind it.
    pub open: Option<String>,
    /// The lines that end that turn, where the session's log knows its end.
    pub end: Option<Vec<u8>>,
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Whole lines from `first` on.
    Lines {
        /// The number of the first.
        first: u64,
        /// The lines, each with its line break.
        lines: Vec<u8>,
        /// The number of the last.
        last: u64,
    },
    /// What was asked for is no longer kept.
    TooOld {
        /// The oldest number that is.
        oldest: u64,
    },
    /// The number was never given out.
    Future {
        /// The last number.
        last: u64,
    },
    /// The store failed.
    Failed(String),
}

/// The numbered lines of sessions.
pub trait Events {
    /// Makes the caller the owner of the session's lines; a former owner is fenced from here on.
    fn take(&self, session: &SessionId) -> io::Result<Taken>;

    /// Appends whole lines as the owner of `epoch`; the first has the number `first`. The same append again is
    /// [`Appended::Stored`] and changes nothing. `open` names the turn that is open behind the lines.
    fn append(
        &self,
        session: &SessionId,
        epoch: u64,
        first: u64,
        lines: &[u8],
        open: Option<&str>,
    ) -> Appended;

    /// The lines behind `after`.
    fn read(&self, session: &SessionId, after: u64) -> Read;

    /// The number of the last line; 0 where there is none.
    fn last(&self, session: &SessionId) -> u64;

    /// Forgets the session's lines.
    fn delete(&self, session: &SessionId) -> io::Result<()>;
}

fn count_lines(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

#[cfg(test)]
mod conformance;
