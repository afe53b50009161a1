//! Calls without a result, in the dialects that report only the start and the end of a call.

use super::bounded::Open;
use super::report::Report;

/// The calls of a turn that have no result yet.
#[derive(Default)]
pub(super) struct Calls(Open<()>);

impl Calls {
    /// Records a call by the model.
    pub(super) fn record_call(&mut self, id: &str, report: &mut Report) {
        if !self.0.insert(id, ()) {
            report.error("tool", format!("the call {id:?} is made twice"));
        }
    }

    /// Checks an approval request for a call.
    pub(super) fn check_question(&self, id: &str, report: &mut Report) {
        if !self.0.contains(id) {
            report.error("tool", format!("a question about {id:?}, which is not a waiting call"));
        }
    }

    /// Records a result whose call the stream may not have.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Records the result of a call.
    pub(super) fn answered(&mut self, id: &str, report: &mut Report) {
        if self.0.remove(id).is_none() {
            report.error("tool", format!("a result for {id:?}, which is not a call that waits for one"));
        }
    }

    /// Checks at the successful end of a turn that every call has a result.
    pub(super) fn must_be_answered(&self, report: &mut Report) {
        for id in self.0.names(|()| true) {
            report.error("tool", format!("the call {id:?} has no result before the end of its turn"));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
