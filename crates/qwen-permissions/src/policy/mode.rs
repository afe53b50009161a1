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
    /// The mode for a word, in the spellings of both SDKs.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "plan" => Some(Self::Plan),
            // Both of these promise no more than we do by default: what is not allowed needs an answer.
            "default" | "auto" | "dontAsk" => Some(Self::Default),
            "auto-edit" | "auto_edit" | "autoEdit" | "acceptEdits" => Some(Self::AutoEdit),
            "yolo" | "bypassPermissions" => Some(Self::Yolo),
            _ => None,
        }
    }

    /// The word that the wire uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::AutoEdit => "auto-edit",
            Self::Yolo => "yolo",
        }
    }
}
