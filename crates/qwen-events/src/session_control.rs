//! What a host may turn and look up while a session runs, besides what every host asks.

use std::sync::Arc;

use crate::Json;

/// What the host wishes about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange<T> {
    /// That it stays as it is.
    Keep,
    /// That it is again as it was when the session began.
    Reset,
    /// That it is this.
    Be(T),
}

/// A wish of the host about the session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionControl {
    /// Think as many tokens as this, and show that much of it.
    Thinking {
        /// The tokens.
        tokens: SettingChange<u64>,
        /// `summarized` or `omitted`.
        display: SettingChange<Arc<str>>,
    },
    /// These MCP servers in the place of those that the host brought before: name and configuration.
    McpServers(Vec<(Arc<str>, Json)>),
    /// Settings for the rest of the session.
    FlagSettings(Json),
    /// The host has seen that the model read a file.
    SeenFile {
        /// The file.
        path: Arc<str>,
        /// When it had last changed, in milliseconds since the Unix epoch.
        mtime_ms: u64,
    },
    /// What is in a file?
    ReadFile {
        /// The file.
        path: Arc<str>,
        /// So many bytes at most.
        max_bytes: Option<u64>,
        /// In base64, and not as text.
        base64: bool,
    },
    /// Look for styles of answers anew.
    ReloadOutputStyles,
    /// Withdraw the queued prompt of this id.
    WithdrawPrompt(Arc<str>),
    /// Whether anybody watches, which changes nothing here.
    Watched,
}
