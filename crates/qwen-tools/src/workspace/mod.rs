//! The workspace boundary: file tools access only files below the working directory and the extra roots,
//! regardless of links in the path and of concurrent renames.
//!
//! A path is never checked and then used. It is opened below the handle of a root, and the kernel refuses to
//! leave that root. All later operations (kind, size, content, replacement) use the resulting handles.

mod beneath;
mod error;
mod replace;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

pub use error::PathError;
pub use replace::Target;

use crate::CallContext;
use beneath::Symlinks;

pub struct Workspace {
    roots: Vec<Root>,
}

/// One directory tree that file tools may access.
struct Root {
    /// As configured.
    given: PathBuf,
    /// Without symbolic links.
    real: PathBuf,
    handle: OwnedFd,
    writable: bool,
}

/// A file or directory inside the workspace, opened for reading.
pub struct Opened {
    pub file: File,
    /// Metadata of the handle.
    pub metadata: Metadata,
    /// Real path: absolute and without symbolic links.
    pub path: PathBuf,
}

impl Workspace {
    /// The workspace of a call: the working directory, the extra roots, and, read-only, the session's scratch
    /// files.
    pub fn for_call(cx: &CallContext) -> Result<Self, PathError> {
        let mut workspace = Self::new(&cx.session.cwd, &cx.granted_roots)?;
        workspace.roots.extend(cx.session.scratch.path().and_then(|scratch| Root::open(scratch, false).ok()));
        Ok(workspace)
    }

    /// Opens the working directory, to which relative paths refer, and the extra roots.
    pub fn new(cwd: &Path, extra_roots: &[PathBuf]) -> Result<Self, PathError> {
        let root =
            Root::open(cwd, true).map_err(|source| PathError::NoWorkspace { path: cwd.into(), source })?;
        let mut roots = vec![root];
        // Skip extra roots that do not exist.
        roots.extend(extra_roots.iter().filter_map(|root| Root::open(root, true).ok()));
        Ok(Self { roots })
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &str) -> Result<Opened, PathError> {
        let opened = self.open(path)?;
        if opened.metadata.is_dir() { Err(PathError::IsDirectory(path.into())) } else { Ok(opened) }
    }

    pub fn open_directory(&self, path: &str) -> Result<Opened, PathError> {
        let opened = self.open(path)?;
        if opened.metadata.is_dir() { Ok(opened) } else { Err(PathError::NotDirectory(path.into())) }
    }

    /// Opens a file that a walk below `root` found, if it is a regular file reached without symbolic links.
    pub fn open_found(root: &Opened, below: &Path) -> Option<(File, Metadata)> {
        let handle = beneath::open_readable(&root.file, below, Symlinks::Refuse).ok()?;
        if beneath::is_virtual_file_system(&handle) {
            return None;
        }
        let file = File::from(handle);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some((file, metadata))
    }

    /// Returns the metadata of a file that a walk below `root` found, if it is a regular file reached without
    /// symbolic links.
    pub fn stat_found(root: &Opened, below: &Path) -> Option<Metadata> {
        let handle = beneath::open_for_metadata(&root.file, below).ok()?;
        let metadata = File::from(handle).metadata().ok()?;
        metadata.is_file().then_some(metadata)
    }

    /// A path for display: relative to the working directory if it is below it.
    pub fn display_path<'a>(&self, path: &'a Path) -> &'a Path {
        let cwd = self.roots.first();
        let inside =
            cwd.and_then(|cwd| path.strip_prefix(&cwd.real).or_else(|_| path.strip_prefix(&cwd.given)).ok());
        match inside {
            Some(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Some(inside) => inside,
            None => path,
        }
    }

    fn open(&self, path: &str) -> Result<Opened, PathError> {
        let asked = checked_path(path)?;
        let (handle, root, below) = self.open_with(asked, beneath::open_readable)?;
        Opened::checked(handle, || root.real.join(below), asked.as_os_str())
    }

    /// Finds the root of a path and opens the path below it.
    fn open_with(
        &self,
        asked: &Path,
        open: impl Fn(&OwnedFd, &Path, Symlinks) -> io::Result<OwnedFd>,
    ) -> Result<(OwnedFd, &Root, PathBuf), PathError> {
        if let Some((root, below)) = self.locate(asked) {
            match open(&root.handle, &below, Symlinks::FollowInside) {
                Ok(handle) => return Ok((handle, root, below)),
                Err(error) if beneath::left_the_root(&error) => {}
                Err(error) => return Err(PathError::from_io(asked, error)),
            }
        }
        // The path may still be inside: through an absolute link, a link from one root to another, or a
        // different spelling of a root. Resolve its real path and open that below its root, so that
        // concurrent changes gain nothing.
        let outside = || PathError::Outside(asked.into());
        let cwd = self.roots.first().ok_or_else(outside)?;
        let real = cwd.given.join(asked).canonicalize().map_err(|_| outside())?;
        let (root, below) = self.locate(&real).ok_or_else(outside)?;
        match open(&root.handle, &below, Symlinks::Refuse) {
            Ok(handle) => Ok((handle, root, below)),
            Err(error) if beneath::left_the_root(&error) => Err(outside()),
            Err(error) => Err(PathError::from_io(asked, error)),
        }
    }

    /// The root that a path is below by its text, and the rest of the path. The kernel checks later that it
    /// stays there.
    fn locate(&self, path: &Path) -> Option<(&Root, PathBuf)> {
        let below = |rest: &Path| if rest.as_os_str().is_empty() { ".".into() } else { rest.to_owned() };
        if path.is_relative() {
            return self.roots.first().map(|cwd| (cwd, below(path)));
        }
        self.roots.iter().find_map(|root| {
            let rest = path.strip_prefix(&root.real).or_else(|_| path.strip_prefix(&root.given)).ok()?;
            Some((root, below(rest)))
        })
    }

    /// Finds where a file can be written. Creates and changes nothing.
    pub fn target(&self, path: &str) -> Result<Target, PathError> {
        let asked = checked_path(path)?;
        if path.ends_with('/') {
            return Err(PathError::IsDirectory(asked.into()));
        }
        match self.open_file(path) {
            Ok(existing) => self.target_of_existing(asked, existing),
            // `Outside`: a missing file has no real path, so its parent directory decides.
            Err(PathError::NotFound(_) | PathError::Outside(_)) => self.target_of_new(asked),
            Err(error) => Err(error),
        }
    }

    fn target_of_existing(&self, asked: &Path, existing: Opened) -> Result<Target, PathError> {
        let (root, below) = self.locate(&existing.path).ok_or_else(|| PathError::Outside(asked.into()))?;
        if !root.writable {
            return Err(PathError::ReadOnly(asked.into()));
        }
        let name =
            below.file_name().map(OsStr::to_owned).ok_or_else(|| PathError::IsDirectory(asked.into()))?;
        let parent = below.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = beneath::open_directory(&root.handle, parent, Symlinks::Refuse)
            .map_err(|error| PathError::from_io(asked, error))?;
        let same = beneath::stat(&parent, &name).is_ok_and(|stat| {
            (stat.st_dev, stat.st_ino) == (existing.metadata.dev(), existing.metadata.ino())
        });
        if !same {
            return Err(PathError::Moved(asked.into()));
        }
        Ok(Target::existing(parent, name, existing))
    }

    fn target_of_new(&self, asked: &Path) -> Result<Target, PathError> {
        let mut rest = asked.to_owned();
        let name = pop_name(&mut rest).ok_or_else(|| PathError::NoName(asked.into()))?;
        let mut missing: Vec<OsString> = Vec::new();
        let (parent, root, below) = loop {
            let parent = if rest.as_os_str().is_empty() { Path::new(".") } else { &rest };
            match self.open_with(parent, beneath::open_directory) {
                Ok(found) => break found,
                // `Outside`: a missing directory has no real path; its parent may be inside.
                Err(PathError::NotFound(_) | PathError::Outside(_)) if missing.len() < beneath::DEEPEST => {
                    missing.push(pop_name(&mut rest).ok_or_else(|| PathError::Outside(asked.into()))?);
                }
                Err(error) => return Err(error.with_requested_path(asked)),
            }
        };
        if !root.writable {
            return Err(PathError::ReadOnly(asked.into()));
        }
        let first = missing.last().unwrap_or(&name);
        if beneath::stat(&parent, first).is_ok() {
            // The name belongs to a link that is dangling or leaves the workspace.
            return Err(PathError::Outside(asked.into()));
        }
        let directory = beneath::real_path(&parent).unwrap_or_else(|| root.real.join(&below));
        missing.reverse();
        Ok(Target::new(parent, directory, missing, name))
    }
}

impl Root {
    fn open(path: &Path, writable: bool) -> io::Result<Self> {
        let handle = beneath::open_root(path)?;
        let real = beneath::real_path(&handle).map_or_else(|| path.canonicalize(), Ok)?;
        Ok(Self { given: path.to_owned(), real, handle, writable })
    }
}

impl Opened {
    /// Checks the opened handle: only regular files and directories on real file systems are accepted.
    fn checked(
        handle: OwnedFd,
        path_without_proc: impl FnOnce() -> PathBuf,
        asked: &OsStr,
    ) -> Result<Self, PathError> {
        let path = beneath::real_path(&handle).unwrap_or_else(path_without_proc);
        let kernel_made = beneath::is_virtual_file_system(&handle);
        let file = File::from(handle);
        let metadata = file.metadata().map_err(|error| PathError::from_io(Path::new(asked), error))?;
        if kernel_made || !(metadata.is_file() || metadata.is_dir()) {
            return Err(PathError::Special(asked.into()));
        }
        Ok(Self { file, metadata, path })
    }
}

/// Removes the last name of a path. `None` if the path does not end in a name (`..`, the root).
fn pop_name(path: &mut PathBuf) -> Option<OsString> {
    let name = match path.components().next_back()? {
        Component::Normal(name) => name.to_owned(),
        _ => return None,
    };
    path.pop();
    Some(name)
}

fn checked_path(path: &str) -> Result<&Path, PathError> {
    if path.is_empty() || path.contains('\0') {
        Err(PathError::NoName(path.into()))
    } else {
        Ok(Path::new(path))
    }
}
