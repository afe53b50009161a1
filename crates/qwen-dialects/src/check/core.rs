//! The rules of `core`. It has no line for the start of a turn: any line of a turn opens it.

use super::bounded::Names;
use super::calls::Calls;
use super::report::Report;
use super::syntax::{Object, Violation};
use super::{Rules, channel};
use crate::core::wire::{CoreLine, TurnTotals};

#[derive(Default)]
pub(super) struct CoreRules {
    in_turn: bool,
    /// True if the last terminal record named no turn. One that follows a turn's terminal record is the
    /// process's, and the last.
    nameless: bool,
    /// The ended turns, by name.
    prompts: Names,
    /// Calls without a response.
    calls: Calls,
}

fn read<'a>(object: &'a Object<'_>) -> Result<Option<CoreLine<'a>>, Violation> {
    if let Some(fits) = channel::read(object) {
        return fits.map(|()| None);
    }
    match object.kind() {
        None => return Err(object.unknown_type()),
        Some("result/command") => return channel::command(object).map(|()| None),
        Some(_) => {}
    }
    let line: CoreLine<'_> = object.read()?;
    let args = match &line {
        CoreLine::ToolCallRequest(request) => Some(request.args),
        CoreLine::ToolCallConfirmation(confirmation) => Some(confirmation.request.args),
        _ => None,
    };
    if args.is_some_and(|args| !args.get().starts_with('{')) {
        return Err(Violation::new("shape", "the `args` of a call are always an object"));
    }
    Ok(Some(line))
}

impl Rules for CoreRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        read(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        let line = match read(object) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(violation) => return report.violation(violation),
        };
        match &line {
            CoreLine::Finished(finished) => {
                self.calls.must_be_answered(report);
                self.end(Some(&finished.turn), report);
            }
            CoreLine::UserCancelled(cancelled) => self.end(Some(&cancelled.turn), report),
            CoreLine::Error(failed) => self.end(failed.turn.as_ref(), report),
            CoreLine::ChatCompressed(_)
            | CoreLine::ModelFallback(_)
            | CoreLine::ModeChanged(_)
            | CoreLine::Steered(_)
            | CoreLine::Custom(_)
            | CoreLine::InputError(_)
            | CoreLine::Warning(_) => {}
            _ => {
                self.in_turn = true;
                self.nameless = false;
                self.call(&line, report);
            }
        }
    }

    fn reply(&mut self, _: &str, report: &mut Report) {
        if self.in_turn {
            report.error("no-terminal", "the document has no terminal record");
        }
        self.in_turn = false;
    }

    fn finish(&mut self, report: &mut Report) {
        if self.in_turn {
            report.error("no-terminal", "the stream ends before the terminal record of its turn");
        }
    }
}

impl CoreRules {
    fn call(&mut self, line: &CoreLine<'_>, report: &mut Report) {
        match line {
            CoreLine::ToolCallRequest(request) => self.calls.record_call(&request.call_id, report),
            CoreLine::ToolCallConfirmation(question) => {
                self.calls.check_question(&question.request.call_id, report);
            }
            CoreLine::ToolCallResponse(response) => self.calls.answered(&response.call_id, report),
            _ => {}
        }
    }

    fn end(&mut self, turn: Option<&TurnTotals<'_>>, report: &mut Report) {
        let again = match turn.and_then(|turn| turn.prompt_id.as_deref()) {
            Some(prompt_id) => !self.prompts.insert(prompt_id),
            None => std::mem::replace(&mut self.nameless, true),
        };
        if again {
            report
                .error("one-terminal", "this terminal record belongs to no turn: each turn has exactly one");
        }
        self.in_turn = false;
        self.calls.clear();
    }
}
