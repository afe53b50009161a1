//! Text mode: the final message on standard output, everything else on standard error.

use std::sync::Arc;

use qwen_events::{
    Body, CommandResultBody, Event, Json, TurnEnd, call_progress, channel_events, graph_events,
    session_notices, terminal_text,
};
use serde_json::Value;

use super::markdown::Markdown;
use super::reporter::{ReportStyle, Reporter};
use super::screen::screen;
use super::thoughts::ThoughtRenderer;

/// Prints a turn for a user or a pipe. Standard output gets the final message. On a terminal it gets every
/// message as it streams; otherwise the other messages are narration, which goes to standard error.
pub struct TextPrinter {
    /// Streams styled text to a terminal; none if only the final message is printed.
    markdown: Option<Markdown>,
    stdout_is_terminal: bool,
    reporter: Reporter,
    /// The thoughts of agents that search trees and graphs.
    thoughts: ThoughtRenderer,
    draws_thoughts: bool,
    line_open: bool,
    between_messages: bool,
    /// The last message, until it is known whether another one follows.
    last_message: Option<Arc<str>>,
    /// Print the structured result and no text.
    result_only: bool,
}

impl TextPrinter {
    pub fn new(stdout_is_terminal: bool, style: ReportStyle) -> Self {
        Self {
            markdown: (stdout_is_terminal && style.is_terminal && !style.is_dumb).then(Markdown::default),
            stdout_is_terminal,
            reporter: Reporter::new(style),
            thoughts: ThoughtRenderer::default(),
            draws_thoughts: style.is_terminal && !style.is_json && !style.is_dumb,
            line_open: false,
            between_messages: false,
            last_message: None,
            result_only: false,
        }
    }

    /// Prints only the structured result.
    pub fn result_only(mut self, only: bool) -> Self {
        self.result_only = only;
        self
    }

    /// True if [`tick`](Self::tick) has something to draw.
    pub fn spins(&self) -> bool {
        self.reporter.spins() && !self.line_open
    }

    /// Draws the next frame of the spinner.
    pub fn tick(&mut self, err: &mut Vec<u8>) {
        self.reporter.tick(err);
    }

    pub fn print(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        if event.scope.parent.is_some() {
            self.reporter.report_inner(event, err);
            return;
        }
        if matches!(event.body, Body::Thinking(_) | Body::State(_) | Body::TurnStart(_)) {
            let screen = self.draws_thoughts.then(|| screen(std::io::stderr(), true));
            self.thoughts.render(event, screen, err);
            self.reporter.report(event, err);
            return;
        }
        let before = err.len();
        self.render(event, out, err);
        if err.len() > before {
            self.thoughts.leave();
        }
    }

    fn render(&mut self, event: &Event, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        match &event.body {
            Body::TextDelta(text) => {
                if self.markdown.is_some() && !self.result_only {
                    self.write(text, out, err);
                }
            }
            Body::MessageEnd(end) => {
                self.end_line(out);
                self.narrate(err);
                if self.markdown.is_none() && !end.text.is_empty() {
                    self.last_message = Some(end.text.clone());
                }
                if self.markdown.is_some() && !end.text.is_empty() && !end.calls.is_empty() {
                    self.reporter.mark_narration(err);
                }
                self.reporter.report(event, err);
            }
            // A refusal follows the text that it belongs to.
            Body::ToolStart(_) | Body::ToolEnd(_) => {
                self.narrate(err);
                self.reporter.report(event, err);
            }
            Body::TurnEnd(end) => self.final_message(end, out, err),
            Body::CommandResult(result) => {
                let text = match &result.body {
                    CommandResultBody::Message { content, .. } => content.to_string(),
                    CommandResultBody::Dialog { data, .. } => dialog(data),
                    _ => return,
                };
                self.write(&text, out, err);
                self.end_line(out);
            }
            Body::Ready
            | Body::TurnStart(..)
            | graph_events!()
            | Body::MessageStart { .. }
            | Body::ThoughtDelta(..)
            | Body::ThoughtSignature(..)
            | Body::ToolCallDelta { .. }
            | Body::ToolCall(..)
            | call_progress!()
            | Body::Thinking(..)
            | session_notices!()
            | Body::Error(..)
            | channel_events!()
            | Body::Fatal(..) => self.reporter.report(event, err),
        }
    }

    /// Reports the end of a turn, which must follow the final message.
    pub fn report_end(&mut self, event: &Event, err: &mut Vec<u8>) {
        if event.scope.parent.is_none() {
            self.reporter.report(event, err);
        }
    }

    /// Writes a message that turned out not to be the final one to standard error.
    fn narrate(&mut self, err: &mut Vec<u8>) {
        if let Some(text) = self.last_message.take() {
            self.reporter.narration(&text, err);
        }
    }

    fn final_message(&mut self, end: &TurnEnd, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        self.last_message = None;
        if self.result_only {
            if let Some(result) = &end.structured {
                self.reporter.clear(err);
                out.extend_from_slice(result.as_str().as_bytes());
                out.push(b'\n');
            }
        } else if self.markdown.is_none() {
            self.write(&end.reply, out, err);
        }
        self.end_line(out);
    }

    fn write(&mut self, text: &str, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        self.reporter.clear(err);
        self.thoughts.leave();
        if std::mem::take(&mut self.between_messages) {
            out.push(b'\n');
        }
        match &mut self.markdown {
            Some(markdown) => markdown.push(text, out),
            None if self.stdout_is_terminal => out.extend_from_slice(terminal_text(text).as_bytes()),
            // A pipe gets the text as it is.
            None => out.extend_from_slice(text.as_bytes()),
        }
        self.line_open = !text.ends_with('\n');
    }

    /// Ends a message with a line break. A blank line separates it from the next one.
    fn end_line(&mut self, out: &mut Vec<u8>) {
        if let Some(markdown) = &mut self.markdown {
            markdown.finish(out);
        }
        if std::mem::take(&mut self.line_open) {
            out.push(b'\n');
            self.between_messages = true;
        }
    }
}

/// The contents of a dialog as lines of text, because text mode cannot show dialogs.
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
