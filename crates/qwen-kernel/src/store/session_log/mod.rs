//! The logs of sessions, byte for byte.
//!
//! Rationale: the log is the lock. Taking a session over is an entry with the next epoch; whatever the former
//! owner appends afterwards is rejected. The worker keeps writing its own file; at each sync point its bytes
//! are appended here with the reason, so that no one has to read payloads to know the state of a turn.

mod commit;
mod file;
mod memory;

use std::io;

use qwen_events::SessionId;

pub use commit::{LogCommit, LogPosition, commit, is_locked, written_bytes};
pub use file::FileLog;
pub use memory::MemoryLog;

use super::Appended;
use crate::ipc::CommitReason;

/// The state that a new owner receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogOwner {
    pub epoch: u64,
    /// The length of the log in bytes.
    pub bytes: u64,
    /// The reason of the last append; none in an empty log.
    pub last: Option<CommitReason>,
}

/// The logs of sessions.
pub trait SessionLog {
    /// Makes the caller the owner of the session's log and fences the former owner.
    fn take(&self, session: &SessionId) -> io::Result<LogOwner>;

    /// The log from byte `from` on.
    fn read(&self, session: &SessionId, from: u64) -> io::Result<Vec<u8>>;

    /// Appends whole lines behind byte `at` as the owner of `epoch`. Repeating an append returns
    /// [`Appended::Ok`] and changes nothing; other bytes in the same place are [`Appended::Fenced`].
    fn append(&self, id: &SessionId, epoch: u64, at: u64, lines: &[u8], reason: &CommitReason) -> Appended;

    /// Gives the ownership up: the epoch can append no more. The log stays.
    fn release(&self, session: &SessionId, epoch: u64) -> Appended;

    /// The sessions that have a log, sorted.
    fn list(&self) -> io::Result<Vec<SessionId>>;

    /// Deletes the session's log.
    fn delete(&self, session: &SessionId) -> io::Result<()>;
}

/// Judges whether an append to a log of `length` bytes is new, done already or impossible. `stored` are the bytes
/// that the log has where the lines would go.
pub fn judge(length: u64, at: u64, lines: &[u8], stored: &[u8]) -> Judged {
    let is_whole = lines.is_empty() || lines.ends_with(b"\n");
    if at > length || !is_whole {
        return Judged::Impossible;
    }
    match lines.strip_prefix(stored) {
        Some([]) => Judged::Done,
        Some(_) if at + stored.len() as u64 == length && stored.is_empty() => Judged::New,
        _ => Judged::Impossible,
    }
}

/// The place of an append in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// It follows the last byte.
    New,
    /// The log has these bytes in this place.
    Done,
    /// It would leave a gap, or replace bytes.
    Impossible,
}

#[cfg(test)]
mod conformance;
