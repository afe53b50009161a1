//! A reader whose next bytes can be looked at before they are consumed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

const PIECE: usize = 16 * 1024;

/// Reads from `inner` and keeps what was not consumed.
pub struct Buffered<R> {
    inner: R,
    data: Vec<u8>,
    /// How much of `data` was consumed.
    at: usize,
}

impl<R: AsyncRead + Unpin> Buffered<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, data: Vec::new(), at: 0 }
    }

    /// The bytes that have arrived and were not consumed.
    pub fn bytes(&self) -> &[u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    pub fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.data.len());
        if self.at == self.data.len() {
            self.data.clear();
            self.at = 0;
        }
    }

    /// Waits for more bytes. Returns false at the end of the stream. Cancel-safe.
    pub async fn more(&mut self) -> io::Result<bool> {
        if self.at > 0 {
            self.data.drain(..self.at);
            self.at = 0;
        }
        let mut piece = [0; PIECE];
        let count = self.inner.read(&mut piece).await?;
        self.data.extend_from_slice(piece.get(..count).unwrap_or_default());
        Ok(count > 0)
    }

    /// Reads up to and including `end`, which is at most `limit` bytes away. `None` if the stream ended before
    /// its first byte.
    pub async fn read_until(&mut self, end: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = memchr::memmem::find(self.bytes(), end).filter(|at| at + end.len() <= limit) {
                let text = self.bytes().get(..at + end.len()).unwrap_or_default().to_vec();
                self.consume(text.len());
                return Ok(Some(text));
            }
            if self.bytes().len() >= limit {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
            }
            if !self.more().await? {
                return match self.bytes() {
                    [] => Ok(None),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// The next bytes, at most `limit` of them; empty at the end of the stream.
    pub async fn piece(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        if self.bytes().is_empty() && !self.more().await? {
            return Ok(Vec::new());
        }
        let count = usize::try_from(limit).unwrap_or(usize::MAX).min(self.bytes().len());
        let piece = self.bytes().get(..count).unwrap_or_default().to_vec();
        self.consume(count);
        Ok(piece)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Buffered<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.bytes().is_empty() {
            return Pin::new(&mut this.inner).poll_read(cx, buffer);
        }
        let count = this.bytes().len().min(buffer.remaining());
        buffer.put_slice(this.bytes().get(..count).unwrap_or_default());
        this.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Buffered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
