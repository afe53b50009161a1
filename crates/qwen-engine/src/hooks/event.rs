//! When hooks are called.

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// A tool is about to be called.
    PreToolUse,
    /// A tool did its work.
    PostToolUse,
    /// A tool failed.
    PostToolUseFailure,
    /// The user said something.
    UserPromptSubmit,
    /// The session begins.
    SessionStart,
    /// The session ends.
    SessionEnd,
    /// The agent thinks that it is done.
    Stop,
    /// A sub-agent starts.
    SubagentStart,
    /// A sub-agent thinks that it is done.
    SubagentStop,
    /// The conversation is about to be replaced by a summary.
    PreCompact,
    /// Someone's attention is wanted.
    Notification,
    /// Someone is about to be asked about a call.
    PermissionRequest,
}

impl HookEvent {
    /// All of them.
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

    /// The event of this name; `pre_tool_use` and `preToolUse` are understood too.
    pub fn parse(name: &str) -> Option<Self> {
        let folded = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
        let wanted = folded(name);
        Self::ALL.into_iter().find(|event| folded(event.name()) == wanted)
    }

    /// Whether its matcher names tools.
    pub(super) fn is_about_tools(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }

    /// Whether what a command prints without being JSON is context for the model.
    pub(super) fn takes_plain_context(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart | Self::SubagentStart)
    }
}
