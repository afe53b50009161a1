//! Shows a tree or graph of thoughts while it grows: redrawn in place on a terminal, line by line otherwise.

use qwen_dialects::view::{ThoughtGraph, ViewOptions, step_lines};
use qwen_events::{Body, Event};

/// Lines of the terminal that a drawing leaves free for the output below it.
const LEFT_FREE: usize = 3;

/// Shows the thoughts of a turn.
#[derive(Default)]
pub struct ThoughtRenderer {
    thoughts: ThoughtGraph,
    /// The number of lines at the end of the output that belong to the drawing.
    draws_thoughts: usize,
}

impl ThoughtRenderer {
    /// Shows the thoughts in `event`. `screen` describes the terminal now; none without a terminal.
    pub fn render(&mut self, event: &Event, screen: Option<ViewOptions>, err: &mut Vec<u8>) {
        let is_changed = self.thoughts.observe(event);
        match (screen.map(|screen| (screen, screen.height)), &event.body) {
            // A state only adds detail to what is already drawn; after the answer it would be drawn a second
            // time.
            (Some((screen, Some(height))), body)
                if is_changed && (self.draws_thoughts > 0 || matches!(body, Body::Thinking(_))) =>
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

    /// Other output follows, so the next drawing starts anew.
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
