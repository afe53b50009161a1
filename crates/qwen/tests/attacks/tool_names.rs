//! The two vocabularies of tools. Every attack is written with our names; `QWEN_TEST_TOOL_NAMES=claude` runs
//! the same attacks in sessions that use Claude's names.

use mock_model::{ReplyEvent, Step};
use serde_json::Value;

/// The names that a session uses for tools and their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNames {
    Qwen,
    Claude,
}

/// Our tools and their arguments with another name in Claude's vocabulary.
const CLAUDE: &[(&str, &str, &[(&str, &str)])] = &[
    ("run_shell_command", "Bash", &[("is_background", "run_in_background")]),
    ("read_file", "Read", &[]),
    ("write_file", "Write", &[]),
    ("edit", "Edit", &[]),
    ("list_directory", "LS", &[]),
    ("glob", "Glob", &[]),
    ("grep_search", "Grep", &[("limit", "head_limit")]),
    ("web_fetch", "WebFetch", &[]),
    ("todo_write", "TodoWrite", &[]),
    ("agent", "Task", &[]),
    ("skill", "Skill", &[]),
    ("exit_plan_mode", "ExitPlanMode", &[]),
];

impl ToolNames {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Qwen, Self::Claude];

    /// The names that the attacks of this run use.
    pub fn of_this_run() -> Self {
        match std::env::var("QWEN_TEST_TOOL_NAMES").as_deref() {
            Ok("claude") => Self::Claude,
            _ => Self::Qwen,
        }
    }

    /// What tells the binary to use them.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Qwen => &[],
            Self::Claude => &["--tool-names", "claude"],
        }
    }

    /// The name of one of our tools.
    pub fn tool(self, ours: &str) -> &str {
        let found = CLAUDE.iter().find(|(name, ..)| self == Self::Claude && *name == ours);
        found.map_or(ours, |(_, claude, _)| claude)
    }

    /// A call of one of our tools, as the model makes it.
    pub fn call(self, id: &str, ours: &str, arguments: Value) -> Step {
        let (name, arguments) = self.translated(ours, arguments);
        ReplyEvent::call(id, &name, &arguments.to_string()).step()
    }

    fn translated(self, ours: &str, mut arguments: Value) -> (String, Value) {
        let Some(fields) = arguments.as_object_mut().filter(|_| self == Self::Claude) else {
            return (ours.to_owned(), arguments);
        };
        if ours == "shell_task" {
            let (name, id) = match fields.remove("action") {
                Some(action) if action == "kill" => ("KillShell", "shell_id"),
                _ => ("BashOutput", "bash_id"),
            };
            let task = fields.remove("task_id").unwrap_or_default();
            fields.insert(id.to_owned(), task);
            return (name.to_owned(), arguments);
        }
        let renamed = CLAUDE.iter().find(|(name, ..)| *name == ours).map_or(&[][..], |(.., renamed)| renamed);
        for (from, to) in renamed {
            if let Some(value) = fields.remove(*from) {
                fields.insert((*to).to_owned(), value);
            }
        }
        match ours {
            "grep_search" => {
                fields.entry("output_mode").or_insert_with(|| "content".into());
            }
            _ => {}
        }
        (self.tool(ours).to_owned(), arguments)
    }
}
