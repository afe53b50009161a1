//! The mock model in a separate process, and queries to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A mock that runs until it is dropped.
pub struct Mock {
    process: Child,
    port: u16,
}

impl Mock {
    /// Starts one with the arguments of the `mock-model` program.
    pub fn start(args: &[&str]) -> Result<Self, String> {
        let me = std::env::current_exe().map_err(|error| format!("cannot find my own program: {error}"))?;
        let mut command = Command::new(me);
        command.arg("mock-model").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("cannot start the mock model: {error}"))?;
        let mut hello = String::new();
        if let Some(stdout) = process.stdout.take() {
            let read = BufReader::new(stdout).read_line(&mut hello);
            read.map_err(|error| format!("cannot read from the mock model: {error}"))?;
        }
        let hello: Value = serde_json::from_str(&hello).unwrap_or_default();
        let port = hello["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or("the mock model did not say where it listens")?;
        Ok(Self { process, port })
    }

    /// Starts one that gives these replies, each a list of steps, and then starts over.
    pub fn scripted(replies: &[Value]) -> Result<Self, String> {
        let replies: Vec<Value> = replies.iter().map(|steps| json!({ "steps": steps })).collect();
        let script = json!({ "loop": true, "replies": replies });
        let write = || {
            let mut file = tempfile::NamedTempFile::new()?;
            file.write_all(script.to_string().as_bytes())?;
            file.flush().map(|()| file)
        };
        let file = write().map_err(|error: std::io::Error| format!("cannot write a script: {error}"))?;
        // It prints its address after it has read the script.
        Self::start(&["--script", &file.path().to_string_lossy()])
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Forgets the requests so far.
    pub fn reset(&self) -> Result<(), String> {
        self.control("POST", "reset").map(drop)
    }

    /// When the last request had arrived, on the clock that processes share.
    pub fn last_arrival_ns(&self) -> Result<u64, String> {
        let requests = self.control("GET", "requests")?;
        let last = requests.as_array().and_then(|requests| requests.last());
        last.and_then(|request| request["arrived_ns"].as_u64())
            .ok_or("the program sent no request".to_owned())
    }

    fn control(&self, method: &str, what: &str) -> Result<Value, String> {
        let ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            write!(
                stream,
                "{method} /control/{what} HTTP/1.1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        let answer: String =
            ask().map_err(|error: std::io::Error| format!("cannot ask the mock model: {error}"))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| format!("the mock model answered {answer:?}: {error}"))
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
