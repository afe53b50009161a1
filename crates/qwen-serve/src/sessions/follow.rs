//! Readers of a session's lines.
//!
//! Rationale: a reader is a position. It pulls lines when its client can take them, from memory or from the
//! store, so a slow reader holds nothing and delays no one, and a reconnect is the same as a first read.

use std::rc::Rc;

use qwen_kernel::store::{Events, FileEvents, Read};
use tokio::sync::watch;

use super::session::{Line, Session};

/// About how many bytes a read returns.
const PIECE: usize = 64 * 1024;

/// About how many bytes a reader holds of lines that it read from the store.
const HELD: usize = 512 * 1024;

/// The next lines of a session.
#[derive(Debug)]
pub enum SessionLines {
    Lines(Vec<Line>),
    /// The lines after the position are no longer stored.
    TooOld {
        /// The number of the oldest line that is.
        oldest: u64,
    },
    /// The session was deleted, or the server ends.
    Ended,
}

/// A reader of a session's lines.
#[derive(Debug)]
pub struct SessionReader {
    session: Rc<Session>,
    store: Rc<FileEvents>,
    numbers: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    after: u64,
    held: std::collections::VecDeque<Line>,
}

impl SessionReader {
    /// A reader of the lines after `after`. `closing` becomes true when the server ends.
    pub fn new(
        session: Rc<Session>,
        store: Rc<FileEvents>,
        closing: watch::Receiver<bool>,
        after: u64,
    ) -> Self {
        let numbers = session.numbers();
        Self { session, store, numbers, closing, after, held: std::collections::VecDeque::new() }
    }

    /// Continues after another number.
    pub fn skip_to(&mut self, after: u64) {
        self.after = after;
        self.held.clear();
    }

    /// The next lines, at least one. Waits for them.
    pub async fn next(&mut self) -> SessionLines {
        loop {
            if self.session.is_deleted.get() {
                return SessionLines::Ended;
            }
            self.numbers.mark_unchanged();
            match self.available() {
                SessionLines::Lines(lines) if lines.is_empty() => {}
                found => return found,
            }
            if *self.closing.borrow() {
                return SessionLines::Ended;
            }
            tokio::select! {
                changed = self.numbers.changed() => if changed.is_err() { return SessionLines::Ended },
                changed = self.closing.changed() => if changed.is_err() { return SessionLines::Ended },
            }
        }
    }

    /// The lines that can be read without waiting.
    fn available(&mut self) -> SessionLines {
        if self.held.is_empty() {
            match self.session.recent_after(self.after, PIECE) {
                Some(lines) => return self.taken(lines),
                None => match self.store.read(&self.session.id, self.after, HELD) {
                    Read::Lines { first, lines, .. } => self.held.extend(numbered_lines(first, &lines)),
                    Read::TooOld { oldest } => return SessionLines::TooOld { oldest },
                    Read::Future { .. } | Read::Failed(_) => return SessionLines::Ended,
                },
            }
        }
        let mut bytes = 0;
        let mut lines = Vec::new();
        while bytes < PIECE
            && let Some(line) = self.held.pop_front()
        {
            bytes += line.text.len();
            lines.push(line);
        }
        self.taken(lines)
    }

    fn taken(&mut self, lines: Vec<Line>) -> SessionLines {
        if let Some(last) = lines.last() {
            self.after = last.number;
        }
        SessionLines::Lines(lines)
    }
}

/// The lines that a store returned, as clients see them. `first` is the number of the first one.
pub fn numbered_lines(first: u64, lines: &[u8]) -> Vec<Line> {
    let mut start = 0;
    let ends = (first..).zip(memchr::memchr_iter(b'\n', lines));
    ends.map(|(number, at)| {
        let mut text = Vec::with_capacity(at - start + 24);
        qwen_kernel::front::push_numbered(&mut text, number, &lines[start..at]);
        text.pop();
        start = at + 1;
        Line { number, text: text.into() }
    })
    .collect()
}
