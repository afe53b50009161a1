//! What the proxy asks its owner: rules, answers of users, addresses and credentials.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::mask::Mask;
use crate::{Authority, Destination};

/// The owner of the proxy, which admits connections and supplies credentials.
pub trait Gatekeeper: Send + Sync {
    /// Decides about a connection, or about one HTTP request if there is a method. May wait for an answer. A
    /// refusal gives the reason.
    fn admit<'a>(
        &'a self,
        to: &'a Destination,
        method: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Admission, String>>;

    /// Returns the reason when an address of a destination must not be connected to.
    fn check_address(&self, to: &Destination, address: IpAddr) -> Result<(), String>;

    /// The addresses that the user gave a name.
    fn find_alias(&self, host: &str) -> Option<Vec<IpAddr>>;

    /// The headers that requests to a host get, or why they cannot be sent. `None` for most hosts.
    fn find_credential(&self, host: &str) -> Option<Result<Credential, String>>;

    /// Records a connection that ended or was refused.
    fn record(&self, connection: &ConnectionRecord);

    /// Issues the certificates with which the proxy answers as a server.
    fn authority(&self) -> io::Result<Arc<Authority>>;
}

/// A connection that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission {
    /// Each request has to be admitted by its method, so encrypted connections have to be read.
    pub is_by_method: bool,
    /// Protocols other than TLS and HTTP may be spoken.
    pub is_any_protocol: bool,
}

/// Secret headers that the proxy adds to requests to a host, such as API keys.
#[derive(Clone)]
pub struct Credential {
    pub headers: Vec<(String, String)>,
    /// Hides the secrets in what the server sends back.
    pub mask: Mask,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// A connection that ended, or that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRecord {
    pub destination: Destination,
    /// The method of a request that the proxy read.
    pub method: Option<String>,
    /// The address that was connected to.
    pub address: Option<IpAddr>,
    /// Why it was refused or failed.
    pub problem: Option<Problem>,
    /// Bytes from the program to the server, and back.
    pub sent: u64,
    pub received: u64,
}

/// Why a connection did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It was not permitted.
    Refused(String),
    /// The server could not be reached, or broke off.
    Failed(String),
}

impl Problem {
    pub fn text(&self) -> &str {
        match self {
            Self::Refused(text) | Self::Failed(text) => text,
        }
    }
}
