//! Directories that file tools must keep out of.

use std::path::{Path, PathBuf};

use crate::paths::workspace::follow_links;

/// The names in our own directory that hold texts for the model, and no settings or sessions.
const TEXTS_FOR_THE_MODEL: [&str; 5] = ["QWEN.md", "agents", "commands", "output-styles", "skills"];

/// Directories that tools must keep out of, and the places inside them that are open to them.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateDirectories {
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

impl PrivateDirectories {
    pub(super) fn new(
        hidden: impl IntoIterator<Item = PathBuf>,
        shown: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let hidden: Vec<PathBuf> = hidden.into_iter().flat_map(both_forms).collect();
        let is_inside = |path: &PathBuf| hidden.iter().any(|hidden| path.starts_with(hidden));
        let shown = shown.into_iter().flat_map(both_forms).filter(is_inside).collect();
        Self { hidden, shown }
    }

    /// Everything in `directory`, where our settings and sessions are stored, except for the texts in it that
    /// are written for the model.
    pub(super) fn of_own_state(directory: &Path) -> Self {
        let hidden: Vec<PathBuf> = both_forms(directory.to_owned()).collect();
        let texts = hidden.iter().flat_map(|hidden| TEXTS_FOR_THE_MODEL.map(|name| hidden.join(name)));
        Self { shown: texts.collect(), hidden }
    }

    /// True if some of it is in a directory, or the directory is inside of it.
    pub(super) fn overlap(&self, directory: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.starts_with(directory) || directory.starts_with(hidden))
    }

    pub(super) fn contain(&self, path: &Path) -> bool {
        let is_below = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        is_below(&self.hidden) && !is_below(&self.shown)
    }
}

/// A path as written and as it really is, like the places that it is compared with.
fn both_forms(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    [follow_links(&path), Some(path)].into_iter().flatten()
}
