//! The guardian: a small process between us and a command, so that no process of a command outlives the
//! command or us.
//!
//! It is forked, not exec'ed, and from then on makes raw system calls only: our other threads may have held
//! any lock at the fork, including the allocator's. It adopts every orphan below it (child subreaper), so
//! every process that a command leaves behind, in any session or group, becomes a direct child of the
//! guardian. Killing direct children until there are none therefore ends a whole tree, without a race for
//! recycled process ids.
//!
//! It supervises one command at a time, because the orphans of two could not be distinguished. When all
//! processes of a command have ended, it can be reused for another one: a new fork copies our page tables and
//! every page that we write next.
//!
//! Linux only: needs subreapers, `signalfd` and `close_range`.
#![expect(unsafe_code, reason = "fork and what follows it are raw system calls by nature")]

use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_void};
use std::mem::{size_of_val, zeroed};
use std::os::fd::RawFd;
use std::ptr;

use libc::pid_t;

use super::BeforeExec;
use super::children::{each_child_among_all, each_child_listed};
use super::command::{self, Plan, STACK};
use super::{first, order, orphans};
use crate::kernel::{ProcessStack, run_as_parent};

/// How long a command that was asked to end may take to do so.
pub(super) const GRACE_MS: i64 = 200;
/// How long killing may take before the guardian gives up on processes that do not die.
pub(super) const KILL_LIMIT_MS: i64 = 3_000;
/// How long to wait for the kernel between two rounds of killing.
const ROUND_MS: i64 = 10;
/// The guardian's descriptor of the line to us.
const LINE: RawFd = 0;

/// Our message that asks the guardian to terminate the command.
pub(super) const TERMINATE: u8 = b'T';

/// One message of the guardian to us: three numbers.
pub(super) type Record = [i32; 3];
/// The size of a message in bytes.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();
/// `[FORKED, pid, 0]`: the command's process exists. It sends this itself, before it runs the command.
pub(super) const FORKED: i32 = 1;
/// `[STARTED, 0, 0]`: the command runs.
pub(super) const STARTED: i32 = 2;
/// `[FAILED, step, errno]`: the command could not be started.
pub(super) const FAILED: i32 = 3;
/// `[EXITED, wait status, 0]`: the command ended, and its remaining processes are being killed.
pub(super) const EXITED: i32 = 4;
/// `[CLEAR, wait status, 0]`: the command and all its processes ended, and the guardian waits for another
/// order.
pub(super) const CLEAR: i32 = 5;

/// Memory for a guardian, allocated before the fork because the guardian cannot allocate.
struct GuardianMemory {
    /// `u128` has the alignment of a stack.
    stack: Vec<u128>,
    /// Buffer for an order, and the pointers into it; empty if the guardian takes no further order.
    order: Vec<u8>,
    pointers: Vec<*const c_char>,
    /// The descriptors that must stay open, ascending.
    open: Vec<RawFd>,
}

/// Forks the guardian, which starts the command. Returns the guardian's process id. With `stays` it waits for
/// another order when the command has ended, and runs it with the same `before_exec`.
pub(super) fn fork(plan: &Plan<'_>, stays: bool) -> Result<pid_t, i32> {
    let mut open = plan.before_exec.map(BeforeExec::descriptors).unwrap_or_default();
    open.sort_unstable();
    let mut room = GuardianMemory {
        stack: Vec::with_capacity(STACK / size_of::<u128>()),
        order: vec![0; if stays { order::MAX_ORDER_BYTES } else { 0 }],
        pointers: vec![ptr::null(); if stays { order::TEXTS } else { 0 }],
        open,
    };
    match plan.before_exec.filter(|hook| hook.has_family()) {
        // SAFETY: `guard` makes only raw system calls and never returns.
        None => unsafe { fork_child(|| guard(plan, &mut room)) },
        Some(hook) => {
            let mut birth = Birth { hook, plan, room: &mut room, born: Err(0) };
            let mut stack = ProcessStack::new();
            let pid = orphans::note_guardian(|| {
                let ran = run_as_parent(&mut stack, bear, &mut birth);
                ran.and(birth.born).map_or(-1, |pid| pid)
            });
            if pid > 0 {
                Ok(pid)
            } else {
                Err(birth.born.err().filter(|error| *error != 0).unwrap_or(libc::EAGAIN))
            }
        }
    }
}

/// What the parent of a guardian needs, which enters what only its children are in.
struct Birth<'a> {
    hook: &'a dyn BeforeExec,
    plan: &'a Plan<'a>,
    room: &'a mut GuardianMemory,
    born: Result<pid_t, i32>,
}

/// Forks the guardian as a sibling of the caller, a process that shares our memory.
fn bear(birth: &mut Birth<'_>) {
    birth.born = birth.hook.join().and_then(|()| {
        // SAFETY: the caller makes only system calls, and so does `guard`, which never returns.
        unsafe {
            match libc::syscall(libc::SYS_clone, libc::CLONE_PARENT, 0, 0, 0, 0) {
                0 => guard(birth.plan, birth.room),
                pid if pid > 0 => pid_t::try_from(pid).map_err(|_| libc::EOVERFLOW),
                _ => Err(errno()),
            }
        }
    });
}

/// Forks a child that runs `main` with all signals blocked: no handler of ours may run in it, because
/// handlers wake our runtime through descriptors that the child closes. Returns its process id, or the error
/// number.
///
/// # Safety
/// `main` runs in a copy of a process with several threads: it must make only raw system calls.
pub(super) unsafe fn fork_child(main: impl FnOnce() -> Infallible) -> Result<pid_t, i32> {
    // SAFETY: signal sets are plain data; what the child does is the caller's promise.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = orphans::note_guardian(|| {
            let pid = libc::fork();
            if pid == 0 {
                match main() {}
            }
            pid
        });
        let error = errno();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// Waits for a guardian that is known to have ended, or checks whether it has. Returns true if it has ended.
/// If it was killed, its remaining processes are killed too.
pub(super) fn reap(guardian: pid_t, block: bool) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let got = unsafe { libc::waitpid(guardian, &raw mut status, if block { 0 } else { libc::WNOHANG }) };
        // Any other error means that it was reaped elsewhere, for example because SIGCHLD is ignored.
        if got >= 0 || errno() != libc::EINTR {
            if got != 0 {
                orphans::forget_guardian(guardian);
            }
            if got == guardian && libc::WIFSIGNALED(status) {
                orphans::end();
                first::end_orphans();
            }
            return got != 0;
        }
    }
}

/// Kills a guardian without a command and waits for its end.
pub(super) fn end(guardian: pid_t) {
    kill(guardian);
    // SAFETY: no memory is touched.
    while unsafe { libc::waitpid(guardian, ptr::null_mut(), 0) } < 0 && errno() == libc::EINTR {}
    orphans::forget_guardian(guardian);
}

/// Kills a guardian. It is our unreaped child, so its id cannot have been reused.
pub(super) fn kill(guardian: pid_t) {
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(guardian, libc::SIGKILL) };
}

/// Resumes a guardian that its command may have stopped.
pub(super) fn wake(guardian: pid_t) {
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(guardian, libc::SIGCONT) };
}

/// Kills the process group of a command. Only used when its guardian is gone.
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

/// The guardian's main function.
unsafe fn guard(plan: &Plan<'_>, room: &mut GuardianMemory) -> ! {
    // SAFETY: runs after the fork, in a process with one thread: raw system calls on what was prepared
    // before.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"qwen-guardian".as_ptr());
        // Leave our session: signals to our terminal's or our own process group are not meant for the
        // guardian.
        libc::setsid();
        // It holds a copy of our memory, keys included, which no command may read.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);

        // Ignored signals would stay ignored in commands (Rust ignores SIGPIPE), and none of our handlers may
        // run there. If our parent ignores SIGCHLD, the kernel would discard the commands' exit statuses.
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }

        let join = |hook: &dyn BeforeExec| if hook.has_family() { Ok(()) } else { hook.join() };
        let prepared = plan.before_exec.map_or(Ok(()), |hook| join(hook).and_then(|()| hook.prepare()));
        // Its command may have stopped it when we are killed; it must notice that we are gone. Set only now,
        // because entering a user namespace clears it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT, 0, 0, 0);
        let mut started = match prepared {
            Ok(()) => command::start(plan, room.stack.as_mut_ptr()),
            Err(error) => Err((command::Step::BeforeExec, error)),
        };

        // From here on the guardian holds only the line to us and the descriptors for entering the sandbox.
        // Descriptors that it receives later must not get a standard descriptor's number.
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

/// Waits for an order and the command's standard descriptors. Exits the guardian if the line is closed.
unsafe fn next_order(room: &mut [u8]) -> (usize, [RawFd; 3]) {
    /// Three descriptors, in bytes.
    const DESCRIPTORS: libc::c_uint = 12;
    // SAFETY: the message header points at buffers of this frame that outlive the call.
    unsafe {
        loop {
            // `u64` has the alignment that the control message needs.
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
                // A late request to terminate a command that has already ended.
                Ok(_) => {}
            }
        }
    }
}

/// Closes all descriptors above the standard ones except these, which are sorted.
pub(super) unsafe fn close_all_but(open: &[RawFd]) {
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
            // Kernels before 5.9 do not have it.
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
    // SAFETY: the record has the length that is passed to the call.
    unsafe {
        // If we are gone the write fails, and SIGPIPE is blocked.
        libc::write(to, record.as_ptr().cast::<c_void>(), RECORD_BYTES);
    }
}

/// The state of a supervised command.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// Asked to end; killed at this time.
    Asked(i64),
    /// All descendants are being killed; the guardian gives up at this time.
    Killing(i64),
}

struct End {
    status: c_int,
    /// The wait status, if it was not reported yet.
    untold: Option<c_int>,
    /// All processes of the command have ended, and the line to us is open.
    orders_may_come: bool,
}

/// Supervises the command until the guardian has no children left.
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
                // Poll if there is no signal descriptor, which happens only when the system is out of
                // descriptors.
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
                        // A stopped process handles the signal only after it continues.
                        libc::kill(-pid, libc::SIGCONT);
                        phase = Phase::Asked(now() + GRACE_MS);
                    }
                } else {
                    // The other end is closed: we have exited or dropped the command. Kill at once.
                    lifeline = -1;
                    phase = Phase::Killing(now() + KILL_LIMIT_MS);
                }
            }
        }
    }
}

/// Reaps ended children and stores the wait status of the command itself. Returns false if no child is left.
unsafe fn reap_the_dead(leader: &mut Option<pid_t>, status: &mut c_int) -> bool {
    // SAFETY: `siginfo_t` is plain data that the kernel fills in.
    unsafe {
        loop {
            let mut info: libc::siginfo_t = zeroed();
            // Peek first, reap later: an unreaped leader prevents reuse of the group's id.
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

/// Kills every direct child and the group that it may lead. Their children are then adopted and killed next.
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
        // Not every kernel provides the list of a process's children.
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
