//! What readers hear of hooks at work: that one was called, what it wrote so far, how it went.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::{Body, HookNotice, HookOutcome, HookOutput, HookStep};

use super::HookEvent;
use super::set::Firing;

/// Which hooks readers hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Announced {
    /// None of them.
    #[default]
    Nothing,
    /// Those that hear that a session starts.
    SessionStart,
    /// All of them.
    Everything,
}

/// The choice, which may be changed while hooks run.
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

/// What one call of a hook left behind while it ran.
#[derive(Default)]
pub(super) struct Trace(Mutex<Traced>);

#[derive(Default)]
struct Traced {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    answer: String,
    exit_code: Option<i32>,
}

/// One of the two pipes of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pipe {
    Stdout,
    Stderr,
}

impl Trace {
    /// Something came through a pipe. Returns how much came through it so far.
    pub(super) fn heard(&self, pipe: Pipe, bytes: &[u8]) -> usize {
        let mut traced = self.lock();
        let so_far = match pipe {
            Pipe::Stdout => &mut traced.stdout,
            Pipe::Stderr => &mut traced.stderr,
        };
        so_far.extend_from_slice(bytes);
        so_far.len()
    }

    /// All that came through a pipe.
    pub(super) fn text(&self, pipe: Pipe) -> String {
        let traced = self.lock();
        let bytes = match pipe {
            Pipe::Stdout => &traced.stdout,
            Pipe::Stderr => &traced.stderr,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A command ended with this code.
    pub(super) fn exited(&self, code: i32) {
        self.lock().exit_code = Some(code);
    }

    /// Whether a command ended with a code that says no.
    pub(super) fn failed(&self) -> bool {
        self.lock().exit_code.is_some_and(|code| code != 0)
    }

    /// A hook that is no command answered.
    pub(super) fn answered(&self, text: &str) {
        text.clone_into(&mut self.lock().answer);
    }

    fn len(&self) -> usize {
        let traced = self.lock();
        traced.stdout.len() + traced.stderr.len()
    }

    fn output(&self) -> HookOutput {
        let traced = self.lock();
        let stdout: Arc<str> = String::from_utf8_lossy(&traced.stdout).into();
        let stderr: Arc<str> = String::from_utf8_lossy(&traced.stderr).into();
        let output = match (traced.answer.is_empty(), stderr.is_empty()) {
            (false, _) => traced.answer.as_str().into(),
            (true, true) => stdout.clone(),
            (true, false) => format!("{stdout}{stderr}").into(),
        };
        HookOutput { stdout, stderr, output }
    }

    fn lock(&self) -> MutexGuard<'_, Traced> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call of a hook that readers may hear of.
pub(super) struct Announcement<'a> {
    firing: &'a Firing<'a>,
    id: Arc<str>,
    name: Arc<str>,
    wanted: bool,
    /// How much of its output readers know of.
    told: usize,
}

impl<'a> Announcement<'a> {
    pub(super) fn new(firing: &'a Firing<'a>, choice: &Choice) -> Self {
        let event = firing.event.name();
        let target = firing.call.map_or(firing.target, |call| &*call.name);
        let name = if target.is_empty() { event.into() } else { format!("{event}:{target}").into() };
        let wanted = choice.covers(firing.event);
        Self { firing, id: format!("hook_{:016x}", fastrand::u64(..)).into(), name, wanted, told: 0 }
    }

    pub(super) async fn started(&self) {
        if self.wanted {
            self.tell(HookStep::Started).await;
        }
    }

    /// Tells what the hook wrote since this was last called, where it wrote anything.
    pub(super) async fn progress(&mut self, trace: &Trace) {
        let written = trace.len();
        if self.wanted && written > self.told {
            self.told = written;
            self.tell(HookStep::Progress(trace.output())).await;
        }
    }

    pub(super) async fn ended(&self, trace: &Trace, outcome: HookOutcome) {
        if self.wanted {
            let exit_code = trace.lock().exit_code;
            self.tell(HookStep::Ended { output: trace.output(), exit_code, outcome }).await;
        }
    }

    /// Words for people, which are told whatever readers want to hear of hooks.
    pub(super) async fn said(&self, text: &str, failed: bool) {
        self.tell(HookStep::Said { text: text.into(), failed }).await;
    }

    async fn tell(&self, step: HookStep) {
        let notice = HookNotice {
            id: self.id.clone(),
            name: self.name.clone(),
            event: self.firing.event.name(),
            call_id: self.firing.call.map(|call| call.id.clone()),
            step,
        };
        self.firing.emit.emit(Body::Hook(Box::new(notice))).await;
    }
}
