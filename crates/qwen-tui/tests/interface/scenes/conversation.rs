//! Turns: waiting, answers, calls, thoughts, sub-agents, errors.

use std::sync::Arc;

use qwen_events::{
    Body, CallId, Channel, Display, EndStatus, ErrorInfo, ErrorKind, PromptId, SessionEvent, Task, TaskEnd,
    TaskEvent, TaskKind, TaskProgress, TaskStatus, TaskUpdate, Thinking, Todo, TodoStatus, ToolStatus,
    TurnEnd,
};

use super::Scene;
use crate::harness::{call, diff, end, turn_end};

const ANSWER: &str = "# Plan\n\nFirst *look*, then **act** on `main.rs`:\n\n1. read the file\n2. change it\n\n```rust\nfn main() {\n    println!(\"hello\"); // greets\n}\n```\n\n| file | lines |\n|---|---|\n| main.rs | 12 |\n| lib.rs | 340 |\n\n> quoted words\n\nSee [the book](https://example.org/book).\n";

fn task(id: &str, description: &str, news: TaskUpdate) -> Body {
    let task = Task {
        id: id.into(),
        kind: TaskKind::Command,
        call_id: CallId::new("c1"),
        description: description.into(),
        background: true,
    };
    Body::Task(Box::new(TaskEvent { task: Arc::new(task), news }))
}

pub const SCENES: &[Scene] = &[
    ("waiting", |stage| {
        stage.keys("hello\r");
        stage.pass(12_000);
    }),
    ("streaming", |stage| {
        stage.keys("hello\r");
        stage.text("Some finished words.\n\nAnd a paragraph that is **still** being written, ");
        stage.pass(1000);
    }),
    ("open-code", |stage| {
        stage.keys("hello\r");
        stage.text("Like this:\n\n```rust\nfn main() {\n    let answer = 42;\n    println!(\"{ans");
        stage.pass(2000);
    }),
    ("answer", |stage| {
        stage.keys("hello\r");
        stage.text(ANSWER);
        stage.message_end(12_345);
        stage.event(Body::TurnEnd(Box::new(TurnEnd { cost_usd: 0.02, ..turn_end("t-1", EndStatus::Done) })));
    }),
    ("thinking", |stage| {
        stage.keys("hello\r");
        stage.event(Body::ThoughtDelta("I should look at the parser first.".into()));
        stage.pass(3000);
    }),
    ("folded-thought", |stage| {
        stage.keys("hello\r");
        stage.event(Body::ThoughtDelta("I should look at the parser first.".into()));
        stage.pass(65_000);
        stage.text("The parser is fine.\n\n");
    }),
    ("tool-running", |stage| {
        stage.keys("test it\r");
        let call = call("c1", "run_shell_command", r#"{"command":"cargo test --workspace"}"#);
        stage.event(Body::ToolStart(call.clone()));
        let text = "running 3 tests\ntest a ... ok\ntest b ... \u{1b}[31mFAILED\u{1b}[0m\n".into();
        stage.event(Body::ToolOutput { call, channel: Channel::Stdout, text });
        stage.pass(5000);
    }),
    ("tool-ended", |stage| {
        stage.keys("test it\r");
        let run = call("c1", "run_shell_command", r#"{"command":"cargo test"}"#);
        stage.event(Body::ToolEnd(Box::new(end(
            run,
            ToolStatus::Error,
            "test b ... FAILED\nerror: test failed",
            None,
        ))));
        let read = call("c2", "read_file", r#"{"file_path":"src/main.rs"}"#);
        stage.event(Body::ToolEnd(Box::new(end(read, ToolStatus::Success, "…", None))));
    }),
    ("tool-long-output", |stage| {
        stage.keys("list them\r");
        let list = call("c1", "run_shell_command", r#"{"command":"seq 1 30"}"#);
        let text: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
        stage.event(Body::ToolEnd(Box::new(end(list, ToolStatus::Success, &text.join("\n"), None))));
    }),
    ("tool-refused", |stage| {
        stage.keys("clean up\r");
        let remove = call("c1", "run_shell_command", r#"{"command":"rm -rf build"}"#);
        let text = "The user said no: keep the build, I need it";
        stage.event(Body::ToolEnd(Box::new(end(remove, ToolStatus::Denied, text, None))));
    }),
    ("shell-command", |stage| {
        stage.keys("!git status --short\r");
        let run = call("c1", "run_shell_command", r#"{"command":"git status --short"}"#);
        let text = " M src/main.rs\n?? notes.txt";
        stage.event(Body::ToolEnd(Box::new(end(run, ToolStatus::Success, text, None))));
        stage.event(Body::TurnEnd(Box::new(turn_end("t-1", EndStatus::Done))));
    }),
    ("diff", |stage| {
        stage.keys("change it\r");
        let edit = call("c1", "edit", r#"{"file_path":"src/main.rs"}"#);
        stage.event(Body::ToolEnd(Box::new(end(
            edit,
            ToolStatus::Success,
            "",
            Some(Display::FileDiff(diff())),
        ))));
    }),
    ("todos", |stage| {
        stage.keys("plan\r");
        let todo = |id: &str, status| Todo { id: id.into(), content: format!("step {id}").into(), status };
        let todos = vec![
            todo("one", TodoStatus::Completed),
            todo("two", TodoStatus::InProgress),
            todo("three", TodoStatus::Pending),
        ];
        let display = Display::TodoList(todos);
        stage.event(Body::ToolDisplay { call: call("c1", "todo_write", "{}"), display: Box::new(display) });
    }),
    ("sub-agents", |stage| {
        stage.keys("look at both\r");
        stage.turn_start();
        let agent = |id: &str, what: &str| call(id, "agent", &format!(r#"{{"description":"{what}"}}"#));
        stage.event(Body::ToolStart(agent("c1", "read the parser")));
        stage.event(Body::ToolStart(agent("c2", "read the printer")));
        let search = call("s1", "grep_search", r#"{"pattern":"fn parse","path":"src"}"#);
        stage.event_of_agent("c1", Body::ToolStart(search));
        let progress = TaskProgress {
            agent: "explore".into(),
            description: "read the printer".into(),
            status: "running",
            tool_calls: 4,
            tokens: 5120,
            result: None,
        };
        let display = Box::new(Display::Task(progress));
        stage.event(Body::ToolDisplay { call: agent("c2", "read the printer"), display });
        stage.pass(7000);
    }),
    ("sub-agent-ended", |stage| {
        stage.keys("look\r");
        let progress = TaskProgress {
            agent: "explore".into(),
            description: "read the parser".into(),
            status: "completed",
            tool_calls: 6,
            tokens: 9300,
            result: Some("It is a **recursive descent** parser.".into()),
        };
        let agent = call("c1", "agent", r#"{"description":"read the parser"}"#);
        stage.event(Body::ToolEnd(Box::new(end(
            agent,
            ToolStatus::Success,
            "",
            Some(Display::Task(progress)),
        ))));
    }),
    ("tasks", |stage| {
        stage.event(task("shell-1", "npm run dev", TaskUpdate::Started));
        stage.event(task("shell-2", "cargo test", TaskUpdate::Started));
        stage.event(task(
            "shell-2",
            "cargo test",
            TaskUpdate::Ended(TaskEnd {
                status: TaskStatus::Failed,
                summary: "The command \"cargo test\" failed with exit code 101".into(),
                output_file: "".into(),
                spent: None,
            }),
        ));
    }),
    ("retry", |stage| {
        stage.keys("go\r");
        stage.event(Body::Session(Box::new(SessionEvent::Retry {
            attempt: 2,
            max_retries: 4,
            delay_ms: 4000,
            status: Some(503),
            error: "the model's server is overloaded (503)".into(),
        })));
    }),
    ("error", |stage| {
        stage.keys("go\r");
        stage.turn_start();
        let message = "The model's server refused the key (401): check OPENAI_API_KEY.";
        let error = Some(ErrorInfo::new(ErrorKind::Auth, "invalid_key", message));
        stage.event(Body::TurnEnd(Box::new(TurnEnd { error, ..turn_end("t-1", EndStatus::Error) })));
    }),
    ("refused", |stage| {
        stage.keys("go\r");
        let message = "no model is configured; set OPENAI_API_KEY, or try --model demo";
        stage.event(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Settings, "no_model", message))));
    }),
    ("interrupted", |stage| {
        stage.keys("go\r");
        stage.turn_start();
        stage.text("Half an ans");
        stage.keys("\u{1b}");
        stage.event(Body::TurnEnd(Box::new(turn_end("t-1", EndStatus::Cancelled))));
    }),
    ("thoughts", |stage| {
        stage.keys("4 9 10 13\r");
        stage.event(Body::Thinking(Box::new(Thinking::TotExpand {
            candidates: vec!["10 - 4 = 6".into(), "13 - 9 = 4".into()],
        })));
        stage.event(Body::Thinking(Box::new(Thinking::TotEvaluate { chosen: 1, scores: vec![0.2, 0.9] })));
        stage.event(Body::Thinking(Box::new(Thinking::TotExpand {
            candidates: vec!["10 - 4 = 6, 6 * 4 = 24".into(), "10 + 4 = 14".into()],
        })));
        stage.event(Body::Thinking(Box::new(Thinking::TotEvaluate { chosen: 0, scores: vec![1.0, 0.1] })));
    }),
    ("queue-and-steer", |stage| {
        stage.keys("go\r");
        stage.keys("join in\r");
        stage.keys("and later this\t");
    }),
    ("steered", |stage| {
        stage.keys("go\r");
        stage.turn_start();
        stage.text("I begin.\n\n");
        stage.keys("only the tests\r");
        stage.message_end(0);
        let prompt_id = PromptId::new("t-2");
        stage.event(Body::Session(Box::new(SessionEvent::Steered { prompt_id, message_uuid: None })));
    }),
];
