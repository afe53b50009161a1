//! One session of a Loom stream: its numbering and the boundaries of its runs.

use super::super::bounded::Idle;
use super::super::report::Report;
use super::run::{Run, is_free};
use crate::loom::wire::Body;

/// A session and its current run.
#[derive(Default)]
pub(super) struct Session {
    last_event_id: Option<u64>,
    /// True if the stream announces runs, so that every run must be announced. `--stream-mode` can omit the
    /// announcements.
    announces: bool,
    /// The number of runs that ended with a reply.
    runs: u64,
    run: Option<Run>,
}

impl Idle for Session {
    fn is_idle(&self) -> bool {
        self.run.is_none()
    }
}

impl Session {
    /// Checks the number of a line; `stream` is the last number of the stream, in any session.
    pub(super) fn number(&mut self, event_id: Option<u64>, stream: Option<u64>, report: &mut Report) {
        let Some(event_id) = event_id else { return };
        let follows =
            |before: Option<u64>| before.is_some_and(|before| before.checked_add(1) == Some(event_id));
        match self.last_event_id {
            Some(last) if event_id <= last => {
                report.error("event-id", format!("`event_id` {event_id} comes after {last}; it must grow"));
                // A second stream after the first is reported once, not for every line.
                if event_id > 1 {
                    return;
                }
            }
            // Several sessions may share one numbering, or have one each.
            Some(last) if event_id - last > 1 && !follows(stream) => {
                report.warning(
                    "event-id-gap",
                    format!("`event_id` goes from {last} to {event_id}: lines are missing"),
                );
            }
            None if event_id > 1 && !follows(stream) => {
                report.warning("event-id-gap", format!("`event_id` starts at {event_id}, not at 1 (or 0)"));
            }
            _ => {}
        }
        self.last_event_id = Some(event_id);
    }

    /// Counts a line that has no number here, and returns the number that it would have.
    pub(super) fn skip_number(&mut self) -> Option<u64> {
        self.last_event_id = self.last_event_id.and_then(|last| last.checked_add(1));
        self.last_event_id
    }

    pub(super) fn event(&mut self, node_id: Option<&str>, body: &Body<'_>, report: &mut Report) {
        if let Body::RunStart { .. } = body {
            if self.run.as_ref().is_some_and(Run::needs_reply) {
                report.error("no-terminal", "a run starts before the one before it has its reply");
            }
            self.announces = true;
            self.run = Some(Run::announced());
            return;
        }
        let outside = !self.run.as_ref().is_some_and(Run::needs_reply);
        if outside && !is_free(body) {
            // If runs are announced, or nodes are shown, each run starts with its announcement.
            if self.announces && self.runs > 0 {
                report.error(
                    "after-terminal",
                    "the reply is the last line of its run, and this event comes after it",
                );
            } else if self.announces || matches!(body, Body::NodeEnter { .. } | Body::NodeExit { .. }) {
                report.error("run-start", "this event comes before the `run_start` of its run");
            }
        }
        self.run.get_or_insert_default().event(node_id, body, report);
    }

    pub(super) fn reply(&mut self, reply: &str, numbered: bool, report: &mut Report) {
        let mut run = self.run.take().unwrap_or_default();
        // Without announcements, a run may consist of its reply only; its number distinguishes it from
        // another.
        let alone = !self.announces && (numbered || self.runs == 0);
        if !run.may_reply(self.announces) && !alone {
            report.error("one-terminal", "this reply belongs to no run: each run has exactly one");
        }
        run.reply(reply, report);
        self.runs += 1;
    }

    pub(super) fn finish(&mut self, id: &str, report: &mut Report) {
        if self.run.as_ref().is_some_and(Run::needs_reply) {
            let of = if id.is_empty() { String::new() } else { format!(" of session {id:?}") };
            report.error("no-terminal", format!("the stream ends before the reply{of}"));
        }
    }
}
