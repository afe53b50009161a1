//! Notices, ends and errors.

use qwen_events::{CommandResult, CommandResultBody, EndStatus, ErrorInfo, Level, Todo, TodoStatus, TurnEnd};
use serde_json::Value;

use super::Marks;
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, clean_line};

/// Renders a to-do list as lines.
pub fn todo_lines(todos: &[Todo], marks: Marks) -> Vec<Rendered> {
    let line = |todo: &Todo| {
        let (mark, style) = match todo.status {
            TodoStatus::Completed => (marks.done, Style::DIM),
            TodoStatus::InProgress => (marks.current, Style::BOLD),
            TodoStatus::Pending => (marks.open, Style::PLAIN),
        };
        Rendered::logical(StyledLine::styled(format!("{mark} {}", clean_line(&todo.content)), style))
    };
    todos.iter().map(line).collect()
}

/// A to-do list in one line.
pub fn todo_summary(todos: &[Todo], marks: Marks) -> Rendered {
    let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    let mut line = StyledLine::styled(format!("{} ", marks.call), Style::color(Color::Green))
        .with("Todos", Style::BOLD)
        .with(format!(" {done} of {} done", todos.len()), Style::DIM);
    if let Some(next) = todos.iter().find(|todo| todo.status == TodoStatus::InProgress) {
        line.push(format!(", now: {}", clean_line(&next.content)), Style::DIM);
    }
    Rendered::prose(line)
}

pub fn error(error: &ErrorInfo, marks: Marks) -> Vec<Rendered> {
    failure(&error.message, marks)
}

fn failure(message: &str, marks: Marks) -> Vec<Rendered> {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let head =
        StyledLine::styled(format!("{} ", marks.failure), Style::color(Color::Red)).with(first, Style::PLAIN);
    let rest = lines.map(|line| Rendered::prose(StyledLine::plain(line)));
    std::iter::once(Rendered::prose(head)).chain(rest).collect()
}

/// A one-line notice of a retry.
pub fn retry(attempt: u32, max_retries: u32, delay_ms: u64, error: &str) -> String {
    format!("{}; retry {attempt} of {max_retries} in {} s", clean_line(error), delay_ms.div_ceil(1000))
}

/// The end of a turn; empty for an ordinary one. `ended` names what an interrupt ended.
pub fn turn_end(end: &TurnEnd, ended: Option<&str>, marks: Marks) -> Vec<Rendered> {
    let note = |text: &str| vec![Rendered::prose(StyledLine::styled(text, Style::color(Color::Yellow)))];
    match (&end.error, end.status) {
        (Some(error), _) => self::error(error, marks),
        (None, EndStatus::Done) => Vec::new(),
        (None, EndStatus::Cancelled | EndStatus::Interrupted) => match ended {
            Some(ended) => note(&format!("Interrupted. Ended: {ended}.")),
            None => note("Interrupted."),
        },
        (None, EndStatus::Error) => failure("The turn failed.", marks),
        (None, EndStatus::MaxTurns) => note("The limit on model calls was reached."),
        (None, EndStatus::MaxToolCalls) => note("The limit on tool calls was reached."),
        (None, EndStatus::MaxWallTime) => note("The time limit was reached."),
        (None, EndStatus::MaxTokens) => note("The token limit was reached."),
        (None, EndStatus::Budget) => note("The budget is spent."),
    }
}

/// The output of a slash command. A dialog without a form in this terminal is shown as its data.
pub fn command_result(result: &CommandResult, marks: Marks) -> Vec<Rendered> {
    match &result.body {
        CommandResultBody::Message { level: Level::Error, content } => failure(content, marks),
        CommandResultBody::Message { level: Level::Info | Level::Warning, content } => {
            content.lines().map(|line| Rendered::prose(StyledLine::plain(line))).collect()
        }
        CommandResultBody::Dialog { name, data } => {
            let mut lines = vec![Rendered::logical(StyledLine::styled(clean_line(name), Style::BOLD))];
            if let Ok(value) = serde_json::from_str(data.as_str()) {
                json_lines("", &value, &mut lines);
            }
            lines
        }
        CommandResultBody::Tool { .. } | CommandResultBody::SubmitPrompt { .. } => Vec::new(),
    }
}

/// The text that a command copies to the clipboard, which only the terminal can access.
pub fn text_to_copy(result: &CommandResult) -> Option<String> {
    let CommandResultBody::Dialog { name, data } = &result.body else { return None };
    let data: Value = serde_json::from_str(data.as_str()).ok()?;
    data.get("text").and_then(Value::as_str).filter(|_| &**name == "copy").map(str::to_owned)
}

/// JSON as `key: value` lines.
fn json_lines(path: &str, value: &Value, out: &mut Vec<Rendered>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), clean_line);
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| json_lines(&below(key), value, out));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(n, value)| json_lines(&below(&(n + 1).to_string()), value, out));
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(word).collect();
            out.push(Rendered::logical(StyledLine::plain(format!("{path}: {}", words.join(", ")))));
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            out.push(Rendered::logical(StyledLine::plain(format!("{path}: {}", word(value)))));
        }
    }
}
