//! Web pages: fetched with limits, from public addresses only, and converted to text.

mod entities;
mod fetch;
mod html;
mod tag;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use qwen_http::{ProxyConfig, Url};

pub(crate) use fetch::{Kind as PageKind, Page, fetch};
pub(crate) use html::{Readable, readable};

/// Parses an address that is shown to the user. Characters that cannot be seen would hide what is visited.
pub(crate) fn parse_address(text: &str) -> Result<Url, String> {
    match text.trim().chars().find(|character| qwen_events::is_hidden(*character)) {
        Some(hidden) => Err(format!("it contains the invalid character {}", hidden.escape_unicode())),
        None => Url::parse(text),
    }
}

/// Returns true if a redirect to this URL may be followed.
pub type MayFollow = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Web access settings of a session.
#[derive(Clone)]
pub struct WebAccess {
    /// Hosts, each as `host:port`, that may be fetched although their address is not public.
    pub allow_private_hosts: Vec<String>,
    /// The proxies to use. A proxy resolves host names itself, so only literal addresses can be checked here.
    pub proxy: ProxyConfig,
    /// True if every certificate is trusted.
    pub insecure: bool,
    /// Called before a redirect to another host. Without it all redirects to permitted addresses are
    /// followed.
    pub may_follow: Option<MayFollow>,
    /// Time limit for a fetch, including redirects.
    pub timeout: Duration,
    /// Most bytes of a page that are read.
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
    /// True if the host is in `allow_private_hosts`.
    fn allows_private_host(&self, url: &Url) -> bool {
        let asked = url.host_port();
        self.allow_private_hosts.iter().any(|listed| listed.trim().eq_ignore_ascii_case(&asked))
    }
}
