//! Separates the text of concurrent sources: a source finishes its block before another one is shown,
//! within bounds.

use std::collections::VecDeque;

use super::event::{ViewEvent, ViewLine};

/// The maximum number of lines that wait for the end of a block.
const MAX_WAITING: usize = 256;

/// A session, and optionally a sub-agent in it.
type Speaker = (Option<Box<str>>, Option<Box<str>>);

/// Decides which source is shown next.
#[derive(Default)]
pub(super) struct BlockSequencer {
    /// The source with an unfinished block.
    holder: Option<Speaker>,
    waiting: VecDeque<ViewLine>,
}

impl BlockSequencer {
    /// Shows `line` now, or when the current block ends.
    pub(super) fn push(&mut self, line: ViewLine, show: &mut dyn FnMut(&ViewLine)) {
        // A line without a session belongs to that of the line before.
        let elsewhere =
            line.session.is_some() && self.holder.as_ref().is_some_and(|holder| *holder != speaker(&line));
        if elsewhere {
            self.waiting.push_back(line);
            if self.waiting.len() > MAX_WAITING {
                self.holder = None;
                self.drain(show);
            }
            return;
        }
        self.show(&line, show);
        self.drain(show);
    }

    /// Shows all waiting lines.
    pub(super) fn finish(&mut self, show: &mut dyn FnMut(&ViewLine)) {
        while !self.waiting.is_empty() {
            self.holder = None;
            self.drain(show);
        }
    }

    fn show(&mut self, line: &ViewLine, show: &mut dyn FnMut(&ViewLine)) {
        show(line);
        match line.event {
            ViewEvent::Text(_) | ViewEvent::ThoughtPiece(_) => self.holder = Some(speaker(line)),
            ViewEvent::Nothing | ViewEvent::Usage(_) | ViewEvent::State(_) => {}
            _ => self.holder = None,
        }
    }

    /// Shows the waiting lines, one source after the other, until one has an unfinished block.
    fn drain(&mut self, show: &mut dyn FnMut(&ViewLine)) {
        while self.holder.is_none()
            && let Some(next) = self.waiting.front().map(speaker)
        {
            let waiting = std::mem::take(&mut self.waiting);
            for line in waiting {
                if speaker(&line) == next {
                    self.show(&line, show);
                } else {
                    self.waiting.push_back(line);
                }
            }
        }
    }
}

fn speaker(line: &ViewLine) -> Speaker {
    (line.session.clone(), line.parent.clone())
}
