//! The rules of `claude-lite`.

use std::borrow::Cow;

use serde::Deserialize;

use super::calls::Calls;
use super::report::Report;
use super::syntax::{Object, Violation};
use super::{Rules, channel};
use crate::claude_lite::{Frame, Tokens};

#[derive(Default)]
pub(super) struct LiteRules {
    in_turn: bool,
    /// The number of ended turns.
    turns: u64,
    /// Calls without a result.
    calls: Calls,
}

/// A `message_stop` as in the spec's mapping table, which has the reason only under its other name.
#[derive(Deserialize)]
struct Stop<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    usage: Tokens,
}

/// Reads a line; the reason of a `message_stop` may have either name.
pub(crate) fn frame<'a>(object: &'a Object<'_>) -> Result<Frame<'a>, Violation> {
    if object.kind() == Some("message_stop") && object.has("reason") && !object.has("stop_reason") {
        let Stop { reason, usage } = object.read()?;
        return Ok(Frame::MessageStop { stop_reason: reason, reason: None, usage });
    }
    object.read()
}

fn read<'a>(object: &'a Object<'_>) -> Result<Option<Frame<'a>>, Violation> {
    if let Some(fits) = channel::read(object) {
        return fits.map(|()| None);
    }
    if object.kind().is_none() {
        return Err(object.unknown_type());
    }
    let frame = frame(object)?;
    match &frame {
        Frame::ToolCall { arguments, .. } if !arguments.as_str().starts_with('{') => {
            Err(Violation::new("shape", "the `arguments` of a call are always an object"))
        }
        _ => Ok(Some(frame)),
    }
}

impl Rules for LiteRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        read(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        let frame = match read(object) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(violation) => return report.violation(violation),
        };
        match &frame {
            Frame::MessageStart { .. } => {
                if self.in_turn {
                    report.error(
                        "no-terminal",
                        "a turn starts before the one before it has its `message_stop`",
                    );
                }
                self.in_turn = true;
                self.calls.clear();
            }
            // A bad line is also answered outside of turns.
            Frame::Error { .. } => {}
            Frame::MessageStop { stop_reason, reason, .. } => {
                if !self.in_turn {
                    report.error(
                        "one-terminal",
                        "this `message_stop` belongs to no turn: each turn has exactly one",
                    );
                }
                if reason.as_ref().is_some_and(|reason| reason != stop_reason) {
                    report.error("shape", "`reason` and `stop_reason` have the same value");
                }
                if stop_reason == "stop_turn" {
                    self.calls.must_be_answered(report);
                }
                self.in_turn = false;
                self.turns += 1;
                self.calls.clear();
            }
            _ if !self.in_turn => {
                if self.turns > 0 {
                    report.error("after-terminal", "this line comes after the `message_stop` of its turn");
                } else {
                    report.error("message-start", "this line comes before the `message_start` of its turn");
                }
            }
            Frame::ToolCall { id: Some(id), .. } => self.calls.record_call(id, report),
            Frame::ToolResult { id, .. } => self.calls.answered(id, report),
            _ => {}
        }
    }

    fn reply(&mut self, _: &str, report: &mut Report) {
        if self.in_turn {
            report.error("no-terminal", "the document has no `message_stop`");
        }
        self.in_turn = false;
    }

    fn finish(&mut self, report: &mut Report) {
        if self.in_turn {
            report.error("no-terminal", "the stream ends before the `message_stop` of its turn");
        }
    }
}
