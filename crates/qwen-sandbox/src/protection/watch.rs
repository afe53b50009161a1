//! Watches protected names that the kernel does not protect: changes by a command are undone when it ends.
//!
//! Without mount namespaces this is the only protection. With them it covers what no mount can protect: a
//! repository that a command makes (`git init` is fine, a hook in it is not), and files whose mere presence
//! means something.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::policy::ProtectedName;
use crate::protection::directory::{DirectoryHandle, remove};
use crate::protection::snapshot::{Restored, Snapshot};
use qwen_git::describing::only_describes;

/// A directory with protected names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedRoot {
    pub root: PathBuf,
    pub names: Vec<ProtectedName>,
    /// Links, and files that stand for links, that lead to protected objects. Only they themselves are
    /// protected.
    pub pinned: Vec<PathBuf>,
}

/// Something that a sandboxed command did to a protected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampering {
    /// The protected name that changed.
    pub path: PathBuf,
    /// The former content was restored.
    pub undone: bool,
}

impl fmt::Display for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.undone { "that was undone" } else { "that could not be undone: look at it" };
        write!(f, "{} was changed, which is protected; {end}", self.path.display())
    }
}

/// The contents of protected names at the start of a command.
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
    /// The device and number of the directory, if there was one.
    identity: Option<(u64, u64)>,
    before: Before,
}

#[derive(Debug)]
enum Before {
    /// The contents of the names.
    Known(Vec<(OsString, Snapshot)>),
    /// There was no repository, which is what the directory would be.
    NoRepository(Vec<OsString>),
}

/// The names to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchScope {
    /// All of them.
    All,
    /// Those that the kernel does not hold: names that are missing, and files with a second name.
    NotHeld,
}

impl ProtectionWatch {
    /// Remembers what has to be looked after, in addition to what it remembers already.
    pub(crate) fn add(&mut self, guarded: &[ProtectedRoot], scope: WatchScope) {
        for ProtectedRoot { root, names, pinned } in guarded {
            let Ok(place) = DirectoryHandle::open(root) else { continue };
            let names: Vec<&Path> = names.iter().map(|protected| &*protected.name).collect();
            let names: Vec<&Path> = names.into_iter().chain(pinned.iter().map(PathBuf::as_path)).collect();
            let mut parents: Vec<Parent> = Vec::new();
            for parent in names.iter().filter_map(|name| name.parent()) {
                if parents.iter().all(|known| known.path != parent) {
                    let names = names.iter().filter(|name| name.parent() == Some(parent));
                    parents.extend(Parent::find(
                        &place,
                        parent,
                        names.filter_map(|name| name.file_name()),
                        scope,
                    ));
                }
            }
            self.roots.push(Root { path: root.clone(), place, parents });
        }
    }

    /// Checks everything again, undoes changes and returns them.
    pub(crate) fn end(&self) -> Findings {
        let mut found = Findings::default();
        for root in &self.roots {
            for parent in &root.parents {
                parent.restore(root, &parent.path, &mut found);
            }
        }
        found
    }

    /// Looks at a directory that was not there when the command started. If it was moved there, its names are
    /// put back as they were.
    pub(crate) fn restore_moved(&self, directory: &Path, found: &mut Findings) -> bool {
        let Some(identity) = std::fs::symlink_metadata(directory).ok().map(|meta| identity(&meta)) else {
            return false;
        };
        for root in &self.roots {
            let Ok(name) = directory.strip_prefix(&root.path) else { continue };
            let moved = root.parents.iter().find(|parent| parent.identity == Some(identity));
            if let Some(parent) = moved.filter(|parent| parent.path != name) {
                parent.restore(root, name, found);
                return true;
            }
        }
        false
    }

    /// True if a name with the same content was there when the command started: a copy of what is there
    /// anyway.
    pub(crate) fn is_copy(&self, name: &OsStr, content: &Snapshot) -> bool {
        let parents = self.roots.iter().flat_map(|root| &root.parents);
        parents.into_iter().any(|parent| match &parent.before {
            Before::Known(names) => {
                names.iter().any(|(known, before)| known == name && before.has_same_content(content))
            }
            Before::NoRepository(_) => false,
        })
    }
}

/// The changes that were found, each path once.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub Vec<Tampering>);

impl Findings {
    pub(crate) fn add(&mut self, path: PathBuf, mended: Restored) {
        if mended != Restored::Unchanged && !self.0.iter().any(|known| known.path == path) {
            self.0.push(Tampering { path, undone: mended == Restored::Undone });
        }
    }
}

fn identity(meta: &std::fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Parent {
    /// What there is to remember of these names; none when there is nothing to look after.
    fn find<'a>(
        place: &DirectoryHandle,
        parent: &Path,
        names: impl Iterator<Item = &'a OsStr>,
        scope: WatchScope,
    ) -> Option<Self> {
        let (identity, before) = match place.open_below(parent) {
            Ok(below) => {
                let names = names.filter(|name| scope == WatchScope::All || !below.is_held(name));
                let names = names.map(|name| (name.to_owned(), Snapshot::capture(&below, name))).collect();
                (std::fs::metadata(below.name(OsStr::new("."))).ok(), Before::Known(names))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (None, Before::NoRepository(names.map(OsStr::to_owned).collect()))
            }
            // A worktree's `.git` is a file, and what is below a link lies elsewhere. Both are pinned.
            Err(_) => return None,
        };
        Some(Self { path: parent.to_owned(), identity: identity.as_ref().map(self::identity), before })
    }

    /// Checks the names again, in the directory that has this path now, and reports the state of each.
    fn restore(&self, root: &Root, path: &Path, found: &mut Findings) {
        let below = match root.place.open_below(path) {
            Ok(below) => below,
            // The whole directory is gone, so there is nothing to act on.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            // No directory any more: a file or link in its place could lead anywhere.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                // Only a name right in the root is sure to be reached through no link.
                let direct = path.components().count() == 1;
                let name = root.place.name(path.as_os_str());
                let removed = direct.then(|| Restored::undone(&remove(&name)));
                return found.add(root.path.join(path), removed.unwrap_or(Restored::Remains));
            }
            Err(_) => return found.add(root.path.join(path), Restored::Remains),
        };
        let full = |name: &OsStr| root.path.join(path).join(name);
        match &self.before {
            Before::Known(names) => {
                for (name, memory) in names {
                    found.add(full(name), memory.restore(&below, name));
                }
            }
            Before::NoRepository(names) => {
                for name in names {
                    found.add(full(name), inspect(&root.place, path, &below, name));
                }
            }
        }
    }
}

/// Looks at a name in a repository that was not there before. What git itself puts there may stay.
pub(crate) fn inspect(
    place: &DirectoryHandle,
    parent: &Path,
    repository: &DirectoryHandle,
    name: &OsStr,
) -> Restored {
    let path = repository.name(name);
    let Ok(meta) = std::fs::symlink_metadata(&path) else { return Restored::Unchanged };
    let is_repository = ["objects", "refs"].iter().all(|dir| repository.open_below(Path::new(dir)).is_ok())
        && std::fs::symlink_metadata(repository.name(OsStr::new("HEAD"))).is_ok_and(|head| head.is_file());
    if is_repository && name == "hooks" && meta.is_dir() {
        return remove_active_hooks(repository);
    }
    if is_repository && name == "config" && meta.is_file() {
        let describes = std::fs::read_to_string(&path).is_ok_and(|config| only_describes(&config));
        return if describes { Restored::Unchanged } else { Restored::undone(&remove(&path)) };
    }
    let mended = Restored::undone(&remove(&path));
    // Nothing but the attempt was in it, if this works.
    let _ = std::fs::remove_dir(place.name(parent.as_os_str()));
    mended
}

/// Leaves the examples that git copies into a new repository, which it never runs.
fn remove_active_hooks(repository: &DirectoryHandle) -> Restored {
    let Ok(hooks) = repository.open_below(Path::new("hooks")) else { return Restored::Remains };
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
