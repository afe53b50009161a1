//! The first process of a namespace of processes, in which commands see only each other.
//!
//! It waits until neither we nor a guardian relies on the namespace any more. Its end is the end of the
//! namespace: the kernel then kills what is left in it. Like a guardian, it is forked, not exec'ed, and makes raw
//! system calls only.
#![expect(unsafe_code, reason = "fork and what follows it are raw system calls by nature")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use libc::pid_t;
use rustix::pipe::{PipeFlags, pipe_with};

use super::children::{each_child_among_all, each_child_listed};
use super::guardian::{close_all_but, errno};
use super::spawn::above_stdio;

/// Our message that asks it to kill the processes that it adopted.
const END_ORPHANS: u8 = b'O';
/// How often orphans are searched before it gives up on processes that do not die.
const ROUNDS: u32 = 200;
/// How many milliseconds to wait for the kernel between two rounds.
const ROUND_MS: i32 = 5;
/// How many milliseconds its end may take before it is reaped later.
const DROP_ROUNDS: u32 = 10;

/// The first processes whose namespaces are in use.
static ALIVE: Mutex<Vec<Weak<FirstProcess>>> = Mutex::new(Vec::new());
/// First processes that were killed and have not been reaped yet.
static UNREAPED: Mutex<Vec<pid_t>> = Mutex::new(Vec::new());

/// A first process, and our end of the line to it. The process ends when this is dropped, or when all copies of
/// the line are closed.
pub(crate) struct FirstProcess {
    pid: pid_t,
    line: OwnedFd,
}

impl FirstProcess {
    /// Creates a line. Returns our end and that of the process.
    pub(crate) fn line() -> io::Result<(OwnedFd, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((above_stdio(writer)?, above_stdio(reader)?))
    }

    /// Takes over a process that was forked with the other end of the line.
    pub(crate) fn new(pid: pid_t, line: OwnedFd) -> Arc<Self> {
        lock(&UNREAPED).retain(|&pid| !is_reaped(pid));
        let first = Arc::new(Self { pid, line });
        let mut alive = lock(&ALIVE);
        alive.retain(|first| first.strong_count() > 0);
        alive.push(Arc::downgrade(&first));
        first
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.line.as_raw_fd()
    }
}

impl Drop for FirstProcess {
    /// No command runs in the namespace any more, at most guardians that wait for one.
    fn drop(&mut self) {
        // SAFETY: kill has no memory effects, and a child that we have not reaped keeps its id.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        for _ in 0..DROP_ROUNDS {
            if is_reaped(self.pid) {
                return;
            }
            // SAFETY: no memory is touched.
            unsafe { libc::poll(ptr::null_mut(), 0, 1) };
        }
        // It waits for guardians that we have not reaped.
        lock(&UNREAPED).push(self.pid);
    }
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaps a first process if it has ended. It does not signal its end, so only this function learns of it.
fn is_reaped(pid: pid_t) -> bool {
    // SAFETY: no memory is touched.
    unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG | libc::__WALL) != 0 }
}

/// Kills the processes of guardians that were killed. First processes adopt them, and nothing else.
pub(super) fn end_orphans() {
    for first in lock(&ALIVE).iter().filter_map(Weak::upgrade) {
        // A full pipe has such a message in it.
        let _ = rustix::io::write(&first.line, &[END_ORPHANS]);
    }
}

/// Forks the first process of the namespace that the caller's children are in. Called by a process that shares our
/// memory, whose sibling it becomes.
pub(crate) unsafe fn fork(line: RawFd) -> Result<pid_t, i32> {
    // SAFETY: `wait` makes only raw system calls and never returns.
    unsafe {
        match libc::syscall(libc::SYS_clone, libc::CLONE_PARENT, 0, 0, 0, 0) {
            0 => wait(line),
            pid if pid > 0 => pid_t::try_from(pid).map_err(|_| libc::EOVERFLOW),
            _ => Err(errno()),
        }
    }
}

/// Its main function.
unsafe fn wait(line: RawFd) -> ! {
    // SAFETY: runs after the fork, in a process with one thread: raw system calls on numbers and on data of this
    // frame.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"qwen-first".as_ptr());
        // It holds a copy of our memory, keys included, which no command may read.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        // Then the kernel reaps the orphans.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        for fd in 0..=2 {
            libc::close(fd);
        }
        close_all_but(&[line]);
        loop {
            let mut ready = libc::pollfd { fd: line, events: libc::POLLIN, revents: 0 };
            if libc::poll(&raw mut ready, 1, -1) < 0 && errno() != libc::EINTR {
                libc::_exit(1);
            }
            let mut byte = 0u8;
            match libc::read(line, (&raw mut byte).cast(), 1) {
                0 => libc::_exit(0),
                1 => kill_orphans(),
                _ => {}
            }
        }
    }
}

unsafe fn kill_orphans() {
    for _ in 0..ROUNDS {
        let mut found = false;
        let kill = |pid: pid_t| {
            if pid > 1 {
                found = true;
                // SAFETY: kill has no memory effects.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        };
        // SAFETY: runs in a process with one thread; both only make system calls.
        unsafe {
            let mut kill = kill;
            if !each_child_listed(&mut kill) {
                each_child_among_all(&mut kill);
            }
            if !found {
                return;
            }
            libc::poll(ptr::null_mut(), 0, ROUND_MS);
        }
    }
}
