//! What the server is started with, as plain data.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The address that the server listens on by default.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:4170";

/// Something that keeps the server from starting: what failed, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(pub String);

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    Tcp(SocketAddr),
    /// A Unix socket, readable only by its owner.
    Unix(PathBuf),
}

impl Listen {
    /// Parses `ADDRESS:PORT` or `unix:PATH`.
    pub fn parse(text: &str) -> Result<Self, ServeError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        address.as_deref().unwrap_or(text).parse().map(Self::Tcp).map_err(|_| {
            ServeError(format!(
                "--listen {text}: it is not an address. Use ADDRESS:PORT, such as {DEFAULT_ADDRESS}, or unix:PATH."
            ))
        })
    }

    /// True if only this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => ip.is_loopback(),
            },
        }
    }
}

/// The files of the server's certificate.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The limits that keep the server's memory and descriptors bounded.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// Sessions that are open at the same time.
    pub sessions: usize,
    /// Prompts of a session that wait for the running turn.
    pub queued_prompts: usize,
    pub connections: usize,
    /// The size of a request's body in bytes.
    pub body: usize,
    /// How long the head of a request may take, and a pause within its body.
    pub header_time: Duration,
    /// How long a reader may accept nothing before it is disconnected.
    pub stalled_reader: Duration,
    pub keep_alive: Duration,
    /// How long an approval may stay open; none means that there is no deadline.
    pub approval: Option<Duration>,
    /// How long an approval may stay open on chat completions, which cannot show it.
    pub hidden_approval: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            sessions: 100,
            queued_prompts: 50,
            connections: 1024,
            body: 64 * 1024 * 1024,
            header_time: Duration::from_secs(10),
            stalled_reader: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            approval: None,
            hidden_approval: Duration::from_secs(60),
        }
    }
}

/// What the server is started with.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    pub listen: Listen,
    /// Sessions run only in these directories and below.
    pub workspaces: Vec<PathBuf>,
    /// Further origins whose pages may use the server.
    pub origins: Vec<String>,
    /// True if addresses that other machines reach are allowed.
    pub allows_remote: bool,
    /// True if such an address may be served without TLS.
    pub is_insecure: bool,
    pub tls: Option<TlsFiles>,
    /// The server's directory: tokens, records of sessions, numbered lines.
    pub state: PathBuf,
    pub limits: ServeLimits,
}

impl ServeOptions {
    /// Refuses combinations that would open the server further than intended.
    pub fn check(&self) -> Result<(), ServeError> {
        for origin in &self.origins {
            let (scheme, host) = origin.split_once("://").unwrap_or_default();
            let is_origin = matches!(scheme, "http" | "https")
                && !host.is_empty()
                && !host.contains(['/', '?', '#', '*', '@', ' ']);
            if !is_origin {
                return Err(ServeError(format!(
                    "--allow-origin {origin}: it is not an origin. Name each origin, such as https://app.example.com; '*' is refused."
                )));
            }
        }
        if self.listen.is_local() {
            return Ok(());
        }
        if !self.allows_remote {
            return Err(ServeError(
                "--listen: other machines can reach this address. Add --allow-remote with --tls-cert and --tls-key, or listen on 127.0.0.1."
                    .to_owned(),
            ));
        }
        if self.tls.is_none() && !self.is_insecure {
            return Err(ServeError(
                "--allow-remote: without TLS, the token and all sessions are readable on the network. Add --tls-cert and --tls-key, or --insecure if a proxy in front of it has TLS."
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
