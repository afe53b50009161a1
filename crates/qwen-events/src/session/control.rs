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
    /// Sets the setting to this value.
    Be(T),
}

/// A control request that adjusts or queries the session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionControl {
    /// Sets the thinking budget and what is shown of the thinking.
    Thinking {
        /// The budget in tokens.
        tokens: SettingChange<u64>,
        /// Either `summarized` or `omitted`.
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
    /// Reads a file of the workspace.
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
    /// Asks for a report about the session.
    Report(SessionReport),
    /// Reads the skills from disk again.
    ReloadSkills,
    /// Reports what plugins brought. They are read at the start only.
    ReloadPlugins {
        /// True if the host wants to add some.
        adds_some: bool,
    },
    /// Changes the title of the session.
    Rename(Arc<str>),
    /// Reads a resource of an MCP server for the host to show.
    ReadResource { server: Arc<str>, uri: Arc<str> },
    /// Adds a directory below the workspace to those that tools may work in.
    AddDirectory(Arc<str>),
    /// Asks about each call of an MCP server's tools in modes that would run them; none ends that.
    ServerMode { server: Arc<str>, mode: Option<Arc<str>> },
}

/// A report that a host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionReport {
    /// Cost and tokens so far, in words.
    Cost,
    /// Cost and tokens so far, as data.
    Usage,
    /// The settings in force.
    Settings,
    /// The models that can be chosen.
    Models,
    /// The permission rules and the added directories.
    PermissionRules,
    /// The end of the output of a background task.
    TaskOutput(Arc<str>),
    /// Files whose paths match a text.
    Files(Arc<str>),
}
