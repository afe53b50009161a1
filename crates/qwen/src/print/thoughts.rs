//! A tree or graph of thoughts while it is thought: draws_thoughts in place on a terminal, told line by line elsewhere.

use qwen_dialects::view::{ThoughtGraph, ViewOptions, step_lines};
use qwen_events::{Body, Event};

/// Lines of the terminal that a drawing leaves for what comes below it.
const LEFT_FREE: usize = 3;

/// Shows the thoughts of a turn.
#[derive(Default)]
pub struct ThoughtRenderer {
    thoughts: ThoughtGraph,
    /// How many lines at the end of what was written are the drawing.
    draws_thoughts: usize,
}

impl ThoughtRenderer {
    /// Shows what `event` tells about thoughts. `screen` is what the terminal looks like now; none where there is none.
    pub fn render(&mut self, event: &Event, screen: Option<ViewOptions>, err: &mut Vec<u8>) {
        let told = self.thoughts.observe(event);
        match (screen.map(|screen| (screen, screen.height)), &event.body) {
            // A state only tells more about what is draws_thoughts already; behind the answer it would be draws_thoughts once more.
            (Some((screen, Some(height))), body)
                if told && (self.draws_thoughts > 0 || matches!(body, Body::Thinking(_))) =>
            {
                self.draw(screen, height, err);
            }
            (Some((_, Some(_))), _) => {}
            (_, Body::Thinking(step)) if event.scope.parent.is_none() => {
                for line in step_lines(step) {
                    err.extend_from_slice(line.as_bytes());
                    err.push(b'\n');
                }
            }
            _ => {}
        }
    }

    /// Something else is written below: the next drawing is a new one.
    pub fn leave(&mut self) {
        self.draws_thoughts = 0;
    }

    fn draw(&mut self, screen: ViewOptions, height: usize, err: &mut Vec<u8>) {
        if self.draws_thoughts > 0 {
            err.extend_from_slice(format!("\x1b[{}A", self.draws_thoughts).as_bytes());
        }
        err.extend_from_slice(b"\r\x1b[J");
        let lines = self.thoughts.draw(screen, height.saturating_sub(LEFT_FREE));
        for line in &lines {
            err.extend_from_slice(line.as_bytes());
            err.push(b'\n');
        }
        self.draws_thoughts = lines.len();
    }
}
