//! Events about running hooks: started, output so far, finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use qwen_events::{Body, HookNotice, HookOutcome, HookStep};

use super::HookEvent;
use super::capture::HookCapture;
use super::set::HookRequest;

/// Which hooks are reported to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Announced {
    #[default]
    Nothing,
    /// Only hooks for the event `SessionStart`.
    SessionStart,
    Everything,
}

/// The current choice, which may change while hooks run.
#[derive(Default)]
pub(super) struct Choice(AtomicU8);

impl Choice {
    pub(super) fn set(&self, announced: Announced) {
        let word = match announced {
            Announced::Nothing => 0,
            Announced::SessionStart => 1,
            Announced::Everything => 2,
        };
        self.0.store(word, Ordering::Relaxed);
    }

    fn covers(&self, event: HookEvent) -> bool {
        match self.0.load(Ordering::Relaxed) {
            0 => false,
            1 => event == HookEvent::SessionStart,
            _ => true,
        }
    }
}

/// One hook call that may be reported to readers.
pub(super) struct Announcement<'a> {
    request: &'a HookRequest<'a>,
    id: Arc<str>,
    name: Arc<str>,
    wanted: bool,
    /// How many bytes of its output were already reported.
    reported: usize,
}

impl<'a> Announcement<'a> {
    pub(super) fn new(request: &'a HookRequest<'a>, choice: &Choice) -> Self {
        let event = request.event.name();
        let target = request.call.map_or(request.target, |call| &*call.name);
        let name = if target.is_empty() { event.into() } else { format!("{event}:{target}").into() };
        let wanted = choice.covers(request.event);
        Self { request, id: format!("hook_{:016x}", fastrand::u64(..)).into(), name, wanted, reported: 0 }
    }

    pub(super) async fn started(&self) {
        if self.wanted {
            self.emit_step(HookStep::Started).await;
        }
    }

    /// Reports the output that the hook wrote since the last call, if there is any.
    pub(super) async fn progress(&mut self, capture: &HookCapture) {
        let written = capture.len();
        if self.wanted && written > self.reported {
            self.reported = written;
            self.emit_step(HookStep::Progress(capture.output())).await;
        }
    }

    pub(super) async fn ended(&self, capture: &HookCapture, outcome: HookOutcome) {
        if self.wanted {
            let exit_code = capture.exit_code();
            self.emit_step(HookStep::Ended { output: capture.output(), exit_code, outcome }).await;
        }
    }

    /// A message for the user, reported regardless of the [`Announced`] setting.
    pub(super) async fn emit_message(&self, text: &str, failed: bool) {
        self.emit_step(HookStep::Said { text: text.into(), failed }).await;
    }

    async fn emit_step(&self, step: HookStep) {
        let notice = HookNotice {
            id: self.id.clone(),
            name: self.name.clone(),
            event: self.request.event.name(),
            call_id: self.request.call.map(|call| call.id.clone()),
            step,
        };
        self.request.emit.emit(Body::Hook(Box::new(notice))).await;
    }
}
