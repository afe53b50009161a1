//! The only writer of standard output.
//!
//! It writes whole lines in order and never drops any. While the reader is slow, the writer waits without
//! blocking the rest of the process, so a cancel is handled even if the reader has stopped reading. Standard
//! output's own flags are not changed: the descriptor may be shared with the shell or a parent, which would
//! not expect it to become non-blocking.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::io::descriptor::watch;

pub struct Output {
    kind: Kind,
}

enum Kind {
    /// A pipe, reopened through /proc so that only our own handle is non-blocking.
    Pipe(AsyncFd<OwnedFd>),
    /// A socket pair, which Node creates for its children; each send passes the non-blocking flag.
    Socket(AsyncFd<OwnedFd>),
    /// A file or a terminal: writes do not wait for a reader, except while a user holds the screen.
    Direct(OwnedFd),
}

impl Output {
    pub fn stdout() -> io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let kind = match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Fifo => {
                let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
                match rustix::fs::open(
                    path,
                    OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
                    Mode::empty(),
                ) {
                    Ok(own) => Kind::Pipe(watch(own, Interest::WRITABLE | Interest::ERROR)?),
                    // Without /proc, or in another user's pipe, direct writes still work but may block.
                    Err(_) => Kind::Direct(fd),
                }
            }
            FileType::Socket => Kind::Socket(watch(fd, Interest::WRITABLE | Interest::READABLE)?),
            _ => Kind::Direct(fd),
        };
        Ok(Self { kind })
    }

    /// Resolves once the reader has disconnected, so that the work can stop. A file has no reader, and the
    /// end of a terminal is a signal.
    pub async fn reader_gone(&self) {
        match &self.kind {
            Kind::Pipe(fd) if fd.ready(Interest::ERROR).await.is_ok() => {}
            Kind::Socket(fd) => peer_gone(fd).await,
            _ => std::future::pending().await,
        }
    }

    /// Writes what is accepted without waiting. An error of kind `WouldBlock` means that there is no room
    /// now; one of kind `BrokenPipe`, that the reader has disconnected.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.kind {
            Kind::Direct(fd) => retry(|| Ok(rustix::io::write(fd, bytes)?)),
            Kind::Pipe(fd) => retry(|| Ok(rustix::io::write(fd.get_ref(), bytes)?)),
            Kind::Socket(fd) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                retry(|| Ok(rustix::net::send(fd.get_ref(), bytes, flags)?)).map_err(as_broken_pipe)
            }
        }
    }

    /// Writes all of `bytes`. An error of kind `BrokenPipe` means that the reader has disconnected.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // The common case costs one system call.
            let written = match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.when_writable(bytes).await?,
                done => done?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Writes as soon as there is room.
    async fn when_writable(&self, bytes: &[u8]) -> io::Result<usize> {
        let (Kind::Pipe(fd) | Kind::Socket(fd)) = &self.kind else { return self.try_write(bytes) };
        loop {
            let mut ready = fd.writable().await?;
            if let Ok(done) = ready.try_io(|_| self.try_write(bytes)) {
                return done;
            }
        }
    }
}

/// Resolves once the other end of a socket is closed completely. A peer that only stopped writing may still
/// read, so the hang-up counts and not the end of input.
async fn peer_gone(fd: &AsyncFd<OwnedFd>) {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while let Ok(mut ready) = fd.ready(Interest::READABLE).await {
        let mut state = [PollFd::new(fd.get_ref(), PollFlags::empty())];
        if poll(&mut state, Some(&now)).is_ok_and(|n| n > 0) {
            return;
        }
        ready.clear_ready();
    }
    std::future::pending::<()>().await;
}

/// A reader that disconnects with unread lines resets the connection, which also counts as a disconnect.
fn as_broken_pipe(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::ConnectionReset { io::ErrorKind::BrokenPipe.into() } else { error }
}

fn retry(write: impl Fn() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
