//! What can go wrong between us and a server.

/// Why a server did not do what was asked, in words for the model and the person who reads along.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct McpError {
    /// A stable word for what went wrong.
    pub code: &'static str,
    /// What was asked, what went wrong, what to do.
    pub message: String,
}

impl McpError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// True when the caller cancelled, so that the server is not to blame.
    pub fn is_cancelled(&self) -> bool {
        self.code == CANCELLED
    }
}

/// The server could not be started or did not introduce itself.
pub(super) const START_FAILED: &str = "mcp_start_failed";
/// The server ended, or the connection to it.
pub(super) const DIED: &str = "mcp_server_died";
/// The server sent more than anyone wants to read.
pub(super) const FLOOD: &str = "mcp_flood";
/// What the server said is not what the protocol allows.
pub(super) const PROTOCOL: &str = "mcp_protocol_error";
/// The server answered with an error.
pub(super) const REFUSED: &str = "mcp_error";
/// The server did not answer in time.
pub(super) const TIMEOUT: &str = "tool_timeout";
/// The call was cancelled.
pub(super) const CANCELLED: &str = "cancelled";
/// The server has forgotten us; a new session helps.
pub(super) const SESSION_EXPIRED: &str = "mcp_session_expired";
/// There is no such server, or it is switched off.
pub(super) const NO_SERVER: &str = "mcp_no_server";
/// The tool is not what it was when it was offered.
pub(super) const TOOL_CHANGED: &str = "mcp_tool_changed";
