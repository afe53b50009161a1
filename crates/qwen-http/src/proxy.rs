//! Selection of the proxy for a server.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use super::target::{Origin, without_secrets};
use super::{Error, Url};

/// The proxies that may be used. The values are those of the well-known environment variables; the caller
/// reads the environment and fills them in.
#[derive(Debug, Clone, Default)]
pub struct ProxyConfig {
    /// A proxy that the user set for all requests; overrides the two others.
    pub all: Option<String>,
    /// For `http` addresses (`HTTP_PROXY`).
    pub http: Option<String>,
    /// For `https` addresses (`HTTPS_PROXY`).
    pub https: Option<String>,
    /// Hosts that are reached directly (`NO_PROXY`): names, which cover their sub-domains, addresses, or `*`.
    pub no_proxy: Option<String>,
}

/// A proxy to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    pub host: String,
    pub port: u16,
    /// The value of Proxy-Authorization.
    pub authorization: Option<String>,
}

impl Proxy {
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl ProxyConfig {
    /// The proxy to use for `origin`.
    pub(super) fn choose(&self, origin: &Origin) -> Result<Option<Proxy>, Error> {
        let from_environment = if origin.https { &self.https } else { &self.http };
        let given = |value: &Option<String>| value.clone().filter(|v| !v.trim().is_empty());
        let url = match (given(&self.all), given(from_environment)) {
            (Some(url), _) => url,
            // A proxy set for outbound traffic must not intercept a server on the local machine.
            (None, Some(url)) if !is_loopback(&origin.host) => url,
            _ => return Ok(None),
        };
        if self.no_proxy.as_deref().is_some_and(|list| excepts(list, origin)) {
            return Ok(None);
        }
        parse(url.trim()).map(Some)
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn excepts(list: &str, origin: &Origin) -> bool {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return true;
        }
        if entry.parse::<IpAddr>().is_ok() {
            return entry == origin.host;
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse::<u16>().ok()),
            _ => (entry.as_str(), None),
        };
        let name = name.trim_start_matches("*.").trim_start_matches('.');
        let covered =
            origin.host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        covered && port.is_none_or(|port| port == origin.port)
    })
}

fn parse(url: &str) -> Result<Proxy, Error> {
    let wrong = |reason: &str| Error::Proxy { proxy: without_secrets(url), reason: reason.to_owned() };
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some((scheme, _)) => {
            return Err(wrong(&format!("`{scheme}` proxies are not supported, only http:// ones are")));
        }
        None => url,
    };
    let rest = rest.split('/').next().unwrap_or_default();
    let (userinfo, authority) = match rest.rsplit_once('@') {
        Some((userinfo, authority)) => (Some(userinfo), authority),
        None => (None, rest),
    };
    let address = Url::parse(&format!("http://{authority}/")).map_err(|reason| wrong(&reason))?;
    Ok(Proxy {
        host: address.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: address.port(),
        authorization: userinfo.map(|info| {
            let credentials: Vec<u8> = percent_decode_str(info).collect();
            format!("Basic {}", STANDARD.encode(credentials))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn chosen(config: &ProxyConfig, url: &str) -> Option<String> {
        config.choose(&Target::parse(url).unwrap().origin).unwrap().map(|proxy| proxy.host_port())
    }

    #[test]
    fn the_proxy_follows_the_scheme_and_the_exceptions() {
        let config = ProxyConfig {
            all: None,
            http: Some("http://plain:3128".into()),
            https: Some("secure:8080/".into()),
            no_proxy: Some("internal.example, .corp ,10.0.0.1,odd.example:8443".into()),
        };
        for (url, proxy) in [
            ("http://a.example/", Some("plain:3128")),
            ("https://a.example/", Some("secure:8080")),
            ("https://internal.example/", None),
            ("https://deep.internal.example/", None),
            ("https://notinternal.example/", Some("secure:8080")),
            ("http://x.corp/", None),
            ("http://10.0.0.1/", None),
            ("http://10.0.0.2/", Some("plain:3128")),
            ("https://odd.example:8443/", None),
            ("https://odd.example/", Some("secure:8080")),
            ("http://127.0.0.1:1/", None),
            ("http://localhost/", None),
            ("http://[::1]/", None),
        ] {
            assert_eq!(chosen(&config, url).as_deref(), proxy, "{url}");
        }
        let named = ProxyConfig { all: Some("http://named".into()), ..config };
        assert_eq!(chosen(&named, "http://127.0.0.1:1/").as_deref(), Some("named:80"));
        let none = ProxyConfig { no_proxy: Some("*".into()), ..named };
        assert_eq!(chosen(&none, "http://a.example/"), None);
    }

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let proxy = parse("http://user:p%40ss@h:1").unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        let error = parse("socks5://user:geheim@h:1").unwrap_err().to_string();
        assert!(error.contains("socks5") && !error.contains("geheim"), "{error}");
    }
}
