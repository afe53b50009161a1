//! Tool calls of a run: each started call must end exactly once.

use super::super::bounded::{Names, Open};
use super::super::report::Report;
use crate::loom::wire::Body;

/// The calls of a node run.
#[derive(Default)]
pub(super) struct Tools {
    /// Started calls; for calls without an id, the number of those with the same name.
    open: Open<u32>,
    ended: Names,
}

impl Tools {
    pub(super) fn event(&mut self, body: &Body<'_>, report: &mut Report) {
        match body {
            Body::ToolStart { call_id, name } => self.start(call_id.as_deref(), name, report),
            Body::ToolOutput { call_id, name, .. } => {
                let key = call_id.as_deref().unwrap_or(name);
                if !self.open.contains(key) {
                    report.error("tool", format!("output of {key:?}, which is not running"));
                }
            }
            Body::ToolEnd { call_id, name, is_error, .. } => {
                self.end(call_id.as_deref(), name, *is_error, report);
            }
            _ => {}
        }
    }

    /// Checks that no call is running.
    pub(super) fn must_be_ended(&mut self, before: &str, report: &mut Report) {
        for name in self.open.names(|_| true) {
            report.error("tool", format!("{name:?} was started and has no `tool_end` before {before}"));
        }
        self.open.clear();
        self.ended.clear();
    }

    fn start(&mut self, call_id: Option<&str>, name: &str, report: &mut Report) {
        let key = call_id.unwrap_or(name);
        if call_id.is_none()
            && let Some(count) = self.open.get_mut(key)
        {
            *count = count.saturating_add(1);
            return;
        }
        let again = call_id.is_some_and(|id| self.ended.contains(id));
        if !self.open.insert(key, 1) || again {
            report.error("tool", format!("the call {key:?} is started twice"));
        }
    }

    fn end(&mut self, call_id: Option<&str>, name: &str, is_error: bool, report: &mut Report) {
        let key = call_id.unwrap_or(name);
        let started = match self.open.get_mut(key) {
            Some(count) if *count > 1 => {
                *count -= 1;
                true
            }
            Some(_) => self.open.remove(key).is_some(),
            None => false,
        };
        let again = call_id.is_some_and(|id| !self.ended.insert(id));
        if again {
            report.error("tool", format!("the call {key:?} ends twice"));
        } else if !started && !is_error {
            report.error("tool", format!("{key:?} ends well without having been started"));
        }
    }
}
