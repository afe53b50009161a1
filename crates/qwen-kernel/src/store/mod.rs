//! The two chains of a session: its log and the lines that its clients see.
//!
//! Rationale: ownership is a number, the *epoch*, that increases with every take; a store rejects appends of
//! a former owner. No clock is involved. The interfaces expose no pid, path or pipe, and every call may be
//! repeated, so that a store on another machine can implement them.

mod asynchronous;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod events;
mod session_log;

pub use asynchronous::{AsyncEvents, AsyncSessionLog, Claimed, SharedSessions, StoreFuture};
pub use events::count_lines;
pub use events::{Events, FileEvents, Follower, MemoryEvents, Read, Taken};
pub use session_log::{
    FileLog, Judged, LogCommit, LogOwner, LogPosition, MemoryLog, SessionLog, commit, is_locked, judge,
    written_bytes,
};

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Appended {
    /// It is stored, now or by an earlier attempt.
    Ok,
    /// Another owner has taken over, or lines before these are missing; nothing was stored.
    Fenced,
    /// The outcome is unknown. The same append is tried again.
    Unknown,
}
