//! Hooks: what the user or the host wants to hear about while the agent works, and may forbid, change or add to.
//!
//! A hook is a command, an address or a function of the host. All that listen to an event run beside each other; their
//! answers become one [`Ruling`], in which the strictest word wins.

mod announce;
mod answer;
mod capture;
mod command;
mod event;
mod http;
mod matcher;
mod ruling;
mod set;

use std::sync::Arc;
use std::time::Duration;

pub use announce::Announced;
pub use event::HookEvent;
pub(crate) use ruling::{Permission, Ruling};
pub use set::HookSet;
pub(crate) use set::{HookRequest, hook_stop};

/// How long a hook may take unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookConfig {
    /// When it is called.
    pub event: HookEvent,
    /// Which tools (or sources, for other events) it is about: `A|B`, `*`; none means all.
    pub matcher: Option<Arc<str>>,
    /// What is called.
    pub action: HookAction,
    /// How long it may take; none means [`DEFAULT_TIMEOUT`].
    pub timeout: Option<Duration>,
    /// What its failure means.
    pub on_failure: OnFailure,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// A command line for the shell. It reads the input on its standard input.
    Command(Arc<str>),
    /// An address that the input is posted to.
    Http {
        /// The address.
        url: Arc<str>,
        /// Further headers.
        headers: Vec<(Arc<str>, Arc<str>)>,
    },
    /// A function of the host, by the host's name for it.
    Host(Arc<str>),
}

/// What the failure of a hook means: a crash, an exit code that says nothing, a time-out, an unreadable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Readers are warned and the work goes on.
    #[default]
    Continue,
    /// What it watches does not happen.
    Block,
}
