//! Errors of requests to a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The reason why a request got no complete response. No variant carries a header, a body or the part of an
/// address that may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is invalid or unsupported.
    #[error("`{url}` is not an address that can be called: {reason}")]
    Url { url: String, reason: String },
    /// The host's name has no address.
    #[error("the host name `{host}` cannot be resolved: {source}")]
    Resolve { host: String, source: io::Error },
    /// No address of the host accepted the connection.
    #[error("cannot connect to {}: {source}", describe_host(host, address))]
    Connect {
        /// Host and port as requested.
        host: String,
        /// The last address tried.
        address: SocketAddr,
        source: io::Error,
    },
    /// This client must not connect to the address.
    #[error("connecting to {address} is refused: {reason}")]
    AddressRefused { address: std::net::IpAddr, reason: String },
    /// The connection was not established in time.
    #[error("connecting to {host} took longer than {}", seconds(*limit))]
    ConnectTimeout {
        /// Host and port as requested.
        host: String,
        limit: Duration,
    },
    /// The server accepted the request but sent no response head in time.
    #[error("{host} did not answer within {}", seconds(*limit))]
    HeadTimeout {
        /// Host and port as requested.
        host: String,
        limit: Duration,
    },
    /// The TLS handshake failed, or the certificate is not trusted.
    #[error("no secure connection to {host}: {source}")]
    Tls {
        /// Host and port as requested.
        host: String,
        source: io::Error,
    },
    /// The proxy is unusable or refused the request.
    #[error("the proxy {proxy} cannot be used: {reason}")]
    Proxy {
        /// The proxy, without user and password.
        proxy: String,
        reason: String,
    },
    /// The connection was lost, or the response is not HTTP.
    #[error("the connection to {host} failed: {source}")]
    Exchange {
        /// Host and port as requested.
        host: String,
        source: hyper::Error,
    },
    /// The request cannot be encoded.
    #[error("the request cannot be made: {0}")]
    Request(String),
}

impl Error {
    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::HeadTimeout { .. }
            | Self::Exchange { .. } => true,
            // An interrupted handshake may work next time; an untrusted certificate will not.
            Self::Tls { source, .. } => source.kind() != io::ErrorKind::InvalidData,
            Self::Url { .. } | Self::AddressRefused { .. } | Self::Proxy { .. } | Self::Request(_) => false,
        }
    }
}

/// The host, and its address if it differs.
fn describe_host(host: &str, address: &SocketAddr) -> String {
    if host == address.to_string() { host.to_owned() } else { format!("{host} ({address})") }
}

/// A duration in seconds, for error messages: `10 s`, `0.25 s`.
pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
