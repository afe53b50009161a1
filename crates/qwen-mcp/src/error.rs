//! Errors of MCP servers and connections.

/// Failure of a request to a server, with a message for the model and the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct McpError {
    /// A stable error code.
    pub code: &'static str,
    /// What was attempted, what went wrong, and what to do next.
    pub message: String,
}

impl McpError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// True if the caller cancelled the request, so the server did not fail.
    pub fn is_cancelled(&self) -> bool {
        self.code == CANCELLED
    }
}

/// The server could not be started or did not complete `initialize`.
pub(super) const START_FAILED: &str = "mcp_start_failed";
/// The server exited, or the connection was lost.
pub(super) const DIED: &str = "mcp_server_died";
/// The server exceeded the limits on messages or bytes.
pub(super) const FLOOD: &str = "mcp_flood";
/// The server violated the protocol.
pub(super) const PROTOCOL: &str = "mcp_protocol_error";
/// The server answered with an error.
pub(super) const REFUSED: &str = "mcp_error";
/// The server did not answer before the deadline.
pub(super) const TIMEOUT: &str = "tool_timeout";
/// The call was cancelled.
pub(super) const CANCELLED: &str = "cancelled";
/// The server no longer knows the session; a new session is needed.
pub(super) const SESSION_EXPIRED: &str = "mcp_session_expired";
/// The server misses headers that repeat arguments; its tools may have changed.
pub(super) const HEADER_MISMATCH: &str = "mcp_header_mismatch";
/// The server does not exist or is disabled.
pub(super) const NO_SERVER: &str = "mcp_no_server";
/// The tool's definition changed after it was offered.
pub(super) const TOOL_CHANGED: &str = "mcp_tool_changed";
