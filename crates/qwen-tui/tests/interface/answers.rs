//! A question is answered only by a key that was pressed while it was visible and open, whatever is typed,
//! pasted, closed or painted when.

use std::num::NonZeroU16;

use proptest::prelude::*;
use qwen_events::{Body, Command, Confirmation, ControlCall, Event, Scope, SessionId, Timestamp};
use qwen_tui::input::{Key, KeyCode, TerminalInput};
use qwen_tui::{Effect, Terminal};

use crate::harness;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Command,
    Plan,
    Form,
}

#[derive(Debug, Clone)]
enum Step {
    Type(char),
    Enter,
    Paste(String),
    Escape,
    Toggle,
    Clear,
    Ask(Kind),
    Withdraw,
    Answer(String),
    Wait(u64),
    /// A frame is made, and written only after this time.
    Paint(u64),
    Resize(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop_oneof![Just('y'), Just('s'), Just('a'), Just('n'), Just('e'), Just('v'), Just('1'), Just('2'),
            Just(' '), Just('w'), Just('h')].prop_map(Step::Type),
        1 => Just(Step::Enter),
        1 => prop_oneof![Just("y"), Just("yes\n"), Just("1"), Just("why?")]
            .prop_map(|text: &str| Step::Paste(text.to_owned())),
        2 => Just(Step::Escape),
        2 => Just(Step::Toggle),
        2 => Just(Step::Clear),
        3 => prop_oneof![Just(Kind::Command), Just(Kind::Plan), Just(Kind::Form)].prop_map(Step::Ask),
        1 => Just(Step::Withdraw),
        1 => "[a-z \n]{0,12}".prop_map(Step::Answer),
        6 => prop_oneof![0u64..60, 200u64..900].prop_map(Step::Wait),
        6 => prop_oneof![Just(0), 0u64..400].prop_map(Step::Paint),
        1 => (20usize..120, 4usize..40).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
    ]
}

/// A terminal, its screen, and the truth about what the user could see.
struct Observer {
    terminal: Terminal,
    screen: vt100::Parser,
    now: u64,
    asked: usize,
    /// A frame that is not written yet, and when it will be.
    unwritten: Option<(String, u64)>,
    /// True if the question was visible and open when the last key was pressed.
    was_answerable: bool,
    is_closed: bool,
}

impl Observer {
    fn new() -> Self {
        let size = |cells: u16| NonZeroU16::try_from(cells).unwrap();
        Self {
            terminal: Terminal::new(harness::options(80, 24), 0),
            screen: vt100::Parser::new(size(24), size(80), 100),
            now: 1000,
            asked: 0,
            unwritten: None,
            was_answerable: false,
            is_closed: false,
        }
    }

    /// True if the screen shows the question with its answers.
    fn shows_question(&self) -> bool {
        let text = self.screen.screen().contents();
        ["y yes", "something else", "enter answers", "tell the model:", "Always allow", "Allow in this"]
            .iter()
            .any(|mark| text.contains(mark))
    }

    fn event(&mut self, body: Body) {
        self.terminal.event(&Event { at: Timestamp(0), scope: Scope::default(), body }, self.now);
    }

    fn ask(&mut self, kind: Kind) {
        self.asked += 1;
        let (name, arguments, confirmation) = match kind {
            Kind::Command => {
                let exec = Confirmation::Exec { command: "rm -rf b".into(), root_command: "rm".into() };
                ("run_shell_command", r#"{"command":"rm -rf b"}"#, exec)
            }
            Kind::Plan => ("exit_plan_mode", "{}", Confirmation::Plan { plan: "1. look".into() }),
            Kind::Form => {
                let info = Confirmation::Info { prompt: "Which?".into(), urls: Vec::new() };
                let arguments =
                    r#"{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}"#;
                ("ask_user_question", arguments, info)
            }
        };
        self.event(Body::ControlRequest {
            request_id: format!("q{}", self.asked).into(),
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: None,
            call: Box::new(ControlCall::CanUseTool {
                call: harness::call("c", name, arguments),
                confirmation: Box::new(confirmation),
                reason: "it asks".into(),
                blocked_path: None,
                agent_id: None,
            }),
        });
    }

    fn press(&mut self, input: &TerminalInput) {
        self.was_answerable = self.terminal.is_asking() && self.shows_question();
        self.terminal.input(input, self.now);
    }

    fn key(&mut self, code: KeyCode) {
        self.press(&TerminalInput::Key(Key::plain(code)));
    }

    fn pass(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds;
        while let Some((_, at)) = self.unwritten.as_ref().filter(|(_, at)| *at <= until) {
            self.now = *at;
            if let Some((frame, _)) = self.unwritten.take() {
                self.screen.process(frame.as_bytes());
                self.terminal.frame_written(self.now);
            }
        }
        self.now = until;
        self.terminal.tick(self.now);
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Type(c) => self.key(KeyCode::Char(*c)),
            Step::Enter => self.key(KeyCode::Enter),
            Step::Paste(text) => self.press(&TerminalInput::Paste(text.clone())),
            Step::Escape => {
                let was_open = self.terminal.is_asking() && self.shows_question();
                self.key(KeyCode::Escape);
                self.is_closed |= was_open && !self.terminal.is_asking();
            }
            Step::Toggle => {
                self.press(&TerminalInput::Key(Key::ctrl('q')));
                self.is_closed = false;
            }
            Step::Clear => self.press(&TerminalInput::Key(Key::ctrl('u'))),
            Step::Ask(kind) => self.ask(*kind),
            Step::Withdraw => {
                for n in 0..=self.asked {
                    self.event(Body::ControlCancel { request_id: format!("q{n}").into() });
                }
                self.is_closed = false;
            }
            Step::Answer(text) => self.event(Body::TextDelta(text.as_str().into())),
            Step::Wait(milliseconds) => self.pass(*milliseconds),
            Step::Paint(delay) => {
                if self.unwritten.is_none() {
                    self.unwritten = Some((self.terminal.frame(), self.now + delay));
                    self.pass(0);
                }
            }
            Step::Resize(columns, rows) => {
                let size = |cells: usize| NonZeroU16::try_from(u16::try_from(cells).unwrap()).unwrap();
                self.terminal.resize(*columns, *rows);
                self.screen.screen_mut().set_size(size(*rows), size(*columns));
            }
        }
    }

    /// What answers a question.
    fn answers(&mut self) -> Vec<Effect> {
        let is_answer = |effect: &Effect| {
            matches!(effect, Effect::Command(Command::Reply { .. }) | Effect::SaveRule(_) | Effect::Trust(_))
        };
        self.terminal.effects().into_iter().filter(is_answer).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_key_pressed_before_a_request_is_visible_or_after_it_was_closed_answers_it(
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut observer = Observer::new();
        observer.event(Body::MessageStart { message_id: "m".into(), model: "m".into() });
        for step in &steps {
            observer.apply(step);
            let answers = observer.answers();
            prop_assert!(answers.is_empty() || observer.was_answerable, "{step:?}: {answers:?}");
            if observer.is_closed {
                prop_assert!(!observer.terminal.is_asking(), "reopened after {step:?}");
                prop_assert!(answers.is_empty(), "{step:?}: {answers:?}");
            }
        }
    }
}
