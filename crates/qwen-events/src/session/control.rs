//! Session controls and queries that only some hosts send.

use std::sync::Arc;

use crate::Json;

/// The requested change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange<T> {
    /// Leaves the setting unchanged.
    Keep,
    /// Restores the value from the start of the session.
    Reset,
    /// Sets this value.
    Be(T),
}

/// A control request that adjusts or queries the session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionControl {
    /// Sets the thinking budget and what is shown of the thinking.
    Thinking {
        /// The budget in tokens.
        tokens: SettingChange<u64>,
        /// `summarized` or `omitted`.
        display: SettingChange<Arc<str>>,
    },
    /// Replaces the MCP servers that the host configured before: name and configuration.
    McpServers(Vec<(Arc<str>, Json)>),
    /// Settings for the rest of the session.
    FlagSettings(Json),
    /// The host reports that the model has read a file.
    SeenFile {
        path: Arc<str>,
        /// The file's modification time, in milliseconds since the Unix epoch.
        mtime_ms: u64,
    },
    /// Reads a file.
    ReadFile {
        path: Arc<str>,
        /// The maximum number of bytes.
        max_bytes: Option<u64>,
        /// True for base64 instead of text.
        base64: bool,
    },
    /// Reloads the output styles.
    ReloadOutputStyles,
    /// Withdraws the queued prompt with this id.
    WithdrawPrompt(Arc<str>),
    /// Reports whether a user is watching; it has no effect.
    Watched,
}
