//! Renders blocks of the conversation as lines.

mod diff;
mod notice;
mod question;
mod thoughts;
mod tool;

pub use diff::diff;
pub use notice::{command_result, error, retry, text_to_copy, todo_lines, todo_summary, turn_end};
pub use question::{coverage, description, offer_reading_rule, subject};
pub use thoughts::ThoughtTree;
pub use tool::{OutputLimit, finished_call, is_command, seconds, spent, summary, title_rows};

/// The marks in front of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// The mark before a call.
    pub call: &'static str,
    /// The mark before a failure.
    pub failure: &'static str,
    /// The mark before a finished item.
    pub done: &'static str,
    /// The mark before the current item.
    pub current: &'static str,
    /// The mark before an open item.
    pub open: &'static str,
    /// Between items of the footer.
    pub dot: &'static str,
    /// Where a text is cut.
    pub ellipsis: &'static str,
    /// Before a thought that has siblings below it, before the last one, and beside their children.
    pub branch: &'static str,
    pub last_branch: &'static str,
    pub trunk: &'static str,
}

impl Marks {
    /// For terminals that show Unicode.
    pub const UNICODE: Self = Self {
        call: "●",
        failure: "✗",
        done: "✓",
        current: "▸",
        open: "○",
        dot: "·",
        ellipsis: "…",
        branch: "├─ ",
        last_branch: "└─ ",
        trunk: "│  ",
    };

    /// For all others.
    pub const ASCII: Self = Self {
        call: "*",
        failure: "x",
        done: "+",
        current: ">",
        open: "-",
        dot: "|",
        ellipsis: "...",
        branch: "|- ",
        last_branch: "`- ",
        trunk: "|  ",
    };
}
