//! The guardian: a small process between us and a command, so that nothing a command started outlives it or us.
//!
//! It is forked, not exec'ed, and from then on makes raw system calls only: other threads of ours may have held any
//! lock at the moment of the fork, the allocator's included. It adopts every orphan below it (child subreaper), so
//! all that a command leaves behind, in whatever session or group, ends up as a direct child of the guardian. Killing
//! direct children until there are none therefore ends a whole tree, without a race for recycled process ids.
//!
//! It watches over one command at a time, since the orphans of two could not be told apart. When nothing of a command
//! is left it may be given another one: forking us anew copies our page tables and every page that we write next.
//!
//! This file is Linux: subreapers, `signalfd` and `close_range`.
#![expect(unsafe_code, reason = "fork and what follows it are raw system calls by nature")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{size_of_val, zeroed};
use std::os::fd::RawFd;
use std::ptr;

use libc::pid_t;

use super::BeforeExec;
use super::children::{each_child_among_all, each_child_listed};
use super::command::{self, Plan, STACK};
use super::{order, orphans};

/// How long a command that was asked to end may take to do so.
pub(super) const GRACE_MS: i64 = 200;
/// How long killing may take before the guardian gives up on what the kernel will not kill for it.
pub(super) const KILL_LIMIT_MS: i64 = 3_000;
/// How long to wait for the kernel between two rounds of killing.
const ROUND_MS: i64 = 10;
/// The line to us, as the guardian has it.
const LINE: RawFd = 0;

/// What we say to have the command ended politely.
pub(super) const TERMINATE: u8 = b'T';

/// One message of the guardian to us: three numbers.
pub(super) type Record = [i32; 3];
/// The size of a message in bytes.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();
/// `[FORKED, pid, 0]`: the command's process is there; it says so itself, before it can do harm.
pub(super) const FORKED: i32 = 1;
/// `[STARTED, 0, 0]`: the command runs.
pub(super) const STARTED: i32 = 2;
/// `[FAILED, step, errno]`: the command could not be started.
pub(super) const FAILED: i32 = 3;
/// `[EXITED, wait status, 0]`: the command ended, and what it started is being ended.
pub(super) const EXITED: i32 = 4;
/// `[CLEAR, wait status, 0]`: the command ended, nothing of it is left, and another order is awaited.
pub(super) const CLEAR: i32 = 5;

/// What a guardian works with, taken before the fork, because it cannot allocate.
struct Room {
    /// Of the type that has a stack's alignment.
    stack: Vec<u128>,
    /// Where an order is received, and the pointers into it; empty where there will be none.
    order: Vec<u8>,
    pointers: Vec<*const c_char>,
    /// The descriptors that must stay open, ascending.
    open: Vec<RawFd>,
}

/// Forks the guardian, which starts the command. Gives back the guardian's process id. With `stays` it waits for
/// another order when the command is gone, which it carries out after the same `before_exec`.
pub(super) fn fork(plan: &Plan<'_>, stays: bool) -> Result<pid_t, i32> {
    let mut open = plan.before_exec.filter(|_| stays).map(BeforeExec::descriptors).unwrap_or_default();
    open.sort_unstable();
    let mut room = Room {
        stack: Vec::with_capacity(STACK / size_of::<u128>()),
        order: vec![0; if stays { order::ROOM } else { 0 }],
        pointers: vec![ptr::null(); if stays { order::TEXTS } else { 0 }],
        open,
    };
    // SAFETY: signal sets are plain data; the child makes only raw system calls and never returns.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        // No handler of ours may run in the guardian: handlers wake our runtime through descriptors it has closed.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = orphans::note_guardian(|| {
            let pid = libc::fork();
            if pid == 0 {
                guard(plan, &mut room);
            }
            pid
        });
        let error = errno();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// Waits for a guardian that is known to have ended, or looks whether it has. True when it is gone. Where somebody
/// killed it, what it can no longer end is ended too.
pub(super) fn reap(guardian: pid_t, block: bool) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let got = unsafe { libc::waitpid(guardian, &raw mut status, if block { 0 } else { libc::WNOHANG }) };
        // An error other than an interruption means that someone else, such as an ignored SIGCHLD, reaped it.
        if got >= 0 || errno() != libc::EINTR {
            if got != 0 {
                orphans::forget_guardian(guardian);
            }
            if got == guardian && libc::WIFSIGNALED(status) {
                orphans::end();
            }
            return got != 0;
        }
    }
}

/// Kills a guardian that has no command, and waits for that.
pub(super) fn end(guardian: pid_t) {
    kill(guardian);
    // SAFETY: no memory is touched.
    while unsafe { libc::waitpid(guardian, ptr::null_mut(), 0) } < 0 && errno() == libc::EINTR {}
    orphans::forget_guardian(guardian);
}

/// Kills a guardian. It is a child of ours that was not reaped, so its id is its own.
pub(super) fn kill(guardian: pid_t) {
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(guardian, libc::SIGKILL) };
}

/// Has a guardian go on that its command may have stopped.
pub(super) fn go_on(guardian: pid_t) {
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(guardian, libc::SIGCONT) };
}

/// Kills the group that a command leads. Only for when its guardian is gone and nobody else can.
pub(super) fn kill_group(pid: pid_t) {
    if pid > 1 {
        // SAFETY: kill has no memory effects.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

pub(super) fn errno() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// The guardian's whole life.
unsafe fn guard(plan: &Plan<'_>, room: &mut Room) -> ! {
    // SAFETY: runs after the fork, in a process with one thread: raw system calls on what was prepared before.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"qwen-guardian".as_ptr());
        // Out of our session: what is sent to our terminal's or our own group is not meant for the guardian.
        libc::setsid();
        // It holds a copy of our memory, keys included, which no command may read.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);

        // What is ignored would stay ignored in commands (Rust ignores SIGPIPE), and no handler of ours may run there.
        // Where whoever started us ignores SIGCHLD, the kernel would throw the commands' exit statuses away.
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }

        let prepared = plan.before_exec.map_or(Ok(()), BeforeExec::prepare);
        // Its command may have stopped it when we are killed; it must see that we are gone. Said only now, because
        // entering a user namespace forgets it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT, 0, 0, 0);
        let mut started = match prepared {
            Ok(()) => command::start(plan, room.stack.as_mut_ptr()),
            Err(error) => Err((command::Step::BeforeExec, error)),
        };

        // From here on the guardian holds the line to us, what entering the sandbox takes, and nothing else of ours.
        // What it is handed later must not get a standard descriptor's number.
        for fd in LINE..=2 {
            libc::dup2(plan.line, fd);
        }
        close_all_but(&room.open);
        let mut mask: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut mask);
        libc::sigaddset(&raw mut mask, libc::SIGCHLD);
        let signals = libc::signalfd(-1, &raw const mask, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);

        loop {
            match started {
                Ok(command) => {
                    report(LINE, [STARTED, 0, 0]);
                    let end = watch(command, signals);
                    if room.order.is_empty() || !end.orders_may_come {
                        if let Some(status) = end.untold {
                            report(LINE, [EXITED, status, 0]);
                        }
                        libc::_exit(0);
                    }
                    report(LINE, [CLEAR, end.status, 0]);
                }
                Err((step, error)) => {
                    report(LINE, [FAILED, step as i32, error]);
                    libc::_exit(1);
                }
            }
            let (length, stdio) = next_order(&mut room.order);
            let order = room.order.get(..length).unwrap_or_default();
            let Some(texts) = order::read(order, &mut room.pointers) else { libc::_exit(1) };
            let plan = Plan { texts, stdio, keep: &[], before_exec: plan.before_exec, line: LINE };
            started = command::start(&plan, room.stack.as_mut_ptr());
            for fd in stdio {
                libc::close(fd);
            }
        }
    }
}

/// Waits for an order and what the command reads from and writes to. Ends the guardian when nobody can give one.
unsafe fn next_order(room: &mut [u8]) -> (usize, [RawFd; 3]) {
    /// Three descriptors, in bytes.
    const DESCRIPTORS: libc::c_uint = 12;
    // SAFETY: the message header points at buffers of this frame that outlive the call.
    unsafe {
        loop {
            // Of the type that has the alignment of what is read from it.
            let mut control = [0u64; 8];
            let mut piece = libc::iovec { iov_base: room.as_mut_ptr().cast::<c_void>(), iov_len: room.len() };
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &raw mut piece;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast::<c_void>();
            message.msg_controllen = size_of_val(&control) as _;
            let got = libc::recvmsg(LINE, &raw mut message, libc::MSG_CMSG_CLOEXEC);
            match usize::try_from(got) {
                Ok(0) => libc::_exit(0),
                Err(_) if errno() == libc::EINTR => {}
                Err(_) => libc::_exit(1),
                Ok(length) if room.first() == Some(&order::ORDER) => {
                    let header = libc::CMSG_FIRSTHDR(&raw const message);
                    let mut stdio: [RawFd; 3] = [-1; 3];
                    if header.is_null()
                        || (*header).cmsg_type != libc::SCM_RIGHTS
                        || (*header).cmsg_len as usize != libc::CMSG_LEN(DESCRIPTORS) as usize
                    {
                        libc::_exit(1);
                    }
                    ptr::copy_nonoverlapping(
                        libc::CMSG_DATA(header),
                        stdio.as_mut_ptr().cast::<u8>(),
                        size_of_val(&stdio),
                    );
                    return (length, stdio);
                }
                // A command that was asked to end had ended by itself meanwhile.
                Ok(_) => {}
            }
        }
    }
}

/// Closes everything above the standard descriptors but these, which ascend.
unsafe fn close_all_but(open: &[RawFd]) {
    // SAFETY: the caller owns every descriptor of this process.
    unsafe {
        let mut first: RawFd = 3;
        for &fd in open {
            close_range(first, fd - 1);
            first = fd + 1;
        }
        close_range(first, RawFd::MAX);
    }
}

unsafe fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: the caller owns the descriptors of the range; `rlimit` is plain data.
    unsafe {
        if first <= last && libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            // Kernels before 5.9 do not know it.
            let mut limit: libc::rlimit = zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            let end = c_int::try_from(limit.rlim_cur).unwrap_or(65_536);
            for fd in first..=last.min(end) {
                libc::close(fd);
            }
        }
    }
}

pub(super) unsafe fn report(to: RawFd, record: Record) {
    // SAFETY: the record is as long as the call is told.
    unsafe {
        // When we are gone nobody reads it, and SIGPIPE is blocked.
        libc::write(to, record.as_ptr().cast::<c_void>(), RECORD_BYTES);
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

/// How a command came to its end.
struct End {
    status: c_int,
    /// The wait status, if it was not reported yet.
    untold: Option<c_int>,
    /// Nothing is left of the command, and we are still there.
    orders_may_come: bool,
}

/// Watches the command until nothing below the guardian is left.
unsafe fn watch(command: pid_t, signals: RawFd) -> End {
    // SAFETY: only system calls on data of this frame, in a process with one thread.
    unsafe {
        let mut lifeline = LINE;
        let mut leader = Some(command);
        let mut phase = Phase::Running;
        let mut end = End { status: 0, untold: None, orders_may_come: false };
        loop {
            let was_running = leader.is_some();
            if !reap_the_dead(&mut leader, &mut end.status) {
                end.untold = was_running.then_some(end.status);
                end.orders_may_come = lifeline >= 0;
                return end;
            }
            if was_running && leader.is_none() {
                report(LINE, [EXITED, end.status, 0]);
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
                        return end;
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
                let mut info: libc::signalfd_siginfo = zeroed();
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

/// Reaps what has ended and keeps the wait status of the command itself. False when no child is left.
unsafe fn reap_the_dead(leader: &mut Option<pid_t>, status: &mut c_int) -> bool {
    // SAFETY: `siginfo_t` is plain data that the kernel fills in.
    unsafe {
        loop {
            let mut info: libc::siginfo_t = zeroed();
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
            if *leader == Some(pid) {
                *leader = None;
                libc::kill(-pid, libc::SIGKILL);
                libc::waitpid(pid, ptr::from_mut(status), 0);
            } else {
                libc::waitpid(pid, ptr::null_mut(), 0);
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
    // SAFETY: runs in the guardian, which has one thread; both only make system calls.
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
