//! The destination of a request.

use http::Uri;
use http::uri::PathAndQuery;

use super::Error;

/// A parsed URL.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub origin: Origin,
    pub path: PathAndQuery,
}

/// The destination of a connection; connections are reused within one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub https: bool,
    /// Name or literal address, without the brackets of IPv6.
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// `host` or `host:port`, as in the Host header: the default port is omitted.
    pub fn authority(&self) -> String {
        if self.port == if self.https { 443 } else { 80 } { self.bracketed() } else { self.host_port() }
    }

    /// `host:port`, always with the port.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.bracketed(), self.port)
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Url { url: without_secrets(url), reason: reason.to_owned() };
        let uri: Uri = url.parse().map_err(|e: http::uri::InvalidUri| wrong(&e.to_string()))?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) => return Err(wrong("only http and https are spoken here")),
            None => return Err(wrong("it must start with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("user and password do not belong into the address"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let port =
            match authority.as_str().strip_prefix(authority.host()).and_then(|rest| rest.strip_prefix(':')) {
                Some(port) => port.parse().map_err(|_| wrong("its port is not a number up to 65535"))?,
                None if https => 443,
                None => 80,
            };
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { origin: Origin { https, host, port }, path })
    }
}

/// `url` as an error may show it: without the part before `@`, which may hold a password, and the query,
/// which may hold a key.
pub fn without_secrets(url: &str) -> String {
    let shown = match url.split_once('?') {
        Some((shown, _)) => format!("{shown}?***"),
        None => url.to_owned(),
    };
    match (shown.find("://"), shown.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}***{}", &shown[..scheme + 3], &shown[at..]),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, https, host, port, path, authority) in [
            ("http://localhost:8080/v1", false, "localhost", 8080, "/v1", "localhost:8080"),
            ("https://API.example.com", true, "api.example.com", 443, "/", "api.example.com"),
            ("http://[::1]:9/a?b=c", false, "::1", 9, "/a?b=c", "[::1]:9"),
            ("https://h:80/", true, "h", 80, "/", "h:80"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(target.origin, Origin { https, host: host.into(), port }, "{url}");
            assert_eq!(target.path.as_str(), path, "{url}");
            assert_eq!(target.origin.authority(), authority, "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_a_secret() {
        for url in [
            "",
            "localhost",
            "ftp://h/?k=geheim",
            "http://",
            "http://u:geheim@h/",
            "http://h:99999/",
            "http://a b/",
        ] {
            let error = Target::parse(url).unwrap_err().to_string();
            assert!(!error.contains("geheim"), "{error}");
        }
    }
}
