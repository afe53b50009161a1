//! Walks a directory tree. Skips ignored files, does not follow symbolic links, and stops when cancelled.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::refusal::Refusal;
use crate::tree_walk::tree_walk;
use crate::workspace::{Opened, PathError, Workspace};
use crate::{ArgumentError, Arguments, CallContext, MayShow};

/// Maximum depth of a walk.
const DEEPEST: usize = 100;

/// Where a walk starts: a directory, or a single file.
pub(super) struct Start {
    /// The directory that is walked through.
    pub directory: Opened,
    /// The single file to visit, relative to the directory; `None` for a whole tree.
    pub only: Option<PathBuf>,
    may_show: Option<MayShow>,
}

impl Start {
    /// Opens `path`, or the working directory if it is absent.
    pub(super) fn open(
        workspace: &Workspace,
        path: Option<&str>,
        cx: &CallContext,
    ) -> Result<Self, PathError> {
        let may_show = cx.session.may_show.clone();
        let path = path.unwrap_or(".");
        match workspace.open_directory(path) {
            Err(PathError::NotDirectory(_)) => {
                let file = workspace.open_file(path)?;
                let parent = file.path.parent().unwrap_or(Path::new("/"));
                let directory = workspace.open_directory(&parent.to_string_lossy())?;
                Ok(Self { directory, only: file.path.file_name().map(PathBuf::from), may_show })
            }
            directory => Ok(Self { directory: directory?, only: None, may_show }),
        }
    }

    /// True if a file may be shown, by its path relative to the directory.
    pub(super) fn may_show(&self, file: &Path) -> bool {
        let directory = &self.directory.path;
        self.may_show.as_ref().is_none_or(|may_show| may_show(directory, &directory.join(file)))
    }

    /// Passes every regular file below, as a path relative to the directory, to one of several concurrent
    /// visitors. `visitor` creates one per thread. The order is unspecified.
    pub(super) fn each_file<V: FnMut(&Path) + Send>(
        &self,
        cancel: &CancellationToken,
        visitor: impl Fn() -> V,
    ) {
        if let Some(only) = &self.only {
            visitor()(only);
            return;
        }
        let root = &self.directory.path;
        walk(root).build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                // What cannot be looked into is passed over.
                if let Ok(entry) = entry
                    && entry.file_type().is_some_and(|kind| kind.is_file())
                    && let Ok(file) = entry.path().strip_prefix(root)
                {
                    visit(file);
                }
                WalkState::Continue
            })
        });
    }

    /// All regular files below, relative to the directory and sorted by name.
    pub(super) fn files(&self, cancel: &CancellationToken) -> impl Iterator<Item = PathBuf> {
        let root = self.directory.path.clone();
        let only = self.only.clone();
        let walk = only.is_none().then(|| walk(&root).sort_by_file_name(Ord::cmp).build());
        let cancel = cancel.clone();
        walk.into_iter()
            .flatten()
            .take_while(move |_| !cancel.is_cancelled())
            // What cannot be looked into is passed over.
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter_map(move |entry| entry.path().strip_prefix(&root).map(Path::to_owned).ok())
            .chain(only)
    }
}

fn walk(root: &Path) -> WalkBuilder {
    let mut builder = tree_walk(root);
    builder.max_depth(Some(DEEPEST));
    builder
}

/// Compiles a path glob. Braces list alternatives; `*` does not match `/`, `**` does.
pub(super) fn pattern(arguments: &Arguments, field: &str, text: &str) -> Result<GlobMatcher, ArgumentError> {
    match GlobBuilder::new(text).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(arguments.refuse(field, format_args!("is not a valid pattern: {error}"))),
    }
}

/// Runs a search on a blocking thread, and ends it soon after a cancel.
pub(super) async fn run_search<T: Send + 'static>(
    cx: &CallContext,
    search: impl FnOnce(&CancellationToken) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let cancel = cx.cancel.clone();
    match tokio::task::spawn_blocking(move || search(&cancel)).await {
        Ok(found) => found,
        Err(error) => Err(Refusal::new("internal_error", format!("The search broke off: {error}."))),
    }
}
