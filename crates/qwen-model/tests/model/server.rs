//! A server on loopback that answers with raw bytes.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub body: String,
    /// The connection that it came on, from 0.
    pub connection: usize,
}

impl Received {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// One connection, seen from the server.
pub struct Connection {
    stream: TcpStream,
    number: usize,
    seen: Arc<Mutex<Vec<Received>>>,
}

impl Connection {
    /// The next request; none when the client has closed.
    pub async fn request(&mut self) -> Option<Received> {
        let mut bytes = Vec::new();
        let head_len = loop {
            if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if self.stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..head_len].to_vec()).unwrap();
        let mut received = Received { head, body: String::new(), connection: self.number };
        let length: usize = received.header("content-length").map_or(0, |value| value.parse().unwrap());
        while bytes.len() < head_len + length {
            self.stream.read_buf(&mut bytes).await.ok()?;
        }
        received.body = String::from_utf8(bytes[head_len..].to_vec()).unwrap();
        self.seen.lock().unwrap().push(received.clone());
        Some(received)
    }

    /// Says something.
    pub async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // The client may be gone already; what it got is up to the test.
        let _ = self.stream.write_all(bytes.as_ref()).await;
        let _ = self.stream.flush().await;
    }

    /// Waits until the client closes the connection.
    pub async fn closed(&mut self) {
        let mut rest = [0; 64];
        while self.stream.read(&mut rest).await.is_ok_and(|n| n > 0) {}
    }
}

/// The server. It stops when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Received>>>,
    running: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    KeepOpen,
    Close,
}

impl Server {
    /// A server that treats each connection as `treat` says.
    pub async fn start<F, T>(treat: F) -> Self
    where
        F: Fn(Connection) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        let running = tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                stream.set_nodelay(true).unwrap();
                tokio::spawn(treat(Connection { stream, number, seen: Arc::clone(&shared) }));
            }
        });
        Self { address, seen, running }
    }

    /// A server that gives these answers to the requests in their order, on whichever connection.
    pub async fn answering<B: Into<Vec<u8>>>(answers: impl IntoIterator<Item = (B, Then)>) -> Self {
        let answers: VecDeque<(Vec<u8>, Then)> =
            answers.into_iter().map(|(b, then)| (b.into(), then)).collect();
        let answers = Arc::new(Mutex::new(answers));
        Self::start(move |mut connection| {
            let answers = Arc::clone(&answers);
            async move {
                while connection.request().await.is_some() {
                    let Some((bytes, then)) = answers.lock().unwrap().pop_front() else { return };
                    connection.say(bytes).await;
                    if then == Then::Close {
                        return;
                    }
                }
            }
        })
        .await
    }

    /// A server that answers one request and closes.
    pub async fn once(bytes: impl Into<Vec<u8>>) -> Self {
        Self::answering([(bytes, Then::Close)]).await
    }

    /// The base URL for a client.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Received> {
        self.seen.lock().unwrap().clone()
    }
}

/// A response that ends with its connection.
pub fn response(status: &str, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

/// An event stream that ends with its connection.
pub fn stream(body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", "text/event-stream", body)
}

/// A response of known length on a connection that stays open.
pub fn sized(status: &str, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// An event stream in chunks of the given sizes, over and over, on a connection that stays open.
pub fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut rest = body;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = after;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
