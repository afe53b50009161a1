//! The lines of all sessions in the order in which they passed, for readers of everything.

use std::cell::RefCell;
use std::collections::VecDeque;

use qwen_events::SessionId;
use tokio::sync::watch;

use super::session::Line;

/// How many bytes of lines are kept.
const KEPT: usize = 4 * 1024 * 1024;

/// A line of some session.
#[derive(Debug, Clone)]
pub struct TimelineEntry {
    pub session: SessionId,
    pub line: Line,
}

/// The last lines of all sessions.
#[derive(Debug)]
pub struct Timeline {
    entries: RefCell<Entries>,
    /// The position after the last entry.
    end: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<TimelineEntry>,
    bytes: usize,
    /// The position of the first kept entry.
    first: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { entries: RefCell::default(), end: watch::Sender::new(0) }
    }
}

impl Timeline {
    pub fn push(&self, session: SessionId, line: Line) {
        let mut entries = self.entries.borrow_mut();
        entries.bytes += line.text.len();
        entries.kept.push_back(TimelineEntry { session, line });
        while entries.bytes > KEPT
            && entries.kept.len() > 1
            && let Some(oldest) = entries.kept.pop_front()
        {
            entries.bytes -= oldest.line.text.len();
            entries.first += 1;
        }
        let end = entries.first + entries.kept.len() as u64;
        drop(entries);
        self.end.send_replace(end);
    }

    /// Reports each further entry.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// The position after the last entry.
    pub fn end(&self) -> u64 {
        *self.end.borrow()
    }

    /// The position after a line; none if it is no longer kept.
    pub fn position_after(&self, session: &SessionId, number: u64) -> Option<u64> {
        let entries = self.entries.borrow();
        let at = entries
            .kept
            .iter()
            .rposition(|entry| entry.line.number == number && entry.session == *session)?;
        Some(entries.first + at as u64 + 1)
    }

    /// The entries from a position on, up to about `limit` bytes, and the position after them; none if they
    /// are no longer all kept.
    pub fn read(&self, position: u64, limit: usize) -> Option<(Vec<TimelineEntry>, u64)> {
        let entries = self.entries.borrow();
        let skip = usize::try_from(position.checked_sub(entries.first)?).ok()?;
        let mut bytes = 0;
        let found: Vec<TimelineEntry> = entries
            .kept
            .iter()
            .skip(skip)
            .take_while(|entry| {
                let fits = bytes < limit;
                bytes += entry.line.text.len();
                fits
            })
            .cloned()
            .collect();
        let end = position + found.len() as u64;
        Some((found, end))
    }
}
