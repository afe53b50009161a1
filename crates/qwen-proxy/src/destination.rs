//! Destinations, as programs name them to a proxy.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use qwen_permissions::normalize_host;

/// A host and port to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// A name in small letters without a final dot, or an address.
    pub host: String,
    pub port: u16,
}

impl Destination {
    /// Reads `host:port`, where the port may be left out if there is a default.
    pub fn parse(authority: &str, default_port: Option<u16>) -> Option<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if host.contains(':') && !host.starts_with('[') {
            return None;
        }
        let port = match port {
            None => default_port?,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        (port > 0).then_some(Self { host: normalize_host(host)?, port })
    }

    /// The address, if the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The destination of a request to a proxy in absolute form, and the target for the server.
pub fn parse_absolute(target: &str) -> Option<(Destination, &str)> {
    const SCHEME: &str = "http://";
    let (scheme, rest) = target.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // A target with a query only, or a fragment, is read differently by servers.
    let path = if path.is_empty() { "/" } else { path };
    let is_plain = path.starts_with('/') && !path.contains('#');
    Destination::parse(authority, Some(80)).filter(|_| is_plain).map(|destination| (destination, path))
}

/// A message of a SOCKS5 client, as far as it has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socks<T> {
    /// More bytes are needed.
    Incomplete,
    /// The message, and its length in bytes.
    Complete(T, usize),
    /// The reply code of the refusal (RFC 1928).
    Refused(u8),
}

/// The first byte of every SOCKS5 message.
pub const SOCKS5: u8 = 5;
const NO_METHOD: u8 = 0xff;
const FAILED: u8 = 1;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_KIND: u8 = 8;

/// Reads the list of authentication methods, of which "none" must be one.
pub fn read_socks_greeting(bytes: &[u8]) -> Socks<()> {
    match bytes {
        [] | [SOCKS5] => Socks::Incomplete,
        [SOCKS5, count, methods @ ..] => match methods.get(..usize::from(*count)) {
            None => Socks::Incomplete,
            Some(methods) if methods.contains(&0) => Socks::Complete((), 2 + methods.len()),
            Some(_) => Socks::Refused(NO_METHOD),
        },
        _ => Socks::Refused(NO_METHOD),
    }
}

/// Reads a request. Only connections are made.
pub fn read_socks_request(bytes: &[u8]) -> Socks<Destination> {
    const CONNECT: u8 = 1;
    let [version, command, _, kind, rest @ ..] = bytes else { return Socks::Incomplete };
    if (*version, *command) != (SOCKS5, CONNECT) {
        return Socks::Refused(NO_SUCH_COMMAND);
    }
    let (host, rest, length) = match (kind, rest) {
        (1, rest) => match rest.split_first_chunk::<4>() {
            Some((address, rest)) => (IpAddr::from(Ipv4Addr::from(*address)).to_string(), rest, 4),
            None => return Socks::Incomplete,
        },
        (4, rest) => match rest.split_first_chunk::<16>() {
            Some((address, rest)) => (IpAddr::from(Ipv6Addr::from(*address)).to_string(), rest, 16),
            None => return Socks::Incomplete,
        },
        (3, [length, rest @ ..]) => match rest.split_at_checked(usize::from(*length)) {
            Some((name, rest)) => match std::str::from_utf8(name) {
                Ok(name) => (name.to_owned(), rest, 1 + usize::from(*length)),
                Err(_) => return Socks::Refused(FAILED),
            },
            None => return Socks::Incomplete,
        },
        (3, []) => return Socks::Incomplete,
        _ => return Socks::Refused(NO_SUCH_KIND),
    };
    let [high, low, ..] = rest else { return Socks::Incomplete };
    let port = u16::from_be_bytes([*high, *low]);
    match normalize_host(&host).filter(|_| port > 0) {
        Some(host) => Socks::Complete(Destination { host, port }, 4 + length + 2),
        None => Socks::Refused(FAILED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_has_one_reading_or_none() {
        for (text, host, port) in [
            ("docs.example.org:443", "docs.example.org", 443),
            ("DOCS.example.org.:8443", "docs.example.org", 8443),
            ("example.org", "example.org", 80),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:80", "::1", 80),
            ("[::1]", "::1", 80),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1", 80),
        ] {
            let destination = Destination { host: host.to_owned(), port };
            assert_eq!(Destination::parse(text, Some(80)), Some(destination), "{text}");
        }
        for text in [
            "",
            ":80",
            "a:b:80",
            "::1",
            "::1:80",
            "[::1",
            "[::1]x:80",
            "a:0",
            "a:65536",
            "a:+80",
            "a: 80",
            "a:",
            "user@a:80",
            "a/b:80",
            "a\u{0}.example:80",
            "a b:80",
            "127.1:80",
            "0x7f000001:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "[fe80::1%lo]:80",
            "\u{2460}.example:80",
            "a..b:80",
            "[127.0.0.1]:80",
        ] {
            assert_eq!(Destination::parse(text, Some(80)), None, "{text:?}");
        }
        assert_eq!(Destination::parse("example.org", None), None);
    }

    #[test]
    fn a_target_in_absolute_form_is_split_into_destination_and_path() {
        let parsed = |text: &str| parse_absolute(text).map(|(to, path)| (to.to_string(), path.to_owned()));
        for (text, to, path) in [
            ("http://a.example/x?y=http://b", "a.example:80", "/x?y=http://b"),
            ("HTTP://a.example:81", "a.example:81", "/"),
            ("http://[::1]:81/", "[::1]:81", "/"),
        ] {
            assert_eq!(parsed(text), Some((to.to_owned(), path.to_owned())), "{text}");
        }
        for text in [
            "https://a.example/",
            "http:/a/",
            "http://",
            "/x",
            "*",
            "http://u:p@a.example/",
            "http://a.example?x",
            "http://a\\b/",
            "http://a.example/#x",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn socks_messages_are_read_at_any_split() {
        let name = b"\x05\x01\x00\x03\x0bexample.org\x01\xbb";
        let v4 = b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50";
        let v6 = b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50";
        for (bytes, to) in [(&name[..], "example.org:443"), (v4, "127.0.0.1:80"), (v6, "[::1]:80")] {
            for end in 0..bytes.len() {
                assert_eq!(read_socks_request(&bytes[..end]), Socks::Incomplete, "{to} {end}");
            }
            let Socks::Complete(destination, length) = read_socks_request(bytes) else { panic!("{to}") };
            assert_eq!((destination.to_string().as_str(), length), (to, bytes.len()));
        }
        assert_eq!(read_socks_greeting(&[5, 2, 2, 0]), Socks::Complete((), 4));
        assert_eq!(read_socks_greeting(&[5, 1, 2]), Socks::Refused(NO_METHOD));
        assert_eq!(read_socks_greeting(&[5, 2, 0]), Socks::Incomplete);
        assert_eq!(read_socks_greeting(&[4, 1, 0]), Socks::Refused(NO_METHOD));
        // BIND, UDP ASSOCIATE, an unknown kind of address, port 0 and a name with a NUL.
        for bytes in [
            &b"\x05\x02\x00\x01"[..],
            b"\x05\x03\x00\x01",
            b"\x05\x01\x00\x09\x01",
            b"\x05\x01\x00\x01\x01\x01\x01\x01\0\0",
            b"\x05\x01\x00\x03\x03a\0b\0\x50",
        ] {
            assert!(matches!(read_socks_request(bytes), Socks::Refused(_)), "{bytes:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(0..=255u8, 0..60), text in "\\PC{0,40}") {
            let _ = (read_socks_greeting(&bytes), read_socks_request(&bytes));
            let _ = (Destination::parse(&text, Some(80)), parse_absolute(&text));
        }
    }
}
