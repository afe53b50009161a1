//! A directory handle for lookups without following links, because commands may swap names concurrently.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

#[derive(Debug)]
pub(crate) struct DirectoryHandle(OwnedFd);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl DirectoryHandle {
    /// Opens a directory by its whole path, which no sandboxed process can change.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    /// A directory below, reached through directories only. An empty path is this one.
    pub(crate) fn open_below(&self, path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Self(rustix::fs::openat2(self.0.as_fd(), path, DIRECTORY, Mode::empty(), resolve)?))
    }

    /// True if there is nothing of this name in it.
    pub(crate) fn lacks(&self, name: &OsStr) -> bool {
        let found = rustix::fs::statat(self.0.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_err_and(|error| error == Errno::NOENT)
    }

    /// True if a mount on this name protects its content. A file that has a second name can be written
    /// through that, and a missing name has no mount.
    pub(crate) fn is_held(&self, name: &OsStr) -> bool {
        fn has_one_name(path: &Path) -> bool {
            match std::fs::symlink_metadata(path) {
                Ok(meta) if meta.is_dir() => std::fs::read_dir(path).is_ok_and(|entries| {
                    entries.flatten().all(|entry| {
                        entry.file_type().is_ok_and(|kind| kind.is_dir()) || has_one_name(&entry.path())
                    })
                }),
                Ok(meta) => !meta.is_file() || meta.nlink() == 1,
                Err(_) => false,
            }
        }
        has_one_name(&self.name(name))
    }

    /// A path to a name in this very directory, wherever that is now. Only for calls that do not follow the
    /// name itself.
    pub(crate) fn name(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd").join(self.0.as_raw_fd().to_string()).join(name)
    }

    /// The names in it.
    pub(crate) fn names(&self) -> io::Result<Vec<std::ffi::OsString>> {
        std::fs::read_dir(self.name(OsStr::new(".")))?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// Removes whatever has a name, without following it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}
