//! The order in which a command wrote to its two output streams.
//!
//! Two pipes do not preserve the order of writes to different streams. Here each pipe holds a single packet,
//! so that the next write to it waits until we have read the packet, and an epoll instance queues the streams
//! in the order in which their packets arrived.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Capacity of a pipe that holds one packet, in bytes: one page.
const ONE_PACKET: usize = 4096;

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// A stream that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyStream {
    pub stream: OutputStream,
    /// True if no process can write to it any more: it must be read to its end.
    pub is_closed: bool,
}

/// Reports which stream to read next.
#[derive(Debug)]
pub struct OutputOrder {
    epoll: AsyncFd<OwnedFd>,
}

impl OutputOrder {
    /// Watches both streams. Must be called before the command starts.
    #[expect(unsafe_code, reason = "a descriptor can only be registered with the runtime unsafely")]
    pub(super) fn watch(stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, stdout, epoll::EventData::new_u64(0), flags)?;
        epoll::add(&epoll, stderr, epoll::EventData::new_u64(1), flags)?;
        // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives, and the `AsyncFd` owns it.
        let epoll = unsafe { AsyncFd::register_with_interest(epoll, Interest::READABLE) }?;
        Ok(Self { epoll })
    }

    /// Returns the streams that received output since the last call, in the order of their output. One packet
    /// of each can be read.
    pub fn take_ready(&self) -> Vec<ReadyStream> {
        let mut events = Vec::with_capacity(4);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if epoll::wait(self.epoll.get_ref(), spare_capacity(&mut events), Some(&at_once)).is_err() {
            return Vec::new();
        }
        let ready = |event: epoll::Event| {
            let (flags, data) = (event.flags, event.data);
            ReadyStream {
                stream: if data.u64() == 0 { OutputStream::Stdout } else { OutputStream::Stderr },
                is_closed: flags.contains(epoll::EventFlags::HUP),
            }
        };
        events.into_iter().map(ready).collect()
    }

    /// Waits for streams with output. May return an empty list.
    pub async fn ready(&self) -> Vec<ReadyStream> {
        let Ok(mut guard) = self.epoll.readable().await else { return std::future::pending().await };
        let ready = self.take_ready();
        if ready.is_empty() {
            guard.clear_ready();
        }
        ready
    }
}

/// Creates a pipe that holds one packet.
pub(super) fn packet_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
    fcntl_setpipe_size(writer.as_fd(), ONE_PACKET)?;
    Ok((reader, writer))
}
