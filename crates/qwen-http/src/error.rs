//! What can go wrong between us and a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a request got no whole response. No variant carries a header, a body or the part of an address that may hold a
/// password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("`{url}` is not an address that can be called: {reason}")]
    Url {
        /// The address as given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The host's name has no address.
    #[error("the host name `{host}` cannot be resolved: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// No address of the host took the connection.
    #[error("cannot connect to {}: {source}", named(host, address))]
    Connect {
        /// Host and port as asked for.
        host: String,
        /// The last address tried.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The address is out of bounds for this client.
    #[error("connecting to {address} is refused: {reason}")]
    AddressRefused {
        /// The address.
        address: std::net::IpAddr,
        /// Why.
        reason: String,
    },
    /// The connection was not made in time.
    #[error("connecting to {host} took longer than {}", seconds(*limit))]
    ConnectTimeout {
        /// Host and port as asked for.
        host: String,
        /// The limit.
        limit: Duration,
    },
    /// The server took the request and sent no response head in time.
    #[error("{host} did not answer within {}", seconds(*limit))]
    HeadTimeout {
        /// Host and port as asked for.
        host: String,
        /// The limit.
        limit: Duration,
    },
    /// The two sides agree on no encryption, or the certificate is not trusted.
    #[error("no secure connection to {host}: {source}")]
    Tls {
        /// Host and port as asked for.
        host: String,
        /// What TLS says.
        source: io::Error,
    },
    /// The proxy cannot be used or refused.
    #[error("the proxy {proxy} cannot be used: {reason}")]
    Proxy {
        /// The proxy, without user and password.
        proxy: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection was lost, or what came is not HTTP.
    #[error("the connection to {host} failed: {source}")]
    Exchange {
        /// Host and port as asked for.
        host: String,
        /// What HTTP says.
        source: hyper::Error,
    },
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(String),
}

impl Error {
    /// Whether the same request may get through at another time.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::HeadTimeout { .. }
            | Self::Exchange { .. } => true,
            // A handshake that was cut off may work next time; a certificate that is not trusted will not.
            Self::Tls { source, .. } => source.kind() != io::ErrorKind::InvalidData,
            Self::Url { .. } | Self::AddressRefused { .. } | Self::Proxy { .. } | Self::Request(_) => false,
        }
    }
}

/// The host, and its address where that says more.
fn named(host: &str, address: &SocketAddr) -> String {
    if host == address.to_string() { host.to_owned() } else { format!("{host} ({address})") }
}

/// A limit as people write it: `10 s`, `0.25 s`.
pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}
