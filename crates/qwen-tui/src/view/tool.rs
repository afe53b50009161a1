//! Renders tool calls, titled by their object.

use qwen_events::{
    Display, TaskProgress, ToolCall, ToolEnd, ToolStatus, shorten_middle, visible_text, without_earlier_calls,
};
use serde_json::Value;

use super::{Marks, diff, todo_lines};
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, clean_line, colored, visible_line};

/// The verbs of tools, by name in either vocabulary; other tools are titled by their names.
const VERBS: &[(&str, &str)] = &[
    ("read_file", "Read"),
    ("read_many_files", "Read"),
    ("write_file", "Write"),
    ("edit", "Edit"),
    ("list_directory", "List"),
    ("glob", "Find"),
    ("grep_search", "Search"),
    ("run_shell_command", "Run"),
    ("web_fetch", "Fetch"),
    ("save_memory", "Remember"),
    ("todo_write", "Todos"),
    ("exit_plan_mode", "Plan"),
    ("ask_user_question", "Ask"),
    ("agent", "Agent"),
    ("skill", "Skill"),
    ("Bash", "Run"),
    ("Grep", "Search"),
    ("Glob", "Find"),
    ("LS", "List"),
    ("Task", "Agent"),
    ("WebFetch", "Fetch"),
    ("TodoWrite", "Todos"),
    ("ExitPlanMode", "Plan"),
    ("AskUserQuestion", "Ask"),
];

/// The arguments that identify the object of a call, most significant first.
const OBJECTS: &[&str] = &[
    "command",
    "file_path",
    "absolute_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "path",
    "description",
    "skill",
    "fact",
    "task_id",
    "prompt",
];

/// The verb and the object of a call. The object of a command may have several lines.
pub fn title(call: &ToolCall) -> (String, String) {
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    let verb = match VERBS.iter().find(|(name, _)| **name == *call.name) {
        Some((_, verb)) => (*verb).to_owned(),
        None => clean_line(&call.name).replace("__", " ").trim_start_matches("mcp ").to_owned(),
    };
    let known = OBJECTS.iter().find_map(|key| Some((*key, arguments.get(*key)?.as_str()?)));
    let mut object = match known {
        Some((_, text)) => text.to_owned(),
        None if arguments.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
        None if matches!(verb.as_str(), "Todos" | "Ask" | "Plan") => String::new(),
        None => shorten_middle(&visible_text(call.arguments.as_str()), 300),
    };
    if let (Some(("pattern", _)), Some(path)) = (known, arguments.get("path").and_then(Value::as_str)) {
        object.push_str(&format!(" in {path}"));
    }
    (verb, object)
}

/// True for a call that runs a shell command.
pub fn is_command(call: &ToolCall) -> bool {
    VERBS.contains(&(&*call.name, "Run"))
}

/// The call on one line, for the live region.
pub fn summary(call: &ToolCall) -> String {
    let (verb, object) = title(call);
    shorten_middle(&visible_line(&format!("{verb} {object}")), 300)
}

/// How much of a command's output is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimit {
    pub lines: usize,
    /// Where the rest is, behind the number of omitted lines; may be empty.
    pub rest: String,
}

/// A finished call: its title, and the relevant part of its result. `limit` is for the output of commands.
/// `started` is the call as it ran, which an answer may have changed.
pub fn finished_call(
    end: &ToolEnd,
    started: Option<&ToolCall>,
    marks: Marks,
    limit: &OutputLimit,
) -> Vec<Rendered> {
    let (verb, object) = title(started.unwrap_or(&end.call));
    let failed = end.status != ToolStatus::Success;
    let is_command = verb == "Run";
    let mut lines = vec![Rendered::logical(head(end, &verb, &object, marks))];
    if is_command {
        let command = |line| Rendered::logical(StyledLine::styled(line, Style::color(Color::Cyan)));
        lines.extend(visible_text(&object).lines().map(command));
    }
    match &end.display {
        Some(Display::FileDiff(change)) => lines.extend(diff(change)),
        Some(Display::TodoList(todos)) => lines.extend(todo_lines(todos, marks)),
        Some(Display::Plan { plan, .. }) => lines.extend(crate::markdown::render(plan)),
        Some(Display::Task(task)) => lines.extend(task_lines(task)),
        Some(Display::Text(text)) if is_command || failed => lines.extend(tail(text, limit)),
        None if is_command || failed => lines.extend(tail(without_earlier_calls(&end.text), limit)),
        Some(Display::Text(_)) | None => {}
    }
    lines
}

/// The number of lines that the title of a finished call takes.
pub fn title_rows(call: &ToolCall) -> usize {
    let (verb, object) = title(call);
    if verb == "Run" { 1 + visible_text(&object).lines().count() } else { 1 }
}

/// How much a call that only reads has found, by its own summary or by its lines.
fn count_results(end: &ToolEnd, verb: &str) -> Option<String> {
    let unit = match verb {
        "Read" | "Search" => "line",
        "Find" | "List" => "entry",
        _ => return None,
    };
    let text = without_earlier_calls(&end.text);
    let first = text.lines().next().unwrap_or_default();
    let summary = match verb {
        "Read" => first.strip_prefix('[').map(|header| header.trim_end_matches(']')),
        // The heading of a list: the details follow after a mark.
        "Search" | "Find" if first.starts_with("No ") || first.starts_with("Nothing ") => {
            Some("nothing found")
        }
        "Search" | "Find" => first.split([',', '(', ':']).next(),
        _ => None,
    };
    let summary = summary.map(str::trim).filter(|summary| summary.len() < 80);
    if let Some(summary) = summary
        .filter(|summary| *summary == "nothing found" || summary.contains(|c: char| c.is_ascii_digit()))
    {
        return Some(clean_line(summary));
    }
    let count = text.lines().filter(|line| !line.trim().is_empty()).count();
    Some(match (count, unit) {
        (1, unit) => format!("1 {unit}"),
        (count, "entry") => format!("{count} entries"),
        (count, unit) => format!("{count} {unit}s"),
    })
}

fn head(end: &ToolEnd, verb: &str, object: &str, marks: Marks) -> StyledLine {
    let (mark, color) = match end.status {
        ToolStatus::Success => (marks.call, Color::Green),
        ToolStatus::Error => (marks.failure, Color::Red),
        ToolStatus::Denied | ToolStatus::Cancelled => (marks.failure, Color::Yellow),
    };
    let mut head = StyledLine::styled(format!("{mark} "), Style::color(color)).with(verb, Style::BOLD);
    if verb != "Run" && !object.is_empty() {
        head.push(format!(" {}", visible_line(object)), Style::color(Color::Cyan));
    }
    if let Some(Display::FileDiff(change)) = &end.display {
        let stat = change.stat;
        let added = stat.ai_added_lines + stat.user_added_lines;
        let removed = stat.ai_removed_lines + stat.user_removed_lines;
        head.push(format!(" (+{added} -{removed})"), Style::DIM);
    }
    let mut notes = Vec::new();
    match end.status {
        ToolStatus::Denied => notes.push("not allowed".to_owned()),
        ToolStatus::Cancelled => notes.push("cancelled".to_owned()),
        ToolStatus::Success => notes.extend(count_results(end, verb)),
        ToolStatus::Error => {}
    }
    if let Some(code) = end.exit_code.filter(|code| *code != 0) {
        notes.push(format!("exit {code}"));
    }
    if end.duration_ms >= 1000 {
        notes.push(seconds(end.duration_ms));
    }
    if !notes.is_empty() {
        head.push(format!(" {}", notes.join(", ")), Style::DIM);
    }
    head
}

/// The calls and tokens of a sub-agent.
pub fn spent(task: &TaskProgress) -> String {
    let calls = if task.tool_calls == 1 { "call" } else { "calls" };
    format!("{} {calls}, {} tokens", task.tool_calls, task.tokens)
}

fn task_lines(task: &TaskProgress) -> Vec<Rendered> {
    let agent = clean_line(&task.agent);
    let spent = format!("{agent}: {}, {}", task.status, spent(task));
    let mut lines = vec![Rendered::logical(StyledLine::styled(spent, Style::DIM))];
    if let Some(result) = &task.result {
        lines.extend(crate::markdown::render(result));
    }
    lines
}

/// The last lines of an output, and the number of omitted ones.
fn tail(text: &str, limit: &OutputLimit) -> Vec<Rendered> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let hidden = lines.len().saturating_sub(limit.lines);
    let mut out = Vec::new();
    if hidden > 0 {
        let note = format!("({hidden} more lines above{})", limit.rest);
        out.push(Rendered::logical(StyledLine::styled(note, Style::DIM)));
    }
    out.extend(lines[hidden..].iter().map(|line| Rendered::logical(colored(line))));
    out
}

/// A duration in display form.
pub fn seconds(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        s => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use qwen_events::{CallId, Json};

    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        let arguments = Json::trusted(arguments);
        ToolCall::new(CallId::new("c"), name.into(), arguments)
    }

    #[test]
    fn a_call_is_named_by_its_object() {
        for (name, arguments, expected) in [
            ("read_file", r#"{"file_path":"src/main.rs"}"#, "Read src/main.rs"),
            ("grep_search", r#"{"pattern":"fn main","path":"src"}"#, "Search fn main in src"),
            ("run_shell_command", r#"{"command":"cargo test"}"#, "Run cargo test"),
            ("mcp__github__search", r#"{"query":"bug"}"#, "github search bug"),
            ("odd", r#"{"x":1}"#, r#"odd {"x":1}"#),
        ] {
            assert_eq!(summary(&call(name, arguments)), expected);
        }
    }
}
