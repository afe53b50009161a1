//! Opening below a directory handle, so that the kernel itself refuses to leave it.
//!
//! This file is Linux: `openat2` (5.6) and `/proc`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstatfs, openat2, statat};
use rustix::io::Errno;

/// How many missing directories a new file may be below.
pub(super) const DEEPEST: usize = 64;
/// How often the kernel is asked again after something moved while it looked.
const ATTEMPTS: u32 = 32;

/// What to do about symbolic links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    /// Follow those that stay below the root.
    FollowInside,
    /// There must be none.
    Refuse,
}

/// Opens a file or directory for reading. Never blocks: a FIFO opens without a writer, and is refused afterwards.
pub(super) fn open_readable(root: &impl AsFd, path: &Path, symlinks: Symlinks) -> io::Result<OwnedFd> {
    open(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, symlinks)
}

/// Opens whatever is there, to be looked at and not to be read.
pub(super) fn open_place(root: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open(root, path, OFlags::PATH | OFlags::NOFOLLOW, Symlinks::Refuse)
}

/// Opens a directory, to work in.
pub(super) fn open_directory(root: &OwnedFd, path: &Path, symlinks: Symlinks) -> io::Result<OwnedFd> {
    open(root, path, OFlags::PATH | OFlags::DIRECTORY, symlinks)
}

/// Opens a root, by a path that is the user's own.
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

/// Whether a path was refused because it leads out of its root.
pub(super) fn left_the_root(error: &io::Error) -> bool {
    // ELOOP: a link where none may be, a magic one, or a circle. EAGAIN: it moved as often as we asked.
    [Errno::XDEV, Errno::LOOP, Errno::AGAIN]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// What a name in a directory is, itself and not what it points to.
pub(super) fn stat(directory: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
    Ok(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Where an open file is now. None without `/proc`, or when it was deleted.
pub(super) fn real_path(handle: &OwnedFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
    // What was deleted meanwhile has a name that leads nowhere; it is never taken for a path, see its callers.
    path.is_absolute().then_some(path)
}

/// Whether an open file is made up by the kernel (`/proc`, `/sys` and their like) rather than stored.
pub(super) fn is_kernel_made(handle: &OwnedFd) -> bool {
    const MADE_UP: [i64; 8] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x1cd1,      // devpts
    ];
    // What cannot be asked is not trusted.
    #[expect(clippy::useless_conversion, reason = "the type differs between architectures")]
    fstatfs(handle).map_or(true, |stat| MADE_UP.contains(&i64::from(stat.f_type)))
}
