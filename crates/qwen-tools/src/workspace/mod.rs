//! The workspace boundary: file tools touch what lies below the working directory and the extra roots, and nothing
//! else, whatever the path says and whatever moves meanwhile.
//!
//! A path is never checked and then used. It is opened below the handle of a root by a kernel that refuses to leave
//! that root, and all that follows (kind, size, content, replacement) is asked of the handles that came out of it.

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

use crate::ToolCx;
use beneath::Symlinks;

/// The directories that file tools may touch.
pub struct Workspace {
    roots: Vec<Root>,
}

/// One directory that file tools may touch, with all below it.
struct Root {
    /// As it was given.
    given: PathBuf,
    /// Without symbolic links.
    real: PathBuf,
    handle: OwnedFd,
    writable: bool,
}

/// A file or directory inside the workspace, opened for reading.
pub struct Opened {
    /// The handle.
    pub file: File,
    /// What the handle says about it.
    pub metadata: Metadata,
    /// Where it really is: absolute and without symbolic links.
    pub path: PathBuf,
}

impl Workspace {
    /// The workspace of a call: the working directory, the extra roots, and for reading the session's scratch files.
    pub fn of(cx: &ToolCx) -> Result<Self, PathError> {
        let mut workspace = Self::new(&cx.cwd, &cx.extra_roots)?;
        workspace.roots.extend(cx.bench.scratch.path().and_then(|scratch| Root::open(scratch, false).ok()));
        Ok(workspace)
    }

    /// A working directory, which relative paths start from, and further roots.
    pub fn new(cwd: &Path, extra_roots: &[PathBuf]) -> Result<Self, PathError> {
        let root =
            Root::open(cwd, true).map_err(|source| PathError::NoWorkspace { path: cwd.into(), source })?;
        let mut roots = vec![root];
        // An extra root that is not there holds no file either.
        roots.extend(extra_roots.iter().filter_map(|root| Root::open(root, true).ok()));
        Ok(Self { roots })
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &str) -> Result<Opened, PathError> {
        let opened = self.open(path)?;
        if opened.metadata.is_dir() { Err(PathError::IsDirectory(path.into())) } else { Ok(opened) }
    }

    /// Opens a directory.
    pub fn open_directory(&self, path: &str) -> Result<Opened, PathError> {
        let opened = self.open(path)?;
        if opened.metadata.is_dir() { Ok(opened) } else { Err(PathError::NotDirectory(path.into())) }
    }

    /// Opens a file that a walk below `root` found, if it is a regular one that is reached without symbolic links.
    pub fn open_found(root: &Opened, below: &Path) -> Option<(File, Metadata)> {
        let handle = beneath::open_readable(&root.file, below, Symlinks::Refuse).ok()?;
        if beneath::is_kernel_made(&handle) {
            return None;
        }
        let file = File::from(handle);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some((file, metadata))
    }

    /// Looks at a file that a walk below `root` found, if it is a regular one that is reached without symbolic links.
    pub fn stat_found(root: &Opened, below: &Path) -> Option<Metadata> {
        let handle = beneath::open_place(&root.file, below).ok()?;
        let metadata = File::from(handle).metadata().ok()?;
        metadata.is_file().then_some(metadata)
    }

    /// A path as people know it: relative to the working directory where it is below it.
    pub fn shown<'a>(&self, path: &'a Path) -> &'a Path {
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
        let asked = sound(path)?;
        let (handle, root, below) = self.open_with(asked, beneath::open_readable)?;
        Opened::checked(handle, || root.real.join(below), asked.as_os_str())
    }

    /// Finds the root that a path is below and opens it there.
    fn open_with(
        &self,
        asked: &Path,
        open: impl Fn(&OwnedFd, &Path, Symlinks) -> io::Result<OwnedFd>,
    ) -> Result<(OwnedFd, &Root, PathBuf), PathError> {
        if let Some((root, below)) = self.locate(asked) {
            match open(&root.handle, &below, Symlinks::FollowInside) {
                Ok(handle) => return Ok((handle, root, below)),
                Err(error) if beneath::left_the_root(&error) => {}
                Err(error) => return Err(PathError::of(asked, error)),
            }
        }
        // It may still be inside: by an absolute link, a link from one root to another, or a spelling of a root that is
        // not ours. Its real path says so, and is opened as such, so that nothing is gained by changing it meanwhile.
        let outside = || PathError::Outside(asked.into());
        let cwd = self.roots.first().ok_or_else(outside)?;
        let real = cwd.given.join(asked).canonicalize().map_err(|_| outside())?;
        let (root, below) = self.locate(&real).ok_or_else(outside)?;
        match open(&root.handle, &below, Symlinks::Refuse) {
            Ok(handle) => Ok((handle, root, below)),
            Err(error) if beneath::left_the_root(&error) => Err(outside()),
            Err(error) => Err(PathError::of(asked, error)),
        }
    }

    /// The root that a path is below by its text, and the rest of the path. Whether it stays there, the kernel says.
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

    /// Where a file can be written. Nothing is made or changed yet.
    pub fn target(&self, path: &str) -> Result<Target, PathError> {
        let asked = sound(path)?;
        if path.ends_with('/') {
            return Err(PathError::IsDirectory(asked.into()));
        }
        match self.open_file(path) {
            Ok(existing) => self.target_of_existing(asked, existing),
            // Outside: the real path of what is not there yet is unknown, so the directory above it has to tell.
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
            .map_err(|error| PathError::of(asked, error))?;
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
                // Outside, because the real path of what is not there is unknown; what is above it may be inside.
                Err(PathError::NotFound(_) | PathError::Outside(_)) if missing.len() < beneath::DEEPEST => {
                    missing.push(pop_name(&mut rest).ok_or_else(|| PathError::Outside(asked.into()))?);
                }
                Err(error) => return Err(error.about(asked)),
            }
        };
        if !root.writable {
            return Err(PathError::ReadOnly(asked.into()));
        }
        let first = missing.last().unwrap_or(&name);
        if beneath::stat(&parent, first).is_ok() {
            // The name is taken by what cannot be opened: a link that leads nowhere or out of the workspace.
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
    /// Looks at what was really opened: only regular files and directories of real file systems are let through.
    fn checked(
        handle: OwnedFd,
        path_without_proc: impl FnOnce() -> PathBuf,
        asked: &OsStr,
    ) -> Result<Self, PathError> {
        let path = beneath::real_path(&handle).unwrap_or_else(path_without_proc);
        let kernel_made = beneath::is_kernel_made(&handle);
        let file = File::from(handle);
        let metadata = file.metadata().map_err(|error| PathError::of(Path::new(asked), error))?;
        if kernel_made || !(metadata.is_file() || metadata.is_dir()) {
            return Err(PathError::Special(asked.into()));
        }
        Ok(Self { file, metadata, path })
    }
}

/// Takes the last name off a path. None where that is no name (`..`, the root).
fn pop_name(path: &mut PathBuf) -> Option<OsString> {
    let name = match path.components().next_back()? {
        Component::Normal(name) => name.to_owned(),
        _ => return None,
    };
    path.pop();
    Some(name)
}

fn sound(path: &str) -> Result<&Path, PathError> {
    if path.is_empty() || path.contains('\0') {
        Err(PathError::NoName(path.into()))
    } else {
        Ok(Path::new(path))
    }
}
