//! The files that a turn changed: those that tools report, and those that commands changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use qwen_events::{Display, Timestamp, ToolEnd, ToolStatus};
use qwen_tools::tree_walk;

/// The maximum number of entries of the workspace that are looked at for changes by commands.
const MAX_ENTRIES: usize = 10_000;

/// How far the times of files may lag behind the clock, in milliseconds: one tick of most kernels.
const LAG: u64 = 4;

/// The changes of one turn. Nothing is read before they are listed.
#[derive(Default)]
pub struct ChangedFiles {
    cwd: PathBuf,
    reported: Vec<Arc<str>>,
    /// When commands ran, in milliseconds since the Unix epoch.
    commands: Vec<(u64, u64)>,
}

impl ChangedFiles {
    /// Starts over with a turn that works in `cwd`.
    pub fn begin(&mut self, cwd: &str) {
        *self = Self { cwd: cwd.into(), ..Self::default() };
    }

    /// Records a call that ended at `at`.
    pub fn record(&mut self, end: &ToolEnd, at: Timestamp) {
        match &end.display {
            Some(Display::FileDiff(diff))
                if end.status == ToolStatus::Success && !self.reported.contains(&diff.file_name) =>
            {
                self.reported.push(diff.file_name.clone());
            }
            _ if end.exit_code.is_some() => {
                self.commands.push((at.0.saturating_sub(end.duration_ms + LAG), at.0));
            }
            _ => {}
        }
    }

    /// The changed files: reported ones first, then those that changed while a command ran. Files that ignore
    /// files name are left out, and so are files that a command removed.
    pub fn list(&self) -> Vec<Arc<str>> {
        let mut all = self.reported.clone();
        if self.commands.is_empty() {
            return all;
        }
        let entries = tree_walk(&self.cwd).build().take(MAX_ENTRIES).flatten();
        let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let mut found: Vec<Arc<str>> = files
            .filter(|entry| self.is_changed(entry.path()))
            .map(|entry| {
                entry.path().strip_prefix(&self.cwd).unwrap_or(entry.path()).to_string_lossy().into()
            })
            .filter(|name| !all.contains(name))
            .collect();
        found.sort_unstable();
        all.append(&mut found);
        all
    }

    fn is_changed(&self, file: &Path) -> bool {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let since = modified.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let at = since.and_then(|since| u64::try_from(since.as_millis()).ok());
        at.is_some_and(|at| self.commands.iter().any(|(start, end)| (*start..=*end).contains(&at)))
    }
}
