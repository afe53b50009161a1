//! Progress events of hooks.

use std::sync::Arc;

use crate::CallId;

/// A state change of one hook run.
#[derive(Debug, Clone, PartialEq)]
pub struct HookNotice {
    /// The id of this run of the hook.
    pub id: Arc<str>,
    /// The event and, after a colon, its subject: `PreToolUse:write_file`.
    pub name: Arc<str>,
    /// The event, such as `PreToolUse`.
    pub event: &'static str,
    /// The call that the event concerns.
    pub call_id: Option<CallId>,
    pub step: HookStep,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookStep {
    Started,
    /// The hook wrote something and is still running.
    Progress(HookOutput),
    Ended {
        output: HookOutput,
        /// The exit code, if the hook is a command.
        exit_code: Option<i32>,
        outcome: HookOutcome,
    },
    /// The hook has a message for the user.
    Said {
        text: Arc<str>,
        /// True if the message reports a failure.
        failed: bool,
    },
}

/// The hook's output so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookOutput {
    /// The standard output of a command.
    pub stdout: Arc<str>,
    /// The standard error of a command.
    pub stderr: Arc<str>,
    /// The complete output; for a hook that is not a command, its answer.
    pub output: Arc<str>,
}

/// The result of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutcome {
    Success,
    /// The hook failed or timed out.
    Error,
    /// The turn ended before the hook did.
    Cancelled,
}
