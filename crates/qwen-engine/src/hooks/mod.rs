//! Hooks: user or host code that observes the agent's work and may block, change or extend it.
//!
//! A hook is a command, a URL or a function of the host. All hooks of an event run concurrently; their
//! answers are combined into one [`Ruling`], in which the strictest verdict wins.

mod announce;
mod answer;
mod capture;
mod command;
mod event;
mod http;
mod matcher;
mod ruling;
mod set;
pub(crate) mod tool_response;

use std::sync::Arc;
use std::time::Duration;

pub use announce::Announced;
pub use event::HookEvent;
pub(crate) use ruling::{Permission, Ruling};
pub use set::HookSet;
pub(crate) use set::{HookRequest, hook_stop};

/// The timeout of a hook that configures none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookConfig {
    /// The event that calls it.
    pub event: HookEvent,
    /// The tools (or sources, for other events) it applies to: `A|B`, `*`; `None` means all.
    pub matcher: Option<Arc<str>>,
    pub action: HookAction,
    /// Its timeout; `None` means [`DEFAULT_TIMEOUT`].
    pub timeout: Option<Duration>,
    /// How its failure is handled.
    pub on_failure: OnFailure,
    /// True if the workspace configures it, and not the user: [`WorkspaceLimits`] apply.
    pub of_workspace: bool,
}

/// What the hooks of a trusted workspace do not get, unless the user allows it.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceLimits {
    /// Variables that are removed from the environment of command hooks.
    pub withheld: Vec<String>,
    /// Private addresses that may be called all the same, as `host:port`.
    pub private_hosts: Vec<String>,
}

/// What a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// A shell command line. It gets the input on its standard input.
    Command(Arc<str>),
    /// A URL that the input is posted to.
    Http {
        url: Arc<str>,
        /// The request headers besides those of HTTP.
        headers: Vec<(Arc<str>, Arc<str>)>,
    },
    /// A function of the host, identified by the host's callback name.
    Host(Arc<str>),
}

/// How a hook's failure is handled: a crash, an exit code without meaning, a timeout, an unreadable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Readers get a warning and the work continues.
    #[default]
    Continue,
    /// The observed action is blocked.
    Block,
}
