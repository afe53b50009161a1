//! Removes placeholders after we were killed: a process that waits until we and all guardians are gone.
//!
//! A guardian cannot do it: in its mount namespace the placeholders are mount points. Like a guardian, the
//! cleaner is forked, not exec'ed, and makes raw system calls only.
#![expect(unsafe_code, reason = "fork and what follows it are raw system calls by nature")]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::pid_t;
use rustix::pipe::{PipeFlags, pipe_with};

use super::guardian::{self, close_all_but};
use super::spawn;

/// How often and how many milliseconds apart a lock is tried.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE_MS: i32 = 5;

/// What it takes to recognise a placeholder.
#[derive(Debug)]
pub(crate) struct Removable {
    pub path: CString,
    /// The permissions of an unused placeholder; a directory must be empty as well.
    pub directory_mode: libc::mode_t,
    pub file_mode: libc::mode_t,
}

/// The line whose end tells the cleaner that nothing relies on the placeholders any more. Every guardian
/// holds a copy.
pub(crate) struct Lifeline {
    ours: OwnedFd,
    cleaners: OwnedFd,
}

impl Lifeline {
    pub(crate) fn new() -> io::Result<Self> {
        let (cleaners, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { ours: spawn::above_stdio(ours)?, cleaners: spawn::above_stdio(cleaners)? })
    }

    /// The end that guardians keep open.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.ours.as_raw_fd()
    }
}

/// The process. Dropping it ends the process without effect: then the placeholders were removed by us.
#[derive(Debug)]
pub(crate) struct Cleaner {
    pid: pid_t,
}

impl Cleaner {
    /// Starts the process. It removes these paths, if they are unused placeholders, when the lifeline ends.
    pub(crate) fn start(lifeline: &Lifeline, paths: &[Removable]) -> io::Result<Self> {
        // SAFETY: `wait_and_remove` makes only raw system calls and never returns.
        let forked =
            unsafe { guardian::fork_child(|| wait_and_remove(lifeline.cleaners.as_raw_fd(), paths)) };
        forked.map(|pid| Self { pid }).map_err(io::Error::from_raw_os_error)
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        guardian::end(self.pid);
    }
}

/// The cleaner's main function.
unsafe fn wait_and_remove(line: RawFd, paths: &[Removable]) -> ! {
    // SAFETY: runs after the fork, in a process with one thread: raw system calls on what was prepared
    // before.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"qwen-cleaner".as_ptr());
        libc::setsid();
        // It holds a copy of our memory, keys included, which no command may read.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        for fd in 0..=2 {
            libc::close(fd);
        }
        close_all_but(&[line]);
        let mut byte = 0u8;
        loop {
            let got = libc::read(line, (&raw mut byte).cast(), 1);
            if got == 0 || (got < 0 && guardian::errno() != libc::EINTR) {
                break;
            }
        }
        for removable in paths {
            remove(removable);
        }
        libc::_exit(0);
    }
}

/// Locks a placeholder for us alone. The end of the lifeline may come a moment before the dying process has
/// closed its own lock.
unsafe fn lock(fd: RawFd) -> bool {
    // SAFETY: system calls without pointers to our memory.
    unsafe {
        for _ in 0..LOCK_ATTEMPTS {
            if libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 {
                return true;
            }
            libc::poll(ptr::null_mut(), 0, LOCK_PAUSE_MS);
        }
    }
    false
}

/// Removes a placeholder, unless another process relies on it or it was filled.
unsafe fn remove(removable: &Removable) {
    // SAFETY: the path ends with a zero and the structures outlive the calls.
    unsafe {
        let path = removable.path.as_ptr();
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let fd = libc::open(path, flags);
        if fd < 0 {
            return;
        }
        let mut found: libc::stat = zeroed();
        let mut named: libc::stat = zeroed();
        if lock(fd)
            && libc::fstat(fd, &raw mut found) == 0
            && libc::lstat(path, &raw mut named) == 0
            && (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)
        {
            let mode = found.st_mode & 0o7777;
            if found.st_mode & libc::S_IFMT == libc::S_IFDIR && mode == removable.directory_mode {
                if libc::rmdir(path) != 0 {
                    // Somebody has filled it: it is no placeholder any more.
                    libc::fchmod(fd, mode & 0o777);
                }
            } else if found.st_mode & libc::S_IFMT == libc::S_IFREG
                && mode == removable.file_mode
                && found.st_size == 0
            {
                libc::unlink(path);
            }
        }
        libc::close(fd);
    }
}
