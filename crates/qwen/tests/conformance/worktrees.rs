//! Sub-agents that work in a git worktree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::qwen;

fn headless(mock: &MockModel, mode: &str) -> Program {
    qwen().with_model(mock).args(["--model", "mock", "-p", "Delegate", "--approval-mode", mode])
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let names = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let git = Command::new("git")
        .current_dir(folder)
        .args(names)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(git.status.success(), "{arguments:?}: {git:?}");
    String::from_utf8(git.stdout).unwrap()
}

/// Makes the working directory a repository with one commit, whose hook would leave a trace.
fn make_repository(program: &Program) {
    let folder = program.cwd_path();
    fs::write(folder.join("main.txt"), "one\n").unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "First"]);
    let hook = folder.join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch \"$PWD/hook-ran\"\n").unwrap();
    let mut mode = fs::metadata(&hook).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&hook, mode).unwrap();
}

fn isolated() -> Reply {
    let arguments = json!({"description": "try it", "prompt": "Try it", "isolation": "worktree"});
    Reply::call("c1", "agent", &arguments.to_string())
}

/// The result of the last call before request `at`.
fn result(mock: &MockModel, at: usize) -> String {
    let request = &mock.requests()[at];
    request.messages().last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn worktrees(program: &Program) -> Vec<PathBuf> {
    let base = program.qwen_home_path().join("worktrees");
    fs::read_dir(base).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn a_sub_agent_in_a_worktree_leaves_the_workspace_unchanged_and_its_report_names_the_worktree() {
    let mock = MockModel::with([isolated()]);
    let program = headless(&mock, "yolo");
    make_repository(&program);
    let own = program.cwd_path().join("main.txt");
    let write = json!({"file_path": "note.txt", "content": "a note\n"}).to_string();
    let escape = json!({"file_path": own, "old_string": "one", "new_string": "two"}).to_string();
    let change = json!({"file_path": "main.txt", "old_string": "one", "new_string": "three"}).to_string();
    mock.push(Reply::call("c2", "write_file", &write));
    mock.push(Reply::call("c3", "edit", &escape));
    mock.push(Reply::call("c4", "edit", &change));
    mock.push(Reply::call("c5", "run_shell_command", r#"{"command":"pwd; cat note.txt main.txt; ls"}"#));
    mock.push(Reply::call("c6", "glob", r#"{"pattern":"*.txt"}"#));
    mock.push(Reply::text("I tried it."));
    mock.push(Reply::text("done"));
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = mock.requests()[1].full_body().to_string();
    let [place] = &worktrees(&program)[..] else { panic!("{told}\n{ended:?}") };
    let worktree = place.join(program.cwd_path().file_name().unwrap());
    let path = worktree.to_string_lossy().into_owned();
    assert!(told.contains("isolation: you work in a separate git worktree of commit"), "{told}");
    assert!(told.contains(&format!("working directory: {path}")), "{told}");
    assert!(result(&mock, 3).contains("works in the git worktree"), "{}", result(&mock, 3));
    let output = result(&mock, 5);
    assert!(output.starts_with(&format!("{path}\na note\nthree\n")), "{output}");
    assert!(!output.contains("hook-ran"), "no hook of the repository runs: {output}");
    assert!(result(&mock, 6).contains("note.txt"), "a search without a path starts in the worktree");
    let report = result(&mock, 7);
    assert!(report.contains("I tried it.") && report.contains(&path), "{report}");
    assert!(report.contains("2 uncommitted changes"), "{report}");
    assert_eq!(fs::read_to_string(&own).unwrap(), "one\n");
    assert_eq!(git(program.cwd_path(), &["status", "--porcelain"]), "");
}

#[test]
fn a_worktree_without_changes_is_removed() {
    let mock = MockModel::with([isolated(), Reply::text("Nothing to do."), Reply::text("done")]);
    let program = headless(&mock, "default");
    make_repository(&program);
    assert_eq!(program.run().code, Some(0));
    assert!(result(&mock, 2).ends_with("Nothing to do."), "{}", result(&mock, 2));
    assert_eq!(worktrees(&program), Vec::<PathBuf>::new());
    assert_eq!(git(program.cwd_path(), &["worktree", "list"]).lines().count(), 1);
    assert!(!mock.requests()[2].full_body().to_string().contains("worktrees"), "the workspace is as before");
}

#[test]
fn isolation_is_refused_with_the_reason_where_a_worktree_cannot_be_created() {
    let refused = |flags: &[&str], mode: &str, has_repository: bool| {
        let mock = MockModel::with([isolated(), Reply::text("done")]);
        let program = headless(&mock, mode).args(flags);
        if has_repository {
            make_repository(&program);
        }
        assert_eq!(program.run().code, Some(0));
        assert_eq!(worktrees(&program), Vec::<PathBuf>::new());
        result(&mock, 1)
    };
    for (told, cause) in [
        (refused(&[], "default", false), "not a git repository"),
        (refused(&[], "plan", true), "plan mode"),
        (
            refused(&["--disallowed-tools", "Read(//**/main.txt)"], "default", true),
            "absolute paths in the workspace",
        ),
    ] {
        assert!(told.starts_with("The sub-agent was not started") && told.contains(cause), "{told}");
    }
}

#[test]
fn the_sub_agent_tool_has_no_arguments_without_effect() {
    for names in ["qwen", "claude"] {
        let mock = MockModel::with([Reply::text("done")]);
        let program = headless(&mock, "default").args(["--tool-names", names]);
        assert_eq!(program.run().code, Some(0));
        let body = mock.requests()[0].full_body();
        let tools = body["tools"].as_array().unwrap();
        let is_agent = |tool: &&Value| ["agent", "Task"].iter().any(|name| tool["function"]["name"] == *name);
        let agent = tools.iter().find(is_agent).unwrap();
        let arguments = agent["function"]["parameters"]["properties"].as_object().unwrap();
        let mut named: Vec<&str> = arguments.keys().map(String::as_str).collect();
        named.sort_unstable();
        assert_eq!(named, ["description", "isolation", "prompt", "run_in_background", "subagent_type"]);
        assert!(!agent.to_string().contains("no effect"), "{agent}");
    }
}

#[test]
fn rules_for_paths_of_the_workspace_apply_in_a_worktree() {
    let mock = MockModel::with([isolated()]);
    let rules = "Read(secret.txt),Edit(/main.txt)";
    let program = headless(&mock, "yolo").args(["--disallowed-tools", rules]);
    make_repository(&program);
    mock.push(Reply::call("c2", "read_file", r#"{"file_path":"secret.txt"}"#));
    let change = json!({"file_path": "main.txt", "old_string": "one", "new_string": "two"}).to_string();
    mock.push(Reply::call("c3", "edit", &change));
    mock.push(Reply::text("Nothing."));
    mock.push(Reply::text("done"));
    assert_eq!(program.run().code, Some(0));
    for (at, rule) in [(2, "Read(secret.txt)"), (3, "Edit(/main.txt)")] {
        assert!(result(&mock, at).contains(&format!("The rule {rule} denies it.")), "{}", result(&mock, at));
    }
}
