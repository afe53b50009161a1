//! Writing a file: the new content goes to a temporary file in the same directory, which is renamed
//! atomically. A reader sees the old or the new content, and hard links to the old file keep the old content.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::beneath::{self, Symlinks};
use super::{Opened, PathError};

/// How many temporary names are tried if names already exist.
const ATTEMPTS: u32 = 16;

/// A location where a file can be written: an open directory handle and a name in it.
pub struct Target {
    /// Where the file is or will be, absolute.
    pub path: PathBuf,
    /// The current file, if any.
    pub existing: Option<Opened>,
    parent: OwnedFd,
    missing: Vec<OsString>,
    name: OsString,
}

impl Target {
    pub(super) fn existing(parent: OwnedFd, name: OsString, existing: Opened) -> Self {
        Self { path: existing.path.clone(), existing: Some(existing), parent, missing: Vec::new(), name }
    }

    pub(super) fn new(parent: OwnedFd, directory: PathBuf, missing: Vec<OsString>, name: OsString) -> Self {
        let path = missing.iter().chain([&name]).fold(directory, |path, part| path.join(part));
        Self { path, existing: None, parent, missing, name }
    }

    /// Writes the file and creates missing directories. Returns the metadata of the new file.
    pub fn write(self, content: &[u8]) -> Result<Metadata, PathError> {
        let path = self.path.clone();
        self.try_write(content).map_err(|source| match source.raw_os_error() {
            // A link was created where a directory was to be made.
            Some(libc::ELOOP | libc::EXDEV) => PathError::Outside(path),
            Some(libc::EEXIST) => PathError::Moved(path),
            _ => PathError::System { path, source },
        })
    }

    /// Removes the file, if it is still the one that was opened.
    pub fn remove(self) -> Result<(), PathError> {
        let Some(existing) = &self.existing else { return Ok(()) };
        let failed = |error: Errno| PathError::System { path: self.path.clone(), source: error.into() };
        let now = beneath::stat(&self.parent, &self.name)
            .map_err(|source| PathError::System { path: self.path.clone(), source })?;
        if (now.st_dev, now.st_ino) != (existing.metadata.dev(), existing.metadata.ino()) {
            return Err(PathError::Moved(self.path));
        }
        unlinkat(&self.parent, &self.name, AtFlags::empty()).map_err(failed)
    }

    fn try_write(self, content: &[u8]) -> io::Result<Metadata> {
        let mut parent = self.parent;
        for name in &self.missing {
            match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            parent = beneath::open_directory(&parent, name.as_ref(), Symlinks::Refuse)?;
        }
        let mut temporary = Temporary::create(&parent, self.existing.is_none())?;
        temporary.file.write_all(content)?;
        let Some(existing) = &self.existing else {
            // Do not replace a file that was created concurrently.
            temporary.rename(&self.name, RenameFlags::NOREPLACE)?;
            return temporary.file.metadata();
        };
        let (uid, gid) = (existing.metadata.uid(), existing.metadata.gid());
        let ours = temporary.file.metadata()?;
        if (ours.uid(), ours.gid()) != (uid, gid) {
            // Only root can change the owner. Otherwise the new file belongs to the current user.
            let _ = fchown(&temporary.file, Some(uid), Some(gid));
        }
        temporary.file.set_permissions(Permissions::from_mode(existing.metadata.mode() & 0o7777))?;
        let now = beneath::stat(&parent, &self.name)?;
        if (now.st_dev, now.st_ino) != (existing.metadata.dev(), existing.metadata.ino()) {
            return Err(Errno::EXIST.into());
        }
        temporary.rename(&self.name, RenameFlags::empty())?;
        temporary.file.metadata()
    }
}

/// A file with a random name, removed on drop unless it was renamed to its final name.
struct Temporary<'a> {
    file: File,
    directory: &'a OwnedFd,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    /// A new file follows the umask. A replacement is inaccessible to others until it gets the permissions of
    /// the file it replaces.
    fn create(directory: &'a OwnedFd, new: bool) -> io::Result<Self> {
        let mode = Mode::from_raw_mode(if new { 0o666 } else { 0o600 });
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut attempt = 1;
        loop {
            let name = format!(".qwen-{:016x}.tmp", fastrand::u64(..));
            match openat(directory, &name, flags, mode) {
                Ok(fd) => return Ok(Self { file: fd.into(), directory, name: Some(name) }),
                Err(Errno::EXIST) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn rename(&mut self, to: &OsStr, flags: RenameFlags) -> io::Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        match renameat_with(self.directory, name, self.directory, to, flags) {
            // Some file systems do not support rename flags.
            Err(Errno::INVAL | Errno::NOSYS)
                if beneath::stat(self.directory, to).is_err() || flags.is_empty() =>
            {
                renameat(self.directory, name, self.directory, to)?;
            }
            done => done?,
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Nothing more can be done if removal fails too.
            let _ = unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}
