//! Repeating what `/undo` or `/rewind` removed.

use std::fs;
use std::path::PathBuf;

use qwen_events::{ErrorInfo, ErrorKind, Message, PromptId};
use qwen_tools::SessionResources;
use qwen_tools::workspace::Workspace;

use super::Session;
use crate::log::{Log, note_written};

/// The most bytes of one file that are held for a redo; larger files are not restored.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The most steps that can be repeated.
const MAX_STEPS: usize = 8;

/// A conversation and files as they were before a step back.
pub(in crate::session) struct RemovedState {
    history: Vec<Message>,
    order: Vec<(PromptId, Option<usize>)>,
    /// The content of each file that the step changes; none for a file that did not exist.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

/// The result of a redo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedoReport {
    pub restored: Vec<PathBuf>,
    /// Files that could not be written.
    pub skipped: Vec<PathBuf>,
}

impl Session {
    /// Stores the conversation, and the files that a return to before `prompt` would change, for
    /// [`Session::redo`].
    pub fn remember_for_redo(&mut self, prompt: &PromptId, with_files: bool) {
        let changed =
            with_files.then(|| self.rewind(prompt.as_str(), true).ok()).flatten().unwrap_or_default();
        let read = |path: PathBuf| {
            let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_FILE);
            let content = is_small.then(|| fs::read(&path).ok()).flatten();
            (path, content)
        };
        let files = changed.restored.into_iter().chain(changed.removed).map(read).collect();
        if self.removed_states.len() == MAX_STEPS {
            self.removed_states.remove(0);
        }
        let (history, order) = (self.history.clone(), self.order.clone());
        self.removed_states.push(RemovedState { history, order, files });
    }

    /// Restores what the last step back removed. Fails if there was none since the last prompt.
    pub fn redo(&mut self) -> Result<RedoReport, ErrorInfo> {
        let Some(removed) = self.removed_states.pop() else {
            let message = "There is nothing to redo: no turn was undone since the last prompt.";
            return Err(ErrorInfo::new(ErrorKind::Input, "nothing_to_redo", message));
        };
        let mut report = RedoReport::default();
        let SessionResources { cwd, extra_roots, .. } = &*self.context.resources;
        let workspace = Workspace::new(cwd, extra_roots)
            .map_err(|error| ErrorInfo::new(ErrorKind::Input, "no_working_directory", error.to_string()))?;
        let copies = match self.log.as_ref().map(Log::location) {
            Some((Some(store), id)) => Some(store.files(&id)),
            _ => None,
        };
        for (path, content) in removed.files {
            let target = path.to_str().and_then(|name| workspace.target(name).ok());
            let done = match (target, &content) {
                (Some(target), Some(content)) => target.write(content).is_ok(),
                (Some(_) | None, None) | (None, Some(_)) => false,
            };
            if let (true, Some(copies), Some(content)) = (done, &copies, &content) {
                note_written(copies, &path, content);
            }
            if done {
                report.restored.push(path);
            } else {
                report.skipped.push(path);
            }
        }
        self.replace_history(removed.history);
        // The start indexes of the turns are valid for this conversation.
        self.order = removed.order;
        Ok(report)
    }
}
