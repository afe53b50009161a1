//! `/undo` never loses what the user did after the turn.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply};

use crate::harness::{qwen, text_and_call};

/// A session in which a turn wrote two files and ran a command.
fn changed() -> Program {
    let mock = MockModel::with([
        text_and_call("", "write_file", r#"{"file_path":"a.txt","content":"a1\n"}"#),
        text_and_call("", "write_file", r#"{"file_path":"b.txt","content":"b1\n"}"#),
        text_and_call("", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Done."),
    ]);
    let program = qwen().with_model(&mock).args(["--model", "mock", "--yolo", "-q"]);
    let ended = program.clone().args(["-p", "go", "--session-id", "s"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    program
}

fn undo(program: &Program) -> String {
    let ended = program.clone().args(["--resume", "s", "-p", "/undo"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

fn read(program: &Program, name: &str) -> Option<String> {
    fs::read_to_string(program.cwd_path().join(name)).ok()
}

#[test]
fn a_file_that_was_edited_after_the_turn_is_left_as_it_is() {
    let program = changed();
    fs::write(program.cwd_path().join("a.txt"), "a1\nmine\n").unwrap();
    let told = undo(&program);
    assert_eq!(read(&program, "a.txt").as_deref(), Some("a1\nmine\n"));
    assert_eq!(read(&program, "b.txt"), None, "an untouched file is removed again");
    assert!(told.contains("edited after the turn") && told.contains("/a.txt"), "{told}");
    assert!(told.contains("Removed:") && told.contains("/b.txt"), "{told}");
}

#[test]
fn a_file_that_was_deleted_after_the_turn_comes_back_as_it_was_before_and_a_new_one_stays_away() {
    let mock = MockModel::with([
        text_and_call("", "read_file", r#"{"file_path":"old.txt"}"#),
        text_and_call("", "write_file", r#"{"file_path":"old.txt","content":"after\n"}"#),
        text_and_call("", "write_file", r#"{"file_path":"new.txt","content":"new\n"}"#),
        Reply::text("Done."),
    ]);
    let program = qwen().with_model(&mock).args(["--model", "mock", "--yolo", "-q"]);
    fs::write(program.cwd_path().join("old.txt"), "before\n").unwrap();
    let ended = program.clone().args(["-p", "go", "--session-id", "s"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    for name in ["old.txt", "new.txt"] {
        fs::remove_file(program.cwd_path().join(name)).unwrap();
    }
    let told = undo(&program);
    assert_eq!(read(&program, "old.txt").as_deref(), Some("before\n"), "{told}");
    assert_eq!(read(&program, "new.txt"), None, "{told}");
    assert!(told.contains("/old.txt") && !told.contains("/new.txt"), "{told}");
}

#[test]
fn commands_are_listed_as_not_undone() {
    let program = changed();
    let told = undo(&program);
    assert!(told.contains("Not undone") && told.contains("`touch made`"), "{told}");
    assert!(program.cwd_path().join("made").exists());
}

#[test]
fn after_a_compaction_undo_leaves_the_model_what_is_shown_after_a_resume() {
    let mock = MockModel::with([
        Reply::text("Answer one."),
        Reply::text("Answer two."),
        Reply::text("A summary of both."),
        Reply::text("Answer three."),
    ]);
    let program = qwen().with_model(&mock).args(["--model", "mock", "-q"]);
    let say = |prompt: &str, flags: &[&str]| {
        let ended = program.clone().args(flags).args(["-p", prompt]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    say("first question", &["--session-id", "s"]);
    say("second question", &["--resume", "s"]);
    say("/compress", &["--resume", "s"]);
    let told = say("/undo", &["--resume", "s"]);
    assert!(told.contains("second question") && told.contains("/redo"), "{told}");
    say("third question", &["--resume", "s"]);
    let sent = mock.requests().last().unwrap().body.to_string();
    assert!(sent.contains("first question") && sent.contains("Answer one."), "{sent}");
    assert!(!sent.contains("second question") && !sent.contains("A summary of both."), "{sent}");
}
