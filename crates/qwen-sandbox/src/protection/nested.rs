//! Protected names in directories below the workspace's roots: repositories, submodules, worktrees and
//! settings of agents. They are watched, not held by mounts, so that commands can remove and move the
//! directories they are in.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::policy::ProtectedName;
use crate::protection::directory::{DirectoryHandle, remove};
use crate::protection::discovery::ProtectedObjects;
use crate::protection::snapshot::{Restored, Snapshot};
use crate::protection::watch::{Findings, ProtectedRoot, ProtectionWatch, WatchScope, inspect};
use qwen_git::layout;

/// Most directories that are looked at, those near the root first.
const DIRECTORIES: usize = 1_000;
/// Most protected names that are watched.
const OBJECTS: usize = 64;
/// A directory that was listed so soon after a change may have changed again within the same time stamp.
const RECENT: Duration = Duration::from_millis(50);

/// The names that are looked for in every directory.
const NAMES: &[&str] = &[".git", ".qwen", ".mcp.json", ".claude"];

/// The directories of the workspace, listed again only if they changed.
#[derive(Debug, Default)]
pub(crate) struct NestedNames {
    listings: HashMap<PathBuf, Listing>,
    /// The protected names that were there when the command started.
    before: Vec<PathBuf>,
}

#[derive(Debug)]
struct Listing {
    modified: Option<SystemTime>,
    is_recent: bool,
    directories: Vec<OsString>,
    objects: Vec<OsString>,
}

impl NestedNames {
    /// Remembers what is there, for the end of a command.
    pub(crate) fn begin(&mut self, roots: &[PathBuf], watch: &mut ProtectionWatch) {
        self.before = self.find(roots);
        for root in roots {
            let names = self.before.iter().filter_map(|object| object.strip_prefix(root).ok());
            let (mut protected, mut pinned) = (Vec::new(), Vec::new());
            for name in names {
                match names_in(&root.join(name)) {
                    Some(inner) => protected.extend(
                        inner.into_iter().map(|inner| ProtectedName { name: name.join(inner.name), ..inner }),
                    ),
                    None => pinned.push(name.to_owned()),
                }
            }
            let root = ProtectedRoot { root: root.clone(), names: protected, pinned };
            watch.add(&[root], WatchScope::All);
        }
    }

    /// Looks at what a command made. What was moved is put back as it was, copies stay, and so does what git
    /// itself makes; everything else is removed.
    pub(crate) fn end(
        &mut self,
        roots: &[PathBuf],
        known: &ProtectedObjects,
        watch: &ProtectionWatch,
        found: &mut Findings,
    ) {
        let before = std::mem::take(&mut self.before);
        let now = self.find(roots);
        for object in now.iter().filter(|object| !before.contains(object)) {
            let Some(root) = roots.iter().find(|root| object.starts_with(root)) else { continue };
            let Some(parent) = object.parent() else { continue };
            if !watch.restore_moved(object, found) && !watch.restore_moved(parent, found) {
                examine(root, object, known, watch, found);
            }
        }
        self.before = before;
    }

    /// The protected names below the roots, level by level.
    fn find(&mut self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let mut queue: VecDeque<PathBuf> = roots.iter().cloned().collect();
        let mut listings = HashMap::with_capacity(self.listings.len());
        let mut objects = Vec::new();
        while let Some(directory) = queue.pop_front() {
            if listings.len() >= DIRECTORIES || objects.len() >= OBJECTS {
                break;
            }
            let Ok(meta) = fs::symlink_metadata(&directory) else { continue };
            if !meta.is_dir() || listings.contains_key(&directory) {
                continue;
            }
            let modified = meta.modified().ok();
            let listing = self.listings.remove(&directory);
            let listing = listing
                .filter(|known| !known.is_recent && known.modified.is_some() && known.modified == modified);
            let listing = listing.unwrap_or_else(|| Listing::read(&directory, modified));
            queue.extend(listing.directories.iter().map(|name| directory.join(name)));
            // The names in the roots themselves are held or have their own watch.
            if !roots.contains(&directory) {
                objects.extend(listing.objects.iter().map(|name| directory.join(name)));
            }
            listings.insert(directory, listing);
        }
        self.listings = listings;
        objects
    }
}

impl Listing {
    fn read(directory: &Path, modified: Option<SystemTime>) -> Self {
        let now = SystemTime::now();
        let is_recent =
            modified.is_none_or(|modified| now.duration_since(modified).unwrap_or_default() < RECENT);
        let (mut directories, mut objects) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if NAMES.iter().any(|known| name == *known) {
                objects.push(name);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(name);
            }
        }
        directories.sort_unstable();
        Self { modified, is_recent, directories, objects }
    }
}

/// The protected names in an object; none if it is protected as a whole.
fn names_in(object: &Path) -> Option<Vec<ProtectedName>> {
    let is_directory = fs::symlink_metadata(object).is_ok_and(|meta| meta.is_dir());
    let name = object.file_name().filter(|_| is_directory)?;
    if name == ".git" {
        return Some(ProtectedName::in_git_directory());
    }
    let settings = ProtectedName::settings().into_iter();
    let inner: Vec<_> = settings
        .filter_map(|protected| {
            let inner = protected.name.strip_prefix(name).ok()?.to_owned();
            (!inner.as_os_str().is_empty()).then_some(ProtectedName { name: inner, ..protected })
        })
        .collect();
    (!inner.is_empty()).then_some(inner)
}

/// Looks at a protected name that was not there when the command started.
fn examine(
    root: &Path,
    object: &Path,
    known: &ProtectedObjects,
    watch: &ProtectionWatch,
    found: &mut Findings,
) {
    let (Ok(place), Ok(name)) = (DirectoryHandle::open(root), object.strip_prefix(root)) else { return };
    // The protected name of the same kind in the root, which the command could not change.
    let is_copy = |below: &DirectoryHandle, directory: &Path, name: &OsStr| {
        let content = Snapshot::capture(below, name);
        let at_root = place.open_below(directory).map(|root| Snapshot::capture(&root, name));
        at_root.is_ok_and(|at_root| at_root.has_same_content(&content)) || watch.is_copy(name, &content)
    };
    match (names_in(object), place.open_below(name)) {
        (Some(names), Ok(below)) => {
            for inner in names {
                let Some(file) = inner.name.file_name() else { continue };
                if !is_copy(&below, Path::new(name.file_name().unwrap_or_default()), file) {
                    found.add(object.join(file), inspect(&place, name, &below, file));
                }
            }
        }
        _ => {
            let (Some(parent), Some(file)) = (name.parent(), name.file_name()) else { return };
            let Ok(below) = place.open_below(parent) else { return };
            // A worktree or submodule of a repository that is protected itself.
            let belongs = file == ".git"
                && fs::symlink_metadata(object).is_ok_and(|meta| meta.is_file())
                && layout::directory(&root.join(parent))
                    .is_some_and(|directory| known.is_git_directory(&directory));
            if !belongs && !is_copy(&below, Path::new(""), file) {
                found.add(object.to_owned(), Restored::undone(&remove(&below.name(file))));
            }
        }
    }
}
