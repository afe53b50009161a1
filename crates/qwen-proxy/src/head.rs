//! Heads of HTTP/1.1 requests and responses, read strictly: what two programs could read differently is refused.

use std::fmt::Write;

/// Longest head in bytes.
pub const MAX_HEAD: usize = 32 * 1024;
const MAX_FIELDS: usize = 200;

/// Why a head is refused.
pub type Malformed = &'static str;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub fields: Fields,
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    pub reason: String,
    pub fields: Fields,
}

/// Header fields in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Vec<(String, String)>);

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// After this many bytes.
    Length(u64),
    /// After the chunk of length zero.
    Chunked,
    /// When the connection is closed, as the head gives no length.
    Closed,
}

impl RequestHead {
    /// Reads a head, including the empty line at its end.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (line, fields) = split_lines(bytes)?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("the request line is not METHOD TARGET VERSION");
        };
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err("only HTTP/1.1 is understood");
        }
        if method.is_empty() || !method.bytes().all(is_token) {
            return Err("the method is not a token");
        }
        if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the target has characters that must be encoded");
        }
        let fields = Fields::parse(&fields)?;
        Ok(Self { method: method.to_owned(), target: target.to_owned(), fields })
    }

    /// Where the body ends. A request without a length has none.
    pub fn body_end(&self) -> Result<BodyEnd, Malformed> {
        Ok(self.fields.body_end()?.unwrap_or(BodyEnd::Length(0)))
    }

    /// True if the client wants to change the protocol, such as to WebSocket.
    pub fn is_upgrade(&self) -> bool {
        self.fields.get("upgrade").is_some() && self.fields.lists("connection", "upgrade")
    }

    /// The head with another target.
    pub fn write(&self, target: &str) -> String {
        let mut text = format!("{} {target} HTTP/1.1\r\n", self.method);
        self.fields.write(&mut text);
        text
    }
}

impl ResponseHead {
    /// Reads a head, including the empty line at its end.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (line, fields) = split_lines(bytes)?;
        let (version, rest) = line.split_once(' ').ok_or("the status line has no status")?;
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err("the server does not speak HTTP/1.1");
        }
        let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        let status = status.parse().ok().filter(|_| is_status).ok_or("the status is not a number")?;
        Ok(Self { status, reason: reason.to_owned(), fields: Fields::parse(&fields)? })
    }

    /// Where the body of the response to a request with this method ends.
    pub fn body_end(&self, method: &str) -> Result<BodyEnd, Malformed> {
        if method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304) {
            return Ok(BodyEnd::Length(0));
        }
        Ok(self.fields.body_end()?.unwrap_or(BodyEnd::Closed))
    }

    pub fn write(&self) -> String {
        let mut text = format!("HTTP/1.1 {:03} {}\r\n", self.status, self.reason);
        self.fields.write(&mut text);
        text
    }
}

impl Fields {
    fn parse(lines: &[&str]) -> Result<Self, Malformed> {
        if lines.len() > MAX_FIELDS {
            return Err("there are too many header fields");
        }
        let mut fields = Vec::with_capacity(lines.len());
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a header field has no colon")?;
            // A name that starts with a blank continues the line before, in an old form.
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err("the name of a header field is not a token");
            }
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
        Ok(Self(fields))
    }

    /// The value of the first field with this name, in small letters.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The value of a field that may be there once. `Err` if there are several.
    pub fn find_unique<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, Malformed> {
        let mut values = self.all(name);
        let value = values.next();
        if values.next().is_some() {
            Err("a header field that must be unique is repeated")
        } else {
            Ok(value)
        }
    }

    /// True if a field lists a word.
    fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(word))
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Replaces all fields of this name by one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// Removes the fields that are meant for this connection only, which `Connection` lists.
    pub fn remove_connection_fields(&mut self) {
        let listed: Vec<String> = self
            .all("connection")
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_owned())
            .collect();
        // The body is framed anew, and its length stays as it is.
        let is_needed = |name: &str| {
            ["transfer-encoding", "content-length", "host"]
                .iter()
                .any(|needed| name.eq_ignore_ascii_case(needed))
        };
        for name in listed.iter().filter(|name| !is_needed(name)) {
            self.remove(name);
        }
        for name in [
            "connection",
            "proxy-connection",
            "proxy-authorization",
            "proxy-authenticate",
            "keep-alive",
            "upgrade",
        ] {
            self.remove(name);
        }
    }

    /// Where the body ends, if a field states it. Several lengths, or a length with an encoding, are refused:
    /// servers disagree about which one counts.
    fn body_end(&self) -> Result<Option<BodyEnd>, Malformed> {
        let length = self.find_unique("content-length")?;
        match (self.find_unique("transfer-encoding")?, length) {
            (Some(_), Some(_)) => Err("the body has a length and an encoding"),
            (Some(encoding), None) if encoding.eq_ignore_ascii_case("chunked") => Ok(Some(BodyEnd::Chunked)),
            (Some(_), None) => Err("only the transfer encoding chunked is understood"),
            (None, Some(length)) => {
                let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length
                    .parse()
                    .ok()
                    .filter(|_| is_number)
                    .ok_or("the length of the body is not a number")?;
                Ok(Some(BodyEnd::Length(length)))
            }
            (None, None) => Ok(None),
        }
    }

    fn write(&self, text: &mut String) {
        for (name, value) in &self.0 {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
    }
}

/// The first line and the others, without the empty one at the end.
fn split_lines(bytes: &[u8]) -> Result<(&str, Vec<&str>), Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the head is not text")?;
    let text = text.strip_suffix("\r\n\r\n").ok_or("the head has no end")?;
    if text.chars().any(|character| character.is_control() && !matches!(character, '\r' | '\n' | '\t')) {
        return Err("the head has control characters");
    }
    let mut lines: Vec<&str> = text.split("\r\n").collect();
    if lines.iter().any(|line| line.contains(['\r', '\n'])) {
        return Err("a line of the head does not end with CR LF");
    }
    let first = lines.remove(0);
    Ok((first, lines))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The length in the line before a chunk. Extensions are ignored.
pub fn read_chunk_size(line: &str) -> Result<u64, Malformed> {
    let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
    let is_number = (1..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_number).ok_or("the length of a chunk is not a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<RequestHead, Malformed> {
        RequestHead::parse(text.as_bytes())
    }

    #[test]
    fn a_request_is_read_and_written_as_it_was() {
        let text =
            "POST http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nX-Empty:\r\n\r\n";
        let head = request(text).unwrap();
        assert_eq!((head.method.as_str(), head.fields.get("HOST")), ("POST", Some("a.example")));
        assert_eq!(head.body_end(), Ok(BodyEnd::Length(3)));
        assert_eq!(head.write("/x?y"), text.replace("http://a.example", "").replace("X-Empty:", "X-Empty: "));
    }

    #[test]
    fn what_programs_read_differently_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n continued\r\n\r\n",
            "GET / HTTP/1.1\r\n: a\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1 x\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET /\u{0}x HTTP/1.1\r\n\r\n",
            "GET /\u{e4} HTTP/1.1\r\n\r\n",
            "G(T / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\u{0}c\r\n\r\n",
            "GET / HTTP/1.1\r\n",
            "\r\n\r\n",
            "",
        ] {
            assert!(request(head).is_err(), "{head:?}");
        }
        for fields in [
            "Content-Length: 3\r\nContent-Length: 3",
            "Content-Length: 3\r\ncontent-length: 4",
            "Content-Length: +3",
            "Content-Length: 0x3",
            "Content-Length: 3, 3",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: xchunked",
        ] {
            let head = request(&format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n")).unwrap();
            assert!(head.body_end().is_err(), "{fields:?}");
        }
    }

    #[test]
    fn fields_of_the_connection_are_removed_but_not_what_frames_the_body() {
        let text = "GET / HTTP/1.1\r\nConnection: close, X-Mine, Content-Length\r\nX-Mine: 1\r\nContent-Length: 3\r\n\
                    Proxy-Authorization: x\r\nUpgrade: h2c\r\nAccept: */*\r\n\r\n";
        let mut head = request(text).unwrap();
        head.fields.remove_connection_fields();
        assert_eq!(head.write("/"), "GET / HTTP/1.1\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n");
    }

    #[test]
    fn the_body_of_a_response_ends_as_its_head_says() {
        for (head, method, end) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", BodyEnd::Length(5)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", BodyEnd::Length(0)),
            ("HTTP/1.1 204\r\n\r\n", "GET", BodyEnd::Length(0)),
            ("HTTP/1.0 200 OK\r\n\r\n", "GET", BodyEnd::Closed),
            ("HTTP/1.1 200 \r\nTransfer-Encoding: Chunked\r\n\r\n", "GET", BodyEnd::Chunked),
        ] {
            let head = ResponseHead::parse(head.as_bytes()).unwrap();
            assert_eq!(head.body_end(method), Ok(end), "{head:?}");
        }
        for head in
            ["HTTP/1.1\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 +20 OK\r\n\r\n", "ICY 200 OK\r\n\r\n"]
        {
            assert!(ResponseHead::parse(head.as_bytes()).is_err(), "{head:?}");
        }
    }

    #[test]
    fn only_hexadecimal_digits_are_the_length_of_a_chunk() {
        for (line, size) in [("0", 0), ("1f", 31), ("A;name=value", 10), ("10 ", 16)] {
            assert_eq!(read_chunk_size(line), Ok(size), "{line}");
        }
        for line in ["", "g", "0x1", "+1", "-1", " 1", "11111111111111111", "1\t2"] {
            assert!(read_chunk_size(line).is_err(), "{line:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_head_makes_reading_panic_and_what_is_written_is_read_again(text in "[ -~\r\n\t]{0,200}") {
            let text = format!("{text}\r\n\r\n");
            if let Ok(head) = request(&text) {
                let _ = head.body_end();
                proptest::prop_assert_eq!(request(&head.write(&head.target)), Ok(head));
            }
            let _ = ResponseHead::parse(text.as_bytes());
        }
    }
}
