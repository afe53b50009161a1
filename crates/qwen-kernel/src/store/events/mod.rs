//! The numbered lines of sessions.

mod file;
mod memory;
mod owners;

use std::io;
use std::rc::Rc;

use qwen_events::SessionId;

use super::Appended;
pub use file::FileEvents;
pub use memory::MemoryEvents;

/// The state that a new owner receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    pub epoch: u64,
    /// The number of the last line.
    pub last: u64,
    /// The turn that was open after the last line.
    pub open: Option<String>,
    /// The lines that end that turn, if the session's log has its end.
    pub end: Option<Vec<u8>>,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Whole lines from `first` on.
    Lines {
        /// The number of the first line.
        first: u64,
        /// The lines, each with its line break.
        lines: Vec<u8>,
        /// The number of the last line that is stored, which may come after these.
        last: u64,
    },
    /// The requested lines are no longer stored.
    TooOld {
        /// The oldest stored number.
        oldest: u64,
    },
    /// The requested number was never assigned.
    Future {
        /// The last assigned number.
        last: u64,
    },
    Failed(String),
}

/// The numbered lines of sessions.
pub trait Events {
    /// Makes the caller the owner of the session's lines and fences the former owner.
    fn take(&self, session: &SessionId) -> io::Result<Taken>;

    /// Appends whole lines as the owner of `epoch`; the first has the number `first`. Repeating an append
    /// returns [`Appended::Ok`] and changes nothing. `open` is the turn that is open after the lines; without
    /// lines, only that is noted.
    fn append(&self, id: &SessionId, epoch: u64, first: u64, lines: &[u8], open: Option<&str>) -> Appended;

    /// The lines after `after`: at most about `limit` bytes of them, and at least one line if there is one.
    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Read;

    /// A reader of the lines after `after` that remembers how far it is.
    fn follow(&self, session: &SessionId, after: u64) -> Follower<'_>;

    /// The number of the last line; 0 if there is none.
    fn last(&self, session: &SessionId) -> u64;

    /// The turn that is open after the last line.
    fn open_turn(&self, session: &SessionId) -> Option<String>;

    /// Returns true if another process, which is alive, took the session's lines and has not given them up.
    fn has_live_owner(&self, session: &SessionId) -> bool;

    /// Gives up the lines, which this process took; whoever takes them next need not wait for its end.
    fn release(&self, session: &SessionId);

    /// Deletes the session's lines.
    fn delete(&self, session: &SessionId) -> io::Result<()>;
}

/// A store that several users in this process share.
impl<T: Events> Events for Rc<T> {
    fn take(&self, session: &SessionId) -> io::Result<Taken> {
        T::take(self, session)
    }

    fn append(&self, id: &SessionId, epoch: u64, first: u64, lines: &[u8], open: Option<&str>) -> Appended {
        T::append(self, id, epoch, first, lines, open)
    }

    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Read {
        T::read(self, session, after, limit)
    }

    fn follow(&self, session: &SessionId, after: u64) -> Follower<'_> {
        T::follow(self, session, after)
    }

    fn last(&self, session: &SessionId) -> u64 {
        T::last(self, session)
    }

    fn open_turn(&self, session: &SessionId) -> Option<String> {
        T::open_turn(self, session)
    }

    fn has_live_owner(&self, session: &SessionId) -> bool {
        T::has_live_owner(self, session)
    }

    fn release(&self, session: &SessionId) {
        T::release(self, session);
    }

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        T::delete(self, session)
    }
}

/// A reader that remembers how far it is.
pub struct Follower<'a> {
    events: &'a dyn Events,
    session: SessionId,
    after: u64,
}

impl<'a> Follower<'a> {
    fn new(events: &'a dyn Events, session: &SessionId, after: u64) -> Self {
        Self { events, session: session.clone(), after }
    }

    /// The next lines since the last call, about `limit` bytes; none in them if there are no new ones. A reader
    /// that fell behind what is stored gets [`Read::TooOld`].
    pub fn read_on(&mut self, limit: usize) -> Read {
        let read = self.events.read(&self.session, self.after, limit);
        if let Read::Lines { lines, .. } = &read {
            self.after += count_lines(lines);
        }
        read
    }
}

/// Returns the number of whole lines.
pub fn count_lines(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

#[cfg(test)]
mod conformance;
