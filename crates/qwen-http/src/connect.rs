//! Connecting: address resolution, racing of addresses, the proxy's tunnel, TLS.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::paced::PacedStream;
use super::proxy::Proxy;
use super::socket::Socket;
use super::target::{Origin, Target};
use super::{Error, ProxyConfig, check_public, tls};

/// The delay before the next address is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);

/// The longest response head to CONNECT that is accepted.
const MAX_PROXY_HEAD: usize = 16 * 1024;

/// Returns the reason when an address must not be connected to.
pub type AddressCheck = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// The client's limits and permissions.
#[derive(Clone)]
pub struct ClientConfig {
    /// Covers everything up to a usable connection: name resolution, TCP, proxy, TLS.
    pub connect_timeout: Duration,
    /// The time between reads of a body that arrives in small pieces; zero reads each piece at once.
    pub read_interval: Duration,
    /// True to trust every certificate.
    pub insecure: bool,
    pub proxy: ProxyConfig,
    /// Called for every address that a host name resolves to, right before connecting. Behind a proxy the
    /// proxy connects: then it is called only for what resolves to the same address everywhere, which is
    /// literal addresses in the URL and `localhost`.
    pub check_address: Option<AddressCheck>,
}

impl ClientConfig {
    /// Connects to public addresses only, unless the host and port of `url` are in `vouched`, as `host:port`.
    #[must_use]
    pub fn public_only(mut self, url: &str, vouched: &[String]) -> Self {
        let asked = Target::parse(url).map(|target| target.origin.host_port()).unwrap_or_default();
        if !vouched.iter().any(|listed| listed.trim().eq_ignore_ascii_case(&asked)) {
            self.check_address = Some(Arc::new(check_public));
        }
        self
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_interval: Duration::ZERO,
            insecure: false,
            proxy: ProxyConfig::default(),
            check_address: None,
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("connect_timeout", &self.connect_timeout)
            .field("insecure", &self.insecure)
            .field("checks_addresses", &self.check_address.is_some())
            .finish_non_exhaustive()
    }
}

/// Opens a connection to `origin` through `proxy`, within the time limit.
pub(super) async fn open(
    config: &ClientConfig,
    origin: &Origin,
    proxy: Option<&Proxy>,
) -> Result<Socket, Error> {
    let limit = config.connect_timeout;
    tokio::time::timeout(limit, open_unhurried(config, origin, proxy))
        .await
        .unwrap_or_else(|_| Err(Error::ConnectTimeout { host: origin.host_port(), limit }))
}

async fn open_unhurried(
    config: &ClientConfig,
    origin: &Origin,
    proxy: Option<&Proxy>,
) -> Result<Socket, Error> {
    let check = config.check_address.as_ref();
    let stream = match proxy {
        None => dial(&origin.host, origin.port, check).await?,
        Some(proxy) => {
            for address in literal(&origin.host).into_iter().flatten() {
                let Some(check) = check else { break };
                check(address).map_err(|reason| Error::AddressRefused { address, reason })?;
            }
            let mut stream = dial(&proxy.host, proxy.port, None).await?;
            if origin.https {
                tunnel(&mut stream, origin, proxy).await?;
            }
            stream
        }
    };
    let stream = PacedStream::new(stream, config.read_interval);
    if origin.https { encrypt(config, origin, stream).await } else { Ok(Socket::plain(stream)) }
}

/// Connects to the address of `host` that answers first. Each address gets a head start before the next,
/// alternating between families, so that a dead IPv6 route costs a quarter of a second and not the
/// time-out.
async fn dial(host: &str, port: u16, check: Option<&AddressCheck>) -> Result<TcpStream, Error> {
    race(host, port, resolve(host, port).await?, check).await
}

/// Connects to `host` within the time limit, at one of its addresses that `check` lets through. `known` are the
/// addresses of the host if they need not be resolved.
pub async fn connect(
    host: &str,
    port: u16,
    known: Option<Vec<IpAddr>>,
    check: &AddressCheck,
    limit: Duration,
) -> Result<TcpStream, Error> {
    let open = async {
        let addresses = match known {
            Some(known) => known.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(),
            None => resolve(host, port).await?,
        };
        race(host, port, addresses, Some(check)).await
    };
    let timed_out = || Error::ConnectTimeout { host: format!("{host}:{port}"), limit };
    tokio::time::timeout(limit, open).await.unwrap_or_else(|_| Err(timed_out()))
}

async fn race(
    host: &str,
    port: u16,
    mut addresses: Vec<SocketAddr>,
    check: Option<&AddressCheck>,
) -> Result<TcpStream, Error> {
    interleave_families(&mut addresses);
    let mut refused = None;
    if let Some(check) = check {
        addresses.retain(|address| match check(address.ip()) {
            Ok(()) => true,
            Err(reason) => {
                refused = Some(Error::AddressRefused { address: address.ip(), reason });
                false
            }
        });
    }
    let mut waiting = addresses.into_iter();
    let Some(first) = waiting.next() else {
        return Err(refused.unwrap_or_else(|| Error::Resolve {
            host: host.to_owned(),
            source: io::Error::new(io::ErrorKind::NotFound, "it has no address"),
        }));
    };
    let attempt = |address: SocketAddr| async move { (address, TcpStream::connect(address).await) };
    let mut racing = FuturesUnordered::new();
    racing.push(attempt(first));
    loop {
        let more = waiting.len() > 0;
        tokio::select! {
            biased;
            Some((address, outcome)) = racing.next() => match outcome {
                Ok(stream) => {
                    // Requests are written whole; waiting to fill a packet would only add delay.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(source) => match waiting.next() {
                    Some(next) => racing.push(attempt(next)),
                    None if racing.is_empty() => {
                        return Err(Error::Connect { host: format!("{host}:{port}"), address, source });
                    }
                    None => {}
                },
            },
            () = tokio::time::sleep(HEAD_START), if more => {
                if let Some(next) = waiting.next() {
                    racing.push(attempt(next));
                }
            }
        }
    }
}

/// The addresses of `host`. Literal ones and `localhost` need no resolver, which would cost a thread.
async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    if let Some(addresses) = literal(host) {
        return Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect());
    }
    let found = tokio::net::lookup_host((host, port)).await;
    Ok(found.map_err(|source| Error::Resolve { host: host.to_owned(), source })?.collect())
}

/// The addresses of a host that needs no resolver: a literal one, or a name that means the machine itself
/// everywhere (RFC 6761).
fn literal(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Some(vec![ip]);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next()?;
    last.eq_ignore_ascii_case("localhost")
        .then(|| vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)])
}

/// Leaves the resolver's first choice first and alternates between families after it.
fn interleave_families(addresses: &mut Vec<SocketAddr>) {
    let Some(first) = addresses.first().map(SocketAddr::is_ipv6) else { return };
    let (preferred, other): (Vec<_>, Vec<_>) = addresses.drain(..).partition(|a| a.is_ipv6() == first);
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    while preferred.len() + other.len() > 0 {
        addresses.extend(preferred.next());
        addresses.extend(other.next());
    }
}

/// Asks the proxy for a tunnel to `origin`.
async fn tunnel(stream: &mut TcpStream, origin: &Origin, proxy: &Proxy) -> Result<(), Error> {
    let failed = |reason: String| Error::Proxy { proxy: proxy.host_port(), reason };
    let host = origin.host_port();
    let authorization = proxy
        .authorization
        .as_ref()
        .map_or_else(String::new, |value| format!("Proxy-Authorization: {value}\r\n"));
    let ask = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n");
    stream.write_all(ask.as_bytes()).await.map_err(|e| failed(e.to_string()))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.map_err(|e| failed(format!("it closed the connection: {e}")))?;
        head.push(byte);
        if head.len() > MAX_PROXY_HEAD {
            return Err(failed("its response to CONNECT is too long".to_owned()));
        }
    }
    let line: String =
        String::from_utf8_lossy(&head).lines().next().unwrap_or_default().chars().take(120).collect();
    let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(()),
        _ => Err(failed(format!("it answered CONNECT {host} with `{}`", line.escape_debug()))),
    }
}

async fn encrypt(config: &ClientConfig, origin: &Origin, stream: PacedStream) -> Result<Socket, Error> {
    let failed = |source: io::Error| Error::Tls { host: origin.host_port(), source };
    let tls = tls::config(config.insecure).map_err(|e| failed(io::Error::other(e)))?;
    let name = ServerName::try_from(origin.host.clone()).map_err(|e| failed(io::Error::other(e)))?;
    let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(failed)?;
    Ok(Socket::tls(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_for_the_local_machine_is_not_resolved() {
        let loopback = Some(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        for host in ["localhost", "LocalHost.", "a.b.localhost"] {
            assert_eq!(literal(host), loopback, "{host}");
        }
        assert_eq!(literal("::1"), Some(vec![IpAddr::V6(Ipv6Addr::LOCALHOST)]));
        for host in ["localhost.example", "notlocalhost", "example.com", ""] {
            assert_eq!(literal(host), None, "{host}");
        }
    }

    #[test]
    fn families_take_turns_after_the_resolvers_first_choice() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (a, b, c, d) =
            (address("[::1]:1"), address("[::2]:1"), address("[::3]:1"), address("127.0.0.1:1"));
        let mut addresses = vec![a, b, c, d];
        interleave_families(&mut addresses);
        assert_eq!(addresses, [a, d, b, c]);
    }
}
