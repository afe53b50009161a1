//! Prints the last turns of a resumed session.

use std::collections::HashMap;

use qwen_events::{Body, CallId, Event, SessionEvent, ToolCall};

use super::Terminal;
use crate::markdown::{Rendered, Stream};
use crate::text::{Style, StyledLine};
use crate::view;

/// The number of printed turns; the transcript has all of them.
const TURNS: usize = 3;

/// Printed where the conversation was replaced by a summary.
const COMPRESSED: &str = "The conversation was compressed here: the model has a summary of everything above.";

/// The last turns of a session. Everything older is counted and dropped, so a long session needs no memory.
#[derive(Debug, Default)]
pub struct RecentTurns {
    /// The shown events, by turn, oldest first.
    turns: std::collections::VecDeque<Vec<Body>>,
    /// The number of turns before them.
    earlier: usize,
}

impl RecentTurns {
    /// Adds the next event of the session.
    pub fn push(&mut self, event: Event) {
        if event.scope.parent.is_some() || event.scope.thought.is_some() {
            return;
        }
        if matches!(event.body, Body::TurnStart(_)) {
            if self.turns.len() == TURNS {
                self.turns.pop_front();
                self.earlier += 1;
            }
            self.turns.push_back(Vec::new());
        }
        let is_compaction = |notice: &SessionEvent| matches!(notice, SessionEvent::Compressed { .. });
        let is_shown = matches!(
            event.body,
            Body::TurnStart(_)
                | Body::MessageEnd(_)
                | Body::ToolStart(_)
                | Body::ToolEnd(_)
                | Body::TurnEnd(_)
        ) || matches!(&event.body, Body::Session(notice) if is_compaction(notice));
        if let Some(turn) = self.turns.back_mut().filter(|_| is_shown) {
            turn.push(event.body);
        }
    }
}

impl Terminal {
    /// Prints the last turns of a session.
    pub fn show_recent_turns(&mut self, recent: &RecentTurns) {
        if recent.earlier > 0 {
            let note = format!("({} earlier turns{})", recent.earlier, self.shows_all());
            self.print_block(vec![Rendered::logical(StyledLine::styled(note, Style::DIM))]);
        }
        let mut started: HashMap<&CallId, &ToolCall> = HashMap::new();
        for body in recent.turns.iter().flatten() {
            if let Body::TurnStart(start) = body {
                self.print_prompt(&start.message);
            } else if let Body::MessageEnd(end) = body {
                let mut stream = Stream::default();
                let mut blocks = stream.push(&end.text);
                blocks.extend(stream.finish());
                self.print_answer(blocks);
                if !end.text.is_empty() {
                    self.output.last_answer = end.text.to_string();
                }
            } else if let Body::ToolStart(call) = body {
                started.insert(&call.id, call);
            } else if let Body::ToolEnd(end) = body {
                let started = started.remove(&end.call.id);
                self.print_block(view::finished_call(end, started, self.marks, &self.output_limit(end)));
            } else if let Body::TurnEnd(end) = body {
                self.print_block(view::turn_end(end, None, self.marks));
            } else if let Body::Session(_) = body {
                self.note(COMPRESSED);
            }
        }
    }
}
