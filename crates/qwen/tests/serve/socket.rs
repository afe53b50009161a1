//! A WebSocket client that sends exactly what a test writes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::harness::*;

/// A WebSocket client that sends exactly what a test writes.
pub struct Socket {
    pub reader: BufReader<TcpStream>,
    pub head: String,
}

impl Server {
    /// Opens a WebSocket with these headers besides those of the handshake.
    #[track_caller]
    pub fn upgrade(&self, path: &str, headers: &[(&str, &str)]) -> Socket {
        let mut stream = self.connect();
        let mut text = format!(
            "GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
        Socket { reader, head }
    }

    #[track_caller]
    pub fn socket(&self, path: &str) -> Socket {
        let protocols = format!("qwen, qwen.token.{}", self.token);
        let socket = self.upgrade(path, &[("Host", &self.host()), ("Sec-WebSocket-Protocol", &protocols)]);
        assert!(socket.head.starts_with("HTTP/1.1 101"), "{}", socket.head);
        socket
    }
}

impl Socket {
    /// Sends one frame, masked with zeros.
    pub fn frame(&mut self, first: u8, payload: &[u8]) {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            medium => {
                frame.push(0xfe);
                frame.extend_from_slice(&u16::try_from(medium).unwrap().to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        self.reader.get_mut().write_all(&frame).unwrap();
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the line in place")]
    pub fn send(&mut self, line: Value) {
        self.frame(0x81, line.to_string().as_bytes());
    }

    /// The opcode and the payload of the next frame.
    pub fn next_frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.reader.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.reader.read_exact(&mut length).unwrap();
                u64::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.reader.read_exact(&mut length).unwrap();
                u64::from_be_bytes(length)
            }
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.reader.read_exact(&mut payload).unwrap();
        (head[0] & 0x0f, payload)
    }

    /// The next line; pings are skipped.
    #[track_caller]
    pub fn line(&mut self) -> Value {
        loop {
            match self.next_frame() {
                (1, payload) => return serde_json::from_slice(&payload).unwrap(),
                (9, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lines up to the one that `last` accepts.
    #[track_caller]
    pub fn until(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(&last) {
                return lines;
            }
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub fn ask(&mut self, request: Value) -> Value {
        let id = request["request_id"].clone();
        self.send(request);
        let lines = self.until(|line| line["type"] == "control_response" && line["request_id"] == id);
        lines.last().unwrap()["response"].clone()
    }
}
