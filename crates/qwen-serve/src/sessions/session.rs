//! One session: its record, its recent lines, its prompts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use qwen_events::SessionId;
use tokio::sync::watch;

use super::record::SessionRecord;

/// How many bytes of a session's last lines are kept in memory. Older lines are read from the store.
const RECENT: usize = 256 * 1024;

/// A line and its number.
#[derive(Debug, Clone)]
pub struct Line {
    pub number: u64,
    /// The line without its line break.
    pub text: Bytes,
}

/// One session as the server holds it in memory, whether the kernel has it open or not.
#[derive(Debug)]
pub struct Session {
    pub id: SessionId,
    pub record: RefCell<SessionRecord>,
    /// The number of the last line. The sender goes away with the session.
    numbers: watch::Sender<u64>,
    recent: RefCell<Recent>,
    /// The prompts that were accepted and have not ended, in order.
    pub prompts: RefCell<VecDeque<String>>,
    /// True while the kernel has the session open.
    pub is_open: Cell<bool>,
    pub is_deleted: Cell<bool>,
    pub used_at: Cell<Instant>,
}

#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<Line>,
    bytes: usize,
}

impl Session {
    /// A session whose last line has the number `last`.
    pub fn new(id: SessionId, record: SessionRecord, last: u64) -> Self {
        Self {
            id,
            record: RefCell::new(record),
            numbers: watch::Sender::new(last),
            recent: RefCell::default(),
            prompts: RefCell::default(),
            is_open: Cell::new(false),
            is_deleted: Cell::new(false),
            used_at: Cell::new(Instant::now()),
        }
    }

    /// The number of the last line.
    pub fn last(&self) -> u64 {
        *self.numbers.borrow()
    }

    /// Reports each further line.
    pub fn numbers(&self) -> watch::Receiver<u64> {
        self.numbers.subscribe()
    }

    /// The prompt whose turn runs, or is the next to run.
    pub fn running(&self) -> Option<String> {
        self.prompts.borrow().front().cloned()
    }

    /// True while a turn runs or waits.
    pub fn is_busy(&self) -> bool {
        !self.prompts.borrow().is_empty()
    }

    /// Appends a line. A line that is known already is ignored.
    pub fn push(&self, line: Line) -> bool {
        if line.number <= self.last() {
            return false;
        }
        let number = line.number;
        {
            let mut recent = self.recent.borrow_mut();
            if recent.lines.back().is_some_and(|last| last.number + 1 != number) {
                *recent = Recent::default();
            }
            recent.bytes += line.text.len();
            recent.lines.push_back(line);
            while recent.bytes > RECENT
                && recent.lines.len() > 1
                && let Some(oldest) = recent.lines.pop_front()
            {
                recent.bytes -= oldest.text.len();
            }
        }
        self.numbers.send_replace(number);
        true
    }

    /// Wakes all readers, because the session is gone.
    pub fn close(&self) {
        self.is_deleted.set(true);
        self.numbers.send_modify(|_| ());
    }

    /// The lines after `after` up to about `limit` bytes, if they are all in memory.
    pub fn recent_after(&self, after: u64, limit: usize) -> Option<Vec<Line>> {
        let recent = self.recent.borrow();
        if after >= self.last() {
            return Some(Vec::new());
        }
        let first = recent.lines.front()?.number;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        let mut bytes = 0;
        let lines = recent.lines.iter().skip(skip).take_while(|line| {
            let fits = bytes < limit;
            bytes += line.text.len();
            fits
        });
        Some(lines.cloned().collect())
    }

    /// Releases the memory of a session that is at rest.
    pub fn forget_recent(&self) {
        *self.recent.borrow_mut() = Recent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, size: usize) -> Line {
        Line { number, text: vec![b'x'; size].into() }
    }

    #[test]
    fn recent_lines_are_bounded_and_complete_or_absent() {
        let session = Session::new(SessionId::parse("s").unwrap(), SessionRecord::default(), 0);
        for number in 1..=100 {
            assert!(session.push(line(number, 10_000)));
        }
        assert!(!session.push(line(100, 1)), "a repeated line is ignored");
        assert!(session.recent_after(1, 1_000_000).is_none());
        let numbers: Vec<u64> =
            session.recent_after(95, 1_000_000).unwrap().iter().map(|line| line.number).collect();
        assert_eq!(numbers, [96, 97, 98, 99, 100]);
        assert_eq!(session.recent_after(95, 15_000).unwrap().len(), 2);
        assert!(session.recent_after(100, 1).unwrap().is_empty());
        assert!(session.push(line(105, 1)));
        assert!(session.recent_after(100, 1).is_none(), "a gap is never hidden");
    }
}
