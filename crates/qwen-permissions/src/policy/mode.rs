//! Approval modes.

/// How much happens without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only reading.
    Plan,
    /// Reading; everything else asks.
    #[default]
    Default,
    /// Reading and editing files in the workspace.
    AutoEdit,
    /// Everything.
    Yolo,
}

impl Mode {
    /// Parses a mode, in the spellings of both SDKs.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "plan" => Some(Self::Plan),
            // Both aliases permit no more than our default mode: a call that is not allowed asks.
            "default" | "auto" | "dontAsk" => Some(Self::Default),
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
            Self::AutoEdit => "auto-edit",
            Self::Yolo => "yolo",
        }
    }
}
