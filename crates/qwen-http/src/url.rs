//! The one parser of URLs: of models, web pages, MCP servers and hooks. It is strict: forms that parsers read
//! differently are refused, so the host that was checked is the host that is connected to.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A web address without user, password and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    https: bool,
    /// In small letters; IPv6 in its brackets.
    host: String,
    port: u16,
    /// The path and the query, percent-encoded; starts with a slash.
    path: String,
}

impl Url {
    /// Parses a URL. The error describes the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        check_characters(text)?;
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err("it must start with http:// or https://".to_owned());
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("only http:// and https:// addresses work".to_owned()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = authority_parts(authority)?;
        let port = match port {
            None | Some("") => default_port(https),
            Some(port) => Some(port)
                .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|port| port.parse().ok())
                .filter(|port| *port > 0)
                .ok_or_else(|| "its port is not a number from 1 to 65535".to_owned())?,
        };
        Ok(Self { https, host: canonical_host(host)?, port, path: encoded_path(path) })
    }

    /// The address that `location`, found at this one, means.
    pub fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.trim();
        if has_scheme(location) {
            return Self::parse(location);
        }
        check_characters(location)?;
        let scheme = if self.https { "https" } else { "http" };
        if location.starts_with("//") {
            return Self::parse(&format!("{scheme}:{location}"));
        }
        let location = location.split('#').next().unwrap_or_default();
        let own_path = self.path.split('?').next().unwrap_or_default();
        let joined = match location.chars().next() {
            None => self.path.clone(),
            Some('?') => format!("{own_path}{location}"),
            Some('/') => without_dots(location),
            Some(_) => {
                let directory = own_path.rfind('/').map_or("/", |at| &own_path[..=at]);
                without_dots(&format!("{directory}{location}"))
            }
        };
        Ok(Self { path: encoded_path(&joined), ..self.clone() })
    }

    /// `host:port`, always with the port.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The host in small letters; IPv6 in its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_https(&self) -> bool {
        self.https
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The path and the query, percent-encoded.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != default_port(self.https) {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

fn check_characters(text: &str) -> Result<(), String> {
    let odd = text.chars().find(|c| c.is_control() || c.is_whitespace() || *c == '\\');
    match odd {
        None => Ok(()),
        Some(odd) => Err(format!("it contains the invalid character {}", odd.escape_unicode())),
    }
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// The host and the port, as written.
fn authority_parts(authority: &str) -> Result<(&str, Option<&str>), String> {
    if authority.contains('@') {
        return Err("an address must not contain a user and password".to_owned());
    }
    let host_end = match authority.strip_prefix('[') {
        Some(inner) => inner.find(']').map(|at| at + 2).ok_or_else(|| "its [ is not closed".to_owned())?,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(host_end);
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err("its host is malformed".to_owned()),
    }
}

/// Validates a host in its canonical form. Unusual numeric spellings (`0x7f.1`, `2130706433`) are refused
/// because other parsers resolve them differently.
fn canonical_host(host: &str) -> Result<String, String> {
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_| format!("[{inner}] is not an IPv6 address"))?;
        return Ok(format!("[{address}]"));
    }
    if !host.is_ascii() {
        return Err("its host is not in ASCII; write it in Punycode (xn--…)".to_owned());
    }
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let plain = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(plain) {
        return Err("it names no host, or one with characters that hosts do not have".to_owned());
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err("its host is an IP address in an odd spelling; write it as 192.0.2.1".to_owned());
    }
    Ok(host.to_owned())
}

/// A path and query without fragment, percent-encoded where that is needed.
fn encoded_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let mut encoded = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        encoded.push('/');
    }
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'|' | b'^') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = fmt::Write::write_fmt(&mut encoded, format_args!("%{byte:02X}"));
        }
    }
    encoded
}

/// Resolves `.` and `..` in a path; the query is unchanged.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.find('?') {
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." | ".." => {
                if part == ".." {
                    parts.pop();
                }
            }
            part => parts.push(part),
        }
    }
    let directory = path.ends_with("/.") || path.ends_with("/..");
    let slash = if directory && !parts.is_empty() { "/" } else { "" };
    format!("/{}{slash}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("http://example.com", "http://example.com/"),
            (" HTTPS://Example.COM:443/a?b=c#d ", "https://example.com/a?b=c"),
            ("http://example.com.:8080?q", "http://example.com:8080/?q"),
            ("http://[::1]:80/", "http://[::1]/"),
            ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:127.0.0.1]/"),
            ("http://127.0.0.1:/", "http://127.0.0.1/"),
            ("http://a_b.example/", "http://a_b.example/"),
            ("https://h/grüße?x=\"1\"", "https://h/gr%C3%BC%C3%9Fe?x=%221%22"),
            ("https://h/a%20b", "https://h/a%20b"),
        ] {
            assert_eq!(Url::parse(text).map(|url| url.to_string()), Ok(written.to_owned()), "{text}");
        }
    }

    #[test]
    fn an_ambiguous_url_is_refused() {
        for text in [
            "",
            "example.com",
            "ftp://h/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http://",
            "http:///x",
            "http://u:p@h/",
            "http://u@h/",
            "http://h\\@evil/",
            "http://h/a b",
            "http://h\0/",
            "http://h\t/",
            "http://h/\nx",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://127.0.0.01/",
            "http://1.2.3.4.5/",
            "http://h%00/",
            "http://%31%32%37.0.0.1/",
            "http://münchen.example/",
            "http://①②⑦.⓪.⓪.①/",
            "http://a..b/",
            "http://.h/",
            "http://h:0/",
            "http://h:99999/",
            "http://h:+80/",
            "http://h:x/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[fe80::1%25eth0]/",
            "http://h\u{200b}/",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn locations_are_joined() {
        let base = Url::parse("https://h/a/b/c?q=1").unwrap();
        for (location, joined) in [
            ("d", "https://h/a/b/d"),
            ("./d", "https://h/a/b/d"),
            ("../d?x=/../y", "https://h/a/d?x=/../y"),
            ("../../../../d", "https://h/d"),
            ("..", "https://h/a/"),
            ("/d", "https://h/d"),
            ("/", "https://h/"),
            ("?x", "https://h/a/b/c?x"),
            ("#x", "https://h/a/b/c?q=1"),
            ("", "https://h/a/b/c?q=1"),
            ("//other/d", "https://other/d"),
            ("http://other:81/d", "http://other:81/d"),
            ("a:b/c", "error"),
            ("javascript:alert(1)", "error"),
            ("file:///etc/passwd", "error"),
            ("//u@h/", "error"),
            ("/a\\b", "error"),
        ] {
            let made = base.join(location).map_or_else(|_| "error".to_owned(), |url| url.to_string());
            assert_eq!(made, joined, "{location}");
        }
    }

    proptest! {
        #[test]
        fn what_was_read_once_is_read_the_same_again(text in "http://[a-z0-9.:\\[\\]@%-]{0,12}[/?#][ -~é]{0,12}") {
            if let Ok(url) = Url::parse(&text) {
                let written = url.to_string();
                prop_assert_eq!(Url::parse(&written), Ok(url), "{}", written);
                prop_assert!(written.bytes().all(|b| b.is_ascii_graphic()));
            }
        }

        #[test]
        fn no_location_breaks_the_reader(location in ".{0,20}") {
            let base = Url::parse("https://h/a/b?q").unwrap();
            if let Ok(url) = base.join(&location) {
                prop_assert_eq!(Url::parse(&url.to_string()), Ok(url));
            }
        }
    }
}
