//! What is typed arrives whole, whatever else happens, and answers nothing.

use std::num::NonZeroU16;
use std::sync::Arc;

use proptest::prelude::*;
use qwen_events::{
    Body, CallId, Channel, Command, Confirmation, ControlCall, DiffStat, Display, Event, FileDiff,
    HintResult, HintStatus, HintTrigger, PromptId, Scope, SessionEvent, SessionId, Suggestion, Task, TaskEnd,
    TaskEvent, TaskKind, TaskStatus, TaskUpdate, Timestamp, Todo, TodoStatus, ToolCall, ToolStatus,
};
use qwen_tui::input::{Key, KeyCode, TerminalInput};
use qwen_tui::{Effect, Terminal};

use crate::harness;

fn event(body: Body) -> Event {
    Event { at: Timestamp(0), scope: Scope::default(), body }
}

fn call(n: usize) -> Arc<ToolCall> {
    harness::call(&format!("c{n}"), "run_shell_command", r#"{"command":"rm -rf build"}"#)
}

fn question(n: usize) -> Event {
    event(Body::ControlRequest {
        request_id: format!("q{n}").into(),
        session_id: SessionId::parse("s").unwrap(),
        prompt_id: None,
        call: Box::new(ControlCall::CanUseTool {
            call: call(n),
            confirmation: Box::new(Confirmation::Exec {
                command: "rm -rf build".into(),
                root_command: "rm".into(),
            }),
            reason: "it writes".into(),
            blocked_path: None,
            agent_id: None,
        }),
    })
}

fn task(n: usize, news: TaskUpdate) -> Event {
    let task = Task {
        id: format!("shell-{n}").into(),
        kind: TaskKind::Command,
        call_id: CallId::new(format!("c{n}")),
        description: "make".into(),
        background: true,
    };
    event(Body::Task(Box::new(TaskEvent { task: Arc::new(task), news })))
}

/// Something that happens while somebody types.
#[derive(Debug, Clone)]
enum Happening {
    Question(usize),
    Withdrawn(usize),
    Text(String),
    Output(String),
    ToolStart(usize),
    Resize(usize, usize),
    Tick(u64),
    /// The clock that the binary passes in must never go back, but nothing may depend on that.
    ClockBack(u64),
    TaskStart(usize),
    TaskEnd(usize),
    Notice,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0usize..9).prop_map(Happening::Question),
        (0usize..9).prop_map(Happening::Withdrawn),
        "[a-z \n`#*]{0,20}".prop_map(Happening::Text),
        "\\PC{0,20}\n".prop_map(Happening::Output),
        (0usize..9).prop_map(Happening::ToolStart),
        (1usize..130, 1usize..45).prop_map(|(columns, rows)| Happening::Resize(columns, rows)),
        (0u64..600).prop_map(Happening::Tick),
        (0u64..100_000).prop_map(Happening::ClockBack),
        (0usize..9).prop_map(Happening::TaskStart),
        (0usize..9).prop_map(Happening::TaskEnd),
        Just(Happening::Notice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_draft_is_what_was_typed_and_no_question_is_answered(
        // Letters that answer questions are among them; the first is no trigger of its own.
        typed in "[ynsae][a-zA-Z0-9 ynsaevq,.]{0,60}",
        happenings in proptest::collection::vec((0usize..60, happening()), 0..40),
    ) {
        let mut terminal = Terminal::new(harness::options(80, 24), 0);
        let size = |cells: usize| NonZeroU16::try_from(u16::try_from(cells).unwrap()).unwrap();
        let mut screen = vt100::Parser::new(size(24), size(80), 100);
        let mut now = 1000;
        terminal.event(&event(Body::MessageStart { message_id: "m".into(), model: "m".into() }), now);
        let mut answered = Vec::new();
        // Keys come faster than the pause after which a question opens by itself.
        for (at, c) in typed.chars().enumerate() {
            terminal.input(&TerminalInput::Key(Key::plain(KeyCode::Char(c))), now);
            for (_, happening) in happenings.iter().filter(|(when, _)| *when == at) {
                match happening {
                    Happening::Question(n) => terminal.event(&question(*n), now),
                    Happening::Withdrawn(n) => {
                        terminal.event(&event(Body::ControlCancel { request_id: format!("q{n}").into() }), now);
                    }
                    Happening::Text(text) => terminal.event(&event(Body::TextDelta(text.as_str().into())), now),
                    Happening::Output(text) => {
                        let output = Body::ToolOutput { call: call(1), channel: Channel::Stdout, text: text.as_str().into() };
                        terminal.event(&event(output), now);
                    }
                    Happening::ToolStart(n) => terminal.event(&event(Body::ToolStart(call(*n))), now),
                    Happening::Resize(columns, rows) => {
                        terminal.resize(*columns, *rows);
                        screen.screen_mut().set_size(size(*rows), size(*columns));
                    }
                    Happening::Tick(passed) => {
                        now += passed / 10;
                        terminal.tick(now);
                    }
                    Happening::ClockBack(by) => {
                        terminal.tick(now.saturating_sub(*by));
                        terminal.tick(now);
                    }
                    Happening::TaskStart(n) => terminal.event(&task(*n, TaskUpdate::Started), now),
                    Happening::TaskEnd(n) => {
                        let end = TaskEnd {
                            status: TaskStatus::Completed,
                            summary: "done".into(),
                            output_file: "".into(),
                            spent: None,
                        };
                        terminal.event(&task(*n, TaskUpdate::Ended(end)), now);
                    }
                    Happening::Notice => terminal.warn("a warning"),
                }
                screen.process(terminal.frame().as_bytes());
            }
            now += 50;
            terminal.tick(now);
            answered.extend(terminal.effects().into_iter().filter(|effect| {
                matches!(effect, Effect::Command(Command::Reply { .. }) | Effect::SaveRule(_))
            }));
        }
        prop_assert!(answered.is_empty(), "{answered:?}");
        terminal.finish();
        let saved = terminal.effects().into_iter().rev().find_map(|effect| match effect {
            Effect::SaveDraft(text) => Some(text),
            _ => None,
        });
        // The last copy may have been taken before, when the draft was the same already.
        prop_assert_eq!(terminal.draft(), typed.as_str());
        if let Some(saved) = saved {
            prop_assert_eq!(saved, typed);
        }
    }

    #[test]
    fn hostile_text_changes_nothing_but_its_own_cells(
        text in proptest::collection::vec(prop_oneof![
            Just("\u{1b}]0;owned\u{7}".to_owned()),
            Just("\u{1b}]52;c;b3duZWQ=\u{7}".to_owned()),
            Just("\u{1b}[?1049h".to_owned()),
            Just("\u{1b}[2J\u{1b}[H".to_owned()),
            Just("\u{9b}21t".to_owned()),
            Just("\u{1b}P+q\u{1b}\\".to_owned()),
            Just("\u{1b}[999A".to_owned()),
            Just("\u{202e}".to_owned()),
            Just("&#27;]0;owned&#7;".to_owned()),
            Just("\u{1b}".to_owned()),
            Just("]0;owned\u{7}".to_owned()),
            Just("[2J".to_owned()),
            Just("\u{1b}c".to_owned()),
            Just("\r\n".to_owned()),
            Just("```\n".to_owned()),
            "\\PC{0,8}",
            any::<char>().prop_map(String::from),
        ], 0..30),
    ) {
        // Names, titles and branches are foreign text too.
        let names = text.concat();
        let mut options = harness::options(80, 24);
        (options.model, options.workspace.directory, options.workspace.branch) = (names.clone(), names.clone(), names.clone());
        options.greeting = vec![names.clone().into()];
        options.untrusted = vec![names.clone()];
        options.history = vec![names.clone()];
        let mut terminal = Terminal::new(options, 0);
        let mut bytes = String::new();
        for piece in &text {
            for body in hostile_events(piece) {
                terminal.event(&event(body), 0);
            }
            terminal.input(&TerminalInput::Key(Key::ctrl('q')), 0);
            bytes.push_str(&terminal.frame());
            terminal.input(&TerminalInput::Key(Key::ctrl('q')), 0);
            terminal.event(&event(Body::TextDelta(piece.as_str().into())), 0);
            terminal.event(&event(Body::ToolStart(call(1))), 0);
            let output = Body::ToolOutput { call: call(1), channel: Channel::Stdout, text: piece.as_str().into() };
            terminal.event(&event(output), 0);
            terminal.warn(piece);
            terminal.input(&TerminalInput::Paste(piece.clone()), 0);
            bytes.push_str(&terminal.frame());
        }
        prop_assert_eq!(foreign_sequence(&bytes), None);
    }
}

/// Events that carry this text wherever a model, a tool, a server or a file name can bring text in.
fn hostile_events(text: &str) -> Vec<Body> {
    let arguments = serde_json::json!({ "command": text, "file_path": text }).to_string();
    let [run, other] = ["run_shell_command", text].map(|name| harness::call("h", name, &arguments));
    let diff = FileDiff {
        file_name: text.into(),
        file_path: text.into(),
        diff: format!("--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+{text}\n").into(),
        original: None,
        modified: text.into(),
        stat: DiffStat::default(),
    };
    let ask = |id: &str, call: &Arc<ToolCall>, confirmation: Confirmation| Body::ControlRequest {
        request_id: id.into(),
        session_id: SessionId::parse("s").unwrap(),
        prompt_id: None,
        call: Box::new(ControlCall::CanUseTool {
            call: call.clone(),
            confirmation: Box::new(confirmation),
            reason: text.into(),
            blocked_path: None,
            agent_id: None,
        }),
    };
    let suggestion = Suggestion { label: text.into(), value: text.into(), description: Some(text.into()) };
    let todo = Todo { id: "1".into(), content: text.into(), status: TodoStatus::Pending };
    vec![
        Body::MessageStart { message_id: "m".into(), model: text.into() },
        Body::ThoughtDelta(text.into()),
        Body::ToolCallDelta {
            index: 0,
            call_id: CallId::new("h"),
            name: text.into(),
            arguments: text.into(),
        },
        Body::ToolStart(other.clone()),
        Body::ToolDisplay { call: run.clone(), display: Box::new(Display::TodoList(vec![todo])) },
        ask("exec", &run, Confirmation::Exec { command: text.into(), root_command: text.into() }),
        ask("edit", &other, Confirmation::Edit(diff.clone())),
        ask("plan", &run, Confirmation::Plan { plan: text.into() }),
        Body::ControlCancel { request_id: "exec".into() },
        Body::ToolEnd(Box::new(harness::end(other, ToolStatus::Error, text, None))),
        Body::ToolEnd(Box::new(harness::end(run, ToolStatus::Success, text, Some(Display::FileDiff(diff))))),
        task(1, TaskUpdate::Started).body,
        Body::HintResult(Box::new(HintResult {
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: PromptId::new("t-h1"),
            trigger: HintTrigger::At,
            status: HintStatus::Ok,
            suggestions: vec![suggestion],
            is_perfect_match: false,
            message: None,
        })),
        Body::Session(Box::new(SessionEvent::ModelFallback {
            from: text.into(),
            to: text.into(),
            reason: text.into(),
        })),
    ]
}

/// The first control in `bytes` that the interface never writes itself.
fn foreign_sequence(bytes: &str) -> Option<String> {
    let mut rest = bytes;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\t') {
        let control = &rest[at..];
        if let Some(behind) = control.strip_prefix("\r\n").or_else(|| control.strip_prefix('\r')) {
            rest = behind;
            continue;
        }
        let Some(sequence) = control.strip_prefix("\u{1b}[") else {
            return Some(control.chars().take(20).collect());
        };
        let end = sequence.find(|c: char| ('@'..='~').contains(&c))?;
        let known = match &sequence[..=end] {
            "?2026h" | "?2026l" | "?25h" | "?25l" | "J" | "K" => true,
            other => {
                let (numbers, last) = other.split_at(end);
                numbers.chars().all(|c| c.is_ascii_digit() || c == ';')
                    && matches!(last, "m" | "A" | "B" | "G")
            }
        };
        if !known {
            return Some(control.chars().take(20).collect());
        }
        rest = &sequence[end + 1..];
    }
    None
}
