//! The byte stream of a connection, plain or encrypted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::paced::{PaceSwitch, PacedStream};

/// A connection that records whether the peer has sent anything since [`ReceivedFlag::reset`].
pub(super) struct Socket {
    stream: Stream,
    received: ReceivedFlag,
    pace: PaceSwitch,
}

enum Stream {
    Plain(PacedStream),
    // Boxed: the TLS state takes a kilobyte, and most of our servers run on the same machine.
    Tls(Box<TlsStream<PacedStream>>),
}

/// True once a byte has arrived. A reused connection that fails without one was stale, and the request may
/// be sent again.
#[derive(Clone, Default)]
pub(super) struct ReceivedFlag(Arc<AtomicBool>);

impl ReceivedFlag {
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Socket {
    pub fn plain(stream: PacedStream) -> Self {
        let pace = stream.switch();
        Self { stream: Stream::Plain(stream), received: ReceivedFlag::default(), pace }
    }

    pub fn tls(stream: TlsStream<PacedStream>) -> Self {
        let pace = stream.get_ref().0.switch();
        Self { stream: Stream::Tls(Box::new(stream)), received: ReceivedFlag::default(), pace }
    }

    pub fn pace(&self) -> PaceSwitch {
        self.pace.clone()
    }

    pub fn received(&self) -> ReceivedFlag {
        self.received.clone()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if buf.filled().len() > before {
            self.received.0.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
