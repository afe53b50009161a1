//! Text mode: the agent's words on standard output, everything else on standard error.

use qwen_events::{Body, CommandResultBody, Event, Json};
use serde_json::Value;

use super::activity::Activity;
use super::markdown::Markdown;
use super::screen::screen;
use super::thoughts::ThoughtRenderer;

/// Prints a turn for a person or a pipe.
pub struct TextPrinter {
    /// Styled words for a terminal; a pipe gets the bare text.
    markdown: Option<Markdown>,
    activity: Activity,
    /// The thoughts of agents that think in trees and graphs.
    search: ThoughtRenderer,
    /// Standard error is a terminal, on which they are draws_thoughts.
    draws: bool,
    line_open: bool,
    between_messages: bool,
    /// Whoever wants data does not want words around it.
    result_only: bool,
}

impl TextPrinter {
    /// A printer for a standard output and a standard error that are, or are not, terminals.
    pub fn new(stdout_is_terminal: bool, stderr_is_terminal: bool) -> Self {
        Self {
            markdown: stdout_is_terminal.then(Markdown::default),
            activity: Activity::new(stderr_is_terminal),
            search: ThoughtRenderer::default(),
            draws: stderr_is_terminal,
            line_open: false,
            between_messages: false,
            result_only: false,
        }
    }

    /// Prints nothing but the result as data.
    pub fn result_only(mut self, only: bool) -> Self {
        self.result_only = only;
        self
    }

    /// Whether [`tick`](Self::tick) has something to do.
    pub fn spins(&self) -> bool {
        self.activity.spins() && !self.line_open
    }

    /// Turns the spinner.
    pub fn tick(&mut self, err: &mut Vec<u8>) {
        self.activity.tick(err);
    }

    /// Prints what `event` means for a person.
    pub fn print(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        if event.scope.parent.is_some() {
            return;
        }
        if matches!(event.body, Body::Thinking(_) | Body::State(_) | Body::TurnStart(_)) {
            let screen = self.draws.then(|| screen(std::io::stderr(), true));
            self.search.render(event, screen, err);
            return;
        }
        let before = err.len();
        self.render(event, out, err);
        if err.len() > before {
            self.search.leave();
        }
    }

    fn render(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        match &event.body {
            Body::TextDelta(_) | Body::MessageEnd(_) if self.result_only => {}
            Body::TextDelta(text) => self.text(text, out, err),
            Body::MessageEnd(_) => self.end_message(out),
            Body::TurnEnd(end) => {
                if let Some(result) = end.structured.as_ref().filter(|_| self.result_only) {
                    self.activity.clear(err);
                    out.extend_from_slice(result.as_str().as_bytes());
                    out.push(b'\n');
                }
                self.end_message(out);
                self.activity.render(event, err);
            }
            Body::CommandResult(result) => {
                let text = match &result.body {
                    CommandResultBody::Message { content, .. } => content.to_string(),
                    CommandResultBody::Dialog { data, .. } => dialog(data),
                    _ => return,
                };
                self.text(&text, out, err);
                self.end_message(out);
            }
            _ => self.activity.render(event, err),
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        self.activity.clear(err);
        self.search.leave();
        if std::mem::take(&mut self.between_messages) {
            out.push(b'\n');
        }
        match &mut self.markdown {
            Some(markdown) => markdown.push(text, out),
            None => out.extend_from_slice(text.as_bytes()),
        }
        self.line_open = !text.ends_with('\n');
    }

    /// Ends a message with a line break, and keeps a blank line ready for the next one.
    fn end_message(&mut self, out: &mut Vec<u8>) {
        if let Some(markdown) = &mut self.markdown {
            markdown.finish(out);
        }
        if std::mem::take(&mut self.line_open) {
            out.push(b'\n');
            self.between_messages = true;
        }
    }
}

/// What a dialog would show, as lines of text: there is nobody to show it to.
fn dialog(data: &Json) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(data.as_str()) else { return data.as_str().into() };
    if let (1, Some(Value::String(text))) = (fields.len(), fields.get("text")) {
        return text.clone();
    }
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |(name, value): (&String, &Value)| match value {
        Value::Array(items) => {
            let rows: Vec<String> = items.iter().map(|item| format!("\n- {}", plain(item))).collect();
            format!("{name}: {}{}", if rows.is_empty() { "none" } else { "" }, rows.concat())
        }
        value => format!("{name}: {}", plain(value)),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_without_a_terminal_is_lines_of_text() {
        let cases = [
            (r#"{"text":"text"}"#, "text"),
            (r#"{"mode":"plan","rules":["deny Bash"]}"#, "mode: plan\nrules: \n- deny Bash"),
            (r#"{"mode":"plan","rules":[]}"#, "mode: plan\nrules: none"),
            (r#"{"tools":3}"#, "tools: 3"),
        ];
        for (data, shown) in cases {
            assert_eq!(dialog(&Json::trusted(data)), shown);
        }
    }
}
