//! The guardian: a small process between us and a command, so that nothing a command started outlives it or us.
//!
//! It is forked, not exec'ed, and from then on makes raw system calls only: other threads of ours may have held any
//! lock at the moment of the fork, the allocator's included. It adopts every orphan below it (child subreaper), so
//! all that a command leaves behind, in whatever session or group, ends up as a direct child of the guardian. Killing
//! direct children until there are none therefore ends a whole tree, without a race for recycled process ids.
//!
//! This file is Linux: subreapers, `signalfd` and `close_range`.
#![expect(unsafe_code, reason = "fork and what follows it are raw system calls by nature")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;

use libc::pid_t;

use super::BeforeExec;
use super::children::{each_child_among_all, each_child_listed};

/// How long a command that was asked to end may take to do so.
const GRACE_MS: i64 = 200;
/// How long killing may take before the guardian gives up on what the kernel will not kill for it.
const KILL_LIMIT_MS: i64 = 3_000;
/// How long to wait for the kernel between two rounds of killing.
const ROUND_MS: i64 = 10;
/// The stack of the command's process between its start and its exec.
const STACK: usize = 64 * 1024;

/// What we write into the lifeline to have the command ended politely.
pub(super) const TERMINATE: u8 = b'T';

/// One message of the guardian to us: three numbers, written at once.
pub(super) type Record = [i32; 3];
/// The size of a message in bytes.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();
/// `[FORKED, pid, 0]`: the command's process is there; it says so itself, before it can do harm.
pub(super) const FORKED: i32 = 1;
/// `[STARTED, 0, 0]`: the command runs.
pub(super) const STARTED: i32 = 2;
/// `[FAILED, step, errno]`: the command could not be started.
pub(super) const FAILED: i32 = 3;
/// `[EXITED, wait status, 0]`: the command ended.
pub(super) const EXITED: i32 = 4;

/// What was being done when a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Step {
    Fork = 0,
    Descriptors = 1,
    Directory = 2,
    BeforeExec = 3,
    Exec = 4,
}

/// All that the guardian and the command need, prepared before the fork.
pub(super) struct Plan<'a> {
    pub program: &'a CStr,
    /// Ends with a null pointer.
    pub argv: &'a [*const c_char],
    /// Ends with a null pointer.
    pub envp: &'a [*const c_char],
    pub cwd: &'a CStr,
    /// What becomes descriptors 0, 1 and 2; each is above 2 itself.
    pub stdio: [RawFd; 3],
    /// Descriptors that the command keeps under the same number; each is above 2.
    pub keep: &'a [RawFd],
    pub before_exec: Option<&'a dyn BeforeExec>,
    /// The end that reads from us; above 2.
    pub lifeline: RawFd,
    /// The end that writes to us; above 2.
    pub status: RawFd,
}

/// Forks the guardian, which starts the command. Gives back the guardian's process id.
pub(super) fn fork(plan: &Plan<'_>) -> Result<pid_t, i32> {
    // Taken before the fork, because the guardian cannot allocate; of the type that has a stack's alignment.
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    // SAFETY: signal sets are plain data; the child makes only raw system calls and never returns.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        // No handler of ours may run in the guardian: handlers wake our runtime through descriptors it has closed.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            guard(plan, stack.as_mut_ptr());
        }
        let error = errno();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// Waits for a guardian that is known to have ended, or looks whether it has. True when it is gone.
pub(super) fn reap(guardian: pid_t, block: bool) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let got = unsafe { libc::waitpid(guardian, &raw mut status, if block { 0 } else { libc::WNOHANG }) };
        // An error other than an interruption means that someone else, such as an ignored SIGCHLD, reaped it.
        if got >= 0 || errno() != libc::EINTR {
            return got != 0;
        }
    }
}

/// Kills the group that a command leads. Only for when its guardian is gone and nobody else can.
pub(super) fn kill_group(pid: pid_t) {
    if pid > 1 {
        // SAFETY: kill has no memory effects.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

fn errno() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// The guardian's whole life.
unsafe fn guard(plan: &Plan<'_>, stack: *mut u128) -> ! {
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"qwen-guardian".as_ptr());
        // Out of our session: what is sent to our terminal's or our own group is not meant for the guardian.
        libc::setsid();
        // It holds a copy of our memory, keys included, which no command may read.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);

        // Where whoever started us ignores it, the kernel would throw the command's exit status away.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);

        let mut start = Start { plan, guardian: libc::getpid(), failed: None };
        let command = start_command(&mut start, stack);
        let error = errno();
        let failed = ptr::read_volatile(&raw const start.failed);

        // From here on the guardian holds its two pipe ends, as 0 and 1, and nothing else of ours.
        libc::dup2(plan.lifeline, 0);
        libc::dup2(plan.status, 1);
        close_from(2);

        if command < 0 {
            report(1, [FAILED, Step::Fork as i32, error]);
            libc::_exit(1);
        }
        if let Some((step, error)) = failed {
            libc::waitpid(command, ptr::null_mut(), 0);
            report(1, [FAILED, step as i32, error]);
            libc::_exit(1);
        }
        report(1, [STARTED, 0, 0]);
        watch(command);
        libc::_exit(0);
    }
}

unsafe fn close_from(first: libc::c_uint) {
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            // Kernels before 5.9 do not know it.
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            let end = c_int::try_from(limit.rlim_cur).unwrap_or(65_536);
            for fd in c_int::try_from(first).unwrap_or(3)..end {
                libc::close(fd);
            }
        }
    }
}

unsafe fn report(to: RawFd, record: Record) {
    unsafe {
        // Smaller than a pipe promises to take at once. When we are gone nobody reads it, and SIGPIPE is blocked.
        libc::write(to, record.as_ptr().cast::<c_void>(), RECORD_BYTES);
    }
}

/// Shared by the guardian and the command's process while the latter prepares itself.
struct Start<'a> {
    plan: &'a Plan<'a>,
    guardian: pid_t,
    failed: Option<(Step, i32)>,
}

/// Starts the command's process on the guardian's memory and waits until it has exec'ed or failed, as `vfork` does:
/// that spares copying the page tables a second time, and lets a failure be told through memory.
unsafe fn start_command(start: &mut Start<'_>, stack: *mut u128) -> pid_t {
    unsafe {
        let top = stack.add(STACK / size_of::<u128>()).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(command, top, flags, ptr::from_mut(start).cast::<c_void>())
    }
}

/// The command's process up to its exec.
extern "C" fn command(start: *mut c_void) -> c_int {
    // SAFETY: the guardian passes its own `Start` and is suspended while this process uses it.
    let start = unsafe { &mut *start.cast::<Start<'_>>() };
    // SAFETY: raw system calls only, on data that was prepared before the fork.
    let failed = unsafe { become_command(start.plan, start.guardian) };
    // SAFETY: as above; volatile, because the reader is another process on the same memory.
    unsafe { ptr::write_volatile(&raw mut start.failed, Some(failed)) };
    127
}

unsafe fn become_command(plan: &Plan<'_>, guardian: pid_t) -> (Step, i32) {
    unsafe {
        // A guardian that is killed takes at least the command itself along.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != guardian {
            return (Step::Fork, libc::ESRCH);
        }
        libc::setsid();
        report(plan.status, [FORKED, libc::getpid(), 0]);
        for (fd, &source) in (0..).zip(&plan.stdio) {
            if libc::dup2(source, fd) < 0 {
                return (Step::Descriptors, errno());
            }
        }
        if libc::chdir(plan.cwd.as_ptr()) != 0 {
            return (Step::Directory, errno());
        }
        // Ignored signals would stay ignored in the command (Rust ignores SIGPIPE), and no handler of ours may run
        // once signals are let through again.
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        if let Some(hook) = plan.before_exec
            && let Err(error) = hook.apply()
        {
            return (Step::BeforeExec, error);
        }
        // Nothing but what was named reaches the command, not even what our own parent leaked to us.
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
        libc::execve(plan.program.as_ptr(), plan.argv.as_ptr(), plan.envp.as_ptr());
        (Step::Exec, errno())
    }
}

/// What `close_range` does for kernels from 5.11 on.
unsafe fn mark_close_on_exec() {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for fd in 3..c_int::try_from(limit.rlim_cur).unwrap_or(65_536) {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// How far the end of a command has come.
#[derive(Clone, Copy)]
enum Phase {
    /// It runs.
    Running,
    /// It was asked to end, and is killed at this time.
    Asked(i64),
    /// Everything below is killed, given up at this time.
    Killing(i64),
}

/// Watches the command until nothing below the guardian is left.
unsafe fn watch(command: pid_t) {
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut mask);
        libc::sigaddset(&raw mut mask, libc::SIGCHLD);
        let signals = libc::signalfd(-1, &raw const mask, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        let mut lifeline: RawFd = 0;
        let mut leader = Some(command);
        let mut phase = Phase::Running;
        loop {
            let was_running = leader.is_some();
            if !reap_the_dead(&mut leader) {
                return;
            }
            if was_running && leader.is_none() {
                phase = Phase::Killing(now() + KILL_LIMIT_MS);
            }
            let wait = match phase {
                // Without a descriptor for signals, which takes a system at its limits, look now and then.
                Phase::Running if signals < 0 => ROUND_MS,
                Phase::Running => -1,
                Phase::Asked(until) => {
                    let left = until - now();
                    if left <= 0 {
                        phase = Phase::Killing(now() + KILL_LIMIT_MS);
                        continue;
                    }
                    left
                }
                Phase::Killing(until) => {
                    if now() >= until {
                        return;
                    }
                    if let Some(pid) = leader {
                        libc::kill(-pid, libc::SIGKILL);
                    }
                    kill_children();
                    ROUND_MS
                }
            };
            let mut fds = [
                libc::pollfd { fd: lifeline, events: libc::POLLIN, revents: 0 },
                libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
            ];
            libc::poll(fds.as_mut_ptr(), 2, c_int::try_from(wait).unwrap_or(-1));
            if fds[1].revents != 0 {
                let mut info: libc::signalfd_siginfo = std::mem::zeroed();
                libc::read(signals, (&raw mut info).cast::<c_void>(), size_of::<libc::signalfd_siginfo>());
            }
            if fds[0].revents != 0 {
                let mut byte = 0u8;
                if libc::read(lifeline, (&raw mut byte).cast::<c_void>(), 1) == 1 {
                    if let (Phase::Running, Some(pid)) = (phase, leader) {
                        libc::kill(-pid, libc::SIGTERM);
                        // A stopped process sees its signal when it goes on.
                        libc::kill(-pid, libc::SIGCONT);
                        phase = Phase::Asked(now() + GRACE_MS);
                    }
                } else {
                    // Nobody holds the other end: we are gone, or have lost interest. Kill at once.
                    lifeline = -1;
                    phase = Phase::Killing(now() + KILL_LIMIT_MS);
                }
            }
        }
    }
}

/// Reaps what has ended and reports the end of the command itself. False when no child is left.
unsafe fn reap_the_dead(leader: &mut Option<pid_t>) -> bool {
    unsafe {
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            // Look first, reap later: an unreaped leader keeps the group's id from being used anew.
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &raw mut info, options) != 0 {
                if errno() == libc::EINTR {
                    continue;
                }
                return false;
            }
            let pid = info.si_pid();
            if pid == 0 {
                return true;
            }
            let mut status = 0;
            if *leader == Some(pid) {
                *leader = None;
                libc::kill(-pid, libc::SIGKILL);
                libc::waitpid(pid, &raw mut status, 0);
                report(1, [EXITED, status, 0]);
            } else {
                libc::waitpid(pid, &raw mut status, 0);
            }
        }
    }
}

/// Kills every direct child and the group that it may lead. Their own children become ours and are next.
unsafe fn kill_children() {
    let kill = |pid: pid_t| {
        if pid > 1 {
            // SAFETY: kill has no memory effects, and a child that we have not reaped keeps its id.
            unsafe {
                libc::kill(-pid, libc::SIGKILL);
                libc::kill(pid, libc::SIGKILL);
            }
        }
    };
    unsafe {
        // Not every kernel is built with the list of a process's own children.
        if !each_child_listed(kill) {
            each_child_among_all(kill);
        }
    }
}

fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.wrapping_mul(1000).wrapping_add(time.tv_nsec / 1_000_000)
}
