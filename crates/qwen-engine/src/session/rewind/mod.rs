//! Restoring files to their state before a turn.

mod redo;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{Body, ErrorInfo, ErrorKind, PromptId, Role, ToolCall, ToolStatus};
use qwen_tools::SessionResources;
use qwen_tools::workspace::{PathError, Workspace};

use super::Session;
use crate::log::{
    EntryBody, FileBackup, FileBefore, Log, LogError, fingerprint, note_written, read_fingerprints,
};

pub use redo::RedoReport;
pub(super) use redo::RemovedState;

/// The result of a rewind, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindReport {
    /// Files whose old content was restored.
    pub restored: Vec<PathBuf>,
    /// Files that were removed because they did not exist before.
    pub removed: Vec<PathBuf>,
    /// Files left unchanged because a link replaced them, because they could not be backed up, or because
    /// they cannot be written.
    pub skipped: Vec<PathBuf>,
    /// Files left unchanged because they were edited after the agent wrote them.
    pub edited: Vec<PathBuf>,
    /// Commands that ran; their effects are not undone.
    pub commands: Vec<String>,
}

impl Session {
    /// Restores the files that the agent changed to their state before a prompt, identified by the client's
    /// message id or by its `prompt_id`. With `dry_run`, only reports what would happen. The conversation
    /// does not change.
    pub fn rewind(&self, prompt: &str, dry_run: bool) -> Result<RewindReport, ErrorInfo> {
        let unknown = || {
            let message = format!("there is no prompt '{prompt}' in this session to restore files from");
            ErrorInfo::new(ErrorKind::Input, "unknown_message", message).with_param("message_id")
        };
        let Some(log) = &self.log else {
            let message = "this session is not stored, so there are no files to restore";
            return Err(ErrorInfo::new(ErrorKind::Input, "not_kept", message));
        };
        let (Some(store), id) = log.location() else { return Err(LogError::NotOnDisk.into()) };
        let Changes { files: changed, commands } = match store.read(&id) {
            Ok(reader) => changed_since(reader, prompt)?.ok_or_else(unknown)?,
            // The session has no prompt yet.
            Err(LogError::Unknown(_)) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        let SessionResources { cwd, extra_roots, .. } = &*self.context.resources;
        let workspace = Workspace::new(cwd, extra_roots)
            .map_err(|error| ErrorInfo::new(ErrorKind::Input, "no_working_directory", error.to_string()))?;
        let copies = store.files(&id);
        let written = read_fingerprints(&copies);
        let mut rewound = RewindReport { commands, ..RewindReport::default() };
        for file in changed {
            let FileBackup { path, was } = &file;
            match restore_file(&workspace, &copies, path, was, written.get(path), dry_run) {
                Ok(Done::Restored) => rewound.restored.push(file.path),
                Ok(Done::Removed) => rewound.removed.push(file.path),
                Ok(Done::Same) => {}
                Ok(Done::Edited) => rewound.edited.push(file.path),
                Err(()) => rewound.skipped.push(file.path),
            }
        }
        Ok(rewound)
    }
}

/// A prompt that the session can return to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    pub prompt_id: PromptId,
    pub message: Arc<str>,
}

impl Session {
    /// The prompts of the conversation, oldest first. Without a log there are none.
    pub fn rewind_points(&self) -> Vec<RewindPoint> {
        let Some((Some(store), id)) = self.log.as_ref().map(Log::location) else { return Vec::new() };
        let Ok(mut reader) = store.read(&id) else { return Vec::new() };
        let mut points: Vec<RewindPoint> = Vec::new();
        // A log that becomes unreadable still has the prompts that were read.
        while let Ok(Some(entry)) = reader.next_entry() {
            if let EntryBody::Event(Body::TurnStart(start)) = entry.what
                && entry.scope.parent.is_none()
                && self.order.iter().any(|(prompt, _)| *prompt == start.prompt_id)
                && points.iter().all(|point| point.prompt_id != start.prompt_id)
            {
                points.push(RewindPoint { prompt_id: start.prompt_id, message: start.message });
            }
        }
        points
    }

    /// Returns the conversation to its state before a prompt. Files do not change.
    pub fn rewind_conversation(&mut self, prompt: &PromptId) -> Result<(), ErrorInfo> {
        self.close_interrupted();
        let Some(at) = self.order.iter().position(|(known, _)| known == prompt) else {
            let message = format!("there is no prompt '{prompt}' in this conversation to go back to");
            return Err(ErrorInfo::new(ErrorKind::Input, "unknown_message", message));
        };
        let is_user = |at: &usize| self.history.get(*at).is_some_and(|message| message.role == Role::User);
        let earlier = match self.order[at].1.filter(is_user) {
            Some(begins) => self.history[..begins].to_vec(),
            None => match self.log.as_ref().map(Log::location) {
                Some((Some(store), id)) => store.fold_before(&id, prompt)?.messages,
                _ => return Err(LogError::NotOnDisk.into()),
            },
        };
        let remaining = self.order[..at].to_vec();
        self.replace_history(earlier);
        // The start indexes of the remaining turns are still valid.
        self.order = remaining;
        Ok(())
    }
}

enum Done {
    Restored,
    Removed,
    Same,
    Edited,
}

/// The changes since a prompt.
#[derive(Default)]
struct Changes {
    /// Each file's earliest backup.
    files: Vec<FileBackup>,
    commands: Vec<String>,
}

/// The changes since a prompt; `None` if the prompt does not exist.
fn changed_since(mut reader: crate::log::LogReader, prompt: &str) -> Result<Option<Changes>, LogError> {
    let mut changes: Option<Changes> = None;
    while let Some(entry) = reader.next_entry()? {
        match entry.what {
            EntryBody::Event(Body::TurnStart(start)) => {
                let named =
                    start.prompt_id.as_str() == prompt || start.message_uuid.as_deref() == Some(prompt);
                if named && changes.is_none() {
                    changes = Some(Changes::default());
                }
            }
            EntryBody::Event(Body::ToolEnd(end)) => {
                let ran =
                    matches!(end.status, ToolStatus::Success | ToolStatus::Error | ToolStatus::Cancelled);
                if let Some(changes) = changes.as_mut().filter(|_| ran) {
                    changes.commands.extend(command(&end.call));
                }
            }
            EntryBody::File(file) => {
                if let Some(changes) = &mut changes
                    && !changes.files.iter().any(|known| known.path == file.path)
                {
                    changes.files.push(file);
                }
            }
            _ => {}
        }
    }
    Ok(changes)
}

/// The command line that a call ran.
fn command(call: &ToolCall) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    (crate::TOOLS.canonical_name(&call.name) == "run_shell_command")
        .then(|| arguments["command"].as_str().map(str::to_owned))?
}

fn restore_file(
    workspace: &Workspace,
    copies: &Path,
    path: &Path,
    was: &FileBefore,
    written: Option<&String>,
    dry_run: bool,
) -> Result<Done, ()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(());
    }
    let target = workspace.target(path.to_str().ok_or(())?).map_err(drop_reason)?;
    // Content that differs from what the agent wrote was edited by others. A file that is gone has no edits
    // to lose.
    let is_ours = |now: &[u8]| written.is_some_and(|written| *written == fingerprint(now));
    match was {
        FileBefore::Lost => Err(()),
        FileBefore::Absent if target.existing.is_none() => Ok(Done::Same),
        FileBefore::Absent => {
            if !fs::read(path).is_ok_and(|now| is_ours(&now)) {
                return Ok(Done::Edited);
            }
            if !dry_run {
                target.remove().map_err(drop_reason)?;
            }
            Ok(Done::Removed)
        }
        FileBefore::Kept { name, bytes, mode } => {
            let content = fs::read(copies.join(name)).map_err(|_| ())?;
            if content.len() as u64 != *bytes {
                return Err(());
            }
            if target.existing.is_some() {
                match fs::read(path) {
                    Ok(now) if now == content => return Ok(Done::Same),
                    Ok(now) if is_ours(&now) => {}
                    Ok(_) => return Ok(Done::Edited),
                    Err(_) => return Err(()),
                }
            }
            if !dry_run {
                let gone = target.existing.is_none();
                target.write(&content).map_err(drop_reason)?;
                note_written(copies, path, &content);
                if gone {
                    let mode = std::os::unix::fs::PermissionsExt::from_mode(*mode);
                    // The content is restored; restoring the permissions is best effort.
                    let _ = fs::set_permissions(path, mode);
                }
            }
            Ok(Done::Restored)
        }
    }
}

/// The report lists the skipped files without a reason for each.
fn drop_reason(_: PathError) {}
