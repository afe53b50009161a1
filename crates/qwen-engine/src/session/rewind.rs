//! Putting files back to where they were before a turn.

use std::fs;
use std::path::{Path, PathBuf};

use qwen_events::{Body, ErrorInfo, ErrorKind};
use qwen_tools::workspace::{PathError, Workspace};

use super::Session;
use crate::log::{EntryBody, FileBackup, FileBefore, LogError};

/// What was put back, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindReport {
    /// Files that have their old content again.
    pub restored: Vec<PathBuf>,
    /// Files that are gone again.
    pub removed: Vec<PathBuf>,
    /// Files that were left as they are: because a link stands in their place, because what they were could not be
    /// kept, or because they cannot be written.
    pub skipped: Vec<PathBuf>,
}

impl Session {
    /// Puts the files that the agent changed back to where they were before a prompt, which is named by the client's id
    /// of it or by its `prompt_id`; with `dry_run` only says what would happen. The conversation stays as it is.
    pub fn rewind(&self, prompt: &str, dry_run: bool) -> Result<RewindReport, ErrorInfo> {
        let unknown = || {
            let message = format!("there is no prompt '{prompt}' in this session to put files back to");
            ErrorInfo::new(ErrorKind::Input, "unknown_message", message).with_param("message_id")
        };
        let Some(log) = &self.log else {
            let message = "this session is not kept, so there are no files to put back";
            return Err(ErrorInfo::new(ErrorKind::Input, "not_kept", message));
        };
        let (Some(store), id) = log.place() else { return Err(LogError::NotOnDisk.into()) };
        let changed = match store.read(&id) {
            Ok(reader) => changed_since(reader, prompt)?.ok_or_else(unknown)?,
            // Nothing was said yet.
            Err(LogError::Unknown(_)) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        let place = &self.setup.place;
        let workspace = Workspace::new(&place.cwd, &place.extra_roots)
            .map_err(|error| ErrorInfo::new(ErrorKind::Input, "no_working_directory", error.to_string()))?;
        let copies = store.files(&id);
        let mut rewound = RewindReport::default();
        for file in changed {
            let FileBackup { path, was } = &file;
            match put_back(&workspace, &copies, path, was, dry_run) {
                Ok(Done::Restored) => rewound.restored.push(file.path),
                Ok(Done::Removed) => rewound.removed.push(file.path),
                Ok(Done::Same) => {}
                Err(()) => rewound.skipped.push(file.path),
            }
        }
        Ok(rewound)
    }
}

enum Done {
    Restored,
    Removed,
    Same,
}

/// The files that changed since a prompt, each as it was first; none when there is no such prompt.
fn changed_since(mut reader: crate::log::Reader, prompt: &str) -> Result<Option<Vec<FileBackup>>, LogError> {
    let mut changed: Option<Vec<FileBackup>> = None;
    while let Some(entry) = reader.next_entry()? {
        match entry.what {
            EntryBody::Event(Body::TurnStart(start)) => {
                let named =
                    start.prompt_id.as_str() == prompt || start.message_uuid.as_deref() == Some(prompt);
                if named && changed.is_none() {
                    changed = Some(Vec::new());
                }
            }
            EntryBody::File(file) => {
                if let Some(changed) = &mut changed
                    && !changed.iter().any(|known| known.path == file.path)
                {
                    changed.push(file);
                }
            }
            _ => {}
        }
    }
    Ok(changed)
}

fn put_back(
    workspace: &Workspace,
    copies: &Path,
    path: &Path,
    was: &FileBefore,
    dry_run: bool,
) -> Result<Done, ()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(());
    }
    let target = workspace.target(path.to_str().ok_or(())?).map_err(drop_reason)?;
    match was {
        FileBefore::Lost => Err(()),
        FileBefore::Absent if target.existing.is_none() => Ok(Done::Same),
        FileBefore::Absent => {
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
            if target.existing.is_some() && fs::read(path).is_ok_and(|now| now == content) {
                return Ok(Done::Same);
            }
            if !dry_run {
                let gone = target.existing.is_none();
                target.write(&content).map_err(drop_reason)?;
                if gone {
                    let mode = std::os::unix::fs::PermissionsExt::from_mode(*mode);
                    // What it says is back; how it may be used is a courtesy.
                    let _ = fs::set_permissions(path, mode);
                }
            }
            Ok(Done::Restored)
        }
    }
}

/// Whoever asked is told which files were left, not why each.
fn drop_reason(_: PathError) {}
