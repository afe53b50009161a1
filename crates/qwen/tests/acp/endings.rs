//! The end of the connection at every point of a turn: the process ends, and no child is left.

use mock_model::process::{Signal, wait_marked_gone};
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::json;

use crate::editor::{Editor, program};

/// Moments in the life of a connection.
const MOMENTS: [&str; 6] = ["start", "session", "text", "arguments", "question", "command"];

/// Brings a connection to a moment. Its processes carry `mark` in their environment.
fn at(moment: &str, mock: &MockModel, mark: &str) -> Editor {
    let call =
        |command: &str| Reply::call("c1", "run_shell_command", &json!({"command": command}).to_string());
    match moment {
        "text" => mock.push(Reply::new([sse::text("one"), gate("never")])),
        "arguments" => mock.push(Reply::new([sse::call(0, "c1", "read_file", "{\"f"), gate("never")])),
        "question" => mock.push(call("touch made")),
        "command" => mock.push(call("echo begun; sleep 1000")),
        _ => {}
    }
    let mode = if moment == "command" { "yolo" } else { "default" };
    let program = program(mock).args(["--approval-mode", mode]).env("ACP_TEST_MARK", mark);
    let mut editor = Editor::with(program, &json!({}));
    if moment == "start" {
        return editor;
    }
    let session = editor.session();
    if moment != "session" {
        editor.prompt(&session, "Hi");
    }
    match moment {
        "text" | "arguments" => mock.reached("never"),
        "question" => drop(editor.permission()),
        "command" => drop(editor.until(|frame| frame.to_string().contains("begun\\n"))),
        _ => {}
    }
    editor
}

#[test]
fn closed_input_and_signals_end_everything_at_every_point() {
    for moment in MOMENTS {
        for (ending, code) in [("eof", 0), ("term", 143), ("int", 130)] {
            let mock = MockModel::start();
            let mark = format!("acp-{moment}-{ending}-{}", std::process::id());
            let mut editor = at(moment, &mock, &mark);
            match ending {
                "eof" => editor.run.close_stdin(),
                "term" => editor.run.signal(Signal::TERM),
                _ => editor.run.signal(Signal::INT),
            }
            let made = editor.program.cwd_path().join("made");
            let Editor { run, program: _program, .. } = editor;
            let ended = run.wait();
            assert_eq!(ended.code, Some(code), "{moment} {ending}: {}", ended.stderr);
            wait_marked_gone(&mark);
            assert!(!made.exists());
        }
    }
}

#[test]
fn a_killed_agent_leaves_no_child() {
    let mock = MockModel::start();
    let mark = format!("acp-kill-{}", std::process::id());
    let editor = at("command", &mock, &mark);
    editor.run.signal(Signal::KILL);
    let Editor { run, program: _program, .. } = editor;
    run.wait();
    wait_marked_gone(&mark);
}
