//! A change of one file: computed first, shown to the user if needed, then applied.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use qwen_events::{ArgumentRole, Confirmation, Display, FileDiff, FileLines, ToolCall, ToolDeclaration};

use crate::output::boundary::shorten_line;
use crate::output::content::{self, Text};
use crate::output::diff::file_diff;
use crate::refusal::Refusal;
use crate::workspace::{Target, Workspace};
use crate::{Arguments, Before, CallContext, Freshness, Outcome, ToolFuture};

/// Most lines of the changed file that a result shows.
const SHOWN_LINES: usize = 40;
/// Most lines of a diff that describe what something else changed.
const FOREIGN_LINES: usize = 20;
/// Longest part of a command that is quoted, in characters.
const QUOTED_COMMAND: usize = 80;

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

/// Returns the failure of a change that cannot be made, before permission for it is requested. A failure
/// quotes the file, so files that the model may not read without approval are not checked.
pub(super) fn check(
    plan: Planner,
    declaration: &ToolDeclaration,
    call: &ToolCall,
    cx: &CallContext,
) -> Option<Outcome> {
    let arguments = Arguments::parse(call).ok()?;
    let named = declaration.with_role(ArgumentRole::Path).find_map(|path| arguments.text(path.name).ok())?;
    let path = cx.session.cwd.join(named);
    if cx.session.may_show.as_ref().is_some_and(|may_show| !may_show(&cx.session.cwd, &path)) {
        return None;
    }
    let refusal = plan(call, cx).err()?;
    // The answer to the request may grant access to a path outside the workspace.
    (refusal.code() != "path_outside_workspace").then(|| refusal.into())
}

/// Makes the change that a call asks for.
pub(super) fn apply<'a>(plan: Planner, call: &ToolCall, cx: &CallContext) -> ToolFuture<'a> {
    let outcome = plan(call, cx).and_then(|change| change.file.write(&change.after, &change.summary, cx));
    Box::pin(std::future::ready(outcome.unwrap_or_else(Outcome::from)))
}

/// What a change needs the model to know about the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precondition {
    /// Nothing: the change names the text that it replaces.
    None,
    /// The file is as the model last saw it, if the model saw it.
    Unchanged,
    /// The model has read the file, and it has not changed since.
    Read,
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
    precondition: Precondition,
    foreign_change: Option<ForeignChange>,
}

/// A change of a file since the model last saw it.
struct ForeignChange {
    seen: Option<Arc<[u8]>>,
    changed_by: Option<Arc<str>>,
}

impl ChangedFile {
    /// Opens the file. Refuses one that does not meet the precondition.
    pub(super) fn open(path: &str, precondition: Precondition, cx: &CallContext) -> Result<Self, Refusal> {
        let workspace = Workspace::for_call(cx)?;
        let mut target = workspace.target(path)?;
        let shown = workspace.display_path(&target.path).to_owned();
        let (mut before, mut original, mut foreign_change) = (None, None, None);
        if let Some(existing) = &mut target.existing {
            let bytes = content::read(existing, &shown)?;
            match cx.session.ledger.freshness(&existing.path, &existing.metadata, &bytes) {
                Freshness::Stale { seen, changed_by } if precondition == Precondition::None => {
                    foreign_change = Some(ForeignChange { seen, changed_by });
                }
                Freshness::Stale { changed_by, .. } => {
                    let by = describe_author(changed_by.as_deref(), cx);
                    let text = format!(
                        "{} has changed since you last saw it: {by}. Nothing was written. Read it again, then decide.",
                        shown.display()
                    );
                    return Err(Refusal::new("file_changed", text));
                }
                Freshness::Unseen | Freshness::Edited
                    if precondition == Precondition::Read && !bytes.is_empty() =>
                {
                    let text = format!(
                        "{} exists and you have not read it. Nothing was written. Read it first, or change a part of it \
                         with the tool edit.",
                        shown.display()
                    );
                    return Err(Refusal::new("file_not_read", text).mentioning_tools());
                }
                Freshness::Unseen | Freshness::Edited | Freshness::Fresh => {}
            }
            original = cx.session.before_write.get().map(|_| bytes.clone());
            before = Some(Text::decode(bytes));
        }
        Ok(Self { target, shown, before, original, precondition, foreign_change })
    }

    /// True if the lines of the file end with CR and LF.
    pub(super) fn is_crlf(&self) -> bool {
        self.before.as_ref().is_some_and(Text::is_crlf)
    }

    /// True if something else changed the file since the model last saw it.
    pub(super) fn has_foreign_change(&self) -> bool {
        self.foreign_change.is_some()
    }

    pub(super) fn diff(&self, after: &str) -> FileDiff {
        let before = self.before.as_ref().map(|text| text.body.as_str());
        file_diff(&self.shown, &self.target.path, before, after)
    }

    /// Writes the new content. The outcome's text is `summary`, the line counts, the changed lines of an
    /// edit, and what something else had changed before.
    fn write(self, after: &str, summary: &str, cx: &CallContext) -> Result<Outcome, Refusal> {
        let diff = self.diff(after);
        let foreign_change = self.describe_foreign_change(cx);
        let bytes = match &self.before {
            Some(before) => before.encode(after),
            None => after.as_bytes().to_vec(),
        };
        let path = self.target.path.clone();
        let listener = cx.session.before_write.get();
        if let Some(listener) = &listener {
            let mode = self.target.existing.as_ref().map_or(0, |existing| existing.metadata.mode() & 0o7777);
            let before = self.original.as_deref().map(|content| Before { content, mode });
            listener.before_write(&path, before);
        }
        let replaces_part = self.precondition != Precondition::Read && self.before.is_some();
        let metadata = self.target.write(&bytes)?;
        if let Some(listener) = listener {
            listener.after_write(&path, &bytes);
        }
        if replaces_part {
            cx.session.ledger.note_edit(&path, &metadata, &bytes);
        } else {
            cx.session.ledger.note(&path, &metadata, &bytes);
        }
        cx.session.lines.count(diff.stat.ai_added_lines, diff.stat.ai_removed_lines);
        let mut text =
            format!("{summary} (+{} -{} lines).", diff.stat.ai_added_lines, diff.stat.ai_removed_lines);
        // The lines of a notebook's file are not those that the model reads.
        if replaces_part && self.precondition != Precondition::Unchanged {
            push_changed_lines(&diff, &mut text);
        }
        if let Some(change) = foreign_change {
            text.push_str(&change);
        }
        Ok(Outcome { display: Some(Display::FileDiff(diff)), ..Outcome::success(text) })
    }

    /// Describes what something else changed before the edit.
    fn describe_foreign_change(&self, cx: &CallContext) -> Option<String> {
        let change = self.foreign_change.as_ref()?;
        let by = describe_author(change.changed_by.as_deref(), cx);
        let mut text = format!("\nThe file had changed since you last saw it: {by}.");
        if let (Some(seen), Some(before)) = (&change.seen, &self.before) {
            let seen = Text::decode(seen.to_vec());
            let diff = file_diff(&self.shown, &self.target.path, Some(&seen.body), &before.body);
            // The first two lines name the file.
            let lines: Vec<&str> = diff.diff.lines().skip(2).collect();
            text.push_str(" This was its change:");
            for line in lines.iter().take(FOREIGN_LINES) {
                text.push('\n');
                text.push_str(&shorten_line(line));
            }
            if lines.len() > FOREIGN_LINES {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\n… {} more lines of this diff", lines.len() - FOREIGN_LINES);
            }
        } else {
            text.push_str(" Read it again before you rely on the rest of it.");
        }
        Some(text)
    }
}

/// Who changed a file: the agent's own command, or something else.
fn describe_author(command: Option<&str>, cx: &CallContext) -> String {
    match command {
        Some(command) => {
            let quoted: String = command.chars().take(QUOTED_COMMAND).collect();
            let cut = if quoted.len() < command.len() { "…" } else { "" };
            format!("your own command `{quoted}{cut}` changed it")
        }
        None if cx.session.tasks.has_commands() => {
            "something else changed it, perhaps a command of yours in the background".to_owned()
        }
        None => "something else than your commands changed it".to_owned(),
    }
}

/// Appends the changed regions as they are now, with line numbers and the lines around them.
fn push_changed_lines(diff: &FileDiff, text: &mut String) {
    let hunks = diff.hunks();
    let mut regions = String::new();
    let (mut shown, mut omitted) = (0, 0);
    for hunk in &hunks {
        if shown > 0 && shown < SHOWN_LINES {
            regions.push_str("…\n");
        }
        let new_lines = hunk.lines.iter().filter_map(|line| line.strip_prefix(['+', ' ']));
        for (number, line) in (usize::try_from(hunk.new.0).unwrap_or(1)..).zip(new_lines) {
            if shown < SHOWN_LINES {
                FileLines::write_line(number, &shorten_line(line), &mut regions);
                shown += 1;
            } else {
                omitted += 1;
            }
        }
    }
    if shown == 0 {
        return;
    }
    text.push_str(" It reads now:\n");
    text.push_str(regions.trim_end_matches('\n'));
    if omitted > 0 {
        let _ = write!(text, "\n… {omitted} more changed lines and lines around them");
    }
}
