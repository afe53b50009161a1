//! One output stream of a command, as text with secrets redacted.

use std::io;
use std::sync::Arc;

use tokio::net::unix::pipe;

use qwen_redact::{Redactor, TextStream};
use qwen_sandbox::process::Utf8Pieces;

/// The default capacity of a pipe, in bytes.
pub(crate) const BUFFER: usize = 64 * 1024;

/// An output stream of a command. Secrets are redacted while reading: they must not reach the file with the
/// full output, nor be split where the middle of a long output is omitted.
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

    pub(crate) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads available output. Returns `None` if there is none now. Reads from the pipe directly: the runtime
    /// may not know about output of a command that ended before readiness was polled.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<Box<str>> {
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

    /// Returns the text that was held back as a possible secret.
    pub(crate) fn rest(&mut self) -> Option<Box<str>> {
        self.clean.finish(&self.redactor)
    }
}
