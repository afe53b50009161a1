//! Approval modes.

/// How much happens without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only reading is possible.
    Plan,
    /// Reading; everything else asks.
    #[default]
    Default,
    /// The same as the default mode, under the name that hosts of both SDK families may choose.
    Auto,
    /// Reading; what would ask in the default mode is denied.
    DontAsk,
    /// Reading and editing files in the workspace.
    AutoEdit,
    /// Everything runs without approval.
    Yolo,
}

impl Mode {
    /// Parses a mode, in the spellings of both SDKs.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "plan" => Some(Self::Plan),
            "default" | "manual" => Some(Self::Default),
            "auto" => Some(Self::Auto),
            "dontAsk" | "dont-ask" => Some(Self::DontAsk),
            "auto-edit" | "auto_edit" | "autoEdit" | "acceptEdits" => Some(Self::AutoEdit),
            "yolo" | "bypassPermissions" => Some(Self::Yolo),
            _ => None,
        }
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::AutoEdit => "auto-edit",
            Self::Yolo => "yolo",
        }
    }
}
