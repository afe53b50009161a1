//! Committing what a worker has written itself: the answer to a worker's question on its commit socket.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use qwen_events::SessionId;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::SessionLog;
use super::file::open_without_links;
use crate::ipc::CommitReason;
use crate::store::Appended;

/// Our ownership of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    pub epoch: u64,
    /// How many bytes are committed.
    pub bytes: u64,
}

/// A log that must be committed before its worker continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCommit {
    /// The number of the worker's question.
    pub id: u64,
    /// The session whose log it is.
    pub log: SessionId,
    /// Our ownership; none before the first commit for this worker.
    pub owned: Option<LogPosition>,
    /// The log must be durable up to this byte.
    pub bytes: u64,
    pub reason: CommitReason,
}

/// Commits a log: takes it unless it is owned, and appends what the store does not have. `written` returns a
/// range of the bytes that the worker has written. The new position is returned even if the outcome is not
/// known, because a take that succeeded must not be repeated.
pub fn commit(
    store: &dyn SessionLog,
    commit: &LogCommit,
    written: impl FnOnce(u64, u64) -> io::Result<Vec<u8>>,
) -> (Option<LogPosition>, Appended) {
    let owned = match commit.owned {
        Some(owned) => owned,
        None => match store.take(&commit.log) {
            Ok(owner) => LogPosition { epoch: owner.epoch, bytes: owner.bytes },
            Err(_) => return (None, Appended::Unknown),
        },
    };
    // A store that shares the worker's disk has the bytes already.
    let from = owned.bytes.min(commit.bytes);
    let Ok(lines) = written(from, commit.bytes) else { return (Some(owned), Appended::Unknown) };
    match store.append(&commit.log, owned.epoch, from, &lines, &commit.reason) {
        Appended::Ok => (Some(LogPosition { bytes: commit.bytes, ..owned }), Appended::Ok),
        Appended::Unknown => (Some(owned), Appended::Unknown),
        Appended::Fenced => (None, Appended::Fenced),
    }
}

/// The bytes `from..to` of the log that a worker writes to `directory`; none if it writes none there.
pub fn written_bytes(directory: &Path, log: &SessionId, from: u64, to: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_without_links(&directory.join(format!("{log}.jsonl")), OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(Some(bytes))
}

/// True if a process holds the lock on the log in `directory`, as a worker does while it has the session.
pub fn is_locked(directory: &Path, log: &SessionId) -> bool {
    let Ok(file) = open_without_links(&directory.join(format!("{log}.jsonl")), OFlags::RDONLY) else {
        return false;
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(error) => error == Errno::WOULDBLOCK,
        Ok(()) => {
            // Explicitly, because a child that has not called `exec` yet shares the open file and with it the
            // lock.
            let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
            false
        }
    }
}
