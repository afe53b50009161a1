//! Redirects standard error while the interface owns the terminal: its lines become notices instead of
//! damaging the display.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

static BEFORE: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Redirects standard error into a pipe if it is a terminal. Returns the end to read from.
pub fn redirect() -> io::Result<Option<OwnedFd>> {
    if !rustix::termios::isatty(rustix::stdio::stderr()) {
        return Ok(None);
    }
    let before = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    rustix::stdio::dup2_stderr(writer.as_fd())?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    Ok(Some(reader))
}

pub fn restore() {
    if let Ok(mut before) = BEFORE.try_lock()
        && let Some(before) = before.take()
    {
        // If this fails, only diagnostic text is lost.
        let _ = rustix::stdio::dup2_stderr(before.as_fd());
    }
}
