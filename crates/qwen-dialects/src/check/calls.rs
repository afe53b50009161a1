//! Calls that wait for their results, in the dialects that tell no more of a call than its beginning and its end.

use super::bounded::Open;
use super::report::Report;

/// The calls of a turn that wait.
#[derive(Default)]
pub(super) struct Calls(Open<()>);

impl Calls {
    /// The model makes a call.
    pub(super) fn made(&mut self, id: &str, report: &mut Report) {
        if !self.0.insert(id, ()) {
            report.error("tool", format!("the call {id:?} is made twice"));
        }
    }

    /// Someone is asked about a call.
    pub(super) fn asked(&self, id: &str, report: &mut Report) {
        if !self.0.contains(id) {
            report.error("tool", format!("a question about {id:?}, which is no call that waits"));
        }
    }

    /// A call has its result.
    pub(super) fn answered(&mut self, id: &str, report: &mut Report) {
        if self.0.remove(id).is_none() {
            report.error("tool", format!("a result for {id:?}, which is no call that waits for one"));
        }
    }

    /// The turn ends well, so nothing may wait any more.
    pub(super) fn must_be_answered(&self, report: &mut Report) {
        for id in self.0.names(|()| true) {
            report.error("tool", format!("the call {id:?} has no result before the end of its turn"));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
