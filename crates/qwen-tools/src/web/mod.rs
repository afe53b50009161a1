//! Pages of the web: fetched within bounds, from public addresses only, and made readable.

mod address;
mod entities;
mod fetch;
mod html;
mod tag;
mod url;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use qwen_http::ProxyConfig;

pub(crate) use fetch::{Kind as PageKind, Page, fetch};
pub(crate) use html::{Readable, readable};
pub(crate) use url::Url;

/// Says whether a redirect to this address may be followed.
pub type MayFollow = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What of the web a session may see.
#[derive(Clone)]
pub struct WebAccess {
    /// Hosts, each as `host:port`, that may be visited although they are not part of the public net.
    pub allow_private_hosts: Vec<String>,
    /// The proxies to use. Behind one, names are looked up there and only literal addresses can be checked here.
    pub proxy: ProxyConfig,
    /// Trust every certificate.
    pub insecure: bool,
    /// Asked before a redirect leads to another host; without it all are followed, as far as their addresses allow.
    pub may_follow: Option<MayFollow>,
    /// How long fetching may take altogether.
    pub timeout: Duration,
    /// How many bytes of a page are read.
    pub max_bytes: usize,
}

impl Default for WebAccess {
    fn default() -> Self {
        Self {
            allow_private_hosts: Vec::new(),
            proxy: ProxyConfig::default(),
            insecure: false,
            may_follow: None,
            timeout: Duration::from_secs(30),
            max_bytes: 5 << 20,
        }
    }
}

impl fmt::Debug for WebAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebAccess")
            .field("allow_private_hosts", &self.allow_private_hosts)
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

impl WebAccess {
    /// Whether this host was listed.
    fn vouches_for(&self, url: &Url) -> bool {
        let asked = url.host_port();
        self.allow_private_hosts.iter().any(|listed| listed.trim().eq_ignore_ascii_case(&asked))
    }
}
