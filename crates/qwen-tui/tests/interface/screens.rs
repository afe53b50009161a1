//! Screens as snapshots, at three sizes each: what a user sees, cell by cell.

use crate::stage::{Stage, call, end, turn_end};
use qwen_events::{
    Body, Channel, CommandCall, CommandKind, CommandResult, CommandResultBody, Confirmation, DiffStat,
    Display, EndStatus, FileDiff, HintResult, HintStatus, HintTrigger, Json, Level, PromptId, SessionEvent,
    SessionId, Suggestion, Thinking, Todo, TodoStatus, ToolStatus,
};

const ANSWER: &str = "# Plan\n\nFirst *look*, then **act** on `main.rs`:\n\n1. read the file\n2. change it\n\n```rust\nfn main() {\n    println!(\"hello\"); // greets\n}\n```\n\n| file | lines |\n|---|---|\n| main.rs | 12 |\n| lib.rs | 340 |\n\n> quoted words\n\nSee [the book](https://example.org/book).\n";

fn diff() -> FileDiff {
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

type Scene = (&'static str, fn(&mut Stage));

const SCENES: &[Scene] = &[
    ("start", |_| {}),
    ("draft", |stage| {
        stage.keys("a first line\u{a}and a second one that is somewhat longer than the first line was");
    }),
    ("waiting", |stage| {
        stage.keys("hello\r");
        stage.pass(12_000);
    }),
    ("streaming", |stage| {
        stage.keys("hello\r");
        stage.text("Some finished words.\n\nAnd a paragraph that is **still** being written, ");
        stage.pass(1000);
    }),
    ("answer", |stage| {
        stage.keys("hello\r");
        stage.text(ANSWER);
        stage.event(Body::TurnEnd(Box::new(turn_end("t-1", EndStatus::Done))));
    }),
    ("thinking", |stage| {
        stage.keys("hello\r");
        stage.event(Body::ThoughtDelta("I should look at the parser first.".into()));
        stage.pass(3000);
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
    ("question-banner", |stage| {
        stage.keys("go\r");
        stage.keys("meanwhile I write");
        stage.question("q1", "cargo publish --dry-run");
    }),
    ("question-open", |stage| {
        stage.keys("go\r");
        stage.question("q1", "cargo publish --dry-run");
        stage.pass(1000);
    }),
    ("question-rule", |stage| {
        stage.keys("go\r");
        stage.question("q1", "cargo publish --dry-run");
        stage.keys("\u{11}a");
    }),
    ("question-diff", |stage| {
        stage.keys("go\r");
        let edit = call("c1", "edit", r#"{"file_path":"src/main.rs"}"#);
        stage.ask("q1", edit, Confirmation::Edit(diff()), "edits ask in this mode");
        stage.pass(1000);
    }),
    ("plan", |stage| {
        stage.keys("go\r");
        let plan = Confirmation::Plan { plan: "1. look\n2. change `main.rs`\n".into() };
        stage.ask("q1", call("c1", "exit_plan_mode", "{}"), plan, "the plan needs your approval");
        stage.pass(1000);
    }),
    ("form", |stage| {
        stage.keys("go\r");
        let arguments = r#"{"questions":[{"question":"Which database?","options":[{"label":"SQLite","description":"a file"},{"label":"Postgres"}]}]}"#;
        let info = Confirmation::Info { prompt: "Which database?".into(), urls: Vec::new() };
        stage.ask("q1", call("c1", "ask_user_question", arguments), info, "");
        stage.pass(1000);
    }),
    ("queue-and-steer", |stage| {
        stage.keys("go\r");
        stage.keys("join in\r");
        stage.keys("and later this\t");
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
    ("command-result", |stage| {
        stage.keys("/stats\r");
        let content = "3 requests\n120 tokens".into();
        stage.event(result(CommandResultBody::Message { level: Level::Info, content }));
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
    ("interrupted", |stage| {
        stage.keys("go\r");
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
    ("list", |stage| {
        stage.keys("/resume\r");
        stage.event(dialog(
            r#"{"command":"/resume","title":"Go on with a session","searchable":true,"items":[
                {"value":"a1","label":"explain the parser","detail":"a1, 3 turns","preview":["> and the printer?","It writes."]},
                {"value":"b2","label":"fix the build","detail":"b2, 1 turn","preview":["> fix the build","Done."]}]}"#,
        ));
        stage.keys("\u{1b}[B");
    }),
    ("rewound", |stage| {
        stage.keys("/rewind p1 both\r");
        stage.event(dialog(
            r#"{"text":"The conversation is back before that prompt.\nPut back: src/lib.rs.","prompt":"fix the build"}"#,
        ));
    }),
    ("transcript", |stage| {
        let events = [
            Body::ToolEnd(Box::new(end(
                call("c1", "run_shell_command", r#"{"command":"cargo test"}"#),
                ToolStatus::Success,
                "running 2 tests\ntest parser ... ok\ntest printer ... ok",
                None,
            ))),
            Body::ToolEnd(Box::new(end(
                call("c2", "read_file", r#"{"file_path":"src/parser.rs"}"#),
                ToolStatus::Success,
                "pub fn parse() {}",
                None,
            ))),
        ];
        stage.transcript(&events);
        stage.keys("/parser\r");
    }),
    ("wide-and-combined", |stage| {
        stage.keys("日本語 é 👨\u{200d}👩\u{200d}👧 tab\u{1b}[D\u{1b}[D");
    }),
];

/// What is played for a screen.
pub fn scene(name: &str) -> fn(&mut Stage) {
    SCENES.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn screens_look_as_they_did() {
    for (name, play) in SCENES {
        for (columns, rows) in [(80, 24), (120, 40), (40, 12)] {
            let mut stage = Stage::new(columns, rows);
            play(&mut stage);
            insta::with_settings!({ snapshot_path => "../screens", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("{name}-{columns}x{rows}"), stage.screen());
            });
        }
    }
}

/// The result of the first command.
fn result(body: CommandResultBody) -> Body {
    Body::CommandResult(Box::new(CommandResult {
        session_id: SessionId::parse("s").unwrap(),
        prompt_id: PromptId::new("t-1"),
        message_uuid: None,
        message_origin: None,
        cleared_session: None,
        command: CommandCall { kind: CommandKind::Slash, path: vec!["stats".into()], args: "".into() },
        body,
    }))
}

fn dialog(data: &str) -> Body {
    result(CommandResultBody::Dialog { name: "list".into(), data: Json::trusted(data) })
}
