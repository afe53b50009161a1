//! A change of one file: computed first, shown to the user if needed, then applied.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use qwen_events::{Confirmation, Display, FileDiff, ToolCall};

use crate::output::content::{self, Text};
use crate::output::diff::file_diff;
use crate::refusal::Refusal;
use crate::workspace::{Target, Workspace};
use crate::{Before, CallContext, Freshness, Outcome, ToolFuture};

/// A change that is computed and not applied.
pub(super) struct PlannedChange {
    pub file: ChangedFile,
    /// The new content.
    pub after: String,
    /// What was done, for the model.
    pub summary: String,
}

/// Computes the change that a call asks for.
type Planner = fn(&ToolCall, &CallContext) -> Result<PlannedChange, Refusal>;

/// The proposed change of a call, as shown to the user; `None` if it cannot be made.
pub(super) fn confirmation(plan: Planner, call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
    let change = plan(call, cx).ok()?;
    Some(Confirmation::Edit(change.file.diff(&change.after)))
}

/// Makes the change that a call asks for.
pub(super) fn apply<'a>(plan: Planner, call: &ToolCall, cx: &CallContext) -> ToolFuture<'a> {
    let outcome = plan(call, cx).and_then(|change| change.file.write(&change.after, &change.summary, cx));
    Box::pin(std::future::ready(outcome.unwrap_or_else(Outcome::from)))
}

/// A file that is about to change.
pub(super) struct ChangedFile {
    target: Target,
    /// The path as displayed to users.
    pub shown: PathBuf,
    /// Current content; `None` if the file does not exist.
    pub before: Option<Text>,
    /// Current content byte for byte, if a write listener needs it.
    original: Option<Vec<u8>>,
}

impl ChangedFile {
    /// Opens the file. Refuses a file that was changed after the model last saw it.
    pub(super) fn open(path: &str, cx: &CallContext) -> Result<Self, Refusal> {
        let workspace = Workspace::of(cx)?;
        let mut target = workspace.target(path)?;
        let shown = workspace.shown(&target.path).to_owned();
        let (mut before, mut original) = (None, None);
        if let Some(existing) = &mut target.existing {
            let bytes = content::read(existing, &shown)?;
            if cx.ledger.freshness(&existing.path, &existing.metadata, &bytes) == Freshness::Stale {
                return Err(Refusal::new(
                    "file_changed",
                    format!(
                        "{} was changed by something else since you last saw it; read it again, then decide.",
                        shown.display()
                    ),
                ));
            }
            original = cx.before_write.get().map(|_| bytes.clone());
            before = Some(Text::of(bytes));
        }
        Ok(Self { target, shown, before, original })
    }

    /// True if the lines of the file end with CR and LF.
    pub(super) fn is_crlf(&self) -> bool {
        self.before.as_ref().is_some_and(Text::is_crlf)
    }

    pub(super) fn diff(&self, after: &str) -> FileDiff {
        let before = self.before.as_ref().map(|text| text.body.as_str());
        file_diff(&self.shown, &self.target.path, before, after)
    }

    /// Writes the new content. The outcome's text is `summary` plus the line counts.
    fn write(self, after: &str, summary: &str, cx: &CallContext) -> Result<Outcome, Refusal> {
        let diff = self.diff(after);
        let bytes = match &self.before {
            Some(before) => before.encode(after),
            None => after.as_bytes().to_vec(),
        };
        let path = self.target.path.clone();
        let listener = cx.before_write.get();
        if let Some(listener) = &listener {
            let mode = self.target.existing.as_ref().map_or(0, |existing| existing.metadata.mode() & 0o7777);
            let before = self.original.as_deref().map(|content| Before { content, mode });
            listener.before_write(&path, before);
        }
        let metadata = self.target.write(&bytes)?;
        if let Some(listener) = listener {
            listener.after_write(&path, &bytes);
        }
        cx.ledger.note(&path, &metadata, &bytes);
        cx.lines.count(diff.stat.ai_added_lines, diff.stat.ai_removed_lines);
        let text =
            format!("{summary} (+{} -{} lines).", diff.stat.ai_added_lines, diff.stat.ai_removed_lines);
        Ok(Outcome { display: Some(Display::FileDiff(diff)), ..Outcome::success(text) })
    }
}
