//! The lines of all sessions in the order in which they passed, for readers of everything.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;

use qwen_events::SessionId;
use qwen_kernel::store::{Events, FileEvents, Read};
use tokio::sync::watch;

use super::follow::numbered_lines;
use super::order::{LineRun, OrderFile};
use super::session::Line;

/// How many bytes of lines are kept.
const KEPT: usize = 4 * 1024 * 1024;

/// How many bytes of lines are read when a server starts.
const LOADED: usize = 1024 * 1024;

/// How many lines of a run are read when a server starts.
const LOADED_LINES: u64 = 2000;

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
    order: RefCell<OrderFile>,
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

impl Timeline {
    /// The timeline of a former server, whose order is in the file `path`, or a new one. `lasts` are the
    /// numbers of the last lines of all sessions.
    pub fn open(path: &Path, store: &FileEvents, lasts: &[(SessionId, u64)]) -> io::Result<Self> {
        let (order, runs) = OrderFile::open(path, lasts)?;
        let mut entries = Entries::default();
        for run in runs.iter().rev() {
            let lines = read_run(store, run);
            let is_whole = lines.first().is_some_and(|line| line.number == run.first);
            entries.bytes += lines.iter().map(|line| line.text.len()).sum::<usize>();
            for line in lines.into_iter().rev() {
                entries.kept.push_front(TimelineEntry { session: run.session.clone(), line });
            }
            if !is_whole || entries.bytes > LOADED {
                // The beginning is no longer here: a reader that wants it gets a snapshot.
                entries.first = 1;
                break;
            }
        }
        let end = entries.first + entries.kept.len() as u64;
        Ok(Self { entries: RefCell::new(entries), order: RefCell::new(order), end: watch::Sender::new(end) })
    }

    pub fn push(&self, session: SessionId, line: Line) {
        self.order.borrow_mut().push(&session, line.number);
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

/// The last lines of a run, without gaps.
fn read_run(store: &FileEvents, run: &LineRun) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut after = (run.first - 1).max(run.last.saturating_sub(LOADED_LINES));
    while after < run.last {
        match store.read(&run.session, after, LOADED) {
            Read::Lines { first, lines: read, .. } if !read.is_empty() => {
                lines.extend(numbered_lines(first, &read));
                let last = lines.last().map_or(run.last, |line| line.number);
                if last <= after {
                    break;
                }
                after = last;
            }
            Read::TooOld { oldest } if oldest > after + 1 && oldest <= run.last => after = oldest - 1,
            _ => break,
        }
    }
    lines.retain(|line| line.number <= run.last);
    lines
}
