//! Wakes the terminal's thread, which waits for its tty and for messages at the same time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// The end that the thread polls.
pub struct Wake(Arc<OwnedFd>);

/// The end that wakes the thread.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Wake {
    pub fn pair() -> io::Result<(Self, Waker)> {
        let fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok((Self(fd.clone()), Waker(fd)))
    }

    /// Resets the counter, so that the next wait ends with the next wake-up.
    pub fn clear(&self) {
        let mut count = [0; 8];
        // An empty counter means that there was no wake-up.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Waker {
    pub fn wake(&self) {
        // The counter can only be full if the thread was woken and has not read it yet.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}
