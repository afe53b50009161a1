//! `qwen sessions` with many sessions.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};

use crate::harness::qwen;

/// Three sessions here and one in another directory, and their model. The first program owns the directories,
/// the second has no model.
fn stored() -> (MockModel, Program, Program) {
    let mock = MockModel::start();
    mock.answer_with(|_: &mock_model::Request| Some(Reply::text("Hi")));
    let program = qwen().with_model(&mock).args(["--model", "mock", "-q"]);
    let other = tempfile::tempdir().unwrap();
    for (id, prompt) in [("alpha-1", "fix the parser"), ("alpha-2", "write docs"), ("beta", "Fix tests")] {
        assert_eq!(program.clone().args(["-p", prompt, "--session-id", id]).run().code, Some(0));
    }
    let elsewhere = program.clone().cwd(other.path()).args(["-p", "far away", "--session-id", "gamma"]);
    assert_eq!(elsewhere.run().code, Some(0));
    let bare = qwen().env("QWEN_HOME", program.qwen_home_path()).cwd(program.cwd_path());
    (mock, program, bare)
}

fn listed(program: &Program, flags: &[&str]) -> Vec<String> {
    let ended = program.clone().args(["sessions", "list"]).args(flags).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut ids: Vec<String> =
        ended.stdout.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn the_list_is_of_this_directory_and_can_be_widened_narrowed_and_searched() {
    let (_mock, _owner, program) = stored();
    assert_eq!(listed(&program, &[]), ["alpha-1", "alpha-2", "beta"]);
    assert_eq!(listed(&program, &["--all"]), ["alpha-1", "alpha-2", "beta", "gamma"]);
    assert_eq!(listed(&program, &["--search", "fix"]), ["alpha-1", "beta"]);
    assert_eq!(listed(&program, &["--search", "alpha"]), ["alpha-1", "alpha-2"]);
    assert_eq!(listed(&program, &["--limit", "1"]).len(), 1);
}

#[test]
fn an_unambiguous_beginning_of_an_id_is_enough() {
    let (_mock, _owner, program) = stored();
    let shown = program.clone().args(["sessions", "show", "be"]).run();
    assert!(shown.stdout.contains("session beta"), "{shown:?}");
    let ambiguous = program.clone().args(["sessions", "show", "alpha"]).run();
    assert_eq!(ambiguous.code, Some(42), "{ambiguous:?}");
    assert!(ambiguous.stderr.contains("alpha-1") && ambiguous.stderr.contains("alpha-2"), "{ambiguous:?}");
}

#[test]
fn sessions_are_deleted_in_bulk_by_id_number_and_age() {
    let (_mock, _owner, program) = stored();
    let none = program.clone().args(["sessions", "delete"]).run();
    assert_eq!(none.code, Some(2), "{none:?}");
    assert_eq!(program.clone().args(["sessions", "delete", "alpha-1", "be"]).run().code, Some(0));
    assert_eq!(listed(&program, &["--all"]), ["alpha-2", "gamma"]);
    let dry = program.clone().args(["sessions", "delete", "--keep", "1", "--dry-run"]).run();
    assert!(dry.stdout.contains("would be deleted"), "{dry:?}");
    assert_eq!(listed(&program, &["--all"]).len(), 2);
    assert_eq!(program.clone().args(["sessions", "delete", "--keep", "1"]).run().code, Some(0));
    assert_eq!(listed(&program, &["--all"]).len(), 1);
    assert_eq!(program.clone().args(["sessions", "delete", "--older-than", "1"]).run().code, Some(0));
    assert_eq!(listed(&program, &["--all"]).len(), 1, "a new session is not old");
    assert_eq!(program.clone().args(["sessions", "delete", "--max-size", "0"]).run().code, Some(0));
    assert_eq!(listed(&program, &["--all"]).len(), 0);
}

#[test]
fn a_session_is_resumed_by_the_beginning_of_its_id() {
    let (_mock, owner, _) = stored();
    let resumed = owner.clone().args(["--resume", "be", "-p", "again"]).run();
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "Hi\n"), "{resumed:?}");
    let ambiguous = owner.clone().args(["--resume", "alpha", "-p", "again"]).run();
    assert_eq!(ambiguous.code, Some(42), "{ambiguous:?}");
    assert!(ambiguous.stderr.contains("alpha-1") && ambiguous.stderr.contains("alpha-2"), "{ambiguous:?}");
    let unknown = owner.clone().args(["--resume", "delta", "-p", "again"]).run();
    assert_eq!(unknown.code, Some(42), "{unknown:?}");
}

#[test]
fn settings_limit_how_many_sessions_are_kept() {
    let (_mock, owner, program) = stored();
    let settings = r#"{"sessions":{"maxCount":2}}"#;
    let ended = owner.clone().args(["-p", "one more", "--session-id", "new", "--settings", settings]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(listed(&program, &["--all"]), ["beta", "gamma", "new"], "the two latest of the old ones stay");
    let settings = r#"{"sessions":{"maxAgeDays":30,"maxSizeMb":100}}"#;
    let ended = owner.clone().args(["-p", "more", "--session-id", "newer", "--settings", settings]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(listed(&program, &["--all"]), ["beta", "gamma", "new", "newer"], "nothing is old or large");
    let settings = r#"{"sessions":{"maxSizeMb":0}}"#;
    let ended = owner.clone().args(["-p", "last", "--resume", "beta", "--settings", settings]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(listed(&program, &["--all"]), ["beta"], "the session that is continued stays");
}

#[test]
fn a_search_without_a_match_reports_that_and_not_that_there_are_no_sessions() {
    let (_mock, _owner, program) = stored();
    let ended = program.args(["sessions", "list", "--search", "nowhere"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stderr.contains("no session of this directory matches 'nowhere'"), "{ended:?}");
}

#[test]
fn the_end_of_a_session_is_one_line_in_every_dialect() {
    let (_mock, _owner, program) = stored();
    for dialect in ["qwen", "claude", "claude-lite", "loom", "core"] {
        let ended = program.clone().args(["sessions", "replay", "beta", "--end", "--dialect", dialect]).run();
        assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 1), "{dialect}: {ended:?}");
    }
}
