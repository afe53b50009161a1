//! Separates the text of concurrent sources: a source finishes its block before another one is shown,
//! within bounds.

use std::collections::VecDeque;

use super::event::{ViewEvent, ViewLine};

/// The maximum number of lines that wait for the end of a block.
const MAX_WAITING: usize = 256;

/// The maximum number of lines of other node runs that wait while the one with an unfinished block is silent.
/// Its end may have been left out of the stream.
const MAX_SILENCE: usize = 16;

/// A session, optionally a sub-agent in it, and the node run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Speaker {
    session: Option<Box<str>>,
    parent: Option<Box<str>>,
    node: Option<Box<str>>,
}

/// Decides which source is shown next.
#[derive(Default)]
pub(super) struct BlockSequencer {
    /// The source with an unfinished block.
    holder: Option<Speaker>,
    waiting: VecDeque<ViewLine>,
    /// Lines of other node runs of the same source since the last one of the holder.
    silence: usize,
}

impl BlockSequencer {
    /// Shows `line` now, or when the current block ends.
    pub(super) fn push(&mut self, line: ViewLine, show: &mut dyn FnMut(&ViewLine)) {
        if self.must_wait(&line) {
            self.waiting.push_back(line);
            if self.waiting.len() > MAX_WAITING || self.silence > MAX_SILENCE {
                self.holder = None;
                self.drain(show);
            }
            return;
        }
        self.silence = 0;
        while self.waiting.iter().any(|waiting| precedes(waiting, &line)) {
            self.holder = None;
            self.drain(show);
        }
        self.show(&line, show);
        self.drain(show);
    }

    /// True if another source has an unfinished block. Within a source only the text of another node run
    /// waits.
    fn must_wait(&mut self, line: &ViewLine) -> bool {
        // A line without a session belongs to that of the line before.
        let Some(holder) = self.holder.as_ref().filter(|_| line.session.is_some()) else { return false };
        if holder.session != line.session || holder.parent != line.parent {
            return true;
        }
        let is_text = matches!(line.event, ViewEvent::Text(_) | ViewEvent::ThoughtPiece(_));
        let is_other_node = is_text && line.node.is_some() && holder.node != line.node;
        self.silence += usize::from(is_other_node);
        is_other_node
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

/// True if a waiting line must be shown before another one: a node's text before its calls, and all text of a
/// session before the end of its turn.
fn precedes(waiting: &ViewLine, line: &ViewLine) -> bool {
    match line.event {
        ViewEvent::TurnEnd(_) => waiting.session == line.session,
        ViewEvent::Nothing | ViewEvent::Usage(_) | ViewEvent::State(_) | ViewEvent::NodeExit(None) => false,
        _ => line.session.is_some() && speaker(waiting) == speaker(line),
    }
}

fn speaker(line: &ViewLine) -> Speaker {
    Speaker { session: line.session.clone(), parent: line.parent.clone(), node: line.node.clone() }
}
