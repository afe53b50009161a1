//! Registers a descriptor with the event loop.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives, and the `AsyncFd` owns it.
    #[expect(
        unsafe_code,
        reason = "tokio asks for this promise, which an owned descriptor keeps by its nature"
    )]
    // SAFETY: the descriptor is owned by the value that is registered and stays open as long as it.
    let watched = unsafe { AsyncFd::register_with_interest(fd, interest) };
    watched.map_err(io::Error::from)
}
