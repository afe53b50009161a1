//! Opens paths below a directory handle. The kernel refuses paths that leave the directory.
//!
//! Linux only: needs `openat2` (5.6) and `/proc`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstatfs, openat2, statat};
use rustix::io::Errno;

/// Most missing parent directories of a new file.
pub(super) const DEEPEST: usize = 64;
/// How often `openat2` is retried after a concurrent rename.
const ATTEMPTS: u32 = 32;

/// Treatment of symbolic links in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    /// Follow those that stay below the root.
    FollowInside,
    /// Fail on any link.
    Refuse,
}

/// Opens a file or directory for reading. Never blocks: a FIFO opens without a writer, and is refused
/// afterwards.
pub(super) fn open_readable(root: &impl AsFd, path: &Path, symlinks: Symlinks) -> io::Result<OwnedFd> {
    open(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, symlinks)
}

/// Opens any kind of file with `O_PATH`: for metadata, not for reading.
pub(super) fn open_for_metadata(root: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open(root, path, OFlags::PATH | OFlags::NOFOLLOW, Symlinks::Refuse)
}

pub(super) fn open_directory(root: &OwnedFd, path: &Path, symlinks: Symlinks) -> io::Result<OwnedFd> {
    open(root, path, OFlags::PATH | OFlags::DIRECTORY, symlinks)
}

/// Opens a root. Its path comes from the user and is trusted.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

fn open(root: &impl AsFd, path: &Path, flags: OFlags, symlinks: Symlinks) -> io::Result<OwnedFd> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if symlinks == Symlinks::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let mut attempt = 1;
    loop {
        match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if attempt < ATTEMPTS => attempt += 1,
            opened => return Ok(opened?),
        }
    }
}

/// True if the kernel refused a path because it leaves its root.
pub(super) fn left_the_root(error: &io::Error) -> bool {
    // ELOOP: a forbidden link, a magic link, or a cycle. EAGAIN: it moved at every attempt.
    [Errno::XDEV, Errno::LOOP, Errno::AGAIN]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns the metadata of a directory entry without following a symbolic link.
pub(super) fn stat(directory: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
    Ok(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the current path of an open file. `None` without `/proc` or if the file was deleted.
pub(super) fn real_path(handle: &OwnedFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
    // The link of a deleted file names no existing path. The callers never use it as one.
    path.is_absolute().then_some(path)
}

/// True if an open file is on a virtual file system of the kernel (`/proc`, `/sys` and similar).
pub(super) fn is_virtual_file_system(handle: &OwnedFd) -> bool {
    const VIRTUAL_FILE_SYSTEMS: [i64; 8] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x1cd1,      // devpts
    ];
    // If the file system is unknown, treat it as virtual.
    #[expect(clippy::useless_conversion, reason = "the type differs between architectures")]
    fstatfs(handle).map_or(true, |stat| VIRTUAL_FILE_SYSTEMS.contains(&i64::from(stat.f_type)))
}
