//! Directories as they are, to be compared with what they were.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything below a directory by its path: what kind of thing it is, its permissions and what is in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Tree {
    /// What is below these directories now. Nothing is opened that is not a plain file.
    pub fn of<'a>(directories: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut found = BTreeMap::new();
        for directory in directories {
            walk(directory, &mut found);
        }
        Self(found)
    }

    /// The paths that are not what they were in `earlier`.
    pub fn changed_since<'a>(&'a self, earlier: &'a Self) -> Vec<&'a Path> {
        let differs = |path: &&PathBuf| self.0.get(*path) != earlier.0.get(*path);
        self.0.keys().chain(earlier.0.keys()).filter(differs).map(PathBuf::as_path).collect()
    }
}

fn walk(directory: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Our own records, and git's index, which git refreshes as it reads.
        if path.ends_with(".qwen/sessions") || path.ends_with(".git/index") {
            continue;
        }
        // What was there a moment ago may be gone.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let content = if metadata.is_file() {
            fs::read(&path).unwrap_or_default()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .map(|target| target.into_os_string().into_encoded_bytes())
                .unwrap_or_default()
        } else {
            Vec::new()
        };
        if metadata.is_dir() {
            walk(&path, found);
        }
        found.insert(path, (metadata.mode(), content));
    }
}
