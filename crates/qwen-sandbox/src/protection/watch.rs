//! Watches protected names that the kernel does not protect: changes by a command are undone when it ends.
//!
//! Without mount namespaces this is the only protection. With them it covers what no mount can protect: a
//! repository that a command makes (`git init` is fine, a hook in it is not), and files whose mere presence
//! means something.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::policy::ProtectedName;
use crate::protection::directory::{DirectoryHandle, remove};
use crate::protection::git;
use crate::protection::snapshot::{Restored, Snapshot};

/// A directory with protected names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedRoot {
    pub root: PathBuf,
    pub names: Vec<ProtectedName>,
}

/// Something that a sandboxed command did to a protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampering {
    /// The name.
    pub path: PathBuf,
    /// It is as it was before.
    pub undone: bool,
}

impl fmt::Display for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.undone { "that was undone" } else { "that could not be undone: look at it" };
        write!(f, "the command changed {}, which is protected; {end}", self.path.display())
    }
}

/// What protected names held when a command started.
#[derive(Debug, Default)]
pub(crate) struct ProtectionWatch {
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    place: DirectoryHandle,
    parents: Vec<Parent>,
}

/// Protected names in the same directory.
#[derive(Debug)]
struct Parent {
    /// Relative to the root.
    path: PathBuf,
    before: Before,
}

#[derive(Debug)]
enum Before {
    /// What the names held.
    ReadOnlyPath(Vec<(OsString, Snapshot)>),
    /// There was no repository, which is what the directory would be.
    NoRepository(Vec<OsString>),
}

impl ProtectionWatch {
    /// Remembers what has to be looked after. Names that are there are left out where the kernel holds them.
    pub(crate) fn begin(guarded: &[ProtectedRoot], kernel_holds: bool) -> Self {
        let mut roots = Vec::new();
        for ProtectedRoot { root, names } in guarded {
            let Ok(place) = DirectoryHandle::open(root) else { continue };
            let mut parents: Vec<Parent> = Vec::new();
            for parent in names.iter().filter_map(|protected| protected.name.parent()) {
                if parents.iter().all(|known| known.path != parent) {
                    let names = names.iter().map(|protected| protected.name.as_path());
                    let names = names.filter(|name| name.parent() == Some(parent));
                    let before = before(&place, parent, names.filter_map(Path::file_name), kernel_holds);
                    parents.extend(before.map(|before| Parent { path: parent.to_owned(), before }));
                }
            }
            roots.push(Root { path: root.clone(), place, parents });
        }
        Self { roots }
    }

    /// Checks everything again, undoes changes and returns them.
    pub(crate) fn end(&self) -> Vec<Tampering> {
        let mut tampered: Vec<Tampering> = Vec::new();
        let mut found = |path: PathBuf, mended: Restored| {
            if mended != Restored::Unchanged && !tampered.iter().any(|known| known.path == path) {
                tampered.push(Tampering { path, undone: mended == Restored::Undone });
            }
        };
        for root in &self.roots {
            for parent in &root.parents {
                parent.mend(root, &mut found);
            }
        }
        tampered
    }
}

/// What there is to remember of these names; none when there is nothing to look after.
fn before<'a>(
    place: &DirectoryHandle,
    parent: &Path,
    names: impl Iterator<Item = &'a OsStr>,
    kernel_holds: bool,
) -> Option<Before> {
    match place.below(parent) {
        Ok(below) => {
            let names = names.filter(|name| !kernel_holds || below.lacks(name));
            Some(Before::ReadOnlyPath(
                names.map(|name| (name.to_owned(), Snapshot::of(&below, name))).collect(),
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(Before::NoRepository(names.map(OsStr::to_owned).collect()))
        }
        // A worktree's `.git` is a file, and what is below a link lies elsewhere.
        Err(_) => None,
    }
}

impl Parent {
    /// Checks the names again and reports the state of each path.
    fn mend(&self, root: &Root, found: &mut impl FnMut(PathBuf, Restored)) {
        let below = match root.place.below(&self.path) {
            Ok(below) => below,
            // The whole directory is gone, so there is nothing to act on.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            // No directory any more: a file or link in its place could lead anywhere.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                // Only a name right in the root is sure to be reached through no link.
                let direct = self.path.components().count() == 1;
                let name = root.place.name(self.path.as_os_str());
                let removed = direct.then(|| Restored::undone(&remove(&name)));
                return found(root.path.join(&self.path), removed.unwrap_or(Restored::Remains));
            }
            Err(_) => return found(root.path.join(&self.path), Restored::Remains),
        };
        let path = |name: &OsStr| root.path.join(&self.path).join(name);
        match &self.before {
            Before::ReadOnlyPath(names) => {
                for (name, memory) in names {
                    found(path(name), memory.mend(&below, name));
                }
            }
            Before::NoRepository(names) => {
                for name in names {
                    found(path(name), inspect(&root.place, &self.path, &below, name));
                }
            }
        }
    }
}

/// Looks at a name in a repository that was not there before. What git itself puts there may stay.
fn inspect(place: &DirectoryHandle, parent: &Path, repository: &DirectoryHandle, name: &OsStr) -> Restored {
    let path = repository.name(name);
    let Ok(meta) = std::fs::symlink_metadata(&path) else { return Restored::Unchanged };
    let is_repository = ["objects", "refs"].iter().all(|dir| repository.below(Path::new(dir)).is_ok())
        && std::fs::symlink_metadata(repository.name(OsStr::new("HEAD"))).is_ok_and(|head| head.is_file());
    if is_repository && name == "hooks" && meta.is_dir() {
        return remove_active_hooks(repository);
    }
    if is_repository && name == "config" && meta.is_file() {
        let describes = std::fs::read_to_string(&path).is_ok_and(|config| git::only_describes(&config));
        return if describes { Restored::Unchanged } else { Restored::undone(&remove(&path)) };
    }
    let mended = Restored::undone(&remove(&path));
    // Nothing but the attempt was in it, if this works.
    let _ = std::fs::remove_dir(place.name(parent.as_os_str()));
    mended
}

/// Leaves the examples that git copies into a new repository, which it never runs.
fn remove_active_hooks(repository: &DirectoryHandle) -> Restored {
    let Ok(hooks) = repository.below(Path::new("hooks")) else { return Restored::Remains };
    let Ok(names) = hooks.names() else { return Restored::Remains };
    let mut mended = Restored::Unchanged;
    for name in names {
        let path = hooks.name(&name);
        let example = Path::new(&name).extension().is_some_and(|extension| extension == "sample");
        if !(example && std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file())) {
            mended = mended.and(Restored::undone(&remove(&path)));
        }
    }
    mended
}
