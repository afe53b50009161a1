//! Options that only the Claude Agent SDKs and the Qwen Code SDKs pass, as flags and variables.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The options that a host of the `claude` dialect passed at start.
#[derive(Debug, Clone)]
pub struct ClaudeHostOptions {
    /// The folder for the session copy that the Claude SDKs read; none unless one of them started us.
    pub mirror_folder: Option<PathBuf>,
    /// `--session-mirror`: the session copy is also written to the stream.
    pub streams_mirror: bool,
    /// Where the Claude SDKs store this directory's transcripts; `None` unless one of them started us.
    pub transcripts: Option<PathBuf>,
    /// True with `--include-partial-messages`: deltas are written too.
    pub partial_messages: bool,
    /// `--await-initialize`: no turn starts before the host's `initialize`.
    pub await_initialize: bool,
    /// `--resume-drops-turn`: the only prompt whose turn may be dropped when the session resumes at an
    /// earlier point.
    pub resume_drops_turn: Option<String>,
    /// The host reads session state records.
    pub session_state: bool,
    /// Whether text and thoughts of sub-agents are written to the stream too; none if they always are. The
    /// host's `initialize` may change it.
    pub forwards_agent_text: Option<Arc<AtomicBool>>,
    /// The host is Claude's CLI or one of its SDKs.
    pub claude_family: bool,
    /// The host is a Qwen Code SDK (`--channel=SDK`).
    pub qwen_sdk: bool,
    /// Permission questions go over the control channel.
    pub permission_prompts: bool,
    /// The MCP tool that answers permission questions instead.
    pub permission_tool: Option<Arc<str>>,
}
