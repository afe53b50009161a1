//! Permissions: decides which calls may run.
//!
//! A [`Policy`] holds a session's mode, rules and workspace and judges each call by its [`DeclaredCall`]. Deny
//! rules beat ask rules beat allow rules, and then the mode decides. A call that is not understood is never
//! allowed automatically; it asks.

mod approval_text;
mod declared_call;
mod git;
mod paths;
mod policy;
mod programs;
mod rules;
pub mod shell;

pub use approval_text::escape_for_approval;
pub use declared_call::DeclaredCall;
pub use git::hardening::GitHardening;
pub use paths::protected::is_protected;
pub use paths::workspace::normal;
pub use policy::mode::Mode;
pub use policy::network::{NetworkJudgement, NetworkRequest};
pub use policy::{Judgement, Kernel, Policy};
pub use rules::network_pattern::normalize_host;
pub use rules::{NETWORK, Rule, RuleError, RuleSource};
