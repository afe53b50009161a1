//! What happens between the words: tools at work, retries, trouble. Goes to standard error.

use std::sync::Arc;

use qwen_events::{Body, ConsoleLevel, Event, SessionEvent, ToolCall, ToolEnd, ToolStatus, TurnEnd};

/// The frames of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Tells a person what happens between the words.
pub struct Activity {
    terminal: bool,
    frame: usize,
    spinning: Option<&'static str>,
    shown: bool,
    /// The last notice, which may also be what the turn ends with.
    last_notice: Option<Arc<str>>,
}

impl Activity {
    /// `terminal`: somebody watches, so show progress and not only trouble.
    pub fn new(terminal: bool) -> Self {
        Self { terminal, frame: 0, spinning: None, shown: false, last_notice: None }
    }

    /// Whether the spinner wants to turn.
    pub fn spins(&self) -> bool {
        self.terminal && self.spinning.is_some()
    }

    /// Turns the spinner by one.
    pub fn tick(&mut self, err: &mut Vec<u8>) {
        if let Some(word) = self.spinning.filter(|_| self.terminal) {
            self.frame = (self.frame + 1) % FRAMES.len();
            self.shown = true;
            err.extend_from_slice(format!("\r\x1b[2m{} {word}\x1b[0m\x1b[K", FRAMES[self.frame]).as_bytes());
        }
    }

    /// Takes the spinner away, because words come.
    pub fn clear(&mut self, err: &mut Vec<u8>) {
        self.spinning = None;
        if std::mem::take(&mut self.shown) {
            err.extend_from_slice(b"\r\x1b[K");
        }
    }

    /// Tells about `event` where it is worth a line.
    pub fn render(&mut self, event: &Event, err: &mut Vec<u8>) {
        match &event.body {
            Body::NodeEnter => self.spinning = Some("thinking"),
            Body::ToolStart(call) => {
                self.line(err, &format!("\x1b[2m▸ {}\x1b[0m", describe(call)), false);
                self.spinning = Some("working");
            }
            Body::ToolEnd(end) => self.tool_end(end, err),
            Body::Session(notice) => self.notice(notice, err),
            Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } => {
                self.line(err, &format!("qwen: {text}"), true);
            }
            Body::Error(error) => self.line(err, &format!("qwen: {error}"), true),
            Body::Fatal(error) => self.line(err, &format!("qwen: {error}"), true),
            Body::TurnEnd(end) => self.turn_end(end, err),
            _ => {}
        }
    }

    fn tool_end(&mut self, end: &ToolEnd, err: &mut Vec<u8>) {
        match end.status {
            ToolStatus::Denied => self.line(err, &format!("qwen: {}", first_line(&end.text)), true),
            ToolStatus::Error => {
                self.line(
                    err,
                    &format!("\x1b[31m✗ {}: {}\x1b[0m", end.call.name, first_line(&end.text)),
                    false,
                );
            }
            ToolStatus::Success | ToolStatus::Cancelled => {}
        }
        self.spinning = Some("thinking");
    }

    fn notice(&mut self, notice: &SessionEvent, err: &mut Vec<u8>) {
        match notice {
            SessionEvent::Retry { attempt, max_retries, delay_ms, error, .. } => {
                let text = format!("qwen: {error}; retry {attempt} of {max_retries} in {delay_ms} ms");
                self.line(err, &text, true);
            }
            SessionEvent::ModelFallback { from, to, reason } => {
                self.line(err, &format!("qwen: {from} failed ({reason}); going on with {to}"), true);
            }
            SessionEvent::LoopDetected { message } | SessionEvent::MaxTokens { message } => {
                self.line(err, &format!("qwen: {message}"), true);
                self.last_notice = Some(message.clone());
            }
            SessionEvent::Finished
            | SessionEvent::Compressed { .. }
            | SessionEvent::MaxTurns { .. }
            | SessionEvent::Cancelled
            | SessionEvent::ModeChanged { .. }
            | SessionEvent::Steered { .. } => {}
        }
    }

    fn turn_end(&mut self, end: &TurnEnd, err: &mut Vec<u8>) {
        self.clear(err);
        let last_notice = self.last_notice.take();
        if let Some(error) = &end.error {
            if last_notice.is_some_and(|last_notice| last_notice == error.message) {
                return;
            }
            self.line(err, &format!("qwen: {error}"), true);
        } else if end.status != qwen_events::EndStatus::Done {
            self.line(err, &format!("qwen: {}", end.status.name()), true);
        }
    }

    /// Writes a line; one that is not `important` only when somebody watches.
    fn line(&mut self, err: &mut Vec<u8>, text: &str, important: bool) {
        if self.terminal || important {
            self.clear(err);
            err.extend_from_slice(text.as_bytes());
            err.push(b'\n');
        }
    }
}

/// A call in a line.
fn describe(call: &ToolCall) -> String {
    let arguments = call.arguments.as_str();
    let shown: String = arguments.chars().take(100).collect();
    let more = if shown.len() < arguments.len() { "…" } else { "" };
    format!("{} {shown}{more}", call.name)
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
