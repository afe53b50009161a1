//! Thin wrappers of the system calls that the sandbox uses. They also run between fork and exec, where
//! nothing may allocate, lock or panic. Each returns the `errno` if it fails.
#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper that is fit for use between fork and exec"
)]

pub(crate) mod covers;
pub(crate) mod disowned;
pub(crate) mod landlock;
pub(crate) mod namespaces;
pub(crate) mod seccomp;
pub(crate) mod shields;

use std::ffi::{CStr, c_int, c_long, c_uint, c_void};
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;

use rustix::fs::RawDir;

/// The result of a system call: a value, or an `errno`.
pub(crate) type Outcome<T = ()> = Result<T, i32>;

/// Makes `open_tree` clone the mount instead of only referring to it.
const CLONE: c_uint = 1;
/// Makes `move_mount` take its source from a descriptor alone.
const FROM_DESCRIPTOR: c_uint = 0x4;
/// Makes `move_mount` follow a link at the target path.
const FOLLOW_TARGET: c_uint = 0x10;
const KIND_AND_MODE: c_uint = libc::STATX_TYPE | libc::STATX_MODE;

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymlinkMode {
    Follow,
    Keep,
}

fn errno() -> i32 {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

fn done(returned: c_long) -> Outcome {
    if returned < 0 { Err(errno()) } else { Ok(()) }
}

fn descriptor(returned: c_long) -> Outcome<RawFd> {
    if returned < 0 { Err(errno()) } else { RawFd::try_from(returned).map_err(|_| libc::EBADF) }
}

/// The file system's type of a path, and whether something is mounted right there.
pub(crate) struct PathStatus {
    mode: u16,
    pub mounted: bool,
}

impl PathStatus {
    pub(crate) fn is(&self, kind: libc::mode_t) -> bool {
        libc::mode_t::from(self.mode) & libc::S_IFMT == kind
    }

    pub(crate) fn has_sticky_bit(&self) -> bool {
        libc::mode_t::from(self.mode) & libc::S_ISVTX != 0
    }
}

pub(crate) fn find(path: &CStr, links: SymlinkMode) -> Outcome<PathStatus> {
    let flags =
        libc::AT_NO_AUTOMOUNT | if links == SymlinkMode::Keep { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
    // SAFETY: a statx structure is plain data; the path ends with a zero.
    unsafe {
        let mut found: libc::statx = zeroed();
        done(libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, KIND_AND_MODE, &raw mut found).into())?;
        let mounted = found.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0;
        Ok(PathStatus { mode: found.stx_mode, mounted })
    }
}

/// Clones the mount at a path, with the mounts below it. The copy is detached.
pub(crate) fn clone_tree(path: &CStr, links: SymlinkMode) -> Outcome<RawFd> {
    let nofollow = if links == SymlinkMode::Keep { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
    let flags = CLONE | (libc::O_CLOEXEC | libc::AT_RECURSIVE | nofollow).cast_unsigned();
    // SAFETY: the path ends with a zero.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// Clones the mount at a name in a directory.
pub(crate) fn clone_named(directory: RawFd, name: &CStr) -> Outcome<RawFd> {
    let flags = CLONE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: the name ends with a zero.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, directory, name.as_ptr(), flags) })
}

/// Like [`clone_tree`], for the file of a descriptor.
pub(crate) fn clone_descriptor(fd: RawFd) -> Outcome<RawFd> {
    let flags = CLONE | (libc::O_CLOEXEC | libc::AT_EMPTY_PATH).cast_unsigned();
    // SAFETY: the path is an empty text.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) })
}

/// Makes a detached mount and all mounts below it read-only.
pub(crate) fn make_read_only(tree: RawFd) -> Outcome {
    set_read_only(tree, c"", libc::AT_EMPTY_PATH)
}

/// Makes all mounts of the namespace read-only.
pub(crate) fn make_everything_read_only() -> Outcome {
    set_read_only(libc::AT_FDCWD, c"/", 0)
}

fn set_read_only(at: RawFd, path: &CStr, flags: c_int) -> Outcome {
    // SAFETY: the structure outlives the call, and its size goes along.
    unsafe {
        let mut attr: libc::mount_attr = zeroed();
        attr.attr_set = libc::MOUNT_ATTR_RDONLY;
        let flags = (flags | libc::AT_RECURSIVE).cast_unsigned();
        let size = size_of::<libc::mount_attr>();
        done(libc::syscall(libc::SYS_mount_setattr, at, path.as_ptr(), flags, &raw const attr, size))
    }
}

/// Makes the files of a detached mount belong to no user who is mapped in `users`, and makes it read-only.
pub(crate) fn disown(tree: RawFd, users: RawFd) -> Outcome {
    // SAFETY: the structure outlives the call, and its size goes along.
    unsafe {
        let mut attr: libc::mount_attr = zeroed();
        attr.attr_set = libc::MOUNT_ATTR_IDMAP | libc::MOUNT_ATTR_RDONLY;
        attr.userns_fd = u64::try_from(users).map_err(|_| libc::EBADF)?;
        let size = size_of::<libc::mount_attr>();
        let flags = libc::AT_EMPTY_PATH;
        done(libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const attr, size))
    }
}

/// Attaches a cloned mount at a path.
pub(crate) fn attach(tree: RawFd, path: &CStr, links: SymlinkMode) -> Outcome {
    let flags = FROM_DESCRIPTOR | if links == SymlinkMode::Follow { FOLLOW_TARGET } else { 0 };
    // SAFETY: both paths end with a zero.
    done(unsafe {
        libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), libc::AT_FDCWD, path.as_ptr(), flags)
    })
}

/// Makes mounts one-way: later mounts stay in this namespace, and unmounts outside propagate into it.
pub(crate) fn follow_outside_mounts() -> Outcome {
    let flags = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: the texts end with a zero; the kernel ignores the others.
    done(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), ptr::null(), flags, ptr::null()) }.into())
}

/// Mounts an empty file system in memory, without devices and privileged programs.
pub(crate) fn mount_memory(path: &CStr, options: &CStr) -> Outcome {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    let kind = c"tmpfs".as_ptr();
    // SAFETY: all texts end with a zero.
    done(unsafe { libc::mount(kind, path.as_ptr(), kind, flags, options.as_ptr().cast::<c_void>()) }.into())
}

/// Mounts a private terminal file system. It contains only terminals that are opened in it.
pub(crate) fn mount_terminals(path: &CStr) -> Outcome {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    let kind = c"devpts".as_ptr();
    let options = c"newinstance,ptmxmode=0666,mode=620".as_ptr().cast::<c_void>();
    // SAFETY: all texts end with a zero.
    done(unsafe { libc::mount(kind, path.as_ptr(), kind, flags, options) }.into())
}

/// Mounts the processes of this process's namespace. Others than those that the reader may trace are invisible.
pub(crate) fn mount_processes(path: &CStr) -> Outcome {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let kind = c"proc".as_ptr();
    let options = c"hidepid=ptraceable".as_ptr().cast::<c_void>();
    // SAFETY: all texts end with a zero.
    done(unsafe { libc::mount(kind, path.as_ptr(), kind, flags, options) }.into())
}

pub(crate) fn make_directory(path: &CStr, mode: libc::mode_t) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::mkdir(path.as_ptr(), mode) }.into())
}

/// Creates a device without a driver. On a mount without device support every open of it fails.
pub(crate) fn make_void_device(path: &CStr) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR, 0) }.into())
}

pub(crate) fn make_empty_file(path: &CStr, mode: libc::mode_t) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | mode, 0) }.into())
}

/// Sets the size of a file without writing content.
pub(crate) fn set_size(path: &CStr, size: u64) -> Outcome {
    let size = libc::off_t::try_from(size).map_err(|_| libc::EFBIG)?;
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::truncate(path.as_ptr(), size) }.into())
}

/// Sets the time of the last change, in seconds since 1970.
pub(crate) fn set_modified(path: &CStr, seconds: i64) -> Outcome {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    // SAFETY: the path ends with a zero, and the two times outlive the call.
    done(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), [time; 2].as_ptr(), 0) }.into())
}

pub(crate) fn change_mode(path: &CStr, mode: libc::mode_t) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::chmod(path.as_ptr(), mode) }.into())
}

/// Opens a path with `O_PATH`.
pub(crate) fn point_at(path: &CStr) -> Outcome<RawFd> {
    open(path, libc::O_PATH)
}

pub(crate) fn open(path: &CStr, flags: c_int) -> Outcome<RawFd> {
    // SAFETY: the path ends with a zero.
    descriptor(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) }.into())
}

/// True if a directory has no entries.
pub(crate) fn is_empty_directory(path: &CStr) -> Outcome<bool> {
    let directory = open(path, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW)?;
    let mut room = [MaybeUninit::uninit(); 512];
    // SAFETY: the descriptor is open until the entries were read.
    let mut entries = RawDir::new(unsafe { BorrowedFd::borrow_raw(directory) }, &mut room);
    let mut is_empty = true;
    while let Some(entry) = entries.next() {
        is_empty &= entry.is_ok_and(|entry| [c".", c".."].contains(&entry.file_name()));
    }
    close(directory);
    Ok(is_empty)
}

/// Creates a file that everyone may read.
pub(crate) fn create_file(path: &CStr, text: &[u8]) -> Outcome {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let fd = descriptor(unsafe { libc::open(path.as_ptr(), flags, 0o644) }.into())?;
    write_and_close(fd, text)
}

/// Writes a text with a single call, as files below `/proc` require.
pub(crate) fn write_file(path: &CStr, text: &[u8]) -> Outcome {
    write_and_close(open(path, libc::O_WRONLY)?, text)
}

fn write_and_close(fd: RawFd, text: &[u8]) -> Outcome {
    // SAFETY: the text outlives the call.
    let written = unsafe { libc::write(fd, text.as_ptr().cast::<c_void>(), text.len()) };
    let outcome = if written < 0 { Err(errno()) } else { Ok(()) };
    close(fd);
    outcome
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: the callers close what they opened.
    unsafe { libc::close(fd) };
}

/// Moves the process into new namespaces.
pub(crate) fn unshare(flags: c_int) -> Outcome {
    // SAFETY: no memory is touched.
    done(unsafe { libc::unshare(flags) }.into())
}

/// Enters a namespace.
pub(crate) fn enter(namespace: RawFd, kind: c_int) -> Outcome {
    // SAFETY: no memory is touched.
    done(unsafe { libc::setns(namespace, kind) }.into())
}

/// Brings up the loopback interface of a new network namespace. It reaches only that namespace.
pub(crate) fn loopback_up() -> Outcome {
    const LOOPBACK: &CStr = c"lo";
    const UP: i16 = 1;
    // SAFETY: an interface request is plain data and outlives the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        done(socket.into())?;
        let mut request: libc::ifreq = zeroed();
        ptr::copy_nonoverlapping(LOOPBACK.as_ptr(), request.ifr_name.as_mut_ptr(), LOOPBACK.count_bytes());
        request.ifr_ifru.ifru_flags = UP;
        let outcome = done(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request).into());
        close(socket);
        outcome
    }
}

/// Opens a listening socket on the loopback of this process's network, on a free port.
pub(crate) fn listen_on_loopback() -> Outcome<RawFd> {
    const BACKLOG: c_int = 64;
    // SAFETY: an address is plain data and outlives the calls.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = descriptor(libc::socket(libc::AF_INET, kind, 0).into())?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default();
        address.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
        let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).unwrap_or_default();
        let listening = done(libc::bind(socket, (&raw const address).cast(), length).into())
            .and_then(|()| done(libc::listen(socket, BACKLOG).into()));
        if let Err(error) = listening {
            close(socket);
            return Err(error);
        }
        Ok(socket)
    }
}

/// Prevents later programs from gaining privileges, for example through setuid bits.
pub(crate) fn no_new_privileges() -> Outcome {
    // SAFETY: no memory is touched.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityWord {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The layout with two 32-bit words per set.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Drops every capability whose bit is not set in `kept`.
pub(crate) fn keep_capabilities(kept: u64) -> Outcome {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut words = [CapabilityWord::default(); 2];
    // SAFETY: the structures have the kernel's layout and outlive the calls.
    unsafe {
        done(libc::syscall(libc::SYS_capget, &raw const header, words.as_mut_ptr()))?;
        let halves = [kept & u64::from(u32::MAX), kept >> 32];
        for (word, half) in words.iter_mut().zip(halves) {
            let half = u32::try_from(half).unwrap_or(0);
            word.permitted &= half;
            word.effective = word.permitted;
            word.inheritable = 0;
        }
        done(libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()))
    }
}

/// Applies a Landlock ruleset to the process, irrevocably.
pub(crate) fn landlock_restrict_self(ruleset: RawFd) -> Outcome {
    // SAFETY: no memory is touched.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) })
}

/// Applies a system call filter to the process, irrevocably.
pub(crate) fn filter_system_calls(program: &[libc::sock_filter]) -> Outcome {
    let len = u16::try_from(program.len()).map_err(|_| libc::E2BIG)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads the program and keeps its own copy.
    done(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
}

/// Sets whether processes of the same user may read our memory and own our files in `/proc`. Returns the
/// previous value.
pub(crate) fn set_dumpable(dumpable: c_int) -> c_int {
    // SAFETY: neither call touches our memory.
    unsafe {
        let before = libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, dumpable, 0, 0, 0);
        before
    }
}

/// True if the kernel supports filters that fail a call with an error.
pub(crate) fn filters_can_refuse() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) == 0 }
}

/// The stack of a process that shares our memory. Allocated by the caller, because that process may not.
pub(crate) struct ProcessStack(Vec<MaybeUninit<u128>>);

impl ProcessStack {
    pub(crate) fn new() -> Self {
        const STACK: usize = 64 * 1024;
        Self(Vec::with_capacity(STACK / size_of::<u128>()))
    }

    /// No stack, which allocates nothing.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }
}

/// Runs `body` in a process that shares our memory and descriptors but not our namespaces, and waits for its
/// end. `body` must do nothing but system calls: it runs while other threads of ours may hold any lock.
pub(crate) fn run_outside_namespaces<T>(
    stack: &mut ProcessStack,
    body: fn(&mut T),
    state: &mut T,
) -> Outcome {
    // No exit signal, so that only this function observes its end.
    run_with(stack, body, state, libc::CLONE_FILES)
}

/// The same for a process that forks siblings of itself: they inherit its exit signal.
pub(crate) fn run_as_parent<T>(stack: &mut ProcessStack, body: fn(&mut T), state: &mut T) -> Outcome {
    run_with(stack, body, state, libc::CLONE_FILES | libc::SIGCHLD)
}

fn run_with<T>(stack: &mut ProcessStack, body: fn(&mut T), state: &mut T, flags: c_int) -> Outcome {
    struct Start<'a, T> {
        body: fn(&mut T),
        state: &'a mut T,
    }
    extern "C" fn begin<T>(start: *mut c_void) -> c_int {
        // SAFETY: the caller passes its own `Start` and is suspended while this process uses it.
        let start = unsafe { &mut *start.cast::<Start<'_, T>>() };
        (start.body)(start.state);
        0
    }
    let mut start = Start { body, state };
    // SAFETY: the stack and the start outlive the process, which the kernel makes us wait for (CLONE_VFORK).
    // Signals are blocked around it so that no handler of ours runs in that process.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = stack.0.as_mut_ptr().add(stack.0.capacity()).cast::<c_void>();
        let flags = flags | libc::CLONE_VM | libc::CLONE_VFORK;
        let pid = libc::clone(begin::<T>, top, flags, (&raw mut start).cast::<c_void>());
        let outcome = done(pid.into());
        if pid > 0 {
            while libc::waitpid(pid, ptr::null_mut(), libc::__WALL) < 0 && errno() == libc::EINTR {}
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        outcome
    }
}
