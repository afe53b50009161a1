//! Reads standard input without blocking the process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::io::descriptor::watch;

/// The longest line that is read; a longer one is reported as an error and skipped.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

const READ_BYTES: usize = 64 * 1024;

/// A buffer that grew beyond this for one huge line is released.
const KEEP_BYTES: usize = 1024 * 1024;

pub struct StdinReader {
    kind: Kind,
}

enum Kind {
    /// A pipe, reopened through /proc so that only our own handle is non-blocking.
    Pipe(AsyncFd<OwnedFd>),
    /// A socket pair; each receive passes the non-blocking flag.
    Socket(AsyncFd<OwnedFd>),
    /// A file, whose reads do not block.
    Direct(OwnedFd),
    /// Anything else is read in a separate thread.
    Thread(OwnedFd),
}

impl StdinReader {
    pub fn stdin() -> io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let kind = match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Fifo => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                match rustix::fs::open(
                    path,
                    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
                    Mode::empty(),
                ) {
                    Ok(own) => Kind::Pipe(watch(own, Interest::READABLE)?),
                    Err(_) => Kind::Thread(fd),
                }
            }
            FileType::Socket => Kind::Socket(watch(fd, Interest::READABLE)?),
            FileType::RegularFile => Kind::Direct(fd),
            _ => Kind::Thread(fd),
        };
        Ok(Self { kind })
    }

    /// Reads some bytes to the end of `buffer`. Returns 0 at the end of input.
    async fn read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        // Room that is not initialised: filling it would take longer than everything else about a short line.
        buffer.reserve(READ_BYTES);
        let read = match &self.kind {
            Kind::Direct(fd) => rustix::io::read(fd, spare_capacity(buffer)).map_err(io::Error::from),
            Kind::Pipe(fd) => {
                let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, spare_capacity(buffer))?);
                fd.async_io(Interest::READABLE, read).await
            }
            Kind::Socket(fd) => {
                let receive =
                    |fd: &OwnedFd| Ok(rustix::net::recv(fd, spare_capacity(buffer), RecvFlags::DONTWAIT)?.0);
                fd.async_io(Interest::READABLE, receive).await
            }
            Kind::Thread(fd) => {
                let fd = fd.try_clone()?;
                let bytes = tokio::task::spawn_blocking(move || -> io::Result<Vec<u8>> {
                    let mut bytes = vec![0; READ_BYTES];
                    let n = rustix::io::read(fd, &mut bytes)?;
                    bytes.truncate(n);
                    Ok(bytes)
                });
                match bytes.await {
                    Ok(Ok(bytes)) => {
                        buffer.extend_from_slice(&bytes);
                        Ok(bytes.len())
                    }
                    Ok(Err(error)) => Err(error),
                    Err(_) => Ok(0),
                }
            }
        };
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Box::pin(self.read(buffer)).await,
            read => read,
        }
    }

    /// True if there is data or the end of input within `patience`.
    pub async fn readable_within(&self, patience: Duration) -> bool {
        match &self.kind {
            Kind::Pipe(fd) | Kind::Socket(fd) => tokio::time::timeout(patience, fd.readable()).await.is_ok(),
            Kind::Direct(_) | Kind::Thread(_) => true,
        }
    }

    /// Reads everything; fails if there are more than `limit` bytes.
    pub async fn read_to_end(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.read(&mut bytes).await? > 0 {
            if bytes.len() > limit {
                let message = format!("it is larger than {} MiB", limit / 1024 / 1024);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
        }
        Ok(bytes)
    }
}

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    /// A line without its line break.
    Whole(Vec<u8>),
    /// A line that was too long and was skipped.
    TooLong,
}

/// Splits standard input into lines.
pub struct Lines {
    input: StdinReader,
    buffer: Vec<u8>,
    /// The lines of the buffer before this position have been returned. The rest is moved once per read, not
    /// once per line.
    start: usize,
    /// The buffer has no line break before this position.
    searched: usize,
    skipping: bool,
    ended: bool,
}

impl Lines {
    pub fn new(input: StdinReader) -> Self {
        Self { input, buffer: Vec::new(), start: 0, searched: 0, skipping: false, ended: false }
    }

    /// Removes the line that ends at `end` from the buffer. A huge line takes over the buffer instead of
    /// being copied.
    fn cut(&mut self, end: usize) -> InputLine {
        let alone = self.start == 0 && end + 1 == self.buffer.len() && end > KEEP_BYTES;
        if alone {
            let mut line = std::mem::take(&mut self.buffer);
            line.truncate(end);
            self.searched = 0;
            return to_line(line);
        }
        let line = to_line(self.buffer[self.start..end].to_vec());
        self.start = end + 1;
        self.searched = self.start;
        line
    }

    /// The next line; none at the end. A last line without a line break is returned too.
    pub async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                let line = self.cut(end);
                let skipped = std::mem::take(&mut self.skipping);
                return Ok(Some(if skipped { InputLine::TooLong } else { line }));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.searched = self.buffer.len();
            // Room for the carriage return, which is part of the line break.
            if self.buffer.len() > MAX_LINE + 1 {
                self.skipping = true;
            }
            if self.skipping {
                self.buffer = Vec::new();
                self.searched = 0;
            }
            if self.ended {
                let rest = std::mem::take(&mut self.buffer);
                self.searched = 0;
                let too_long = std::mem::take(&mut self.skipping);
                return Ok(if too_long {
                    Some(InputLine::TooLong)
                } else {
                    (!rest.is_empty()).then(|| to_line(rest))
                });
            }
            if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
                self.buffer = Vec::new();
            }
            self.ended = self.input.read(&mut self.buffer).await? == 0;
        }
    }
}

/// Strips the carriage return and checks the length.
fn to_line(mut line: Vec<u8>) -> InputLine {
    line.pop_if(|last| *last == b'\r');
    if line.len() > MAX_LINE { InputLine::TooLong } else { InputLine::Whole(line) }
}
