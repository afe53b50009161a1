//! A program that only copies: it sends the request and writes the response to standard output. This is the
//! lower bound.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Copies the answer of the model at `base_url` (`http://HOST:PORT/v1`).
pub(super) fn run(base_url: &str) -> Result<(), String> {
    let rest = base_url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (host, path) = rest.ok_or_else(|| format!("copy wants http://HOST:PORT/v1, not {base_url:?}"))?;
    copy(host, path).map_err(|error| format!("cannot copy from {base_url}: {error}"))
}

fn copy(host: &str, path: &str) -> std::io::Result<()> {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut stream = TcpStream::connect(host)?;
    let length = body.len();
    let head = format!("POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes())?;
    // Standard output without the library's line buffer: one read, one write.
    let mut out = std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
