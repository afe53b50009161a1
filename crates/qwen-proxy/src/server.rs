//! Accepts the connections of one sandbox: HTTP CONNECT, plain HTTP in absolute form, and SOCKS5.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::buffered::Buffered;
use crate::destination::{SOCKS5, Socks, parse_absolute, read_socks_greeting, read_socks_request};
use crate::exchange::{Exchange, respond};
use crate::gatekeeper::{Gatekeeper, Problem};
use crate::head::{MAX_HEAD, RequestHead};
use crate::tunnel::Tunnel;
use crate::{ConnectionRecord, Destination};

/// Most connections of a sandbox at the same time. Further ones wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 128;
/// How long a head, a handshake or a connection to a server may take.
pub const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may stay silent before its first byte.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(60);
const MAX_SOCKS: usize = 512;

/// A connection to a program or to a server.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// What the connections of one sandbox share.
pub struct Door {
    pub gatekeeper: Arc<dyn Gatekeeper>,
}

/// A proxy that runs until this is dropped, with all its connections.
#[derive(Debug)]
pub struct Serving(AbortHandle);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves the connections that `listener` accepts, in the current tokio runtime.
pub fn serve(listener: TcpListener, gatekeeper: Arc<dyn Gatekeeper>) -> std::io::Result<Serving> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let door = Arc::new(Door { gatekeeper });
    let accepting = tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        // Dropped with this task, which ends all connections.
        let mut connections = JoinSet::new();
        while let Ok(place) = places.clone().acquire_owned().await {
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let door = door.clone();
                    connections.spawn(async move {
                        door.handle(stream).await;
                        drop(place);
                    });
                }
                // No descriptor is left; some connection has to end first.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    Ok(Serving(accepting.abort_handle()))
}

impl Door {
    async fn handle(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut stream = Buffered::new(stream);
        match timeout(FIRST_BYTE_LIMIT, stream.more()).await {
            Ok(Ok(true)) => {}
            _ => return,
        }
        if stream.bytes().first() == Some(&SOCKS5) {
            if let Ok(Ok(Some(destination))) = timeout(HEAD_LIMIT, greet_socks(&mut stream)).await {
                Tunnel { door: self, destination, is_socks: true }.run(stream).await;
            }
            return;
        }
        let head = match timeout(HEAD_LIMIT, stream.read_until(b"\r\n\r\n", MAX_HEAD)).await {
            Ok(Ok(Some(head))) => RequestHead::parse(&head),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => Err("its head is too long"),
            _ => return,
        };
        let head = match head {
            Ok(head) => head,
            Err(reason) => {
                return refuse(&mut stream, format!("the request cannot be understood: {reason}")).await;
            }
        };
        if head.method == "CONNECT" {
            match Destination::parse(&head.target, None) {
                Some(destination) => Tunnel { door: self, destination, is_socks: false }.run(stream).await,
                None => refuse(&mut stream, unreadable(&head.target)).await,
            }
            return;
        }
        match parse_absolute(&head.target) {
            Some((destination, target)) => {
                let target = target.to_owned();
                let exchange = Exchange {
                    door: self,
                    destination: &destination,
                    head,
                    target,
                    is_encrypted: false,
                    admission: None,
                };
                exchange.run(stream).await;
            }
            None => refuse(&mut stream, unreadable(&head.target)).await,
        }
    }

    /// Connects to a destination, at an address that may be connected to.
    pub async fn connect(&self, destination: &Destination) -> Result<TcpStream, Problem> {
        let (gatekeeper, to) = (self.gatekeeper.clone(), destination.clone());
        let check: qwen_http::AddressCheck = Arc::new(move |address| gatekeeper.check_address(&to, address));
        let known = self.gatekeeper.find_alias(&destination.host);
        let stream = qwen_http::connect(&destination.host, destination.port, known, &check, HEAD_LIMIT).await;
        stream.map_err(|error| match error {
            qwen_http::Error::AddressRefused { address, reason } => {
                Problem::Refused(format!("{destination} leads to {address}: {reason}"))
            }
            error => Problem::Failed(format!("{destination}: {error}")),
        })
    }

    /// Records a connection that was not made.
    pub fn record_problem(&self, destination: &Destination, problem: Problem) {
        self.gatekeeper.record(&ConnectionRecord {
            destination: destination.clone(),
            method: None,
            address: None,
            problem: Some(problem),
            sent: 0,
            received: 0,
        });
    }
}

/// A destination that cannot be read names nothing that a rule could be about, so it is not recorded.
fn unreadable(target: &str) -> String {
    let shown: String = target.chars().take(100).flat_map(char::escape_debug).collect();
    format!("`{shown}` is not http://HOST/PATH, or HOST:PORT for CONNECT, in a form that has one meaning")
}

async fn refuse<S: ByteStream>(stream: &mut Buffered<S>, reason: String) {
    respond(stream, &Problem::Refused(reason)).await;
    let _ = stream.shutdown().await;
}

/// Reads the greeting and the request of a SOCKS5 client. `None` if it was refused.
async fn greet_socks(stream: &mut Buffered<TcpStream>) -> std::io::Result<Option<Destination>> {
    let ((), length) = loop {
        match read_socks_greeting(stream.bytes()) {
            Socks::Complete(greeting, length) => break (greeting, length),
            Socks::Refused(code) => {
                stream.write_all(&[SOCKS5, code]).await?;
                return Ok(None);
            }
            Socks::Incomplete if stream.bytes().len() < MAX_SOCKS && stream.more().await? => {}
            Socks::Incomplete => return Ok(None),
        }
    };
    stream.consume(length);
    stream.write_all(&[SOCKS5, 0]).await?;
    loop {
        match read_socks_request(stream.bytes()) {
            Socks::Complete(destination, length) => {
                stream.consume(length);
                return Ok(Some(destination));
            }
            Socks::Refused(code) => {
                stream.write_all(&socks_reply(code)).await?;
                return Ok(None);
            }
            Socks::Incomplete if stream.bytes().len() < MAX_SOCKS && stream.more().await? => {}
            Socks::Incomplete => return Ok(None),
        }
    }
}

/// A reply to a SOCKS5 request, with an address that means nothing.
pub fn socks_reply(code: u8) -> [u8; 10] {
    [SOCKS5, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
