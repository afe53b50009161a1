//! One session: its running turns, by `prompt_id`.

use super::super::bounded::{Idle, Names, Open};
use super::super::report::Report;
use super::read::Completion;
use super::records::Record;
use super::turn::Turn;

/// A session and its turns.
#[derive(Default)]
pub(super) struct Session {
    turns: Open<Turn>,
    /// The ended turns.
    ended: Names,
    count: u64,
    begin: Begin,
}

/// How the lines of a session begin.
#[derive(Default, Clone, Copy, PartialEq)]
enum Begin {
    /// No line has arrived.
    #[default]
    Unknown,
    /// With its first line.
    Whole,
    /// With a later line, after a client attached: the first turn and its message may have begun before.
    Cut,
}

impl Idle for Session {
    fn is_idle(&self) -> bool {
        self.turns.is_empty()
    }
}

impl Session {
    /// Notes how the lines begin, with the first of them.
    pub(super) fn begin(&mut self, is_later_line: bool) -> &mut Self {
        if self.begin == Begin::Unknown {
            self.begin = if is_later_line { Begin::Cut } else { Begin::Whole };
        }
        self
    }

    fn new_turn(&self) -> Turn {
        Turn::new(self.begin == Begin::Cut && self.count == 0)
    }

    pub(super) fn completion(&mut self, completion: &Completion<'_>, document: bool, report: &mut Report) {
        if completion.is_error_notice() {
            return;
        }
        let Some(prompt_id) = completion.prompt_id.as_deref() else {
            report.error("envelope", "every line of a turn has a `prompt_id`");
            return;
        };
        if !completion.is_terminal() {
            if let Some(turn) = self.turn(prompt_id) {
                turn.message(completion, report);
            }
            return;
        }
        if self.ended.contains(prompt_id) && !completion.is_continuation() {
            self.turns.remove(prompt_id);
            report.error("one-terminal", format!("the turn {prompt_id:?} has a terminal record already"));
            return;
        }
        let mut turn = self.turns.remove(prompt_id).unwrap_or_else(|| self.new_turn());
        turn.end(completion, document, report);
        self.count += 1;
        // A turn that waits for the host's tools continues under the same id.
        if completion.finish_reason() != Some("tool_calls") {
            self.ended.insert(prompt_id);
        }
    }

    pub(super) fn record(&mut self, record: &Record<'_>, report: &mut Report) {
        match record.prompt_id() {
            None if record.is_free() => {}
            None => report.error("envelope", "every line of a turn has a `prompt_id`"),
            // It names a prompt that has no turn.
            Some(_) if record.is_steered() => {}
            Some(prompt_id) if record.moves_turn() => drop(self.turns.remove(prompt_id)),
            Some(prompt_id) => {
                if let Some(turn) = self.turn(prompt_id) {
                    turn.record(record, report);
                }
            }
        }
    }

    /// Checks the end of the stream, and returns the number of turns.
    pub(super) fn finish(&self, report: &mut Report) -> u64 {
        let open = self.turns.names(|_| true);
        for prompt_id in &open {
            if self.ended.contains(prompt_id) {
                let message = format!("lines come after the terminal record of their turn {prompt_id:?}");
                report.error("after-terminal", message);
                continue;
            }
            let message = format!("the stream ends before the terminal record of the turn {prompt_id:?}");
            report.error("no-terminal", message);
        }
        self.count + open.len() as u64
    }

    /// The turn that a line belongs to. An ended turn may be continued under its id; the next terminal
    /// record shows whether it is.
    fn turn(&mut self, prompt_id: &str) -> Option<&mut Turn> {
        if !self.turns.contains(prompt_id) {
            self.turns.insert(prompt_id, self.new_turn());
        }
        self.turns.get_mut(prompt_id)
    }
}
