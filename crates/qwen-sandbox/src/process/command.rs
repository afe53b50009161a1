//! The command's process between its start and its exec.
//!
//! It runs on its guardian's memory and makes raw system calls only.
#![expect(unsafe_code, reason = "what happens between fork and exec are raw system calls by nature")]

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;

use libc::pid_t;

use super::BeforeExec;
use super::guardian::{FORKED, errno, report};
use super::order::Texts;

/// The stack of the command's process between its start and its exec.
pub(super) const STACK: usize = 64 * 1024;

/// The step at which a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Step {
    Fork = 0,
    Descriptors = 1,
    Directory = 2,
    BeforeExec = 3,
    Exec = 4,
}

/// All that the command's process needs.
pub(super) struct Plan<'a> {
    pub texts: Texts<'a>,
    /// The sources of descriptors 0, 1 and 2; each is above 2 itself.
    pub stdio: [RawFd; 3],
    /// Descriptors that the command keeps under the same number; each is above 2.
    pub keep: &'a [RawFd],
    pub before_exec: Option<&'a dyn BeforeExec>,
    /// The guardian's end of the line to us.
    pub line: RawFd,
}

/// Shared by the guardian and the command's process while the latter prepares itself.
struct Start<'a> {
    plan: &'a Plan<'a>,
    guardian: pid_t,
    failed: Option<(Step, i32)>,
}

/// Starts the command's process on the guardian's memory and waits until it has exec'ed or failed, as `vfork`
/// does: that avoids copying the page tables, and lets the child report a failure through memory.
pub(super) unsafe fn start(plan: &Plan<'_>, stack: *mut u128) -> Result<pid_t, (Step, i32)> {
    // SAFETY: the caller gives a stack of `STACK` bytes; with CLONE_VFORK this frame outlives the child's use
    // of it.
    unsafe {
        let mut start = Start { plan, guardian: libc::getpid(), failed: None };
        let top = stack.add(STACK / size_of::<u128>()).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let command = libc::clone(enter, top, flags, (&raw mut start).cast::<c_void>());
        if command < 0 {
            return Err((Step::Fork, errno()));
        }
        match ptr::read_volatile(&raw const start.failed) {
            Some(failed) => {
                libc::waitpid(command, ptr::null_mut(), 0);
                Err(failed)
            }
            None => Ok(command),
        }
    }
}

/// The command's process up to its exec.
extern "C" fn enter(start: *mut c_void) -> c_int {
    // SAFETY: the guardian passes its own `Start` and is suspended while this process uses it.
    let start = unsafe { &mut *start.cast::<Start<'_>>() };
    // SAFETY: raw system calls only, on data that was prepared before the fork.
    let failed = unsafe { become_command(start.plan, start.guardian) };
    // SAFETY: as above; volatile, because the reader is another process on the same memory.
    unsafe { ptr::write_volatile(&raw mut start.failed, Some(failed)) };
    127
}

unsafe fn become_command(plan: &Plan<'_>, guardian: pid_t) -> (Step, i32) {
    // SAFETY: raw system calls on what the plan holds, in a process that shares its parent's memory until the
    // exec.
    unsafe {
        // If the guardian is killed, at least the command itself dies too.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != guardian {
            return (Step::Fork, libc::ESRCH);
        }
        // The guardian already leads a session without a terminal. A process group is cheaper than a session
        // per command.
        libc::setpgid(0, 0);
        report(plan.line, [FORKED, libc::getpid(), 0]);
        for (fd, &source) in (0..).zip(&plan.stdio) {
            if libc::dup2(source, fd) < 0 {
                return (Step::Descriptors, errno());
            }
        }
        if libc::chdir(plan.texts.cwd.as_ptr()) != 0 {
            return (Step::Directory, errno());
        }
        if let Some(hook) = plan.before_exec
            && let Err(error) = hook.apply()
        {
            return (Step::BeforeExec, error);
        }
        // The command inherits only the listed descriptors, not those that our own parent leaked to us.
        let marked =
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0;
        if !marked {
            mark_close_on_exec();
        }
        for &fd in plan.keep {
            if libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
                return (Step::Descriptors, errno());
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        let Texts { program, argv, envp, .. } = plan.texts;
        libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr());
        (Step::Exec, errno())
    }
}

/// What `close_range` does for kernels from 5.11 on.
unsafe fn mark_close_on_exec() {
    // SAFETY: `rlimit` is plain data, and marking a descriptor that is not open fails without effect.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for fd in 3..c_int::try_from(limit.rlim_cur).unwrap_or(65_536) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}
