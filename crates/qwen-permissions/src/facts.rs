//! What a call of a built-in tool will do, read from its arguments.

use std::path::{Path, PathBuf};

use qwen_events::ToolCall;
use serde::Deserialize;

use crate::{CallFacts, CallKind, canonical_tool_name};

/// The arguments that say what a call works on. What is of another type is as good as absent: the tool itself will
/// refuse such a call, and the judgement does not get milder by it.
#[derive(Debug, Default, Deserialize)]
struct Named<'a> {
    #[serde(default, borrow)]
    file_path: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    path: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    command: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    directory: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    url: Option<std::borrow::Cow<'a, str>>,
}

/// What a call will do.
#[derive(Debug)]
pub struct Facts {
    tool: String,
    kind: CallKind,
    cwd: PathBuf,
    paths: Vec<PathBuf>,
    command: Option<String>,
    url: Option<String>,
}

impl Facts {
    /// Reads them from a call that is made in `cwd`.
    pub fn of(call: &ToolCall, cwd: &Path) -> Self {
        let named: Named<'_> = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let tool = canonical_tool_name(&call.name).into_owned();
        let kind = kind_of(&tool);
        let given = named.file_path.or(named.path);
        let paths = match (kind, given) {
            (CallKind::Read | CallKind::Edit, Some(path)) => vec![PathBuf::from(&*path)],
            (CallKind::Read, None) => vec![cwd.to_owned()],
            _ => Vec::new(),
        };
        let cwd = match named.directory {
            Some(directory) if kind == CallKind::Exec => cwd.join(&*directory),
            _ => cwd.to_owned(),
        };
        Self {
            tool,
            kind,
            cwd,
            paths,
            command: named.command.map(std::borrow::Cow::into_owned),
            url: named.url.map(std::borrow::Cow::into_owned),
        }
    }

    /// The same for the policy.
    pub fn for_policy(&self) -> CallFacts<'_> {
        CallFacts {
            tool: &self.tool,
            kind: self.kind,
            cwd: &self.cwd,
            paths: self.paths.clone(),
            command: self.command.as_deref(),
            url: self.url.as_deref(),
        }
    }

    /// The command that the call runs.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref().filter(|_| self.kind == CallKind::Exec)
    }

    /// The address that the call visits.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|_| self.kind == CallKind::Fetch)
    }
}

/// What kind of work a tool does, by its name.
fn kind_of(tool: &str) -> CallKind {
    match tool {
        "read_file" | "list_directory" | "glob" | "grep_search" => CallKind::Read,
        "write_file" | "edit" => CallKind::Edit,
        "run_shell_command" => CallKind::Exec,
        "web_fetch" => CallKind::Fetch,
        "todo_write" | "ask_user_question" | "exit_plan_mode" | "agent" | "skill" | "shell_task" => {
            CallKind::Think
        }
        name if name.starts_with("mcp__") => CallKind::Mcp,
        _ => CallKind::Other,
    }
}
