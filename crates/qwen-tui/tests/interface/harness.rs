//! The interface in front of an emulated terminal, with a clock of its own.

use std::sync::Arc;

use qwen_events::{
    Body, CallId, Confirmation, ControlCall, DiffStat, Display, EndStatus, Event, FileDiff, Finish, Json,
    Media, MessageEnd, PromptId, Scope, SessionId, Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd,
    TurnStart, Usage,
};
use qwen_tui::input::{Decoder, Keymap};
use qwen_tui::{Effect, FooterItem, Options, Terminal, WorkspaceName};

pub struct Stage {
    options: Options,
    terminal: Terminal,
    decoder: Decoder,
    parser: vt100::Parser,
    now: u64,
    /// The wall clock of the next events.
    pub wall_clock: u64,
}

pub fn call(id: &str, name: &str, arguments: &str) -> Arc<ToolCall> {
    let arguments = Json::trusted(arguments);
    Arc::new(ToolCall::new(CallId::new(id), name.into(), arguments))
}

pub fn end(call: Arc<ToolCall>, status: ToolStatus, text: &str, display: Option<Display>) -> ToolEnd {
    ToolEnd {
        call,
        status,
        text: text.into(),
        media: Vec::new(),
        display,
        error_code: None,
        output_file: None,
        exit_code: (status == ToolStatus::Error).then_some(101),
        duration_ms: 2300,
    }
}

pub fn turn_end(prompt_id: &str, status: EndStatus) -> TurnEnd {
    TurnEnd {
        reply: "".into(),
        duration_ms: 1,
        api_duration_ms: 1,
        model_calls: 1,
        ..TurnEnd::new(PromptId::new(prompt_id), status)
    }
}

pub fn diff() -> FileDiff {
    FileDiff {
        file_name: "src/main.rs".into(),
        file_path: "/p/src/main.rs".into(),
        diff: "--- a\n+++ b\n@@ -1,3 +1,4 @@\n fn main() {\n-    old();\n+    new();\n+    more();\n }\n"
            .into(),
        original: None,
        modified: "".into(),
        stat: DiffStat { ai_added_lines: 2, ai_removed_lines: 1, ..DiffStat::default() },
    }
}

/// A terminal of this size.
pub fn options(columns: usize, rows: usize) -> Options {
    Options {
        columns,
        rows,
        colors: true,
        unicode: true,
        plain: false,
        wrap_prose: true,
        output_lines: 20,
        keymap: Keymap::default(),
        check_rule: |rule| {
            if rule.ends_with(')') { Ok(()) } else { Err("its parenthesis is not closed".to_owned()) }
        },
        vim: false,
        footer: FooterItem::ALL.to_vec(),
        untrusted: Vec::new(),
        history: vec!["explain the parser".to_owned(), "run the tests".to_owned()],
        draft: String::new(),
        seed: "t".to_owned(),
        model: "qwen3-coder".to_owned(),
        mode: "default".to_owned(),
        window: 131_072,
        workspace: WorkspaceName { directory: "project".to_owned(), branch: "main".to_owned() },
        greeting: vec!["qwen, qwen3-coder in ~/project".to_owned().into()],
    }
}

fn empty_screen(options: &Options) -> vt100::Parser {
    let size = |count: usize| u16::try_from(count).unwrap().try_into().unwrap();
    vt100::Parser::new(size(options.rows), size(options.columns), 1000)
}

impl Stage {
    pub fn new(columns: u16, rows: u16) -> Self {
        let options = options(columns.into(), rows.into());
        let mut stage = Self {
            terminal: Terminal::new(options.clone(), 0),
            decoder: Decoder::default(),
            parser: empty_screen(&options),
            options,
            now: 10_000,
            wall_clock: 0,
        };
        stage.paint();
        stage
    }

    /// Starts anew with other options.
    pub fn restart(&mut self, change: impl FnOnce(&mut Options)) {
        change(&mut self.options);
        self.terminal = Terminal::new(self.options.clone(), self.now);
        self.parser = empty_screen(&self.options);
        self.paint();
    }

    /// Types a line in line mode, which the terminal echoes.
    pub fn line(&mut self, text: &str) {
        self.parser.process(format!("{text}\r\n").as_bytes());
        self.terminal.line(text, self.now, self.now);
        self.paint();
    }

    pub fn paste_image(&mut self, image: Media) {
        self.terminal.paste_image(image);
        self.paint();
    }

    /// Shows a temporary line of the binary.
    pub fn notify(&mut self, text: &str) {
        self.terminal.notify(text);
        self.paint();
    }

    pub fn keys(&mut self, keys: &str) {
        let mut inputs = Vec::new();
        self.decoder.feed(keys.as_bytes(), self.now, &mut inputs);
        self.decoder.idle(self.now + 100, &mut inputs);
        for input in inputs {
            self.terminal.input(&input, self.now);
        }
        self.paint();
    }

    /// Opens the question and presses the key of an answer.
    pub fn answer(&mut self, key: &str) {
        self.keys("\u{11}");
        self.keys(key);
        self.pass(300);
    }

    pub fn event(&mut self, body: Body) {
        self.scoped_event(Scope::default(), body);
    }

    /// An event inside the sub-agent of a call.
    pub fn event_of_agent(&mut self, call: &str, body: Body) {
        self.scoped_event(Scope { parent: Some(CallId::new(call)), ..Scope::default() }, body);
    }

    fn scoped_event(&mut self, scope: Scope, body: Body) {
        self.terminal.event(&Event { at: Timestamp(self.wall_clock), scope, body }, self.now);
        // Unless it is zero, it jumps to the end of time and back.
        self.wall_clock = self.wall_clock.wrapping_neg();
        self.paint();
    }

    /// The session starts the turn of the first prompt.
    pub fn turn_start(&mut self) {
        let (model, mode) = (self.options.model.clone(), self.options.mode.clone());
        let start = TurnStart::new(SessionId::parse("s").unwrap(), PromptId::new("t-1"));
        let start = TurnStart { model: model.into(), permission_mode: mode.into(), ..start };
        self.event(Body::TurnStart(Box::new(start)));
    }

    /// The end of a message after which the conversation has this many tokens.
    pub fn message_end(&mut self, tokens: u64) {
        self.event(Body::MessageEnd(Box::new(MessageEnd {
            message_id: "m".into(),
            model: "qwen3-coder".into(),
            text: "".into(),
            thought: "".into(),
            signature: None,
            thoughts: Vec::new(),
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage { prompt_tokens: tokens, ..Usage::default() },
            aborted: false,
        })));
    }

    pub fn text(&mut self, text: &str) {
        self.event(Body::TextDelta(text.into()));
    }

    pub fn pass(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        self.terminal.tick(self.now);
        self.paint();
    }

    pub fn ask(&mut self, id: &str, call: Arc<ToolCall>, confirmation: Confirmation, reason: &str) {
        self.event(Body::ControlRequest {
            request_id: id.into(),
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: None,
            call: Box::new(ControlCall::CanUseTool {
                call,
                confirmation: Box::new(confirmation),
                reason: reason.into(),
                blocked_path: None,
                agent_id: None,
            }),
        });
    }

    pub fn question(&mut self, id: &str, command: &str) {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let call = call("c1", "run_shell_command", &arguments);
        let exec = Confirmation::Exec { command: command.into(), root_command: "cargo".into() };
        self.ask(id, call, exec, "cargo publish is not known to be read-only");
    }

    /// Shows the transcript of these events.
    pub fn transcript(&mut self, bodies: &[Body]) {
        let event = |body: &Body| Event { at: Timestamp(0), scope: Scope::default(), body: body.clone() };
        let events: Vec<Event> = bodies.iter().map(event).collect();
        self.terminal.show_transcript(&events, &[]);
        self.paint();
    }

    /// What the binary is asked to do since the last call.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.terminal.effects()
    }

    /// The emulated terminal's screen.
    pub fn parser(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    fn paint(&mut self) {
        let frame = self.terminal.frame();
        // In line mode the kernel adds the carriage returns.
        let frame = if self.options.plain { frame.replace('\n', "\r\n") } else { frame };
        self.parser.process(frame.as_bytes());
        self.terminal.frame_written(self.now);
    }

    /// The screen, and where the cursor is.
    pub fn screen(&self) -> String {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let cursor = if screen.hide_cursor() { "hidden".to_owned() } else { format!("{row}:{column}") };
        format!("{}\n[cursor {cursor}]", screen.contents())
    }
}
