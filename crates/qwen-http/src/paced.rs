//! A TCP stream that can gather what arrives in quick succession, so that a stream of small pieces costs one
//! wake-up for an interval and not one for each piece.

use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A read of at least this many bytes is followed by the next one at once: data that arrives in bulk does not
/// wait.
const BULK: usize = 4096;

/// A TCP stream whose reads are at least an interval apart while its [`PaceSwitch`] is on and only small
/// pieces arrive.
pub(super) struct PacedStream {
    state: State,
    interval: Duration,
    switch: PaceSwitch,
    last_read: Option<Instant>,
}

enum State {
    /// The runtime reports when there is something to read.
    Watched(TcpStream),
    /// Not known to the runtime, which would wake for every piece; read when the timer expires.
    Resting { stream: std::net::TcpStream, timer: Pin<Box<Sleep>> },
    /// The change from one to the other has failed.
    Lost,
}

/// Switches gathering on for the body of a response: connecting, handshakes and heads never wait.
#[derive(Clone, Default)]
pub(super) struct PaceSwitch(Arc<AtomicBool>);

impl PaceSwitch {
    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl PacedStream {
    /// A stream that does not wait until its switch is on; with an interval of zero it never does.
    pub fn new(stream: TcpStream, interval: Duration) -> Self {
        Self { state: State::Watched(stream), interval, switch: PaceSwitch::default(), last_read: None }
    }

    pub fn switch(&self) -> PaceSwitch {
        self.switch.clone()
    }

    /// Has the runtime watch the stream.
    fn watched(&mut self) -> io::Result<&mut TcpStream> {
        if let State::Resting { .. } = self.state
            && let State::Resting { stream, .. } = std::mem::replace(&mut self.state, State::Lost)
        {
            self.state = State::Watched(TcpStream::from_std(stream)?);
        }
        match &mut self.state {
            State::Watched(stream) => Ok(stream),
            State::Resting { .. } | State::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Rests after a small read that followed another one closely.
    fn rest(&mut self, count: usize) -> io::Result<()> {
        if self.interval.is_zero() || !self.switch.is_on() {
            return Ok(());
        }
        let now = Instant::now();
        let is_close = self.last_read.replace(now).is_some_and(|last| now - last < self.interval);
        if is_close
            && (1..BULK).contains(&count)
            && let State::Watched(_) = self.state
            && let State::Watched(stream) = std::mem::replace(&mut self.state, State::Lost)
        {
            self.state = State::Resting { stream: stream.into_std()?, timer: Box::pin(sleep(self.interval)) };
        }
        Ok(())
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (is_on, interval) = (self.switch.is_on(), self.interval);
        if let State::Resting { stream, timer } = &mut self.state {
            if is_on {
                ready!(timer.as_mut().poll(cx));
            }
            match stream.read(buf.initialize_unfilled()) {
                Ok(count) => {
                    buf.advance(count);
                    let delay = if count < BULK { interval } else { Duration::ZERO };
                    timer.as_mut().reset(Instant::now() + delay);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let before = buf.filled().len();
        ready!(Pin::new(self.watched()?).poll_read(cx, buf))?;
        let count = buf.filled().len() - before;
        Poll::Ready(self.rest(count))
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.watched()?).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TCP has nothing to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.watched()?).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.watched()?).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Both ends of a connection; ours gathers.
    async fn pair(interval: Duration) -> (PacedStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let ours = PacedStream::new(ours.unwrap(), interval);
        ours.switch().set(true);
        (ours, theirs.unwrap().0)
    }

    async fn read(stream: &mut PacedStream) -> String {
        let mut buffer = [0; 64];
        let count = stream.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    }

    #[tokio::test]
    async fn pieces_in_quick_succession_are_read_together() {
        let (mut ours, mut theirs) = pair(Duration::from_secs(3600)).await;
        for piece in ["one", "two"] {
            theirs.write_all(piece.as_bytes()).await.unwrap();
            assert_eq!(read(&mut ours).await, piece);
        }
        // The second followed the first closely, so the next data waits for the end of the interval.
        theirs.write_all(b"three").await.unwrap();
        let mut buffer = [0; 64];
        {
            let mut reading = std::pin::pin!(ours.read(&mut buffer));
            assert!(std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_pending())).await);
        }
        theirs.write_all(b"four").await.unwrap();
        drop(theirs);
        ours.switch().set(false);
        let mut rest = String::new();
        ours.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "threefour");
    }

    #[tokio::test]
    async fn whatever_the_pieces_every_byte_arrives_once_and_in_order() {
        let (mut ours, theirs) = pair(Duration::from_millis(1)).await;
        let sent: Vec<u8> = (0..300_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let (mut reader, mut writer) = theirs.into_split();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            let mut rest = &sent[..];
            for size in (1..9000).step_by(37).cycle() {
                let (piece, behind) = rest.split_at(size.min(rest.len()));
                writer.write_all(piece).await.unwrap();
                rest = behind;
                if rest.is_empty() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            writer.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        ours.read_to_end(&mut received).await.unwrap();
        writing.await.unwrap();
        assert!(received == expected);
        // Writing works in either state.
        ours.write_all(b"ok").await.unwrap();
        ours.shutdown().await.unwrap();
        let mut answer = String::new();
        reader.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "ok");
    }
}
