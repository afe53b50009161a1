//! Reports on standard error: running tools, narration, retries, errors and a line about the whole turn.

use std::sync::Arc;

use qwen_dialects::loom::rfc3339;
use qwen_engine::TOOLS;
use qwen_events::{
    Body, ConsoleLevel, EndStatus, Event, MessageEnd, SessionEvent, SessionId, Timestamp, ToolCall, ToolEnd,
    ToolKind, ToolStatus, TurnEnd, message_pieces, notices, outside_turns, shorten_middle, terminal_text,
    visible_text, without_earlier_calls,
};
use qwen_sandbox::SandboxLimits;
use serde_json::{Map, Value, json};

use super::changed_files::ChangedFiles;
use crate::settings::LogLevel;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The maximum number of changed files that the last line lists.
const LISTED_FILES: usize = 5;

/// The number of characters of a call's arguments; longer ones are cut in the middle.
const DESCRIPTION: usize = 240;

/// The maximum number of different limits of the sandbox that are reported.
const REPORTED_LIMITS: usize = 3;

/// How a line looks: the sequence before it.
const PLAIN: &str = "";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";

/// How standard error is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportStyle {
    /// Standard error is a terminal: show progress.
    pub is_terminal: bool,
    /// The terminal cannot interpret escape sequences (`TERM=dumb`).
    pub is_dumb: bool,
    pub level: LogLevel,
    /// JSON lines instead of text.
    pub is_json: bool,
    /// The turn is printed as text, so its narration and its summary belong here.
    pub is_text_mode: bool,
}

impl ReportStyle {
    /// True if standard error is a terminal that interprets escape sequences.
    fn is_styled(self) -> bool {
        self.is_terminal && !self.is_dumb
    }

    /// The sequence before a line in this style, or none.
    fn choose(self, style: &'static str) -> &'static str {
        if self.is_styled() { style } else { PLAIN }
    }
}

/// Writes reports for users to standard error.
pub struct Reporter {
    style: ReportStyle,
    frame: usize,
    spinning: Option<&'static str>,
    spinner_shown: bool,
    /// The last notice, which may also be the error that the turn ends with.
    last_notice: Option<Arc<str>>,
    files_changed: ChangedFiles,
    /// Calls with an open permission question.
    open_questions: Vec<(Arc<ToolCall>, Arc<str>)>,
    session_id: Option<SessionId>,
    /// Limits of the sandbox that were reported already.
    reported_limits: Vec<String>,
    at: Timestamp,
}

/// How serious a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// Shown only on a terminal or with `--verbose`.
    Step,
    Info,
    Warning,
}

impl Reporter {
    pub fn new(style: ReportStyle) -> Self {
        Self {
            style,
            frame: 0,
            spinning: None,
            spinner_shown: false,
            last_notice: None,
            files_changed: ChangedFiles::default(),
            open_questions: Vec::new(),
            session_id: None,
            reported_limits: Vec::new(),
            at: Timestamp::default(),
        }
    }

    /// True if [`tick`](Self::tick) has something to draw.
    pub fn spins(&self) -> bool {
        self.style.is_styled() && !self.style.is_json && self.spinning.is_some()
    }

    /// Draws the next frame of the spinner.
    pub fn tick(&mut self, err: &mut Vec<u8>) {
        if let Some(word) = self.spinning.filter(|_| self.spins()) {
            self.frame = (self.frame + 1) % FRAMES.len();
            self.spinner_shown = true;
            err.extend_from_slice(format!("\r\x1b[2m{} {word}\x1b[0m\x1b[K", FRAMES[self.frame]).as_bytes());
        }
    }

    /// Removes the spinner, because text follows.
    pub fn clear(&mut self, err: &mut Vec<u8>) {
        self.spinning = None;
        if std::mem::take(&mut self.spinner_shown) {
            err.extend_from_slice(b"\r\x1b[K");
        }
    }

    /// Reports `event` if it deserves a line.
    pub fn report(&mut self, event: &Event, err: &mut Vec<u8>) {
        self.at = event.at;
        match &event.body {
            Body::TurnStart(start) => {
                self.session_id = Some(start.session_id.clone());
                self.files_changed.begin(&start.cwd);
            }
            Body::NodeEnter => self.spinning = Some("thinking"),
            Body::MessageEnd(end) => self.model_call(end, err),
            Body::Approval { call, reason, .. } => self.open_questions.push((call.clone(), reason.clone())),
            Body::ToolStart(call) => self.tool_start(call, err),
            Body::ToolEnd(end) => self.tool_end(end, err),
            Body::Session(notice) => self.notice(notice, err),
            Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } => {
                self.line(
                    err,
                    Severity::Warning,
                    "warning",
                    &format!("qwen: {text}"),
                    json!({"message": &**text}),
                );
            }
            Body::Error(error) => {
                self.line(err, Severity::Warning, "error", &format!("qwen: {error}"), error_fields(error));
            }
            Body::Fatal(error) => {
                self.line(err, Severity::Warning, "error", &format!("qwen: {error}"), error_fields(error));
            }
            Body::TurnEnd(end) => self.turn_end(end, err),
            Body::Ready
            | Body::NodeExit { .. }
            | message_pieces!()
            | Body::Decision { .. }
            | Body::ToolOutput { .. }
            | Body::ToolDisplay { .. }
            | Body::State(_)
            | Body::Checkpoint(_)
            | Body::Thinking(_)
            | Body::ThoughtUsage(_)
            | Body::Journal(_)
            | notices!()
            | Body::History(_)
            | Body::Custom(_)
            | outside_turns!() => {}
        }
    }

    /// Reports a call of a sub-agent.
    pub fn report_inner(&mut self, event: &Event, err: &mut Vec<u8>) {
        self.at = event.at;
        if let Body::ToolEnd(end) = &event.body {
            self.files_changed.record(end, self.at);
            let fields = json!({
                "tool": &*end.call.name, "call_id": end.call.id.as_str(), "status": status_word(end.status),
                "arguments": end.call.arguments.as_str(), "sub_agent": true,
            });
            let outcome = match end.status {
                ToolStatus::Success => String::new(),
                ToolStatus::Error => format!(": {}", failure(end)),
                ToolStatus::Cancelled => format!(": {}", status_word(end.status)),
                ToolStatus::Denied => {
                    let text = format!("qwen: sub-agent: {}", one_line(without_earlier_calls(&end.text)));
                    self.line(err, Severity::Warning, "denied", &text, with_message(fields, &end.text));
                    return;
                }
            };
            let text = format!("  sub-agent: {}{outcome}", describe(&end.call));
            let style = self.style.choose(DIM);
            self.styled_line(err, Severity::Step, "tool_call", (style, &text), fields);
        }
    }

    /// Marks the text that was just printed as not being the answer, which is still to come.
    pub fn mark_narration(&mut self, err: &mut Vec<u8>) {
        let style = self.style.choose(DIM);
        self.styled_line(
            err,
            Severity::Step,
            "narration",
            (style, "(continues; not the answer yet)"),
            Value::Null,
        );
    }

    /// Writes text of a message that is not the final one.
    pub fn narration(&mut self, text: &str, err: &mut Vec<u8>) {
        let style = self.style.choose(DIM);
        let shown = text.trim_end_matches('\n');
        self.styled_line(err, Severity::Info, "narration", (style, shown), json!({"text": text}));
    }

    fn model_call(&mut self, end: &MessageEnd, err: &mut Vec<u8>) {
        let calls: Vec<&str> = end.calls.iter().map(|call| &*call.name).collect();
        let (read, written) = (end.usage.prompt_tokens, end.usage.completion_tokens);
        let then = if calls.is_empty() { String::new() } else { format!(", calls {}", calls.join(", ")) };
        // A terminal already shows the text and the calls.
        if self.style.level >= LogLevel::Steps {
            let text = format!("qwen: model {}: {read} tokens in, {written} out{then}", end.model);
            let fields = json!({
                "model": &*end.model, "prompt_tokens": read, "completion_tokens": written, "calls": calls,
                "aborted": end.aborted,
            });
            self.line(err, Severity::Step, "model_call", &text, fields);
        }
    }

    fn tool_start(&mut self, call: &ToolCall, err: &mut Vec<u8>) {
        self.open_questions.retain(|(asked, _)| asked.id != call.id);
        if self.style.is_terminal && !self.style.is_json {
            let text = format!("▸ {}", describe(call));
            self.styled_line(err, Severity::Step, "tool_start", (self.style.choose(DIM), &text), Value::Null);
        }
        self.spinning = Some("working");
    }

    fn tool_end(&mut self, end: &ToolEnd, err: &mut Vec<u8>) {
        // A call whose question is left for a later run ends as cancelled in this run.
        if end.status != ToolStatus::Cancelled {
            self.open_questions.retain(|(asked, _)| asked.id != end.call.id);
        }
        self.files_changed.record(end, self.at);
        let fields = json!({
            "tool": &*end.call.name, "call_id": end.call.id.as_str(), "arguments": end.call.arguments.as_str(),
            "status": status_word(end.status), "duration_ms": end.duration_ms, "exit_code": end.exit_code,
        });
        match end.status {
            ToolStatus::Denied => {
                let text = format!("qwen: {}", one_line(without_earlier_calls(&end.text)));
                self.line(err, Severity::Warning, "denied", &text, with_message(fields, &end.text));
            }
            ToolStatus::Error if self.style.is_terminal && !self.style.is_json => {
                let text = format!("✗ {}: {}", describe(&end.call), failure(end));
                self.styled_line(
                    err,
                    Severity::Step,
                    "tool_call",
                    (self.style.choose(RED), &text),
                    Value::Null,
                );
            }
            // A failed command is reported even without --verbose: the answer may not mention it.
            ToolStatus::Error
                if self.style.is_text_mode
                    && end.exit_code.is_some()
                    && self.style.level < LogLevel::Steps =>
            {
                let text = format!("qwen: {}: {}", describe(&end.call), failure(end));
                self.line(err, Severity::Info, "tool_call", &text, fields);
            }
            ToolStatus::Error | ToolStatus::Success | ToolStatus::Cancelled => {
                if self.style.level >= LogLevel::Steps {
                    let mut text = format!(
                        "qwen: {}: {} in {} ms",
                        describe(&end.call),
                        status_word(end.status),
                        end.duration_ms
                    );
                    if end.status == ToolStatus::Error {
                        text.push_str(&format!(": {}", failure(end)));
                    }
                    self.line(err, Severity::Step, "tool_call", &text, fields);
                }
            }
        }
        if end.status == ToolStatus::Error && self.style.is_text_mode {
            self.sandbox_limit(end, err);
        }
        self.spinning = Some("thinking");
    }

    /// Reports the limit of the sandbox that may have made a command fail, and the remedy. Each limit is
    /// reported once.
    fn sandbox_limit(&mut self, end: &ToolEnd, err: &mut Vec<u8>) {
        let Some(causes) = SandboxLimits::causes_in(&end.text).map(one_line) else { return };
        if self.reported_limits.len() >= REPORTED_LIMITS || self.reported_limits.contains(&causes) {
            return;
        }
        let text = format!("qwen: the sandbox may have made {} fail: {causes}", describe(&end.call));
        let fields = json!({"tool": &*end.call.name, "call_id": end.call.id.as_str(), "message": causes});
        self.line(err, Severity::Warning, "sandbox_limit", &text, fields);
        self.reported_limits.push(causes);
    }

    fn notice(&mut self, notice: &SessionEvent, err: &mut Vec<u8>) {
        match notice {
            SessionEvent::Retry { attempt, max_retries, delay_ms, error, .. } => {
                let text = format!("qwen: {error}; retry {attempt} of {max_retries} in {delay_ms} ms");
                let fields = json!({"attempt": attempt, "max_retries": max_retries, "delay_ms": delay_ms,
                                    "message": error.to_string()});
                self.line(err, Severity::Warning, "retry", &text, fields);
            }
            SessionEvent::Waiting { reason, delay_ms, until, .. } => {
                let text = format!("qwen: {reason}; waiting {} s for the reset", delay_ms.div_ceil(1000));
                let fields = json!({"delay_ms": delay_ms, "until": until, "message": reason.to_string()});
                self.line(err, Severity::Warning, "waiting", &text, fields);
            }
            SessionEvent::ModelFallback { from, to, reason } => {
                let text = format!("qwen: {from} failed ({reason}); continuing with {to}");
                let fields = json!({"from": &**from, "to": &**to, "message": &**reason});
                self.line(err, Severity::Warning, "model_fallback", &text, fields);
            }
            SessionEvent::LoopDetected { message } | SessionEvent::MaxTokens { message } => {
                self.line(
                    err,
                    Severity::Warning,
                    "notice",
                    &format!("qwen: {message}"),
                    json!({"message": &**message}),
                );
                self.last_notice = Some(message.clone());
            }
            SessionEvent::Steered { .. }
            | SessionEvent::ModeChanged { .. }
            | SessionEvent::Compressed { .. }
            | SessionEvent::MaxTurns { .. }
            | SessionEvent::Cancelled
            | SessionEvent::Finished => {}
        }
    }

    fn turn_end(&mut self, end: &TurnEnd, err: &mut Vec<u8>) {
        self.clear(err);
        let last_notice = self.last_notice.take();
        if let Some(error) = &end.error {
            if last_notice.is_none_or(|notice| notice != error.message) {
                self.line(err, Severity::Warning, "error", &format!("qwen: {error}"), error_fields(error));
            }
        } else if end.status != EndStatus::Done {
            let text = format!("qwen: {}", end.status.name());
            self.line(err, Severity::Warning, "error", &text, json!({"message": end.status.name()}));
        }
        self.unanswered(err);
        if self.style.is_text_mode {
            self.summary(end, err);
        }
    }

    /// Lists the questions that `--ask-later` left open, and how to answer them.
    fn unanswered(&mut self, err: &mut Vec<u8>) {
        let session = self.session_id.as_ref().map_or("none", SessionId::as_str).to_owned();
        for (call, reason) in std::mem::take(&mut self.open_questions) {
            let id = call.id.as_str();
            let text = format!(
                "qwen: the session {session} waits for an answer about {}: {reason}\n\
                 qwen: answer with: qwen --resume {session} --answer {id}=allow (or {id}=deny)",
                describe(&call)
            );
            let fields = json!({"session_id": session, "call_id": id, "tool": &*call.name,
                                "arguments": call.arguments.as_str(), "message": &*reason});
            self.line(err, Severity::Warning, "waiting_for_answer", &text, fields);
        }
    }

    /// Writes the last line of a turn.
    fn summary(&mut self, end: &TurnEnd, err: &mut Vec<u8>) {
        let session = self.session_id.as_ref().map_or("none", SessionId::as_str).to_owned();
        let mut parts = vec![format!("session {session}"), format!("{} tokens", end.usage.total())];
        if end.cost_usd > 0.0 {
            parts.push(format!("${:.4}", end.cost_usd));
        }
        let changed = self.files_changed.list();
        let files: Vec<&str> = changed.iter().map(|name| &**name).collect();
        if !files.is_empty() {
            let more = if files.len() > LISTED_FILES { ", …" } else { "" };
            let listed = format!(" ({}{more})", files[..files.len().min(LISTED_FILES)].join(", "));
            parts.push(counted(files.len(), "file changed", "files changed") + &listed);
        }
        if !end.denials.is_empty() {
            parts.push(counted(end.denials.len(), "call denied", "calls denied"));
        }
        let fields = json!({
            "session_id": session, "status": end.status.name(), "tokens": end.usage.total(), "cost_usd": end.cost_usd,
            "model_calls": end.model_calls, "tool_calls": end.tool_calls, "files_changed": files,
            "denials": end.denials.len(), "duration_ms": end.duration_ms,
        });
        let text = format!("qwen: {}", parts.join(", "));
        let style = self.style.choose(DIM);
        self.styled_line(err, Severity::Info, "turn_end", (style, &text), fields);
    }

    fn line(&mut self, err: &mut Vec<u8>, severity: Severity, event: &str, text: &str, fields: Value) {
        self.styled_line(err, severity, event, (PLAIN, text), fields);
    }

    /// Writes a line. The text may be a stranger's: what a terminal would act on is removed or made visible.
    fn styled_line(
        &mut self,
        err: &mut Vec<u8>,
        severity: Severity,
        event: &str,
        (style, text): (&str, &str),
        fields: Value,
    ) {
        let wanted = match severity {
            Severity::Warning => true,
            Severity::Info => self.style.level >= LogLevel::Summary,
            Severity::Step => self.style.level >= LogLevel::Steps || self.style.is_terminal,
        };
        if !wanted {
            return;
        }
        self.clear(err);
        if self.style.is_json {
            let level = match severity {
                Severity::Warning if event == "error" => "error",
                Severity::Warning => "warn",
                Severity::Step | Severity::Info => "info",
            };
            err.extend_from_slice(json_line(self.at, level, event, fields).as_bytes());
        } else {
            err.extend_from_slice(style.as_bytes());
            err.extend_from_slice(terminal_text(text).as_bytes());
            err.extend_from_slice(if style.is_empty() { b"\n" } else { b"\x1b[0m\n" });
        }
    }
}

/// A line of `--log-format json`.
pub fn json_line(at: Timestamp, level: &str, event: &str, fields: Value) -> String {
    let mut line = Map::new();
    line.insert("time".to_owned(), rfc3339(at).into());
    line.insert("level".to_owned(), level.into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    format!("{}\n", Value::Object(line))
}

fn error_fields(error: &qwen_events::ErrorInfo) -> Value {
    json!({"code": error.code, "message": error.to_string()})
}

fn with_message(mut fields: Value, message: &str) -> Value {
    fields["message"] = message.into();
    fields
}

fn status_word(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::Cancelled => "cancelled",
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The exit code and the last line of what a failed call wrote.
fn failure(end: &ToolEnd) -> String {
    let text = without_earlier_calls(&end.text);
    let Some(code) = end.exit_code else { return one_line(text) };
    let lines: Vec<&str> = text.lines().collect();
    // After the output come the exit code and notes for the model. A command that was ended has no exit code.
    let (shown, output) = match lines.iter().rposition(|line| line.starts_with("Exit code:")) {
        Some(at) => (format!("exit {code}"), &lines[..at]),
        None => (String::new(), &lines[..]),
    };
    let is_output = |line: &&&str| !line.trim().is_empty() && !line.starts_with('[');
    let last = output.iter().rev().find(is_output).map(|line| one_line(line)).unwrap_or_default();
    let separator = if shown.is_empty() || last.is_empty() { "" } else { ": " };
    format!("{shown}{separator}{last}")
}

/// Describes a call in one line.
fn describe(call: &ToolCall) -> String {
    let declaration = TOOLS.find(&call.name);
    if declaration.is_some_and(|declaration| declaration.kind == ToolKind::Execute)
        && let Some(command) = command_of(call)
    {
        let command = visible_text(&command).replace('\n', "^J");
        return format!("{} `{}`", call.name, shorten_middle(&command, DESCRIPTION));
    }
    let arguments = visible_text(call.arguments.as_str()).replace('\n', "^J");
    format!("{} {}", call.name, shorten_middle(&arguments, DESCRIPTION))
}

/// The command line of a call.
fn command_of(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    Some(arguments.get("command")?.as_str()?.to_owned())
}

/// The first line of a text without control characters, at most 600 characters.
fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    terminal_text(line).chars().take(600).collect()
}
