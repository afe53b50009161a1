//! The modes that are set in the terminal, and their reset on every exit path.
//!
//! They are reset once, by the first of: the thread itself, the exit of the process (`atexit`, which signals
//! and `process::exit` pass through), the panic hook, or the guardian after a SIGKILL.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcsetattr};

use super::{guardian, stderr};

/// Bracketed paste, focus events, the kitty keyboard protocol (disambiguate) and xterm's modifyOtherKeys.
/// Terminals ignore sequences that they do not know.
pub const SET: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[>4;1m";

/// Resets these modes and what a frame may have left: an open update, a hidden cursor, a style.
pub const UNSET: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?25h\x1b[>4;0m\x1b[<u\x1b[?1004l\x1b[?2004l";

/// Returns from an overlay to the main screen.
pub const LEAVE_OVERLAY: &[u8] = b"\x1b[?1007l\x1b[?1049l";

struct Entered {
    fd: OwnedFd,
    before: Termios,
    /// The terminal understands escape sequences and has received some.
    is_capable: bool,
    /// The alternate screen is shown.
    is_overlaid: bool,
}

static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);
static HOOKS: Once = Once::new();

/// Records that modes are set in `fd`, whose line modes were `before`. Writes the sequences if the terminal
/// is capable of them, and prepares their reset.
pub fn entered(fd: &OwnedFd, before: &Termios, is_capable: bool) {
    HOOKS.call_once(install_hooks);
    let Ok(copy) = rustix::io::fcntl_dupfd_cloexec(fd, 3) else { return };
    if is_capable {
        guardian::watch(copy.as_fd());
        write_all(&copy, SET);
    }
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    *entered = Some(Entered { fd: copy, before: before.clone(), is_capable, is_overlaid: false });
}

/// Records that the alternate screen is about to be shown, or was left.
pub fn set_overlaid(is_overlaid: bool) {
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entered) = entered.as_mut().filter(|entered| entered.is_overlaid != is_overlaid) {
        entered.is_overlaid = is_overlaid;
        guardian::set_overlaid(is_overlaid);
    }
}

/// Resets the modes, unless that has already been done.
pub fn undo() {
    // If a panic holds the lock, the process is ending by that panic, whose hook could not lock it either.
    let entered = match ENTERED.try_lock() {
        Ok(mut entered) => entered.take(),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
        Err(std::sync::TryLockError::WouldBlock) => None,
    };
    stderr::restore();
    if let Some(Entered { fd, before, is_capable, is_overlaid }) = entered {
        if is_overlaid {
            write_all(&fd, LEAVE_OVERLAY);
        }
        if is_capable {
            write_all(&fd, UNSET);
        }
        // Not `Drain`: a terminal whose flow is stopped would block the process forever.
        let _ = tcsetattr(&fd, OptionalActions::Now, &before);
        guardian::dismiss();
    }
}

/// Writes as much as the terminal accepts without a long wait.
fn write_all(fd: &OwnedFd, mut bytes: &[u8]) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let mut ready = [PollFd::new(fd, PollFlags::OUT)];
                if !poll(&mut ready, Some(&patience)).is_ok_and(|count| count > 0) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

fn install_hooks() {
    extern "C" fn at_exit() {
        undo();
    }
    // SAFETY: `at_exit` is a function without arguments that lives as long as the program.
    #[expect(unsafe_code, reason = "atexit has no safe binding")]
    unsafe {
        libc::atexit(at_exit);
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        undo();
        before(panic);
    }));
}
