//! What is heard of a hook while it works, so that some of it can be told before it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::HookOutput;

/// What one call of a hook left behind while it ran.
#[derive(Default)]
pub(super) struct HookCapture(Mutex<SoFar>);

#[derive(Default)]
struct SoFar {
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

impl HookCapture {
    /// Something came through a pipe. Returns how much came through it so far.
    pub(super) fn take(&self, pipe: Pipe, bytes: &[u8]) -> usize {
        let mut so_far = self.lock();
        let so_far = match pipe {
            Pipe::Stdout => &mut so_far.stdout,
            Pipe::Stderr => &mut so_far.stderr,
        };
        so_far.extend_from_slice(bytes);
        so_far.len()
    }

    /// All that came through a pipe.
    pub(super) fn text(&self, pipe: Pipe) -> String {
        let so_far = self.lock();
        let bytes = match pipe {
            Pipe::Stdout => &so_far.stdout,
            Pipe::Stderr => &so_far.stderr,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A command ended with this code.
    pub(super) fn exited(&self, code: i32) {
        self.lock().exit_code = Some(code);
    }

    /// Whether a command ended with a code that says no.
    pub(super) fn failed(&self) -> bool {
        self.exit_code().is_some_and(|code| code != 0)
    }

    /// A hook that is no command answered.
    pub(super) fn answered(&self, text: &str) {
        text.clone_into(&mut self.lock().answer);
    }

    /// The code that a command ended with.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.lock().exit_code
    }

    /// How much came through both pipes so far.
    pub(super) fn len(&self) -> usize {
        let so_far = self.lock();
        so_far.stdout.len() + so_far.stderr.len()
    }

    /// All of it, as readers hear of it.
    pub(super) fn output(&self) -> HookOutput {
        let so_far = self.lock();
        let stdout: Arc<str> = String::from_utf8_lossy(&so_far.stdout).into();
        let stderr: Arc<str> = String::from_utf8_lossy(&so_far.stderr).into();
        let output = match (so_far.answer.is_empty(), stderr.is_empty()) {
            (false, _) => so_far.answer.as_str().into(),
            (true, true) => stdout.clone(),
            (true, false) => format!("{stdout}{stderr}").into(),
        };
        HookOutput { stdout, stderr, output }
    }

    fn lock(&self) -> MutexGuard<'_, SoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
