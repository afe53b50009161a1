//! The subject of a question, and the rule that would answer it in the future.

use qwen_events::{Confirmation, ToolCall};

use super::diff;
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, clean_line, visible};

/// The complete effect of a call: nothing that the user must judge is omitted or hidden.
pub fn subject(call: &ToolCall, confirmation: &Confirmation) -> (String, Vec<Rendered>) {
    let shown = |text: &str| -> Vec<Rendered> {
        visible(text)
            .lines()
            .map(|line| Rendered::logical(StyledLine::styled(line, Style::color(Color::Cyan))))
            .collect()
    };
    match confirmation {
        Confirmation::Exec { command, .. } => ("Run this command?".to_owned(), shown(command)),
        Confirmation::Edit(change) => {
            let (added, removed) = (change.stat.ai_added_lines, change.stat.ai_removed_lines);
            let title = format!("Change {} (+{added} -{removed})?", clean_line(&change.file_name));
            (title, diff(change))
        }
        Confirmation::Mcp { server, tool, .. } => {
            let title = format!("Call {} of the MCP server {}?", clean_line(tool), clean_line(server));
            (title, shown(call.arguments.as_str()))
        }
        Confirmation::Plan { plan } => ("Go on with this plan?".to_owned(), crate::markdown::render(plan)),
        Confirmation::Info { prompt, urls } => {
            let mut lines = shown(prompt);
            lines.extend(urls.iter().flat_map(|url| shown(url)));
            (format!("Allow {}?", clean_line(&call.name)), lines)
        }
    }
}

/// The narrowest rule that would have allowed this call; none if no rule can.
pub fn rule_for(call: &ToolCall, confirmation: &Confirmation) -> Option<String> {
    match confirmation {
        // Rules are one line, and a parenthesis ends them.
        Confirmation::Exec { command, .. } => {
            let command = command.trim();
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
