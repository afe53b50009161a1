//! The destination of a request.

use http::uri::PathAndQuery;

use super::{Error, Url};

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
        let wrong = |reason: String| Error::Url { url: without_secrets(url), reason };
        let parsed = Url::parse(url).map_err(wrong)?;
        let path = PathAndQuery::try_from(parsed.path())
            .map_err(|error| wrong(format!("its path is wrong: {error}")))?;
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { origin: Origin { https: parsed.is_https(), host, port: parsed.port() }, path })
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
    fn an_invalid_address_is_refused_without_showing_a_secret() {
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
