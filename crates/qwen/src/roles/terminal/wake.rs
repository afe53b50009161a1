//! Wakes the terminal's thread, which waits for its tty and for messages at the same time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

struct Shared {
    fd: OwnedFd,
    /// True while the thread waits without a frame to paint. Otherwise it checks for messages when the frame
    /// is due, so a fast stream costs one wake-up per frame and not one per event.
    is_idle: AtomicBool,
}

/// The end that the thread polls.
pub struct Wake(Arc<Shared>);

/// The end that wakes the thread.
#[derive(Clone)]
pub struct Waker(Arc<Shared>);

impl Wake {
    pub fn pair() -> io::Result<(Self, Waker)> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { fd, is_idle: AtomicBool::new(false) });
        Ok((Self(shared.clone()), Waker(shared)))
    }

    /// Resets the counter, so that the next wait ends with the next wake-up.
    pub fn clear(&self) {
        let mut count = [0; 8];
        // An empty counter means that there was no wake-up.
        let _ = rustix::io::read(&self.0.fd, &mut count);
    }

    /// Sets whether the thread is about to wait without a frame to paint. If so, the thread must check for
    /// messages once more before it waits, because one that was sent just before does not wake it.
    pub fn set_idle(&self, is_idle: bool) {
        self.0.is_idle.store(is_idle, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

impl Waker {
    pub fn wake(&self) {
        // The counter can only be full if the thread was woken and has not read it yet.
        let _ = rustix::io::write(&self.0.fd, &1u64.to_ne_bytes());
    }

    /// Wakes the thread for a message that was sent, unless it will look for messages anyway.
    pub fn wake_if_idle(&self) {
        fence(Ordering::SeqCst);
        if self.0.is_idle.swap(false, Ordering::Relaxed) {
            self.wake();
        }
    }
}
