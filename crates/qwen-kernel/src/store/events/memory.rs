//! Numbered lines in memory, for tests and for hubs that do not outlive their clients.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use qwen_events::SessionId;

use crate::store::Appended;

use super::{Events, Follower, Read, Taken, count_lines};

/// A store in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryEvents {
    kept: Rc<RefCell<HashMap<SessionId, Chain>>>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Chain {
    epoch: u64,
    /// The number of the first stored line.
    first: u64,
    last: u64,
    lines: Vec<u8>,
    open: Option<String>,
}

impl MemoryEvents {
    /// A store of about `limit` bytes per session.
    pub fn new(limit: usize) -> Self {
        Self { kept: Rc::default(), limit }
    }
}

/// The length of the whole lines that fit in `limit` bytes, or of the first one.
fn page_end(lines: &[u8], limit: usize) -> usize {
    let fits = memchr::memrchr(b'\n', &lines[..lines.len().min(limit)]);
    fits.or_else(|| memchr::memchr(b'\n', lines)).map_or(lines.len(), |at| at + 1)
}

impl Events for MemoryEvents {
    fn take(&self, session: &SessionId) -> io::Result<Taken> {
        let mut kept = self.kept.borrow_mut();
        let chain = kept.entry(session.clone()).or_default();
        chain.epoch += 1;
        Ok(Taken { epoch: chain.epoch, last: chain.last, open: chain.open.clone(), ..Taken::default() })
    }

    fn append(&self, id: &SessionId, epoch: u64, first: u64, lines: &[u8], open: Option<&str>) -> Appended {
        let mut kept = self.kept.borrow_mut();
        let chain = kept.entry(id.clone()).or_default();
        if epoch != chain.epoch || first > chain.last + 1 {
            return Appended::Fenced;
        }
        if first <= chain.last {
            return Appended::Ok;
        }
        chain.last += count_lines(lines);
        chain.lines.extend_from_slice(lines);
        chain.open = open.map(str::to_owned);
        if chain.first == 0 {
            chain.first = 1;
        }
        while chain.lines.len() > self.limit {
            let Some(end) = memchr::memchr(b'\n', &chain.lines) else { break };
            chain.lines.drain(..=end);
            chain.first += 1;
        }
        Appended::Ok
    }

    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Read {
        let kept = self.kept.borrow();
        let Some(chain) = kept.get(session) else {
            return if after == 0 {
                Read::Lines { first: 1, lines: Vec::new(), last: 0 }
            } else {
                Read::Future { last: 0 }
            };
        };
        if after > chain.last {
            return Read::Future { last: chain.last };
        }
        if after + 1 < chain.first {
            return Read::TooOld { oldest: chain.first };
        }
        let skipped = usize::try_from(after + 1 - chain.first.max(1)).unwrap_or(usize::MAX);
        let start = match skipped {
            0 => 0,
            n => memchr::memchr_iter(b'\n', &chain.lines).nth(n - 1).map_or(chain.lines.len(), |at| at + 1),
        };
        let wanted = &chain.lines[start..];
        let end = page_end(wanted, limit);
        Read::Lines { first: after + 1, lines: wanted[..end].to_vec(), last: chain.last }
    }

    fn follow(&self, session: &SessionId, after: u64) -> Follower<'_> {
        Follower::new(self, session, after)
    }

    fn last(&self, session: &SessionId) -> u64 {
        self.kept.borrow().get(session).map_or(0, |chain| chain.last)
    }

    fn open_turn(&self, session: &SessionId) -> Option<String> {
        self.kept.borrow().get(session)?.open.clone()
    }

    /// The store is in this process only.
    fn has_live_owner(&self, _session: &SessionId) -> bool {
        false
    }

    fn release(&self, _session: &SessionId) {}

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        self.kept.borrow_mut().remove(session);
        Ok(())
    }
}
