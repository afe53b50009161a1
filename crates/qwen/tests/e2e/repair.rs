//! A session as people have them: find, read, run, edit and verify, in a project with a bug that its own test
//! shows.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mock_model::process::Program;
use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{asked, judged};
use crate::stream_content::StreamContent;
use crate::wire::{CLAUDE, QWEN, Wire};

const BUG: &str = "tr -c '[:alnum:]' '-'";
const MENDED: &str = "tr -cs '[:alnum:]' '-'";
const TEST: &str = "sh tests/run.sh";

fn call(id: &str, tool: &str, arguments: &Value) -> Reply {
    Reply::new([ReplyEvent::call(id, tool, &arguments.to_string()).step()])
}

fn model() -> MockModel {
    MockModel::with([
        Reply::new([
            ReplyEvent::Text("Let me see what there is. ".into()).step(),
            ReplyEvent::call("find", "glob", &json!({ "pattern": "**/*.sh" }).to_string()).step(),
            ReplyEvent::call("search", "grep_search", &json!({ "pattern": "slugify\\(\\)" }).to_string())
                .step(),
        ]),
        Reply::new([
            ReplyEvent::call("read", "read_file", &json!({ "file_path": "lib/slug.sh" }).to_string()).step(),
            ReplyEvent::call("red", "run_shell_command", &json!({ "command": TEST }).to_string()).step(),
        ]),
        call("edit", "edit", &json!({ "file_path": "lib/slug.sh", "old_string": BUG, "new_string": MENDED })),
        call("green", "run_shell_command", &json!({ "command": TEST })),
        call("review", "run_shell_command", &json!({ "command": "git diff --stat" })),
        Reply::text("Runs of other characters are one dash now; the tests pass."),
    ])
}

/// Copies a directory, permissions included.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn tests_pass(project: &Path) -> bool {
    let status = Command::new("sh").arg("tests/run.sh").current_dir(project).stdout(Stdio::null()).status();
    status.unwrap().success()
}

/// A fresh copy of the project, in a repository of its own.
fn project(mock: &MockModel, wire: Wire) -> Program {
    let program = asked(mock, wire)
        .args(["--approval-mode", "auto-edit"])
        .args(["--allowed-tools", "Bash(sh tests/run.sh)"]);
    let here = program.cwd_path();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/slug"), here);
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "slug"],
    ] {
        let git =
            Command::new("git").args(arguments).current_dir(here).env("HOME", program.home_path()).status();
        assert!(git.unwrap().success(), "git {arguments:?}");
    }
    program
}

/// What the model was told about a call, by its id.
fn result(mock: &MockModel, id: &str) -> String {
    let requests = mock.requests();
    let messages = requests.last().unwrap().messages();
    let found = messages.iter().find(|message| message["tool_call_id"] == id);
    found.unwrap()["content"].as_str().unwrap().to_owned()
}

fn mended(wire: Wire) -> StreamContent {
    let mock = model();
    let program = project(&mock, wire);
    assert!(!tests_pass(program.cwd_path()), "the project begins with a bug");
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(tests_pass(program.cwd_path()), "the bug is gone: {ended:?}");
    let source = fs::read_to_string(program.cwd_path().join("lib/slug.sh")).unwrap();
    assert!(source.contains(MENDED) && !source.contains(BUG), "{source}");

    // Each step saw what the next one needs.
    assert!(result(&mock, "find").contains("lib/slug.sh") && result(&mock, "find").contains("tests/run.sh"));
    assert!(result(&mock, "search").contains("lib/slug.sh"));
    assert!(result(&mock, "read").contains(BUG));
    assert!(
        result(&mock, "red").contains("not ok - Hello, World")
            && result(&mock, "red").contains("Exit code: 1")
    );
    assert!(!result(&mock, "green").contains("not ok") && result(&mock, "green").contains("ok - one -- two"));
    assert!(result(&mock, "review").contains("lib/slug.sh"), "{}", result(&mock, "review"));

    let told = judged(wire, &ended);
    assert_eq!(told.end().status, "done");
    let failed: Vec<&str> = told.results.iter().filter(|r| r.is_error).map(|r| r.id.as_str()).collect();
    assert_eq!(failed, ["red"], "nothing fails but the test that has to");
    assert!(told.text.ends_with("the tests pass."), "{}", told.text);
    told
}

/// The diff of the edit, wherever a line carries it.
fn diff(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(fields) if fields.get("diff").is_some_and(Value::is_string) => Some(value),
        Value::Object(fields) => fields.values().find_map(diff),
        Value::Array(items) => items.iter().find_map(diff),
        _ => None,
    }
}

#[test]
fn a_bug_is_found_mended_and_verified_with_its_diff_in_the_stream() {
    for wire in [QWEN, CLAUDE] {
        let told = mended(wire);
        let shown = told
            .lines
            .iter()
            .rev()
            .find_map(diff)
            .unwrap_or_else(|| panic!("{wire:?}: no diff in the stream"));
        let text = shown["diff"].as_str().unwrap();
        assert!(
            text.contains(&format!("-    printf '%s' \"$1\" | tr '[:upper:]' '[:lower:]' | {BUG}")),
            "{wire:?}: {text}"
        );
        assert!(text.contains(&format!("| {MENDED} |")), "{wire:?}: {text}");
        assert!(
            shown["file_name"].as_str().is_some_and(|name| name.ends_with("slug.sh")),
            "{wire:?}: {shown}"
        );
        assert_eq!(
            (&shown["stat"]["ai_added_lines"], &shown["stat"]["ai_removed_lines"]),
            (&1.into(), &1.into()),
            "{wire:?}: {shown}"
        );
    }
}
