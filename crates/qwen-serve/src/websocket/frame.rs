//! WebSocket frames (RFC 6455) of clients, and those for them. Pure: bytes in, messages out.

/// A message of the client.
#[derive(Debug, PartialEq, Eq)]
pub enum SocketMessage {
    Text(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    /// The client closes the connection, with a code if it gave one.
    Close(Option<u16>),
}

/// Codes with which a connection is closed.
pub const NORMAL: u16 = 1000;
pub const GOING_AWAY: u16 = 1001;
pub const PROTOCOL_ERROR: u16 = 1002;
pub const NOT_TEXT: u16 = 1003;
pub const BAD_TEXT: u16 = 1007;
pub const TOO_LARGE: u16 = 1009;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The maximum payload of a control frame.
const CONTROL: usize = 125;

/// Reads the frames of a client. Errors are close codes; after one, nothing more can be read.
#[derive(Debug)]
pub struct FrameParser {
    bytes: Vec<u8>,
    /// The text message whose frames have not all arrived.
    partial: Option<Vec<u8>>,
    limit: usize,
}

/// A frame whose head was read.
struct Head {
    is_final: bool,
    opcode: u8,
    mask: [u8; 4],
    start: usize,
    length: usize,
}

impl FrameParser {
    /// A parser of messages up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), partial: None, limit }
    }

    /// Adds bytes of the connection.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that is complete.
    pub fn next(&mut self) -> Result<Option<SocketMessage>, u16> {
        while let Some(head) = self.head()? {
            let end = head.start + head.length;
            if self.bytes.len() < end {
                return Ok(None);
            }
            let mut payload: Vec<u8> = self.bytes.drain(..end).skip(head.start).collect();
            for (byte, mask) in payload.iter_mut().zip(head.mask.iter().cycle()) {
                *byte ^= mask;
            }
            if let Some(message) = self.frame(&head, payload)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Reads the head of the next frame; none if it has not arrived.
    fn head(&self) -> Result<Option<Head>, u16> {
        let [first, second, rest @ ..] = self.bytes.as_slice() else { return Ok(None) };
        let (is_final, opcode) = (first & 0x80 != 0, first & 0x0f);
        let is_known = matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
        // No extension was agreed on, and clients must mask.
        if first & 0x70 != 0 || !is_known || second & 0x80 == 0 {
            return Err(PROTOCOL_ERROR);
        }
        let (size, length) = match second & 0x7f {
            126 => match rest.first_chunk::<2>() {
                Some(bytes) => (2, u64::from(u16::from_be_bytes(*bytes))),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(bytes) => (8, u64::from_be_bytes(*bytes)),
                None => return Ok(None),
            },
            short => (0, u64::from(short)),
        };
        let length = usize::try_from(length).map_err(|_| TOO_LARGE)?;
        let is_control = opcode >= CLOSE;
        if is_control && (length > CONTROL || !is_final) {
            return Err(PROTOCOL_ERROR);
        }
        if length + self.partial.as_ref().map_or(0, Vec::len) > self.limit {
            return Err(TOO_LARGE);
        }
        let Some(mask) = rest.get(size..).and_then(|rest| rest.first_chunk::<4>()) else { return Ok(None) };
        Ok(Some(Head { is_final, opcode, mask: *mask, start: 2 + size + 4, length }))
    }

    fn frame(&mut self, head: &Head, payload: Vec<u8>) -> Result<Option<SocketMessage>, u16> {
        match head.opcode {
            PING => return Ok(Some(SocketMessage::Ping(payload))),
            PONG => return Ok(Some(SocketMessage::Pong)),
            CLOSE => {
                let code = payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
                return Ok(Some(SocketMessage::Close(code)));
            }
            BINARY => return Err(NOT_TEXT),
            _ => {}
        }
        let whole = match (head.opcode, self.partial.take()) {
            (TEXT, None) => payload,
            (CONTINUATION, Some(mut partial)) => {
                partial.extend_from_slice(&payload);
                partial
            }
            _ => return Err(PROTOCOL_ERROR),
        };
        if !head.is_final {
            self.partial = Some(whole);
            return Ok(None);
        }
        if std::str::from_utf8(&whole).is_err() {
            return Err(BAD_TEXT);
        }
        Ok(Some(SocketMessage::Text(whole)))
    }
}

/// Appends a text message.
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    push_frame(out, TEXT, text);
}

/// Appends the answer to a ping.
pub fn push_pong(out: &mut Vec<u8>, payload: &[u8]) {
    push_frame(out, PONG, payload);
}

/// Appends a ping, which shows whether the client is there.
pub fn push_ping(out: &mut Vec<u8>) {
    push_frame(out, PING, b"");
}

/// Appends the last frame.
pub fn push_close(out: &mut Vec<u8>, code: u16) {
    push_frame(out, CLOSE, &code.to_be_bytes());
}

fn push_frame(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    out.push(0x80 | opcode);
    let length = payload.len() as u64;
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.push(short),
        (_, Ok(medium)) => {
            out.push(126);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            medium => {
                frame.push(0xfe);
                frame.extend_from_slice(&u16::try_from(medium).unwrap().to_be_bytes());
            }
        }
        let mask = [1, 2, 3, 4];
        frame.extend_from_slice(&mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn all(bytes: &[u8], step: usize) -> (Vec<SocketMessage>, Option<u16>) {
        let mut parser = FrameParser::new(1000);
        let mut messages = Vec::new();
        for piece in bytes.chunks(step) {
            parser.push(piece);
            loop {
                match parser.next() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(code) => return (messages, Some(code)),
                }
            }
        }
        (messages, None)
    }

    #[test]
    fn messages_arrive_however_their_bytes_are_cut() {
        let mut bytes = masked(0x81, b"whole");
        bytes.extend(masked(0x01, b"in "));
        bytes.extend(masked(0x89, b"ping"));
        bytes.extend(masked(0x80, "pieces ä".as_bytes()));
        bytes.extend(masked(0x81, &[b'x'; 300]));
        bytes.extend(masked(0x88, &1000_u16.to_be_bytes()));
        let expected = vec![
            SocketMessage::Text(b"whole".to_vec()),
            SocketMessage::Ping(b"ping".to_vec()),
            SocketMessage::Text("in pieces ä".as_bytes().to_vec()),
            SocketMessage::Text(vec![b'x'; 300]),
            SocketMessage::Close(Some(1000)),
        ];
        for step in [1, 2, 3, 7, bytes.len()] {
            assert_eq!(all(&bytes, step).0, expected, "{step}");
        }
    }

    #[test]
    fn what_a_client_may_not_send_closes_the_connection() {
        let unmasked = [0x81, 1, b'x'];
        let large = [0x81, 0x80 | 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        for (bytes, code) in [
            (unmasked.to_vec(), PROTOCOL_ERROR),
            (masked(0xc1, b"reserved bit"), PROTOCOL_ERROR),
            (masked(0x83, b"unknown opcode"), PROTOCOL_ERROR),
            (masked(0x80, b"nothing to continue"), PROTOCOL_ERROR),
            (masked(0x09, b"ping in pieces"), PROTOCOL_ERROR),
            (masked(0x89, &[0; 126]), PROTOCOL_ERROR),
            ([masked(0x01, b"a"), masked(0x81, b"b")].concat(), PROTOCOL_ERROR),
            (masked(0x82, b"binary"), NOT_TEXT),
            (masked(0x81, b"\xff"), BAD_TEXT),
            (masked(0x81, &[b'x'; 1001]), TOO_LARGE),
            ([masked(0x01, &[b'x'; 600]), masked(0x80, &[b'x'; 600])].concat(), TOO_LARGE),
            (large.to_vec(), TOO_LARGE),
        ] {
            assert_eq!(all(&bytes, 5).1, Some(code), "{bytes:?}");
        }
    }
}
