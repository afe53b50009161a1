//! The smallest client that can tell what the server really sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use mock_model::MockModel;

pub struct Client {
    reader: BufReader<TcpStream>,
}

pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub fn connect(mock: &MockModel) -> Self {
        Self::at(mock.port())
    }

    pub fn at(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(mock_model::WAIT_LIMIT)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub fn send(&mut self, method: &str, path: &str, body: &str) {
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: mock\r\nContent-Length: {length}\r\n\r\n{body}");
        self.send_raw(request.as_bytes());
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }

    pub fn head(&mut self) -> (u16, String) {
        let mut head = String::new();
        loop {
            let line = self.line();
            if line.trim_end().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {head:?}"));
        (status.parse().unwrap(), head)
    }

    /// The next chunk of a stream; none at its end.
    pub fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(self.line().trim_end(), 16).unwrap();
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes.truncate(size);
        (size > 0).then(|| String::from_utf8(bytes).unwrap())
    }

    pub fn response(&mut self) -> Response {
        let (status, head) = self.head();
        let mut body = String::new();
        if head.contains("transfer-encoding: chunked") {
            while let Some(chunk) = self.chunk() {
                body.push_str(&chunk);
            }
        } else {
            let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut bytes = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut bytes).unwrap();
            body = String::from_utf8(bytes).unwrap();
        }
        Response { status, head, body }
    }

    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Response {
        self.send(method, path, body);
        self.response()
    }

    /// Whatever is left until the server closes.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).unwrap();
        rest
    }
}

pub const OPENAI: &str = "/v1/chat/completions";
pub const ANTHROPIC: &str = "/v1/messages";

pub fn prompt(text: &str) -> String {
    format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#)
}
