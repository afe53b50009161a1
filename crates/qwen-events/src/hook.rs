//! What readers may hear of the hooks while they work.

use std::sync::Arc;

use crate::CallId;

/// Something happened to a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookNotice {
    /// Names this run of the hook.
    pub id: Arc<str>,
    /// The event, and behind a colon what it is about: `PreToolUse:write_file`.
    pub name: Arc<str>,
    /// The event, such as `PreToolUse`.
    pub event: &'static str,
    /// The call that it is about.
    pub call_id: Option<CallId>,
    /// What happened.
    pub step: HookStep,
}

/// What happened to a hook.
#[derive(Debug, Clone, PartialEq)]
pub enum HookStep {
    /// It was called.
    Started,
    /// It wrote something and works on.
    Progress(HookOutput),
    /// It is over.
    Ended {
        /// What it wrote.
        output: HookOutput,
        /// How a command ended.
        exit_code: Option<i32>,
        /// How it went.
        outcome: HookOutcome,
    },
    /// It has words for people.
    Said {
        /// The words.
        text: Arc<str>,
        /// They tell of a failure.
        failed: bool,
    },
}

/// What a hook wrote so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookOutput {
    /// What a command wrote to its standard output.
    pub stdout: Arc<str>,
    /// And to its standard error.
    pub stderr: Arc<str>,
    /// All of it; the answer of a hook that is no command.
    pub output: Arc<str>,
}

/// How a hook went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutcome {
    /// It answered.
    Success,
    /// It failed, or took too long.
    Error,
    /// The turn ended before it did.
    Cancelled,
}
