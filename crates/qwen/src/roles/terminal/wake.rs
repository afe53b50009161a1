//! Wakes the terminal's thread, which waits for its tty and for messages at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// The end that is waited on.
pub struct Wake(Arc<OwnedFd>);

/// The end that wakes.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Wake {
    /// Both ends.
    pub fn pair() -> io::Result<(Self, Waker)> {
        let fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok((Self(fd.clone()), Waker(fd)))
    }

    /// Waits for the next wake-up from here on.
    pub fn clear(&self) {
        let mut count = [0; 8];
        // Nothing to read means that nobody woke us.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Waker {
    /// Wakes the thread.
    pub fn wake(&self) {
        // The counter can only be full if the thread was woken and has not looked yet.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}
