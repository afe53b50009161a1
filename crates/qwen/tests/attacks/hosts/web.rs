//! A server that remembers what it was asked, plain or through TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use qwen_proxy::Authority;
use rustls::{ServerConnection, StreamOwned};

/// A server on this machine's loopback. It answers `/echo` with the request's head, `/to/URL` with a redirect,
/// `/upload` with the length of the body, `/upgrade` with another protocol that echoes, and the rest with `hello`.
pub struct Web {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Web {
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// A server that proves to be `host`.
    pub fn start_tls(authority: &Authority, host: &str) -> Self {
        Self::serve(Some(authority.server(host).unwrap()))
    }

    fn serve(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let remembered = seen.clone();
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tls, seen) = (tls.clone(), remembered.clone());
                thread::spawn(move || match tls {
                    None => answer(stream, &seen),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        answer(StreamOwned::new(connection, stream), &seen);
                    }
                });
            }
        });
        Self { address, seen }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What arrived: the heads of requests, or the bytes of what is not a request.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

trait Conversation: Read + Write {}
impl Conversation for TcpStream {}
impl Conversation for StreamOwned<ServerConnection, TcpStream> {}

fn answer(mut stream: impl Conversation, seen: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if head.is_empty() {
        return;
    }
    seen.lock().unwrap().push(head.clone());
    let path = head.split(' ').nth(1).unwrap_or("/");
    let length = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
        line.split_once(':')?.1.trim().parse::<usize>().ok()
    };
    let mut body = vec![0; length("content-length").unwrap_or(0)];
    let received = stream.read_exact(&mut body).map_or(0, |()| body.len());
    let respond = |status: &str, fields: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let text = match path {
        "/echo" => respond("200 OK", "", &head),
        "/chunks" => {
            // The head in small chunks.
            let chunks: String = head
                .as_bytes()
                .chunks(5)
                .map(|piece| format!("5\r\n{}\r\n", String::from_utf8_lossy(piece)))
                .collect();
            let whole = head.len() / 5 * 5;
            let chunks =
                &chunks[..chunks.len() - if whole < head.len() { head.len() - whole + 5 } else { 0 }];
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        }
        "/upload" => respond("200 OK", "", &format!("{received} bytes\n")),
        "/upgrade" => {
            let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
            let _ = stream.write_all(switched.as_bytes());
            let mut line = [0; 6];
            let _ = stream.read_exact(&mut line);
            let _ = stream.write_all(&line);
            let _ = stream.flush();
            return;
        }
        _ => match path.strip_prefix("/to/") {
            Some(location) => respond("302 Found", &format!("Location: {location}\r\n"), ""),
            None => respond("200 OK", "", "hello\n"),
        },
    };
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
    // The other side has read everything when it closes.
    let _ = stream.read(&mut byte);
}
