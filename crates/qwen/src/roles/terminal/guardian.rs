//! A small process that resets the terminal's modes if we are killed before we can.
//!
//! It waits for the end of a pipe that we hold. Bytes in the pipe describe what to reset: `o` an overlay is
//! shown, `m` the main screen is shown, `.` everything is already reset. It does not change the line modes,
//! because the shell restores its own and would be disturbed.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

use super::modes;

/// Our end of the pipe.
static PIPE: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Starts the guardian of the terminal `fd`. If no process can be started, only SIGKILL leaves modes behind.
pub fn watch(fd: BorrowedFd<'_>) {
    let mut writer_slot = PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    if writer_slot.is_some() {
        return;
    }
    let Ok((reader, writer)) = pipe_with(PipeFlags::CLOEXEC) else { return };
    let (tty, pipe) = (fd.as_raw_fd(), reader.as_raw_fd());
    // SAFETY: between fork and _exit the child makes only system calls that are safe after a fork, and never
    // returns.
    #[expect(unsafe_code, reason = "fork has no safe binding")]
    unsafe {
        match libc::fork() {
            0 => {
                // A grandchild: our process does not wait for it or end it with the other children. It is in
                // a separate session, where no key and no hang-up reaches it.
                libc::setsid();
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
                guard(tty, pipe);
            }
            child if child > 0 => {
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            _ => return,
        }
    }
    *writer_slot = Some(writer);
}

/// Notifies the guardian that nothing is left to reset; it exits.
pub fn dismiss() {
    if let Ok(mut pipe) = PIPE.try_lock()
        && let Some(pipe) = pipe.take()
    {
        let _ = rustix::io::write(&pipe, b".");
    }
}

/// Notifies the guardian whether the alternate screen is shown.
pub fn set_overlaid(is_overlaid: bool) {
    if let Ok(pipe) = PIPE.try_lock()
        && let Some(pipe) = &*pipe
    {
        let _ = rustix::io::write(pipe, if is_overlaid { b"o" } else { b"m" });
    }
}

/// The main function of the guardian.
#[expect(unsafe_code, reason = "only raw system calls are safe behind a fork")]
unsafe fn guard(tty: i32, pipe: i32) -> ! {
    let mut byte = 0u8;
    // SAFETY: every descriptor is ours and every pointer refers to memory of this process; nothing allocates
    // or locks.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"qwen-terminal".as_ptr());
        // Everything except the terminal and the pipe is closed, in particular our copy of the pipe's other
        // end.
        let (low, high) = (tty.min(pipe), tty.max(pipe));
        for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, i32::MAX)] {
            if first <= last {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
        let mut is_overlaid = false;
        loop {
            match libc::read(pipe, (&raw mut byte).cast(), 1) {
                1 if byte == b'.' => libc::_exit(0),
                1 => is_overlaid = byte == b'o',
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => break,
            }
        }
        if is_overlaid {
            libc::write(tty, modes::LEAVE_OVERLAY.as_ptr().cast(), modes::LEAVE_OVERLAY.len());
        }
        libc::write(tty, modes::UNSET.as_ptr().cast(), modes::UNSET.len());
        libc::_exit(0)
    }
}
