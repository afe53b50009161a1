//! Writes the transcript.

use std::fmt::Write;

use qwen_events::{shorten_middle, visible_text};

use super::call::CallView;
use super::event::{End, Step, Tokens, ViewEvent, ViewLine};
use super::paint::{Painter, Style, harmless, one_line};
use super::session::SessionView;
use super::{ThoughtGraph, ViewOptions};
use crate::check::bounded::Sessions;

/// The number of characters that are shown of what is to be approved.
const LONGEST_APPROVAL: usize = 4000;

/// Renders events of all sources as a transcript.
pub(super) struct Renderer {
    paint: Painter,
    sessions: Sessions<SessionView>,
    /// The source of the current event.
    speaker: Speaker,
    /// The last source that was announced in the transcript.
    announced: Speaker,
    /// The kind of the current line.
    flow: Flow,
    /// The node run whose text or start was shown last.
    node: Option<Box<str>>,
    /// The call of the last line.
    last_call: Option<String>,
    /// The thoughts of the last search.
    thoughts: ThoughtGraph,
    /// True if the next step begins another search.
    next_search: bool,
    options: ViewOptions,
    /// The number of lines at the end of the output that are the drawing of the thoughts.
    drawn: usize,
}

/// Nodes that only think; if thoughts are drawn, the drawing replaces them.
const THINKING: [&str; 5] = ["expand", "evaluate", "backtrack", "plan", "execute"];

/// Terminal lines that a drawing leaves free for output below it.
const LEFT_FREE: usize = 3;

/// The source of an event: a session, and optionally a sub-agent in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Speaker {
    session: Option<Box<str>>,
    parent: Option<Box<str>>,
}

/// The kind of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// The line is empty.
    Fresh,
    Text,
    Thought,
}

impl Renderer {
    pub(super) fn new(options: ViewOptions) -> Self {
        Self {
            paint: Painter::new(options),
            thoughts: ThoughtGraph::default(),
            next_search: false,
            options,
            drawn: 0,
            sessions: Sessions::default(),
            speaker: Speaker::default(),
            announced: Speaker::default(),
            flow: Flow::Fresh,
            node: None,
            last_call: None,
        }
    }

    pub(super) fn show(&mut self, line: &ViewLine, out: &mut Vec<u8>) {
        if line.event == ViewEvent::Nothing {
            return;
        }
        // A line without a session belongs to that of the line before.
        let session = line.session.clone().or_else(|| self.speaker.session.take());
        self.speaker = Speaker { session, parent: line.parent.clone() };
        self.enter_node(line, out);
        match &line.event {
            ViewEvent::Nothing => {}
            ViewEvent::TurnStart { message, by } => self.turn_start(message.as_deref(), by.as_deref(), out),
            ViewEvent::NodeEnter(name)
                if self.options.height.is_some() && THINKING.contains(&name.as_str()) => {}
            ViewEvent::NodeEnter(name) => self.line(Style::Dim, &format!("· {name}"), out),
            ViewEvent::NodeExit(None) => {}
            ViewEvent::NodeExit(Some(error)) => self.line(Style::Yellow, &format!("· ended: {error}"), out),
            ViewEvent::Text(text) => {
                self.session().has_text = true;
                self.flow(Flow::Text, text, out);
            }
            ViewEvent::ThoughtPiece(text) => self.flow(Flow::Thought, text, out),
            ViewEvent::Thought { subject, text } => self.thought(subject, text, out),
            ViewEvent::Call { id, name, arguments } => self.call(id, name, arguments, out),
            ViewEvent::CallStart { id, name } => {
                if !self.session().calls.contains(id) {
                    self.call(id, name, "", out);
                }
            }
            ViewEvent::CallOutput { id, name, text } => {
                let lines = self.known_call(id, name).push(&harmless(text));
                self.output(id, &lines, out);
            }
            ViewEvent::CallEnd { id, name, ok, text } => self.call_end(id, name, *ok, text, out),
            ViewEvent::Approval { id, name, words } => {
                if self.session().asked.insert(id) {
                    // Beginning and end of what is to be approved are shown, whatever the width.
                    let words = shorten_middle(&visible_text(words), LONGEST_APPROVAL);
                    self.words(Style::Yellow, "?", &format!("{name} {words}"), out);
                }
            }
            ViewEvent::Notice(text) => self.line(Style::Dim, &format!("· {text}"), out),
            ViewEvent::Error(text) => {
                self.session().error = Some(text.clone());
                self.words(Style::Red, "✗", text, out);
            }
            ViewEvent::Step(step) => self.step(step, line.parent.is_none(), out),
            ViewEvent::State(state) => {
                // A state only adds detail to the existing drawing; after the answer it would be drawn
                // again.
                let is_shown = line.parent.is_none() && !self.next_search && self.thoughts.state(state);
                if is_shown && self.drawn > 0 {
                    self.draw(out);
                }
            }
            ViewEvent::Usage(tokens) => {
                let sum = &mut self.session().tokens;
                sum.read = sum.read.saturating_add(tokens.read);
                sum.written = sum.written.saturating_add(tokens.written);
            }
            ViewEvent::RunEnd(status) => self.session().run_end = Some(status.clone()),
            ViewEvent::TurnEnd(end) => self.turn_end(end, out),
            ViewEvent::Unknown(text) => self.line(Style::Dim, &format!("⚠ not understood: {text}"), out),
        }
        match line.event {
            // These may occur between turns.
            ViewEvent::Unknown(_)
            | ViewEvent::Error(_)
            | ViewEvent::Notice(_)
            | ViewEvent::Approval { .. }
            | ViewEvent::State(_)
            | ViewEvent::TurnEnd(_) => {}
            _ => self.session().in_turn = true,
        }
    }

    fn step(&mut self, step: &Step, is_main_agent: bool, out: &mut Vec<u8>) {
        if is_main_agent {
            self.search();
            self.thoughts.step(step);
        }
        if self.options.height.is_some() {
            self.draw(out);
        } else {
            let lines = self.session().steps.step(step);
            self.lines(&lines, out);
        }
    }

    /// Starts a new line for the text of another node run, with its name if its start was shown.
    fn enter_node(&mut self, line: &ViewLine, out: &mut Vec<u8>) {
        let Some(node) = line.node.as_deref().filter(|node| self.node.as_deref() != Some(*node)) else {
            return;
        };
        match &line.event {
            ViewEvent::NodeEnter(name) => {
                self.session().nodes.insert(node, name.clone());
            }
            ViewEvent::Text(_) | ViewEvent::ThoughtPiece(_) => {
                self.end_line(out);
                if let Some(name) = self.session().nodes.get(node).cloned() {
                    self.line(Style::Dim, &format!("· {name}"), out);
                }
            }
            _ => return,
        }
        self.node = Some(node.into());
    }

    /// Ends the transcript and reports turns that are still open.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.end_line(out);
        let open: Vec<String> = self
            .sessions
            .all()
            .into_iter()
            .filter(|(_, session)| session.in_turn)
            .map(|(id, _)| id.to_owned())
            .collect();
        for id in open {
            self.speaker = Speaker { session: (!id.is_empty()).then(|| id.into()), parent: None };
            self.line(Style::Yellow, "… the stream ends before the turn does", out);
        }
    }

    /// Announces the source when it changes and there is output.
    fn announce(&mut self, out: &mut Vec<u8>) {
        if self.speaker == self.announced {
            return;
        }
        self.end_line(out);
        self.announced = self.speaker.clone();
        let mut who = self.speaker.session.as_deref().unwrap_or("main").to_owned();
        if let Some(parent) = &self.speaker.parent {
            who.push_str(" › ");
            who.push_str(parent);
        }
        let who = one_line(&who, self.paint.width().saturating_sub(8));
        let rule = self.paint.width().saturating_sub(who.chars().count() + 4);
        self.raw_line(Style::Dim, &format!("── {who} {}", "─".repeat(rule)), out);
    }

    fn session(&mut self) -> &mut SessionView {
        self.sessions.get_or_insert(self.speaker.session.as_deref().unwrap_or_default())
    }

    /// The thoughts of the last search.
    pub(super) fn thoughts(&self) -> &ThoughtGraph {
        &self.thoughts
    }

    /// Prepares for a step: the first one of a turn begins another search.
    fn search(&mut self) {
        if std::mem::take(&mut self.next_search) {
            self.thoughts = ThoughtGraph::default();
        }
    }

    /// Draws the thoughts, over the last drawing if nothing was written since.
    fn draw(&mut self, out: &mut Vec<u8>) {
        let Some(height) = self.options.height else { return };
        let before = self.drawn;
        self.fresh_line(out);
        if before > 0 && self.drawn == before {
            out.extend_from_slice(format!("\x1b[{before}A\x1b[J").as_bytes());
        }
        let lines = self.thoughts.draw(self.options, height.saturating_sub(LEFT_FREE));
        for line in &lines {
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        self.drawn = lines.len();
    }

    fn turn_start(&mut self, message: Option<&str>, by: Option<&str>, out: &mut Vec<u8>) {
        self.next_search = true;
        if let Some(message) = message {
            self.words(Style::Bold, "›", message, out);
        }
        if let Some(by) = by {
            self.line(Style::Dim, &format!("· {by}"), out);
        }
    }

    fn thought(&mut self, subject: &str, text: &str, out: &mut Vec<u8>) {
        let whole = match (subject, text) {
            // A thought without a headline may repeat its beginning as the headline.
            (subject, text) if text.starts_with(subject) => text.to_owned(),
            (subject, "") => subject.to_owned(),
            (subject, text) => format!("{subject}: {text}"),
        };
        self.words(Style::Dim, "✻", &whole, out);
    }

    fn call(&mut self, id: &str, name: &str, arguments: &str, out: &mut Vec<u8>) {
        self.session().calls.insert(id, CallView::new(name).changing(arguments));
        self.fresh_line(out);
        let name = one_line(name, self.paint.width());
        let room = self.paint.width().saturating_sub(name.chars().count() + 3);
        self.drawn = 0;
        self.paint.push(out, Style::Cyan, &format!("▸ {name}"));
        if !arguments.is_empty() {
            let arguments = shorten_middle(&visible_text(arguments).replace(['\n', '\t'], " "), room.max(60));
            self.paint.push(out, Style::Dim, &format!(" {arguments}"));
        }
        out.push(b'\n');
        self.last_call = Some(id.to_owned());
    }

    fn known_call(&mut self, id: &str, name: &str) -> &mut CallView {
        self.session().calls.get_or_insert_with(id, || CallView::new(name))
    }

    fn call_end(&mut self, id: &str, name: &str, ok: bool, text: &str, out: &mut Vec<u8>) {
        let mut call = self.session().calls.remove(id).unwrap_or_else(|| CallView::new(name));
        let mut lines = Vec::new();
        // The last line of a failure has its reason, unless it is the only line, such as a refusal.
        let (before, why) = match text.trim_end().rsplit_once('\n') {
            Some((before, why)) => (before, why),
            None => ("", text.trim_end()),
        };
        // Output that was shown while the tool ran is not repeated at its end.
        if !call.wrote {
            lines = call.push(&harmless(if ok { text } else { before }));
        }
        lines.extend(call.finish());
        self.output_of(id, &call.name, &lines, out);
        if ok && !text.contains("\n@@ ") {
            self.change(call.change(), out);
        }
        if ok {
            self.line(Style::Green, &format!("  ✓ {}", call.name), out);
        } else {
            let why = if why.is_empty() { "failed" } else { why };
            self.line(Style::Red, &format!("  ✗ {}: {why}", call.name), out);
        }
    }

    /// Shows what an edit changed, derived from its arguments.
    fn change(&mut self, lines: &[String], out: &mut Vec<u8>) {
        for line in lines {
            let style = if line.starts_with('-') { Style::Red } else { Style::Green };
            self.line(if line.starts_with('…') { Style::Dim } else { style }, &format!("  │ {line}"), out);
        }
    }

    fn output(&mut self, id: &str, lines: &[String], out: &mut Vec<u8>) {
        let call = self.known_call(id, "");
        call.wrote = true;
        let name = call.name.clone();
        self.output_of(id, &name, lines, out);
    }

    fn output_of(&mut self, id: &str, name: &str, lines: &[String], out: &mut Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        if self.last_call.as_deref() != Some(id) {
            self.line(Style::Dim, &format!("  ▹ {name}"), out);
        }
        for line in lines {
            let style = match line.as_bytes() {
                [b'+', ..] => Style::Green,
                [b'-', ..] => Style::Red,
                _ => Style::Dim,
            };
            self.line(style, &format!("  │ {line}"), out);
        }
        self.last_call = Some(id.to_owned());
    }

    fn turn_end(&mut self, end: &End, out: &mut Vec<u8>) {
        let lines = self.session().steps.unscored();
        self.lines(&lines, out);
        let session = std::mem::take(self.session());
        if !session.has_text && !end.reply.is_empty() {
            self.flow(Flow::Text, &end.reply, out);
        }
        for error in end.errors.iter().filter(|error| Some(*error) != session.error.as_ref()) {
            self.words(Style::Red, "✗", error, out);
        }
        let status = match (&*end.status, &session.run_end) {
            ("", Some(status)) => status,
            ("", None) => "done",
            (status, _) => status,
        };
        let (look, mark) = if status == "done" { (Style::Green, "✓") } else { (Style::Red, "✗") };
        let mut line = format!("{mark} {status}");
        let tokens = end.tokens.unwrap_or(session.tokens);
        if tokens != Tokens::default() {
            let _ = write!(line, " · {} tokens read, {} written", tokens.read, tokens.written);
        }
        if end.denials > 0 {
            let _ = write!(line, " · {} refused", end.denials);
        }
        self.line(look, &line, out);
        out.push(b'\n');
    }

    /// Text that continues after the last piece.
    fn flow(&mut self, flow: Flow, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        self.announce(out);
        self.drawn = 0;
        if self.flow != flow {
            self.end_line(out);
        }
        let text = harmless(text);
        let look = if flow == Flow::Thought { Style::Dim } else { Style::Plain };
        self.paint.push(out, look, &text);
        self.flow = if text.ends_with('\n') { Flow::Fresh } else { flow };
        self.last_call = None;
    }

    fn lines(&mut self, lines: &[(Style, String)], out: &mut Vec<u8>) {
        for (look, line) in lines {
            self.line(*look, line, out);
        }
    }

    /// A separate line, truncated to the width of the terminal.
    fn line(&mut self, look: Style, text: &str, out: &mut Vec<u8>) {
        self.fresh_line(out);
        let text = one_line(text, self.paint.width());
        self.raw_line(look, &text, out);
    }

    /// Text that is shown in full, after a mark.
    fn words(&mut self, look: Style, mark: &str, text: &str, out: &mut Vec<u8>) {
        self.fresh_line(out);
        for (number, line) in harmless(text.trim_end()).split('\n').enumerate() {
            let mark = if number == 0 { mark } else { " " };
            self.raw_line(look, &format!("{mark} {line}"), out);
        }
    }

    /// A sanitised line of any length.
    fn raw_line(&mut self, look: Style, text: &str, out: &mut Vec<u8>) {
        self.paint.push(out, look, text);
        out.push(b'\n');
        self.last_call = None;
        self.drawn = 0;
    }

    /// Starts a new line for the current source.
    fn fresh_line(&mut self, out: &mut Vec<u8>) {
        self.announce(out);
        self.end_line(out);
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        if self.flow != Flow::Fresh {
            out.push(b'\n');
            self.flow = Flow::Fresh;
        }
    }
}
