//! The commit that is checked out, and moving a branch back to it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::settings::read_bounded;

/// `HEAD` and the commit that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The text of the file `HEAD`.
    text: String,
    /// The branch, such as `refs/heads/main`; `None` if a commit is checked out directly.
    branch: Option<String>,
    /// The branch's commit; `None` before its first one.
    commit: Option<String>,
}

impl Head {
    /// Reads it. `common` is the directory that worktrees share. `None` if it is not as git writes it.
    pub fn read(git_directory: &Path, common: &Path) -> Option<Self> {
        let text = read_bounded(&git_directory.join("HEAD"))?;
        let branch = text.strip_prefix("ref: ").map(|name| name.trim_end().to_owned());
        let is_plain = |name: &String| name.starts_with("refs/") && !name.split('/').any(|part| part == "..");
        if branch.as_ref().is_some_and(|name| !is_plain(name)) {
            return None;
        }
        let commit = branch.as_ref().and_then(|name| find_commit(common, name));
        Some(Self { text, branch, commit })
    }

    /// Moves the branch back to this commit and checks the branch out again, without touching files. Returns
    /// false if that is not possible.
    pub fn put_back(&self, git_directory: &Path, common: &Path) -> bool {
        let now = Self::read(git_directory, common);
        if now.as_ref() == Some(self) {
            return true;
        }
        let is_moved = read_bounded(&git_directory.join("HEAD")).as_ref() != Some(&self.text);
        let head = !is_moved || replace(&git_directory.join("HEAD"), &self.text);
        let (Some(branch), Some(commit)) = (&self.branch, &self.commit) else { return head };
        head && (find_commit(common, branch).as_ref() == Some(commit)
            || replace(&common.join(branch), &format!("{commit}\n")))
    }
}

/// The commit of a reference, from its own file or from the common one.
fn find_commit(common: &Path, name: &str) -> Option<String> {
    if let Some(text) = read_bounded(&common.join(name)) {
        return Some(text.trim_end().to_owned());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, packed)| *packed == name).map(|(commit, _)| commit.to_owned())
}

/// Replaces a file under git's lock. Fails if a link leads there.
fn replace(file: &Path, text: &str) -> bool {
    let Some(parent) = file.parent().filter(|parent| is_real(parent)) else { return false };
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let Ok(mut open) = OpenOptions::new().write(true).create_new(true).open(&lock) else { return false };
    let written = open.write_all(text.as_bytes()).and_then(|()| fs::rename(&lock, file));
    if written.is_err() {
        // The lock is ours.
        let _ = fs::remove_file(&lock);
    }
    written.is_ok() && is_real(parent)
}

/// True if a directory exists and no link is on the way to it.
pub(crate) fn is_real(directory: &Path) -> bool {
    directory.canonicalize().is_ok_and(|real| real == directory)
}
