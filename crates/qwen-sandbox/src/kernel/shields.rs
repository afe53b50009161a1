//! Mounts over single paths: covers for paths that may not be read, and read-only copies of paths that may
//! not be changed. They are raised when the namespace is created and whenever it is entered. Every command
//! checks them, because a file that is replaced from outside loses its mount.

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

use crate::kernel::covers::{CoverName, PLAIN_DIRECTORY, PLAIN_FILE};
use crate::kernel::{self, Outcome, SymlinkMode};

/// How often a path that changes concurrently is retried.
const ATTEMPTS: u32 = 3;

/// The paths, ready for use between fork and exec.
#[derive(Debug, Default)]
pub(crate) struct Shields {
    /// May not be read.
    pub hidden: Vec<HiddenShield>,
    /// May not be changed; parents come first.
    pub held: Vec<ReadOnlyPath>,
}

/// A path that commands cannot read.
#[derive(Debug)]
pub(crate) struct HiddenShield {
    pub path: CString,
    /// What it looks like; none if only its kind matters.
    pub cover: Option<CoverName>,
}

/// A path that commands cannot change.
#[derive(Debug)]
pub(crate) struct ReadOnlyPath {
    pub path: CString,
    /// A directory with writable content: only its own name is protected.
    pub name_only: bool,
    /// If it is a placeholder, git must ignore it: `git clean` and `git stash -u` would try to remove it.
    pub is_ignored: bool,
}

/// The mounts that cover other paths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Covers {
    /// The directory of the covers.
    pub hidden: RawFd,
    /// A directory that git takes for another repository, for placeholders: `git clean -x` leaves it alone.
    pub ignored: RawFd,
}

/// Whether existing mounts may be ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamespaceAge {
    /// The namespace is new: all existing mounts come from outside.
    New,
    /// Commands have used the namespace before.
    Again,
}

impl Shields {
    /// Raises every shield that is not up. Runs between fork and exec.
    pub(crate) fn raise(&self, covers: Covers, occasion: NamespaceAge) -> Outcome {
        for hidden in &self.hidden {
            retry_if_gone(|| cover(&hidden.path, hidden.cover.as_ref(), covers, occasion))?;
        }
        for held in &self.held {
            retry_if_gone(|| hold(held, covers, SymlinkMode::Keep, occasion))?;
        }
        Ok(())
    }

    /// Fails if a path exists without its shield. Runs between fork and exec.
    pub(crate) fn are_up(&self) -> Outcome {
        let hidden = self.hidden.iter().map(|hidden| (&hidden.path, SymlinkMode::Follow));
        for (path, links) in hidden.chain(self.held.iter().map(|held| (&held.path, SymlinkMode::Keep))) {
            if unshielded(path, links, NamespaceAge::Again)?.is_some() {
                return Err(libc::ESTALE);
            }
        }
        Ok(())
    }
}

/// Retries if the path disappeared in between.
fn retry_if_gone(mut shield: impl FnMut() -> Outcome) -> Outcome {
    let mut attempt = 1;
    loop {
        match shield() {
            Err(libc::ENOENT | libc::ESTALE | libc::EINVAL) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

/// Covers a hidden path.
pub(crate) fn cover(
    path: &CStr,
    wanted: Option<&CoverName>,
    covers: Covers,
    occasion: NamespaceAge,
) -> Outcome {
    let Some(found) = unshielded(path, SymlinkMode::Follow, occasion)? else { return Ok(()) };
    let is_directory = found.is(libc::S_IFDIR);
    let plain = if is_directory { PLAIN_DIRECTORY } else { PLAIN_FILE };
    // The kind may have changed since the covers were made.
    let wanted = wanted.filter(|cover| cover.is_directory == is_directory);
    let name = wanted.map_or(plain, |cover| cover.name.as_c_str());
    put(kernel::clone_named(covers.hidden, name)?, path, SymlinkMode::Follow)
}

/// Mounts a path over itself, so that its name cannot be moved, and makes it read-only unless `name_only` is
/// set. For a link, both the link and its target are protected.
fn hold(held: &ReadOnlyPath, covers: Covers, links: SymlinkMode, occasion: NamespaceAge) -> Outcome {
    let Some(found) = unshielded(&held.path, links, occasion)? else { return Ok(()) };
    let is_placeholder = held.is_ignored
        && found.is(libc::S_IFDIR)
        && found.has_sticky_bit()
        && kernel::is_empty_directory(&held.path)?;
    let tree = if is_placeholder {
        kernel::clone_descriptor(covers.ignored)?
    } else {
        kernel::clone_tree(&held.path, links)?
    };
    if !(held.name_only && found.is(libc::S_IFDIR))
        && let Err(error) = kernel::make_read_only(tree)
    {
        kernel::close(tree);
        return Err(error);
    }
    put(tree, &held.path, links)?;
    if found.is(libc::S_IFLNK) { hold(held, covers, SymlinkMode::Follow, occasion) } else { Ok(()) }
}

/// Returns the status of a path, unless it is missing or already shielded.
fn unshielded(
    path: &CStr,
    links: SymlinkMode,
    occasion: NamespaceAge,
) -> Outcome<Option<kernel::PathStatus>> {
    match kernel::find(path, links) {
        Ok(found) if found.mounted && occasion == NamespaceAge::Again => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn put(tree: RawFd, path: &CStr, links: SymlinkMode) -> Outcome {
    let outcome = kernel::attach(tree, path, links);
    kernel::close(tree);
    outcome
}
