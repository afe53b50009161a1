//! The subject of a question, and the rule that would answer it in the future.

use qwen_events::{Confirmation, ToolCall, visible_text};
use serde_json::Value;

use super::diff;
use super::tool::summary;
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, visible_line};

/// The complete effect of a call: nothing that the user must judge is omitted or hidden.
pub fn subject(call: &ToolCall, confirmation: &Confirmation) -> (String, Vec<Rendered>) {
    let shown = |text: &str| -> Vec<Rendered> {
        visible_text(text)
            .lines()
            .map(|line| Rendered::logical(StyledLine::styled(line, Style::color(Color::Cyan))))
            .collect()
    };
    match confirmation {
        Confirmation::Exec { command, .. } => {
            let mut lines = shown(command);
            lines.extend(circumstances(call));
            ("Run this command?".to_owned(), lines)
        }
        Confirmation::Edit(change) => {
            let (added, removed) = (change.stat.ai_added_lines, change.stat.ai_removed_lines);
            let title = format!("Change {} (+{added} -{removed})?", visible_line(&change.file_name));
            (title, diff(change))
        }
        Confirmation::Mcp { server, tool, .. } => {
            let title = format!("Call {} of the MCP server {}?", visible_line(tool), visible_line(server));
            (title, shown(call.arguments.as_str()))
        }
        Confirmation::Plan { plan } => ("Carry out this plan?".to_owned(), crate::markdown::render(plan)),
        Confirmation::Info { prompt, urls } => {
            let mut lines = shown(prompt);
            lines.extend(urls.iter().flat_map(|url| shown(url)));
            let title = match reach(call) {
                Some(_) => format!("{}?", summary(call)),
                None => format!("Allow {}?", visible_line(&call.name)),
            };
            (title, lines)
        }
    }
}

/// Where and how a command runs, if its arguments say so.
fn circumstances(call: &ToolCall) -> Option<Rendered> {
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    let mut parts = Vec::new();
    if let Some(directory) = arguments.get("directory").and_then(Value::as_str) {
        parts.push(format!("in {}", visible_line(directory)));
    }
    let is_set = |key: &str| arguments.get(key).and_then(Value::as_bool).unwrap_or_default();
    if is_set("is_background") || is_set("run_in_background") {
        parts.push("in the background".to_owned());
    }
    let text = parts.join(", ");
    (!text.is_empty()).then(|| Rendered::logical(StyledLine::styled(format!("({text})"), Style::DIM)))
}

/// The description that the model gave of a call.
pub fn description(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    let text = arguments.get("description")?.as_str()?.trim();
    (!text.is_empty()).then(|| visible_line(text))
}

/// What a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    File,
    Tree,
}

/// What a built-in tool reads; none for any other tool.
fn reach(call: &ToolCall) -> Option<Reach> {
    match &*call.name {
        "read_file" | "Read" => Some(Reach::File),
        "list_directory" | "LS" | "glob" | "Glob" | "grep_search" | "Grep" => Some(Reach::Tree),
        _ => None,
    }
}

/// The rule that is offered for a call that reads a place outside the workspace.
pub fn offer_reading_rule(call: &ToolCall) -> Option<String> {
    let is_tree = reach(call)? == Reach::Tree;
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    let path = arguments.get(if is_tree { "path" } else { "file_path" })?.as_str()?.strip_prefix('/')?;
    // A rule is one line, and these characters would make it a pattern.
    if path.is_empty() || path.contains(['\n', '\r', '(', ')', '*', '?', '[', '{', '\\']) {
        return None;
    }
    let path = path.trim_end_matches('/');
    Some(if is_tree { format!("Read(//{path}/**)") } else { format!("Read(//{path})") })
}

/// What a rule would allow, in one sentence; empty for a rule of an unknown form.
pub fn coverage(rule: &str) -> String {
    if rule.trim().is_empty() {
        return "No rule is offered for this call. Enter one, such as Bash(npm install *).".to_owned();
    }
    let Some((tool, pattern)) = rule.trim().split_once('(') else {
        return format!("Covers every call of {}.", visible_line(rule.trim()));
    };
    let pattern = visible_line(pattern.strip_suffix(')').unwrap_or(pattern));
    match (tool.trim(), pattern.strip_suffix(" *").or_else(|| pattern.strip_suffix(":*"))) {
        ("Bash" | "run_shell_command", Some(prefix)) => {
            format!("Covers `{prefix}` with any arguments that do not run or write something else.")
        }
        ("Bash" | "run_shell_command", None) if pattern.contains('*') => {
            format!("Covers commands of the form `{pattern}`.")
        }
        ("Bash" | "run_shell_command", None) => format!("Covers exactly `{pattern}`."),
        ("Edit" | "Write", _) => format!("Covers changes of {pattern}."),
        ("Read", _) => format!("Covers reading {pattern}."),
        ("Network", _) => format!("Covers connections of commands to {pattern}."),
        ("WebFetch", _) => format!("Covers pages of {}.", pattern.trim_start_matches("domain:")),
        _ => String::new(),
    }
}
