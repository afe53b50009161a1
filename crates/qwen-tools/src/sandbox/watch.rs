//! Looking after protected names that the kernel does not hold: what a command did to them is undone when it ends.
//!
//! That is all there is where mount namespaces cannot be made. Where they can, it is left for what has no mount to
//! stand behind: a repository that a command makes (`git init` is fine, a hook in it is not), and files whose mere
//! presence means something.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::git;
use super::memory::{Memory, Mended};
use super::place::{Place, remove};
use super::policy::Protected;

/// A directory with protected names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guarded {
    pub root: PathBuf,
    pub names: Vec<Protected>,
}

/// Something that a sandboxed command did to a protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampered {
    /// The name.
    pub path: PathBuf,
    /// It is as it was before.
    pub undone: bool,
}

impl fmt::Display for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.undone { "that was undone" } else { "that could not be undone: look at it" };
        write!(f, "the command changed {}, which is protected; {end}", self.path.display())
    }
}

/// What protected names held when a command started.
#[derive(Debug, Default)]
pub(super) struct Watch {
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    root: PathBuf,
    name: PathBuf,
    before: Before,
}

#[derive(Debug)]
enum Before {
    /// What the name held.
    Held(Memory),
    /// There was no repository, which is the name's parent.
    NoRepository,
}

impl Watch {
    /// Remembers what has to be looked after. Names that are there are left out where the kernel holds them.
    pub(super) fn begin(guarded: &[Guarded], kernel_holds: bool) -> Self {
        let mut items = Vec::new();
        for Guarded { root, names } in guarded {
            let Ok(place) = Place::open(root) else { continue };
            for Protected { name, .. } in names {
                let Some((parent, last)) = name.parent().zip(name.file_name()) else { continue };
                let before = match place.below(parent) {
                    Ok(parent) => {
                        let there = std::fs::symlink_metadata(parent.name(last)).is_ok();
                        (!(kernel_holds && there)).then(|| Before::Held(Memory::of(&parent, last)))
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Before::NoRepository),
                    // A worktree's `.git` is a file, and what is below a link lies elsewhere.
                    Err(_) => None,
                };
                items.extend(before.map(|before| Item { root: root.clone(), name: name.clone(), before }));
            }
        }
        Self { items }
    }

    /// Looks at everything again, undoes what changed and says so.
    pub(super) fn end(&self) -> Vec<Tampered> {
        let mut tampered = Vec::new();
        for item in &self.items {
            let Some((path, mended)) = item.mend() else { continue };
            if mended != Mended::Unchanged && !tampered.iter().any(|known: &Tampered| known.path == path) {
                tampered.push(Tampered { path, undone: mended == Mended::Undone });
            }
        }
        tampered
    }
}

impl Item {
    /// Looks at the name again. Gives back which path was found in which state; none when there is nothing to look at.
    fn mend(&self) -> Option<(PathBuf, Mended)> {
        let place = Place::open(&self.root).ok()?;
        let (parent, last) = self.name.parent().zip(self.name.file_name())?;
        let below = match place.below(parent) {
            Ok(below) => below,
            // Gone with all that was in it: nothing acts on what is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            // No directory any more: a file or link in its place could lead anywhere.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                // Only a name right in the root is sure to be reached through no link.
                let direct = parent.components().count() == 1;
                let removed = direct.then(|| Mended::undone(&remove(&place.name(parent.as_os_str()))));
                return Some((self.root.join(parent), removed.unwrap_or(Mended::Remains)));
            }
            Err(_) => return Some((self.root.join(parent), Mended::Remains)),
        };
        let path = self.root.join(&self.name);
        match &self.before {
            Before::Held(memory) => Some((path, memory.mend(&below, last))),
            Before::NoRepository => Some((path, inspect(&place, parent, &below, last))),
        }
    }
}

/// Looks at a name in a repository that was not there before. What git itself puts there may stay.
fn inspect(place: &Place, parent: &Path, repository: &Place, name: &OsStr) -> Mended {
    let path = repository.name(name);
    let Ok(meta) = std::fs::symlink_metadata(&path) else { return Mended::Unchanged };
    let is_repository = ["objects", "refs"].iter().all(|dir| repository.below(Path::new(dir)).is_ok())
        && std::fs::symlink_metadata(repository.name(OsStr::new("HEAD"))).is_ok_and(|head| head.is_file());
    if is_repository && name == "hooks" && meta.is_dir() {
        return remove_active_hooks(repository);
    }
    if is_repository && name == "config" && meta.is_file() {
        let describes = std::fs::read_to_string(&path).is_ok_and(|config| git::only_describes(&config));
        return if describes { Mended::Unchanged } else { Mended::undone(&remove(&path)) };
    }
    let mended = Mended::undone(&remove(&path));
    // Nothing but the attempt was in it, if this works.
    let _ = std::fs::remove_dir(place.name(parent.as_os_str()));
    mended
}

/// Leaves the examples that git copies into a new repository, which it never runs.
fn remove_active_hooks(repository: &Place) -> Mended {
    let Ok(hooks) = repository.below(Path::new("hooks")) else { return Mended::Remains };
    let Ok(names) = hooks.names() else { return Mended::Remains };
    let mut mended = Mended::Unchanged;
    for name in names {
        let path = hooks.name(&name);
        let example = Path::new(&name).extension().is_some_and(|extension| extension == "sample");
        if !(example && std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file())) {
            mended = mended.and(Mended::undone(&remove(&path)));
        }
    }
    mended
}
