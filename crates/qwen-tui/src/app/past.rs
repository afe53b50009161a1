//! Prints the last turns of a resumed session.

use qwen_events::{Body, Event};

use super::Terminal;
use crate::markdown::{Rendered, Stream};
use crate::text::{Style, StyledLine};
use crate::view;

/// The number of printed turns; the transcript has all of them.
const TURNS: usize = 3;

impl Terminal {
    /// Prints the last turns of these events.
    pub fn show_past(&mut self, events: &[Event]) {
        let is_start =
            |event: &Event| matches!(event.body, Body::TurnStart(_)) && event.scope.parent.is_none();
        let starts: Vec<usize> = (0..events.len()).filter(|at| is_start(&events[*at])).collect();
        let Some(first) = starts.get(starts.len().saturating_sub(TURNS)) else { return };
        if starts.len() > TURNS {
            let note = format!("({} earlier turns; ctrl+o shows all)", starts.len() - TURNS);
            self.print_block(vec![Rendered::logical(StyledLine::styled(note, Style::DIM))]);
        }
        let own = |event: &&Event| event.scope.parent.is_none() && event.scope.thought.is_none();
        for event in events[*first..].iter().filter(own) {
            if let Body::TurnStart(start) = &event.body {
                self.print_prompt(&start.message);
            } else if let Body::MessageEnd(end) = &event.body {
                let mut stream = Stream::default();
                let mut blocks = stream.push(&end.text);
                blocks.extend(stream.finish());
                self.print_answer(blocks);
                if !end.text.is_empty() {
                    self.last_answer = end.text.to_string();
                }
            } else if let Body::ToolEnd(end) = &event.body {
                self.print_block(view::finished_call(end, self.marks, self.output_lines(end)));
            } else if let Body::TurnEnd(end) = &event.body {
                self.print_block(view::turn_end(end, None, self.marks));
            }
        }
    }
}
