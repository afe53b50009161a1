//! The composer, and how the interface adapts to terminals and users.

use qwen_events::{
    Body, EndStatus, HintResult, HintStatus, HintTrigger, Media, MediaSource, PromptId, SessionId,
    Suggestion, Todo, TodoStatus, ToolStatus,
};
use qwen_tui::GreetingLine;

use super::Scene;
use crate::harness::{call, end, turn_end};

/// The last line of the greeting.
const HINT: &str = "? lists the keys, / the commands; @ names a file, ! runs a command.";

pub const SCENES: &[Scene] = &[
    ("start", |stage| {
        stage.restart(|options| options.greeting.push(HINT.to_owned().into()));
    }),
    ("first-run", |stage| {
        stage.restart(|options| {
            options.history.clear();
            "no model".clone_into(&mut options.model);
            let prose = |text: &str| GreetingLine::Prose(text.to_owned());
            let command = |text: &str| GreetingLine::Command(text.to_owned());
            options.greeting = vec![
                prose("qwen, no model in ~/project"),
                prose("no model is configured: set OPENAI_API_KEY and name a model with --model"),
                command(
                    "A server listens on port 11434 (Ollama?): OPENAI_API_KEY=none qwen --openai-base-url http://127.0.0.1:11434/v1 --model NAME",
                ),
                command("Try it without a model: qwen --model demo"),
                prose(HINT),
            ];
        });
    }),
    ("draft", |stage| {
        stage.keys("a first line\u{a}and a second one that is somewhat longer than the first line was");
    }),
    ("chips", |stage| {
        stage.keys("compare ");
        let bytes = MediaSource::Base64("aGk=".into());
        stage.paste_image(Media { mime_type: "image/png".into(), source: bytes });
        stage.keys(" with ");
        let pasted = "a line of a log\r".repeat(400);
        stage.keys(&format!("\u{1b}[200~{pasted}\u{1b}[201~"));
    }),
    ("completion", |stage| {
        stage.keys("/c");
        let suggestion = |label: &str, about: &str| Suggestion {
            label: label.into(),
            value: label.into(),
            description: Some(about.into()),
        };
        stage.event(Body::HintResult(Box::new(HintResult {
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: PromptId::new("t-h2"),
            trigger: HintTrigger::Slash,
            status: HintStatus::Ok,
            suggestions: vec![
                suggestion("chat", "Manage conversation history."),
                suggestion("clear", "Clear the screen."),
            ],
            is_perfect_match: false,
            message: None,
        })));
    }),
    ("history-search", |stage| stage.keys("\u{12}parser")),
    ("help", |stage| stage.keys("?")),
    ("vim", |stage| {
        stage.restart(|options| options.vim = true);
        stage.keys("one two three");
        stage.keys("\u{1b}");
        stage.keys("bdw");
    }),
    ("cleared", |stage| {
        stage.keys("a draft that is not lost");
        stage.keys("\u{3}");
    }),
    ("wide-and-combined", |stage| {
        stage.keys("日本語 é 👨\u{200d}👩\u{200d}👧 tab\u{1b}[D\u{1b}[D");
    }),
    ("ascii", |stage| {
        stage.restart(|options| (options.unicode, options.colors) = (false, false));
        stage.keys("plan\r");
        let todo = |id: &str, status| Todo { id: id.into(), content: format!("step {id}").into(), status };
        let todos = vec![todo("one", TodoStatus::Completed), todo("two", TodoStatus::InProgress)];
        let display = Box::new(qwen_events::Display::TodoList(todos));
        stage.event(Body::ToolDisplay { call: call("c1", "todo_write", "{}"), display });
        let run = call("c2", "run_shell_command", r#"{"command":"cargo test"}"#);
        stage.event(Body::ToolEnd(Box::new(end(run, ToolStatus::Error, "error: test failed", None))));
    }),
    ("screen-reader", |stage| {
        stage.restart(|options| options.plain = true);
        stage.line("run the tests");
        stage.text("I run them.\n");
        stage.message_end(0);
        stage.question("q1", "cargo test");
        stage.line("1");
        let run = call("c1", "run_shell_command", r#"{"command":"cargo test"}"#);
        stage.event(Body::ToolEnd(Box::new(end(run, ToolStatus::Success, "ok", None))));
        stage.text("All pass.\n");
        stage.event(Body::TurnEnd(Box::new(turn_end("t-1", EndStatus::Done))));
    }),
];
