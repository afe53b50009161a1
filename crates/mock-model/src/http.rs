//! The subset of HTTP/1.1 that a model server needs: requests and answers with a length or in chunks.

use std::io::{self, BufRead, Read};

/// The longest head that is accepted; no model client sends a longer one.
const MAX_HEAD: u64 = 256 * 1024;

/// A request as received.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep_alive: bool,
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// The next request of a connection; none if the peer closed it between two requests.
pub(crate) fn read_request(input: &mut impl BufRead) -> io::Result<Option<RawRequest>> {
    let mut head = input.take(MAX_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(bad("a request line has a method, a path and a version"));
    };
    let (method, path, old) = (method.to_owned(), path.to_owned(), version == "HTTP/1.0");
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(bad("the head of the request is cut off or too long"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let body = if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        read_chunks(input)?
    } else {
        let length = header("content-length").map_or(Ok(0), str::parse::<u64>);
        let length = length.map_err(|_| bad("a content-length that is not a number"))?;
        read_exactly(input, length)?
    };
    let keep_alive = !old && !header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some(RawRequest { method, path, headers, body, keep_alive }))
}

fn read_exactly(input: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    if body.len() as u64 != length {
        return Err(bad("the body of the request is cut off"));
    }
    Ok(body)
}

fn read_chunks(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        input.take(1024).read_line(&mut line)?;
        let size = line.trim_end().split(';').next().unwrap_or("");
        let size = u64::from_str_radix(size, 16).map_err(|_| bad("a chunk without a size"))?;
        body.extend(read_exactly(input, size)?);
        if size == 0 {
            // Trailers, then the empty line.
            while input.take(MAX_HEAD).read_line(&mut line)? > 2 {
                line.clear();
            }
            return Ok(body);
        }
        read_exactly(input, 2)?;
    }
}

/// The head of a streaming response.
pub(crate) fn stream_head() -> &'static [u8] {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
}

/// Appends one framed chunk.
pub(crate) fn put_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    // An empty chunk would end the stream.
    if !bytes.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
    }
}

/// The chunk that ends a stream.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A complete response with a length.
pub(crate) fn complete_response(status: u16, headers: &[(String, String)], body: &str) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} {}\r\ncontent-length: {}\r\n", reason(status), body.len());
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        let kind =
            if body.starts_with(['{', '[']) { "application/json" } else { "text/plain; charset=utf-8" };
        out.push_str("content-type: ");
        out.push_str(kind);
        out.push_str("\r\n");
    }
    for (name, value) in headers {
        out.push_str(name);
        out.push_str(": ");
        out.push_str(value);
        out.push_str("\r\n");
    }
    out.push_str("\r\n");
    out.push_str(body);
    out.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Mock",
    }
}
