//! The texts of the demo model.

use qwen_events::ToolResult;

use super::intent::Intent;

/// How many lines of a result are quoted.
const QUOTED_LINES: usize = 5;

/// How long a quoted line may be.
const QUOTED_WIDTH: usize = 120;

pub(super) fn self_description(asked: &str) -> String {
    let asked = asked.trim();
    let request = if asked.is_empty() {
        "You have not said anything yet.".to_owned()
    } else {
        format!("You said: \"{}\".", shortened(asked.lines().next().unwrap_or_default(), QUOTED_WIDTH))
    };
    format!(
        "I am the built-in demo model: I run without a network and understand only a few intents. {request} Try \"look \
         around\", \"read README.md\", \"search for TODO\", \"run date\" or \"edit notes.txt replacing one with two\". For \
         real work, name a model with --model and give its key and base URL."
    )
}

pub(super) fn thought(intent: &Intent, tool: &str) -> String {
    format!("The user wants this: {}. The tool {tool} can do it.", intent.describe())
}

pub(super) fn no_tool_for(intent: &Intent) -> String {
    format!(
        "I am the built-in demo model, and I understood: {}. But no tool that could do it is on offer here.",
        intent.describe()
    )
}

pub(super) fn summarize_results(results: &[&ToolResult]) -> String {
    let reports: Vec<String> = results.iter().map(|result| summarize_result(result)).collect();
    reports.join("\n\n")
}

fn summarize_result(result: &ToolResult) -> String {
    let lines: Vec<&str> = result.text.lines().collect();
    let verb = if result.is_error { "did not work" } else { "has answered" };
    let pictures = match result.media.len() {
        0 => String::new(),
        1 => " with a picture".to_owned(),
        n => format!(" with {n} pictures"),
    };
    let head = format!("The tool {} {verb}{pictures}", result.name);
    match lines.len() {
        0 => format!("{head}, without any text."),
        n => {
            let quoted: Vec<String> =
                lines.iter().take(QUOTED_LINES).map(|line| shortened(line, QUOTED_WIDTH)).collect();
            let count = if n == 1 { "one line".to_owned() } else { format!("{n} lines") };
            let how = if n > QUOTED_LINES {
                format!(", of which the first {QUOTED_LINES} are")
            } else {
                String::new()
            };
            // A fence longer than any in the quoted text keeps it one block.
            let fence = if quoted.iter().any(|line| line.contains("```")) { "~~~~" } else { "```" };
            format!("{head}: {count}{how}:\n{fence}\n{}\n{fence}", quoted.join("\n"))
        }
    }
}

fn shortened(line: &str, width: usize) -> String {
    let mut short: String = line.chars().take(width).collect();
    if line.chars().count() > width {
        short.push('…');
    }
    short
}
