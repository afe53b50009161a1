//! `Network(HOST[:PORT] [METHOD])`: the hosts that sandboxed programs may reach.

use std::net::{IpAddr, Ipv6Addr};

/// A pattern for the destination of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkPattern {
    host: Hosts,
    /// The only port it is about.
    port: Option<u16>,
    /// The only HTTP method it is about.
    method: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    /// A name or an address.
    One(String),
    /// The names below this one.
    Below(String),
}

/// A destination, as a program asked for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    /// In small letters, without a final dot; an IPv6 address without brackets.
    pub host: &'a str,
    pub port: u16,
}

const EXPECTED: &str = "expected HOST, *.HOST or HOST:PORT, and perhaps an HTTP method";
/// The methods that a pattern can name; another one is taken for a typing error.
const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "OPTIONS",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "REPORT",
    "UNLOCK",
];

impl NetworkPattern {
    pub(crate) fn parse(pattern: &str) -> Result<Self, &'static str> {
        let mut words = pattern.split_whitespace();
        let (Some(host), method, None) = (words.next(), words.next(), words.next()) else {
            return Err(EXPECTED);
        };
        let method = method.map(str::to_ascii_uppercase);
        let is_method = |method: &String| METHODS.contains(&method.as_str());
        if !method.as_ref().is_none_or(is_method) {
            return Err(EXPECTED);
        }
        let (host, port) = split_port(host).ok_or(EXPECTED)?;
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => Hosts::All,
            Some(parent) => {
                let parent = normalize_host(parent).ok_or(EXPECTED)?;
                if parent.parse::<IpAddr>().is_ok() {
                    return Err("an address has no names below it");
                }
                Hosts::Below(parent)
            }
            None => Hosts::One(normalize_host(host).ok_or(EXPECTED)?),
        };
        Ok(Self { host, port, method })
    }

    /// The HTTP method that the pattern is limited to.
    pub(crate) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// True if the pattern names a port, which opens the port to every protocol.
    pub(crate) fn names_port(&self) -> bool {
        self.port.is_some()
    }

    /// True if the pattern is about this machine, under a name that means the sandbox itself inside.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Hosts::One(host) => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Hosts::All | Hosts::Below(_) => false,
        }
    }

    /// True if the destination is certainly meant.
    pub(crate) fn allows(&self, destination: Destination<'_>) -> bool {
        self.covers_port(destination)
            && match &self.host {
                Hosts::All => true,
                Hosts::One(host) => host == destination.host,
                Hosts::Below(parent) => is_below(destination.host, parent),
            }
    }

    /// True if the destination is meant, or a name below it.
    pub(crate) fn forbids(&self, destination: Destination<'_>) -> bool {
        self.covers_port(destination)
            && match &self.host {
                Hosts::All => true,
                Hosts::One(host) | Hosts::Below(host) => {
                    host == destination.host || is_below(destination.host, host)
                }
            }
    }

    fn covers_port(&self, destination: Destination<'_>) -> bool {
        self.port.is_none_or(|port| port == destination.port)
    }
}

fn is_below(host: &str, parent: &str) -> bool {
    host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Splits `host:port`. An IPv6 address with a port is in brackets.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0 && !text.starts_with('+'));
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match rest.strip_prefix(':') {
            Some(digits) => Some((host, Some(port(digits)?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((_, rest)) if rest.contains(':') => Some((text, None)),
        Some((host, digits)) => Some((host, Some(port(digits)?))),
    }
}

/// A host's name in small letters without a final dot, or its address in the usual spelling. `None` for what is
/// neither, and for spellings that programs take for different addresses, such as `0x7f.1`.
pub fn normalize_host(host: &str) -> Option<String> {
    const MAX_NAME: usize = 253;
    const MAX_LABEL: usize = 63;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return (bare.len() == host.len() || address.is_ipv6()).then(|| address.to_canonical().to_string());
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // Resolvers read a name whose last label is a number as an address.
    let last = name.rsplit('.').next()?;
    let is_number =
        last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    (name.len() <= MAX_NAME && name.split('.').all(is_label) && !is_number).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> NetworkPattern {
        NetworkPattern::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    fn to(host: &str, port: u16) -> Destination<'_> {
        Destination { host, port }
    }

    #[test]
    fn an_allowed_host_is_that_host_and_no_look_alike() {
        for (text, yes, no) in [
            (
                "docs.example.org",
                &[("docs.example.org", 443), ("docs.example.org", 8443)][..],
                &[("example.org", 443), ("a.docs.example.org", 443), ("docs.example.org.evil.net", 443)][..],
            ),
            (
                "*.example.com",
                &[("a.example.com", 443), ("a.b.example.com", 80)],
                &[
                    ("example.com", 443),
                    ("notexample.com", 443),
                    (".example.com", 443),
                    ("example.com.evil.net", 443),
                ],
            ),
            ("Docs.Example.ORG.", &[("docs.example.org", 443)], &[]),
            ("example.com:8443", &[("example.com", 8443)], &[("example.com", 443)]),
            ("127.0.0.1:80", &[("127.0.0.1", 80)], &[("127.0.0.1", 81), ("127.0.0.2", 80)]),
            ("[::1]:80", &[("::1", 80)], &[("::1", 81)]),
            ("::1", &[("::1", 81)], &[("::2", 81)]),
            ("::ffff:127.0.0.1", &[("127.0.0.1", 80)], &[]),
            ("*:8443", &[("example.com", 8443)], &[("example.com", 443)]),
        ] {
            for (host, port) in yes {
                assert!(pattern(text).allows(to(host, *port)), "{text} should allow {host}:{port}");
            }
            for (host, port) in no {
                assert!(!pattern(text).allows(to(host, *port)), "{text} should not allow {host}:{port}");
            }
        }
    }

    #[test]
    fn a_forbidden_host_is_forbidden_with_all_below_it() {
        for text in ["example.com", "*.example.com"] {
            for host in ["example.com", "a.example.com", "a.b.example.com"] {
                assert!(pattern(text).forbids(to(host, 443)), "{text} should forbid {host}");
            }
            for host in ["notexample.com", "example.com.org", "com"] {
                assert!(!pattern(text).forbids(to(host, 443)), "{text} should not forbid {host}");
            }
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_understood_is_an_error() {
        for text in [
            "",
            " ",
            "https://example.com",
            "example.com/path",
            "example.com GET POST",
            "example.com:0",
            "example.com:99999",
            "example.com:http",
            "exa mple",
            "*example.com",
            "a.*.com",
            "example..com",
            ".com",
            "*.10.0.0.1",
            "0x7f.1",
            "2130706433",
            "127.1",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
            "ex\u{e4}mple.com",
            "example.com G\u{0}T",
            "user@example.com",
            "example.com GET/1.1",
            "example.com:+80",
            "-:-",
        ] {
            assert!(NetworkPattern::parse(text).is_err(), "{text:?} was understood");
        }
    }

    #[test]
    fn a_method_is_read_in_any_case() {
        assert_eq!(pattern("api.example.net get").method(), Some("GET"));
        assert_eq!(pattern("api.example.net").method(), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_parsing_panic_and_every_host_stays_as_it_is(text in "\\PC{0,40}") {
            let _ = NetworkPattern::parse(&text);
            if let Some(host) = normalize_host(&text) {
                proptest::prop_assert_eq!(normalize_host(&host), Some(host));
            }
        }
    }
}
