//! Progress of hooks for the SDKs, and the messages of hooks to the user.

use std::borrow::Cow;

use qwen_events::{HookNotice, HookOutcome, HookOutput, HookStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stream::Stream;
use super::stream::limit::{fitted, text_limit};
use super::wire::Notice;

/// Which run of which hook a line is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookName<'a> {
    /// The id of this run of the hook.
    pub hook_id: Cow<'a, str>,
    /// The event, followed by a colon and the matched value if there is one.
    pub hook_name: Cow<'a, str>,
    /// The hook event, such as `PreToolUse`.
    pub hook_event: Cow<'a, str>,
}

/// What a hook wrote so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookWords<'a> {
    /// The whole output, or the response of a hook that is not a command.
    pub output: Cow<'a, str>,
    /// The standard output of a hook command.
    pub stdout: Cow<'a, str>,
    /// The standard error of a hook command.
    pub stderr: Cow<'a, str>,
}

/// The outcome of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The hook returned a result.
    Success,
    /// The hook failed, timed out, or its command exited with a blocking code.
    Error,
    /// The turn ended before the hook did.
    Cancelled,
}

impl Stream {
    /// Writes what happened to a hook.
    pub(super) fn push_hook(&mut self, out: &mut Vec<u8>, notice: &HookNotice) {
        let hook = HookName {
            hook_id: notice.id.as_ref().into(),
            hook_name: notice.name.as_ref().into(),
            hook_event: notice.event.into(),
        };
        let line = match &notice.step {
            HookStep::Started => Notice::HookStarted { hook },
            HookStep::Progress(output) => Notice::HookProgress { hook, words: self.words(output) },
            HookStep::Ended { output, exit_code, outcome } => Notice::HookResponse {
                hook,
                words: self.words(output),
                exit_code: *exit_code,
                outcome: match outcome {
                    HookOutcome::Success => Outcome::Success,
                    HookOutcome::Error => Outcome::Error,
                    HookOutcome::Cancelled => Outcome::Cancelled,
                },
            },
            HookStep::Said { text, failed } => Notice::Informational {
                content: fitted(text, text_limit(self.longest)),
                level: if *failed { "warning" } else { "notice" }.into(),
                tool_use_id: notice.call_id.as_ref().map(|id| id.as_str().into()),
            },
        };
        self.push_system(out, line);
    }

    /// Writes a warning for people.
    pub(super) fn push_warning(&mut self, out: &mut Vec<u8>, text: &str) {
        let content = fitted(text, text_limit(self.longest));
        self.push_system(out, Notice::Informational { content, level: "warning".into(), tool_use_id: None });
    }

    /// What a hook wrote, three texts that must fit into one line.
    fn words<'a>(&self, output: &'a HookOutput) -> HookWords<'a> {
        let room = text_limit(self.longest) / 4;
        HookWords {
            output: fitted(&output.output, room * 2),
            stdout: fitted(&output.stdout, room),
            stderr: fitted(&output.stderr, room),
        }
    }
}
