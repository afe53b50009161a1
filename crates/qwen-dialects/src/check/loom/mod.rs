//! The rules of `loom` and `loom-export`, two forms of the same content.

mod read;
mod run;
mod session;
mod thoughts;
mod tools;

use super::bounded::Sessions;
use super::report::Report;
use super::syntax::{Object, Violation};
use super::{Rules, channel};
use read::LoomLine;
use session::Session;

/// Checks a stream of either form.
#[derive(Default)]
pub(super) struct LoomRules {
    /// True for the export form: single keys and no envelope.
    export: bool,
    sessions: Sessions<Session>,
    /// The session of the most recent line; the reply of a document belongs to it.
    last_session: Box<str>,
    /// The number of the last line, in any session.
    last_event_id: Option<u64>,
}

impl LoomRules {
    /// The rules of the export form.
    pub(super) fn export() -> Self {
        Self { export: true, ..Self::default() }
    }

    fn read<'a>(&self, object: &'a Object<'_>) -> Result<LoomLine<'a>, Violation> {
        match channel::read(object) {
            Some(fits) => fits.map(|()| LoomLine::Nothing),
            None if self.export => read::exported(object),
            None => read::protocol(object),
        }
    }
}

impl Rules for LoomRules {
    fn shape(&self, object: &Object<'_>) -> Result<(), Violation> {
        self.read(object).map(|_| ())
    }

    fn line(&mut self, object: &Object<'_>, report: &mut Report) {
        let frame = match self.read(object) {
            Ok(LoomLine::Nothing) => return,
            Ok(frame) => frame,
            Err(violation) => return report.violation(violation),
        };
        let envelope = frame.envelope();
        if *self.last_session != *envelope.session {
            self.last_session = envelope.session.as_ref().into();
        }
        let session = self.sessions.get_or_insert(&envelope.session);
        session.number(envelope.number, self.last_event_id, report);
        if envelope.number.is_some() {
            self.last_event_id = envelope.number;
        }
        match &frame {
            LoomLine::Nothing => {}
            LoomLine::Event(envelope, body) => session.event(envelope.node.as_deref(), body, report),
            LoomLine::Reply(envelope, reply) => session.reply(reply, envelope.number.is_some(), report),
        }
    }

    fn reply(&mut self, reply: &str, report: &mut Report) {
        let session = self.sessions.get_or_insert(&self.last_session);
        session.reply(reply, false, report);
        // In a stream the reply is a separate line with its own number.
        self.last_event_id = session.skip_number();
    }

    fn finish(&mut self, report: &mut Report) {
        for (id, session) in self.sessions.all() {
            session.finish(id, report);
        }
    }
}
