//! The interface in front of an emulated terminal, with a clock of its own.

use std::sync::Arc;

use qwen_events::{
    Body, CallId, Confirmation, ControlCall, Display, EndStatus, Event, Json, PromptId, Scope, SessionId,
    Timestamp, ToolCall, ToolEnd, ToolStatus, TurnEnd,
};
use qwen_tui::input::{Decoder, Keymap};
use qwen_tui::{FooterItem, Options, Terminal};

pub struct Stage {
    terminal: Terminal,
    decoder: Decoder,
    parser: vt100::Parser,
    now: u64,
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
        vim: false,
        footer: FooterItem::ALL.to_vec(),
        untrusted: Vec::new(),
        history: vec!["explain the parser".to_owned(), "run the tests".to_owned()],
        draft: String::new(),
        seed: "t".to_owned(),
        model: "qwen3-coder".to_owned(),
        mode: "default".to_owned(),
        window: 131_072,
        directory: "project".to_owned(),
        branch: "main".to_owned(),
        greeting: vec!["qwen, qwen3-coder in ~/project".to_owned()],
    }
}

impl Stage {
    pub fn new(columns: u16, rows: u16) -> Self {
        let options = options(columns.into(), rows.into());
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 1000);
        let mut stage =
            Self { terminal: Terminal::new(options, 0), decoder: Decoder::default(), parser, now: 10_000 };
        stage.paint();
        stage
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

    pub fn event(&mut self, body: Body) {
        let event = Event { at: Timestamp(0), scope: Scope::default(), body };
        self.terminal.event(&event, self.now);
        self.paint();
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
        self.ask(id, call, exec, "cargo publish is not known to only read");
    }

    /// Shows the transcript of these events.
    pub fn transcript(&mut self, bodies: &[Body]) {
        let event = |body: &Body| Event { at: Timestamp(0), scope: Scope::default(), body: body.clone() };
        let events: Vec<Event> = bodies.iter().map(event).collect();
        self.terminal.show_transcript(&events);
        self.paint();
    }

    /// The emulated terminal's screen.
    pub fn parser(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    fn paint(&mut self) {
        self.parser.process(self.terminal.frame().as_bytes());
    }

    /// The screen, and where the cursor is.
    pub fn screen(&self) -> String {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let cursor = if screen.hide_cursor() { "hidden".to_owned() } else { format!("{row}:{column}") };
        format!("{}\n[cursor {cursor}]", screen.contents())
    }
}
