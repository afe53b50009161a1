//! The subject of a question, and the rule that would answer it in the future.

use qwen_events::{Confirmation, ToolCall, visible_text};
use serde_json::Value;

use super::diff;
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
        Confirmation::Plan { plan } => ("Go on with this plan?".to_owned(), crate::markdown::render(plan)),
        Confirmation::Info { prompt, urls } => {
            let mut lines = shown(prompt);
            lines.extend(urls.iter().flat_map(|url| shown(url)));
            (format!("Allow {}?", visible_line(&call.name)), lines)
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

/// The words of a command up to its first argument that varies: `npm install`, `cargo test`, `touch`.
fn command_prefix(command: &str) -> Option<String> {
    // Anything that combines, expands or redirects has no single program.
    if command.contains(['\n', '\r', '(', ')', '*', ';', '|', '&', '<', '>', '$', '`', '"', '\'', '\\', '='])
    {
        return None;
    }
    let is_word = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let (program, rest) = words.split_first()?;
    // A program that runs what it is given has no harmless arguments.
    if INTERPRETERS.contains(program) || !is_word(program) {
        return None;
    }
    let has_actions = ACTIONS.contains(program);
    Some(match rest.first().filter(|word| has_actions && is_word(word)) {
        Some(action) => format!("{program} {action}"),
        None if has_actions => return None,
        None => (*program).to_owned(),
    })
}

/// Programs whose first argument is an action.
const ACTIONS: &[&str] = &[
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "git",
    "go",
    "gradle",
    "helm",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "podman",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Programs that run other programs or code from their arguments.
const INTERPRETERS: &[&str] = &[
    "awk", "bash", "chroot", "dash", "doas", "env", "eval", "exec", "find", "ksh", "nice", "node", "nohup",
    "npx", "perl", "php", "python", "python3", "rm", "ruby", "sed", "sh", "ssh", "su", "sudo", "time",
    "timeout", "watch", "xargs", "zsh",
];

/// What a rule would allow, in one sentence; empty for a rule of an unknown form.
pub fn coverage(rule: &str) -> String {
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
        ("WebFetch", _) => format!("Covers pages of {}.", pattern.trim_start_matches("domain:")),
        _ => String::new(),
    }
}

/// The rule that is offered for calls like this one; none if no rule can allow them. It covers a program's
/// action with other arguments where the program is known, otherwise this call only.
pub fn rule_for(call: &ToolCall, confirmation: &Confirmation) -> Option<String> {
    match confirmation {
        // Rules are one line, and a parenthesis ends them.
        Confirmation::Exec { command, .. } => {
            let command = command.trim();
            if let Some(prefix) = command_prefix(command) {
                return Some(format!("Bash({prefix} *)"));
            }
            (!command.contains(['\n', '(', ')', '*'])).then(|| format!("Bash({command})"))
        }
        Confirmation::Edit(change) => Some(format!("Edit(//{})", change.file_path.trim_start_matches('/'))),
        Confirmation::Mcp { .. } => Some(call.name.to_string()),
        Confirmation::Info { urls, .. } => {
            let host = urls.first()?.split("://").nth(1)?.split(['/', '?', '#']).next()?;
            Some(format!("WebFetch(domain:{})", host.split(':').next().unwrap_or(host)))
        }
        Confirmation::Plan { .. } => None,
    }
}
