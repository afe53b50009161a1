//! The events that call hooks.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before a tool call.
    PreToolUse,
    /// After a tool call that succeeded.
    PostToolUse,
    /// After a tool call that failed.
    PostToolUseFailure,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// A session starts or is resumed.
    SessionStart,
    SessionEnd,
    /// The agent considers itself done.
    Stop,
    SubagentStart,
    /// A sub-agent considers itself done.
    SubagentStop,
    /// A summary is about to replace the conversation.
    PreCompact,
    /// The user's attention is needed.
    Notification,
    /// A permission question about a call is about to be asked.
    PermissionRequest,
}

/// A name in lower case, without separators.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase())
}

impl HookEvent {
    pub const ALL: [Self; 12] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
        Self::PermissionRequest,
    ];

    /// The event's name in settings and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::PermissionRequest => "PermissionRequest",
        }
    }

    /// Parses an event name; `pre_tool_use` and `preToolUse` are accepted too.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| folded(event.name()).eq(folded(name)))
    }

    /// True if its matcher refers to tool names.
    pub fn is_about_tools(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }

    /// True if plain output of a command, which is not JSON, is context for the model.
    pub(super) fn takes_plain_context(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart | Self::SubagentStart)
    }
}
