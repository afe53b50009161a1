//! The rules of `qwen`, in both formats.

mod read;
mod records;
mod session;
mod turn;

use super::Rules;
use super::bounded::Sessions;
use super::report::Report;
use super::syntax::{Object, Violation};
use read::{Completion, QwenLine};
use session::Session;

#[derive(Default)]
pub(super) struct QwenRules {
    opening: Opening,
    /// True once any line arrived.
    any: bool,
    /// Whether lines are pieces or complete messages, once one of either arrived.
    chunks: Option<bool>,
    /// True once the process reported a fatal error.
    fatal: bool,
    /// True if the current line has a number and is not the first of its session.
    is_later_line: bool,
    sessions: Sessions<Session>,
}

/// How the stream began.
#[derive(Default, PartialEq)]
enum Opening {
    /// No line has arrived.
    #[default]
    None,
    /// With the handshake.
    Handshake,
    /// With a terminal record: the input is a sequence of documents.
    Documents,
    /// With another line, which was reported.
    Wrong,
}

impl Rules for QwenRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        read::line(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        let line = match read::line(object) {
            Ok(line) => line,
            Err(violation) => return report.violation(violation),
        };
        if self.fatal {
            report.error("after-terminal", "the line comes after an error that ended the process");
        }
        self.is_later_line = object.is_later_line();
        let late = std::mem::replace(&mut self.any, true);
        match line {
            QwenLine::Channel => {
                // The answer to `attach` has no number.
                if object.has("seq")
                    && let Some(session) = object.str("session_id")
                {
                    self.sessions.get_or_insert(session).begin(self.is_later_line);
                }
            }
            QwenLine::Fatal => {
                // A fatal error ends every turn.
                self.fatal = true;
                self.sessions = Sessions::default();
            }
            QwenLine::Completion(completion) => self.completion(&completion, late, report),
            QwenLine::Record(record) => {
                self.opens(false, report);
                records::judge(&record, report);
                let Some(session) = record.session_id() else {
                    report.error("envelope", "every line of a stream has a `session_id`");
                    return;
                };
                self.sessions.get_or_insert(session).begin(self.is_later_line).record(&record, report);
            }
        }
    }

    fn reply(&mut self, _: &str, report: &mut Report) {
        report.error("shape", "the document of this dialect is its terminal record, not events and a reply");
    }

    fn finish(&mut self, report: &mut Report) {
        let mut turns = 0;
        for (_, session) in self.sessions.all() {
            turns += session.finish(report);
        }
        if turns == 0 && self.opening == Opening::Handshake && !self.fatal {
            report.warning("no-turn", "the stream has a handshake and no turn");
        }
    }
}

fn judge_handshake(completion: &Completion<'_>, report: &mut Report) {
    if completion.usage.is_some() {
        report.error("handshake", "the handshake has no `usage`: nothing was spent yet");
    }
    let metadata = completion.metadata.as_ref();
    let missing = [
        ("output_format", metadata.is_none_or(|metadata| metadata.output_format.is_none())),
        ("capabilities", metadata.is_none_or(|metadata| metadata.capabilities.is_none())),
    ];
    for (field, _) in missing.iter().filter(|(_, missing)| *missing) {
        report.error("handshake", format!("the handshake has `metadata.{field}`"));
    }
}

impl QwenRules {
    fn completion(&mut self, completion: &Completion<'_>, late: bool, report: &mut Report) {
        if completion.is_handshake() {
            if self.opening == Opening::None {
                self.opening = Opening::Handshake;
                if late {
                    report.error("handshake", "the handshake comes before every other line");
                }
            }
            judge_handshake(completion, report);
            return;
        }
        // A bad line is answered among documents too.
        if !completion.is_error_notice() {
            self.opens(completion.is_terminal(), report);
        }
        if self.chunks.is_some_and(|chunks| chunks != completion.is_chunk) {
            report.error("format", "messages and chunks are not mixed in one stream");
        }
        self.chunks = Some(completion.is_chunk);
        let Some(session_id) = completion.session_id.as_deref() else {
            report.error("envelope", "every line of a stream has a `session_id`");
            return;
        };
        if completion.id.strip_prefix("chatcmpl-") != Some(session_id) {
            let message = format!("the `id` is {:?}, not \"chatcmpl-{session_id}\"", completion.id);
            report.error("envelope", message);
        }
        let documents = self.opening == Opening::Documents;
        let session = self.sessions.get_or_insert(session_id).begin(self.is_later_line);
        session.completion(completion, documents, report);
    }

    /// Checks how the stream begins: with the handshake, or as a sequence of documents.
    fn opens(&mut self, terminal: bool, report: &mut Report) {
        match (&self.opening, terminal) {
            (Opening::None, true) => self.opening = Opening::Documents,
            (Opening::None | Opening::Documents, false) => {
                report.error(
                    "handshake",
                    "the first line is the handshake: no choices, and `metadata.protocol_version`",
                );
                self.opening = Opening::Wrong;
            }
            _ => {}
        }
    }
}
