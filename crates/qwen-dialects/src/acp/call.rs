//! How a tool call is described: title, kind and locations.

use std::borrow::Cow;

use qwen_events::ToolCall;
use serde_json::Value;

use super::sizes::{self, MAX_PART, one_line, split_at_size};
use super::wire::{Location, RawJson};

/// A readable description of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub title: String,
    pub kind: &'static str,
    pub locations: Vec<Location<'static>>,
    /// The name of the sub-agent that the call starts.
    pub agent: Option<String>,
}

/// What a tool does, by its name in either vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    List,
    Find,
    Search,
    Edit,
    Write,
    Execute,
    Task,
    Fetch,
    WebSearch,
    Remember,
    Todos,
    Ask,
    Plan,
    Agent,
    Skill,
    Other,
}

impl Action {
    fn parse(name: &str) -> Self {
        match name {
            "read_file" | "Read" | "NotebookRead" => Self::Read,
            "list_directory" | "LS" => Self::List,
            "glob" | "Glob" => Self::Find,
            "grep_search" | "Grep" => Self::Search,
            "edit" | "Edit" | "MultiEdit" | "notebook_edit" | "NotebookEdit" => Self::Edit,
            "write_file" | "Write" => Self::Write,
            "run_shell_command" | "Bash" => Self::Execute,
            "shell_task" | "BashOutput" | "TaskOutput" | "KillShell" | "TaskStop" => Self::Task,
            "web_fetch" | "WebFetch" => Self::Fetch,
            "web_search" | "WebSearch" => Self::WebSearch,
            "save_memory" => Self::Remember,
            "todo_write" | "TodoWrite" => Self::Todos,
            "ask_user_question" | "AskUserQuestion" => Self::Ask,
            "exit_plan_mode" | "ExitPlanMode" => Self::Plan,
            "agent" | "Agent" | "Task" => Self::Agent,
            "skill" | "Skill" => Self::Skill,
            _ => Self::Other,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Read | Self::List | Self::Skill => "read",
            Self::Find | Self::Search => "search",
            Self::Edit | Self::Write | Self::Remember => "edit",
            Self::Execute | Self::Task => "execute",
            Self::Fetch | Self::WebSearch => "fetch",
            Self::Todos | Self::Agent => "think",
            Self::Plan => "switch_mode",
            Self::Ask | Self::Other => "other",
        }
    }
}

/// True for a tool whose output is that of a command.
pub(super) fn is_command(name: &str) -> bool {
    Action::parse(name) == Action::Execute
}

/// The kind of a call of which only the name is known, and a title for it.
pub(super) fn announced(name: &str) -> (&'static str, String) {
    (Action::parse(name).kind(), readable_name(name))
}

/// A tool's name for users: `server: tool` for tools of MCP servers.
fn readable_name(name: &str) -> String {
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) => one_line(&format!("{server}: {tool}")),
        None => one_line(name),
    }
}

/// Describes a call. Paths are relative to `cwd` in the title and absolute in the locations.
pub(super) fn describe(call: &ToolCall, cwd: &str) -> Described {
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    let action = Action::parse(&call.name);
    let text = |names: &[&str]| -> Option<String> {
        let found = names.iter().find_map(|name| arguments.get(*name)?.as_str());
        found.filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    let path = text(&["file_path", "notebook_path", "path"]);
    let shown_path = path.as_deref().map(|path| relative(path, cwd));
    let line = match action {
        Action::Read => arguments.get("offset").and_then(Value::as_u64).map(|line| line.max(1)),
        _ => None,
    };
    let locations: Vec<Location<'static>> = path
        .as_deref()
        .map(|path| Location { path: sizes::path(&absolute(path, cwd)).into_owned().into(), line })
        .into_iter()
        .collect();
    let with = |verb: &str, subject: Option<&str>| match subject {
        Some(subject) => format!("{verb} {subject}"),
        None => verb.to_owned(),
    };
    let place = |title: String| match &shown_path {
        Some(path) => format!("{title} in {path}"),
        None => title,
    };
    let mut agent = None;
    let title = match action {
        Action::Read => with("Read", shown_path),
        Action::List => with("List", Some(shown_path.unwrap_or("."))),
        Action::Find => place(with("Find", text(&["pattern"]).as_deref())),
        Action::Search => place(with("Search for", text(&["pattern"]).as_deref())),
        Action::Edit => with("Edit", shown_path),
        Action::Write => with("Write", shown_path),
        Action::Execute => text(&["command"]).unwrap_or_else(|| "Run a command".to_owned()),
        Action::Task => with("Background task", text(&["task_id", "bash_id", "shell_id"]).as_deref()),
        Action::Fetch => with("Fetch", text(&["url"]).as_deref()),
        Action::WebSearch => with("Search the web for", text(&["query"]).as_deref()),
        Action::Remember => with("Remember:", text(&["fact"]).as_deref()),
        Action::Todos => "Update the plan".to_owned(),
        Action::Ask => with("Ask:", first_question(&arguments).as_deref()),
        Action::Plan => "Proposed plan".to_owned(),
        Action::Agent => {
            let name = text(&["subagent_type"]).unwrap_or_else(|| "general-purpose".to_owned());
            let title = match text(&["description"]) {
                Some(description) => format!("{name}: {description}"),
                None => name.clone(),
            };
            agent = Some(one_line(&name));
            title
        }
        Action::Skill => with("Skill", text(&["skill", "name"]).as_deref()),
        Action::Other => readable_name(&call.name),
    };
    Described { title: one_line(&title), kind: action.kind(), locations, agent }
}

fn first_question(arguments: &Value) -> Option<String> {
    arguments.get("questions")?.get(0)?.get("question")?.as_str().map(str::to_owned)
}

/// The path as an absolute one.
pub(super) fn absolute(path: &str, cwd: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    if path == "." { cwd.to_owned() } else { format!("{}/{path}", cwd.trim_end_matches('/')) }
}

fn relative<'a>(path: &'a str, cwd: &str) -> &'a str {
    let inside = path.strip_prefix(cwd.trim_end_matches('/')).filter(|_| !cwd.is_empty());
    inside.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// The arguments as sent; the beginning of their text if they are too long.
pub(super) fn raw_input(call: &ToolCall) -> RawJson<'_> {
    bounded_json(call.arguments.as_str())
}

fn bounded_json(json: &str) -> RawJson<'_> {
    if json.len() <= MAX_PART {
        return RawJson(Cow::Borrowed(json));
    }
    let (kept, _) = split_at_size(json, MAX_PART - 64);
    RawJson(serde_json::json!({"truncated": true, "text": kept}).to_string().into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use qwen_events::{CallId, Json};

    use super::*;

    fn described(name: &str, arguments: &str) -> Described {
        let call = ToolCall::new(CallId::new("c"), Arc::from(name), Json::trusted(arguments.to_owned()));
        describe(&call, "/work")
    }

    #[test]
    fn every_tool_has_a_title_and_a_kind() {
        for (name, arguments, title, kind) in [
            ("read_file", r#"{"file_path":"/work/src/a.rs"}"#, "Read src/a.rs", "read"),
            ("Read", r#"{"file_path":"/etc/hosts"}"#, "Read /etc/hosts", "read"),
            ("grep_search", r#"{"pattern":"fn main","path":"src"}"#, "Search for fn main in src", "search"),
            ("edit", r#"{"file_path":"a"}"#, "Edit a", "edit"),
            ("Bash", "{\"command\":\"ls\\n-l\"}", "ls -l", "execute"),
            ("web_fetch", r#"{"url":"https://a.b"}"#, "Fetch https://a.b", "fetch"),
            ("agent", r#"{"subagent_type":"explore","description":"look"}"#, "explore: look", "think"),
            ("mcp__git__log", "{}", "git: log", "other"),
            ("exit_plan_mode", "{}", "Proposed plan", "switch_mode"),
            ("read_file", "[]", "Read", "read"),
        ] {
            let described = described(name, arguments);
            assert_eq!((described.title.as_str(), described.kind), (title, kind), "{name}");
        }
    }

    #[test]
    fn a_location_is_absolute_and_has_the_line() {
        let described = described("read_file", r#"{"file_path":"src/a.rs","offset":7}"#);
        assert_eq!(described.locations, [Location { path: "/work/src/a.rs".into(), line: Some(7) }]);
    }

    #[test]
    fn long_arguments_are_cut() {
        let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(400_000));
        let RawJson(text) = bounded_json(&long);
        assert!(text.len() < MAX_PART + 64 && text.contains("\"truncated\":true"));
    }
}
