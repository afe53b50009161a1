//! Permissions: who may run a call.
//!
//! A [`Policy`] holds a session's mode, rules and workspace and judges each call by its [`CallFacts`]. Deny rules beat
//! ask rules beat allow rules, and then the mode decides. What is not understood is never allowed: it asks.

mod approval_text;
mod command_pattern;
mod command_policy;
mod coverage;
mod denied_places;
mod facts;
mod git_hardening;
mod git_settings;
mod host_pattern;
mod mode;
mod named_places;
mod names;
mod path_pattern;
mod policy;
mod programs;
mod protected;
mod reach;
mod rule;
pub mod shell;
mod words_as_paths;
mod workspace;

pub use approval_text::escape_for_approval;
pub use facts::Facts;
pub use git_hardening::GitHardening;
pub use mode::Mode;
pub use names::canonical_tool_name;
pub use policy::{CallFacts, CallKind, Judgement, Kernel, Policy};
pub use rule::{Rule, RuleError, RuleSource};
