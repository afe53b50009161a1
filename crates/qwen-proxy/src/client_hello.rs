//! Reads the server name from the first message of a TLS client.

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientHello {
    /// More bytes are needed.
    Incomplete,
    /// A complete message, with the name of the server in small letters if it contains one.
    Complete(Option<String>),
    /// It is not a TLS client, or the message breaks the format.
    Invalid,
}

/// The first byte of every TLS connection.
pub const HANDSHAKE: u8 = 0x16;
/// Longest message that is read. Real ones have up to 2 KiB.
pub const MAX_BYTES: usize = 16 * 1024;
const CLIENT_HELLO: u8 = 1;
const MAX_RECORD: usize = 16 * 1024;

/// Reads the message from the bytes that have arrived so far.
pub fn read_client_hello(bytes: &[u8]) -> ClientHello {
    let message = match join_records(bytes) {
        Ok(message) => message,
        Err(outcome) => return outcome,
    };
    match read_name(&message) {
        Some(name) => ClientHello::Complete(name),
        None => ClientHello::Invalid,
    }
}

/// The body of the handshake message, which may be spread over several records.
fn join_records(mut bytes: &[u8]) -> Result<Vec<u8>, ClientHello> {
    let mut message = Vec::new();
    loop {
        if let Some((head, body)) = message.split_first_chunk::<4>() {
            let [kind, a, b, c] = *head;
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if kind != CLIENT_HELLO || length > MAX_BYTES {
                return Err(ClientHello::Invalid);
            }
            if body.len() >= length {
                return Ok(body.get(..length).unwrap_or_default().to_vec());
            }
        }
        match bytes {
            [] => return Err(ClientHello::Incomplete),
            [HANDSHAKE, 3, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 || length > MAX_RECORD {
                    return Err(ClientHello::Invalid);
                }
                let Some((record, rest)) = rest.split_at_checked(length) else {
                    return Err(ClientHello::Incomplete);
                };
                message.extend_from_slice(record);
                bytes = rest;
            }
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => {
                return Err(ClientHello::Incomplete);
            }
            _ => return Err(ClientHello::Invalid),
        }
    }
}

/// Cuts fields off the front of a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    /// A field with its length in one byte before it.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.take(1)?.first()?);
        self.take(length)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    /// A field with its length in two bytes before it.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.number()?);
        self.take(length)
    }
}

/// The server name of a message; `None` if the format is broken.
#[expect(clippy::option_option, reason = "a broken message is not one without a name")]
fn read_name(message: &[u8]) -> Option<Option<String>> {
    const SERVER_NAME: u16 = 0;
    let mut fields = Fields(message);
    let _version_and_random = fields.take(34)?;
    let _session = fields.short()?;
    let _ciphers = fields.long()?;
    let _compression = fields.short()?;
    if fields.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Fields(fields.long()?);
    if !fields.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let body = extensions.long()?;
        if kind == SERVER_NAME {
            // Two of them could be read differently by the server.
            if found.is_some() {
                return None;
            }
            found = Some(read_host_name(body)?);
        }
    }
    Some(found)
}

fn read_host_name(extension: &[u8]) -> Option<String> {
    const HOST_NAME: u8 = 0;
    let mut outer = Fields(extension);
    let mut names = Fields(outer.long()?);
    let kind = *names.take(1)?.first()?;
    let name = names.long()?;
    let is_only = outer.0.is_empty() && names.0.is_empty() && kind == HOST_NAME;
    let name = std::str::from_utf8(name).ok().filter(|name| name.is_ascii() && !name.is_empty())?;
    is_only.then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The first message of a real client.
    fn real(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The same message in records of `size` bytes.
    fn split(bytes: &[u8], size: usize) -> Vec<u8> {
        let pieces = bytes[5..].chunks(size);
        pieces
            .flat_map(|piece| {
                let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
                [&[HANDSHAKE, 3, 1], &length[..], piece].concat()
            })
            .collect()
    }

    #[test]
    fn the_name_is_read_from_a_real_client_at_any_split() {
        let bytes = real("Docs.Example.org");
        let complete = ClientHello::Complete(Some("docs.example.org".to_owned()));
        assert_eq!(read_client_hello(&bytes), complete);
        for end in 0..bytes.len() {
            assert_eq!(read_client_hello(&bytes[..end]), ClientHello::Incomplete, "{end}");
        }
        for size in [1, 2, 7, 100] {
            assert_eq!(read_client_hello(&split(&bytes, size)), complete, "records of {size}");
        }
    }

    #[test]
    fn a_client_of_an_address_sends_no_name() {
        assert_eq!(read_client_hello(&real("127.0.0.1")), ClientHello::Complete(None));
    }

    #[test]
    fn what_is_not_tls_is_recognised_at_its_first_bytes() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x",
            &[0x16, 2],
            &[0x16, 3, 1, 0, 0],
            &[0x17, 3, 3],
            &[0x80, 1],
        ] {
            assert_eq!(read_client_hello(bytes), ClientHello::Invalid, "{bytes:?}");
        }
        // A record with a ServerHello.
        assert_eq!(read_client_hello(&[0x16, 3, 1, 0, 4, 2, 0, 0, 0]), ClientHello::Invalid);
        // A message of 16 MiB.
        assert_eq!(read_client_hello(&[0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]), ClientHello::Invalid);
    }

    #[test]
    fn two_names_are_refused() {
        let bytes = real("a.example");
        let name = bytes.windows(9).position(|window| window == b"a.example").unwrap();
        // The extension starts 9 bytes before the name; append a copy of it at the end.
        let extension = bytes[name - 9..name + 9].to_vec();
        let mut message = bytes.clone();
        message.extend(&extension);
        let grow = |message: &mut Vec<u8>, at: usize| {
            let length =
                u16::from_be_bytes([message[at], message[at + 1]]) + u16::try_from(extension.len()).unwrap();
            message[at..at + 2].copy_from_slice(&length.to_be_bytes());
        };
        grow(&mut message, 3);
        grow(&mut message, 7);
        let extensions = {
            let session = 5 + 4 + 34;
            let ciphers = session + 1 + usize::from(message[session]);
            let compression =
                ciphers + 2 + usize::from(u16::from_be_bytes([message[ciphers], message[ciphers + 1]]));
            compression + 1 + usize::from(message[compression])
        };
        grow(&mut message, extensions);
        assert_eq!(read_client_hello(&message), ClientHello::Invalid);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(0..=255u8, 0..300)) {
            let _ = read_client_hello(&bytes);
        }

        #[test]
        fn no_damage_to_a_real_message_makes_reading_panic(at in 0..200usize, byte in 0..=255u8) {
            let mut bytes = real("docs.example.org");
            bytes[at] = byte;
            let _ = read_client_hello(&bytes);
        }
    }
}
