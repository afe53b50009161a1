//! Stores that answer later, such as those on other machines. Every store on this machine is one too: it answers
//! at once.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;

use qwen_events::SessionId;

use super::{Appended, Events, LogOwner, LogPosition, Read, SessionLog, Taken};
use crate::ipc::CommitReason;

/// The pending answer of a store. It belongs to one thread.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// [`Events`] whose calls may take time.
pub trait AsyncEvents {
    /// Makes the caller the owner, as [`Events::take`] does.
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Taken>>;

    /// Appends whole lines, as [`Events::append`] does. [`Appended::Unknown`] means that the store gave up: it has
    /// waited for as long as it may.
    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        first: u64,
        lines: &'a [u8],
        open: Option<&'a str>,
    ) -> StoreFuture<'a, Appended>;

    /// Reads lines, as [`Events::read`] does.
    fn read<'a>(&'a self, session: &'a SessionId, after: u64, limit: usize) -> StoreFuture<'a, Read>;

    /// Returns the number of the last line, as [`Events::last`] does.
    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<u64>>;

    /// Deletes the lines, as [`Events::delete`] does.
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>>;
}

/// [`SessionLog`] whose calls may take time.
pub trait AsyncSessionLog {
    /// Makes the caller the owner, as [`SessionLog::take`] does.
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<LogOwner>>;

    /// Reads the log, as [`SessionLog::read`] does.
    fn read<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, io::Result<Vec<u8>>>;

    /// Appends whole lines, as [`SessionLog::append`] does.
    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        at: u64,
        lines: &'a [u8],
        reason: &'a CommitReason,
    ) -> StoreFuture<'a, Appended>;

    /// Gives the ownership up, as [`SessionLog::release`] does.
    fn release<'a>(&'a self, session: &'a SessionId, epoch: u64) -> StoreFuture<'a, Appended>;

    /// Lists the sessions, as [`SessionLog::list`] does.
    fn list(&self) -> StoreFuture<'_, io::Result<Vec<SessionId>>>;

    /// Deletes the log, as [`SessionLog::delete`] does.
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>>;
}

/// The outcome of a claim.
#[derive(Debug)]
pub enum Claimed {
    /// The session is ours: its former owner can append no more.
    Ours {
        /// Our ownership of the log.
        position: LogPosition,
        /// The log as it is stored, unless this process wrote it last and has it on its disk.
        log: Option<Vec<u8>>,
        taken: Taken,
    },
    /// A process that is alive has the session.
    InUse {
        /// The name of that process.
        owner: String,
    },
}

/// The stores that processes on several machines share.
pub trait SharedSessions {
    /// Returns the store of numbered lines.
    fn events(&self) -> &dyn AsyncEvents;

    /// Returns the store of session logs.
    fn log(&self) -> &dyn AsyncSessionLog;

    /// Makes this process the owner of both. It takes the session from an owner that is alive only with
    /// `by_force`. Of several claims at the same time, one succeeds.
    fn claim<'a>(&'a self, session: &'a SessionId, by_force: bool) -> StoreFuture<'a, io::Result<Claimed>>;

    /// Makes this process the owner of a log again that it has released; none if another process has written to
    /// it since.
    fn reclaim_log<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Option<LogPosition>>>;
}

impl<T: Events> AsyncEvents for T {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Taken>> {
        Box::pin(ready(Events::take(self, session)))
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        first: u64,
        lines: &'a [u8],
        open: Option<&'a str>,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(ready(Events::append(self, id, epoch, first, lines, open)))
    }

    fn read<'a>(&'a self, session: &'a SessionId, after: u64, limit: usize) -> StoreFuture<'a, Read> {
        Box::pin(ready(Events::read(self, session, after, limit)))
    }

    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<u64>> {
        Box::pin(ready(Ok(Events::last(self, session))))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        Box::pin(ready(Events::delete(self, session)))
    }
}

impl<T: SessionLog> AsyncSessionLog for T {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<LogOwner>> {
        Box::pin(ready(SessionLog::take(self, session)))
    }

    fn read<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(ready(SessionLog::read(self, session, from)))
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        at: u64,
        lines: &'a [u8],
        reason: &'a CommitReason,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(ready(SessionLog::append(self, id, epoch, at, lines, reason)))
    }

    fn release<'a>(&'a self, session: &'a SessionId, epoch: u64) -> StoreFuture<'a, Appended> {
        Box::pin(ready(SessionLog::release(self, session, epoch)))
    }

    fn list(&self) -> StoreFuture<'_, io::Result<Vec<SessionId>>> {
        Box::pin(ready(SessionLog::list(self)))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        Box::pin(ready(SessionLog::delete(self, session)))
    }
}
