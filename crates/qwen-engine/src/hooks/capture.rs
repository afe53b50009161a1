//! The output of a running hook, collected so that progress can be reported before the hook ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::HookOutput;

/// The output and exit code of one hook call.
#[derive(Default)]
pub(super) struct HookCapture(Mutex<SoFar>);

#[derive(Default)]
struct SoFar {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    answer: String,
    exit_code: Option<i32>,
}

/// The output pipes of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pipe {
    Stdout,
    Stderr,
}

impl HookCapture {
    /// Stores bytes read from a pipe. Returns the total size read from that pipe so far.
    pub(super) fn take(&self, pipe: Pipe, bytes: &[u8]) -> usize {
        let mut so_far = self.lock();
        let so_far = match pipe {
            Pipe::Stdout => &mut so_far.stdout,
            Pipe::Stderr => &mut so_far.stderr,
        };
        so_far.extend_from_slice(bytes);
        so_far.len()
    }

    /// Everything read from a pipe so far.
    pub(super) fn text(&self, pipe: Pipe) -> String {
        let so_far = self.lock();
        let bytes = match pipe {
            Pipe::Stdout => &so_far.stdout,
            Pipe::Stderr => &so_far.stderr,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Records the exit code of a command.
    pub(super) fn exited(&self, code: i32) {
        self.lock().exit_code = Some(code);
    }

    /// True if a command ended with a non-zero exit code.
    pub(super) fn failed(&self) -> bool {
        self.exit_code().is_some_and(|code| code != 0)
    }

    /// Records the answer of a hook that is not a command.
    pub(super) fn answered(&self, text: &str) {
        text.clone_into(&mut self.lock().answer);
    }

    /// The exit code, once the command has ended.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.lock().exit_code
    }

    /// The total size read from both pipes so far.
    pub(super) fn len(&self) -> usize {
        let so_far = self.lock();
        so_far.stdout.len() + so_far.stderr.len()
    }

    /// The output in the form readers get.
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
