//! A small HTTP server on loopback that answers as it is told and notes what it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request: its first line and its body.
pub type Asked = (String, String);

/// The server. It serves until the test ends.
pub struct Listener {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Listener {
    /// Answers every request with what `answer` makes of its path: a status line such as `200 OK`, further
    /// header lines and a body.
    pub fn new(answer: impl Fn(&str) -> (String, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let noted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &answer, &noted);
            }
        });
        Self { port, asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// A client that breaks off is its own affair.
fn serve(
    mut stream: TcpStream,
    answer: &impl Fn(&str) -> (String, String),
    noted: &Mutex<Vec<Asked>>,
) -> Option<()> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    while bytes.len() < head_end + length.unwrap_or(0) {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
    let first = head.lines().next().unwrap_or_default().to_owned();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    noted.lock().unwrap().push((first, String::from_utf8_lossy(&bytes[head_end..]).into_owned()));
    let (status, body) = answer(&path);
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).ok()
}
