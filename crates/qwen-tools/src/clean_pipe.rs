//! One of a command's two outputs as text without the secrets in it.

use std::io;
use std::sync::Arc;

use tokio::net::unix::pipe;

use qwen_redact::{Redactor, TextStream};
use qwen_sandbox::process::Utf8Pieces;

/// As much as a pipe holds at once.
pub(crate) const BUFFER: usize = 64 * 1024;

/// An output of a command. Secrets must not get to a file with the whole output, nor be cut in two where the middle of a
/// long output is left out, so they are taken out as they come.
pub(crate) struct CleanPipe {
    pipe: Option<pipe::Receiver>,
    pieces: Utf8Pieces,
    clean: TextStream,
    redactor: Arc<Redactor>,
}

impl CleanPipe {
    pub(crate) fn new(pipe: Option<pipe::Receiver>, redactor: &Arc<Redactor>) -> Self {
        let redactor = Arc::clone(redactor);
        Self { pipe, pieces: Utf8Pieces::default(), clean: TextStream::default(), redactor }
    }

    /// Whether its end was read.
    pub(crate) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// Waits until there is something to read; for ever, once it is closed.
    pub(crate) async fn ready(&self) {
        match &self.pipe {
            // An error shows again when it is read.
            Some(pipe) => drop(pipe.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Reads what is there. None when there is nothing now.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<Box<str>> {
        let got = self.pipe.as_ref()?.try_read(buffer);
        self.take(got, buffer)
    }

    /// The same, asking the pipe itself: the runtime may not have heard of what was written by a command that is over
    /// before anyone waited for its output.
    pub(crate) fn read_left_over(&mut self, buffer: &mut [u8]) -> Option<Box<str>> {
        let got = rustix::io::read(self.pipe.as_ref()?, &mut *buffer).map_err(io::Error::from);
        self.take(got, buffer)
    }

    fn take(&mut self, got: io::Result<usize>, buffer: &[u8]) -> Option<Box<str>> {
        let mut text = String::new();
        match got {
            Ok(n) if n > 0 => self.pieces.push(&buffer[..n], &mut text),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Ok(_) | Err(_) => {
                self.pipe = None;
                self.pieces.finish(&mut text);
            }
        }
        Some(self.clean.push(&self.redactor, text.into()).unwrap_or_default())
    }

    /// What might still have become a secret.
    pub(crate) fn rest(&mut self) -> Option<Box<str>> {
        self.clean.finish(&self.redactor)
    }
}
