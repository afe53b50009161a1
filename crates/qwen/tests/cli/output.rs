//! Standard output is the answer; everything else is on standard error.

use std::fs;
use std::io::Write;
use std::time::SystemTime;

use mock_model::{MockModel, Reply, sse};
use serde_json::json;

use crate::harness::{looking, qwen, text_and_call};

#[test]
fn standard_output_is_the_final_message_and_narration_goes_to_standard_error() {
    let ended = qwen().with_model(&looking()).args(["-p", "look", "--model", "mock"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "There is nothing.\n"), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines[0], "Let me look.", "{ended:?}");
    assert!(lines[1].starts_with("qwen: session ") && lines[1].ends_with(", 30 tokens"), "{ended:?}");
    assert_eq!(lines.len(), 2, "{ended:?}");
}

#[test]
fn quiet_leaves_standard_error_to_warnings() {
    let ended = qwen().with_model(&looking()).args(["-p", "look", "--model", "mock", "--quiet"]).run();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("There is nothing.\n", ""));
}

#[test]
fn the_closing_line_names_session_tokens_cost_files_and_denials() {
    let mock = MockModel::with([
        text_and_call("", "write_file", r#"{"file_path":"new.txt","content":"x\n"}"#),
        text_and_call("", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Done."),
    ]);
    let prices = r#"{"model":{"prices":{"mock":{"input":1000,"output":2000}}}}"#;
    let flags = [
        "-p",
        "x",
        "--model",
        "mock",
        "--approval-mode",
        "auto-edit",
        "--session-id",
        "s1",
        "--settings",
        prices,
    ];
    let ended = qwen().with_model(&mock).args(flags).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap();
    assert_eq!(last, "qwen: session s1, 45 tokens, $0.0600, 1 file changed (new.txt), 1 call denied");
}

#[test]
fn the_last_message_can_be_written_to_a_file_in_every_format() {
    for format in ["text", "json", "stream-json"] {
        let flags = ["-p", "look", "--model", "mock", "-o", format, "--output-last-message", "answer.txt"];
        let mock = looking();
        let program = qwen().with_model(&mock).args(flags);
        assert_eq!(program.run().code, Some(0));
        let answer = fs::read_to_string(program.cwd_path().join("answer.txt")).unwrap();
        assert_eq!(answer, "There is nothing.\n", "{format}");
    }
}

#[test]
fn the_file_of_the_last_message_contains_no_secret() {
    let mock = MockModel::with([Reply::text("The password is geheim-4f9a1c7e.")]);
    let program = qwen().with_model(&mock).env("DB_PASSWORD", "geheim-4f9a1c7e");
    let program = program.args(["-p", "x", "--model", "mock", "--output-last-message", "answer.txt"]);
    assert_eq!(program.run().stdout, "The password is g***.\n");
    let answer = fs::read_to_string(program.cwd_path().join("answer.txt")).unwrap();
    assert_eq!(answer, "The password is g***.\n");
}

#[test]
fn a_last_message_that_cannot_be_written_is_a_failure() {
    let flags = ["-p", "look", "--model", "mock", "--output-last-message", "no/such/answer.txt"];
    let ended = qwen().with_model(&looking()).args(flags).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--output-last-message"), "{ended:?}");
}

#[test]
fn fail_on_denied_turns_a_denial_into_exit_code_54() {
    let denied = || {
        MockModel::with([
            text_and_call("", "run_shell_command", r#"{"command":"touch made"}"#),
            Reply::text("I may not."),
        ])
    };
    let ended = qwen().with_model(&denied()).args(["-p", "x", "--model", "mock"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = qwen().with_model(&denied()).args(["-p", "x", "--model", "mock", "--fail-on-denied"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(54), "I may not.\n"), "{ended:?}");
    let excluded = ["--yolo", "--fail-on-denied", "--exclude-tools", "run_shell_command"];
    let ended = qwen().with_model(&denied()).args(["-p", "x", "--model", "mock"]).args(excluded).run();
    assert_eq!(ended.code, Some(54), "a tool that is not offered: {ended:?}");
    assert!(ended.stderr.contains("1 call denied"), "{ended:?}");
    let ended = qwen().with_model(&looking()).args(["-p", "x", "--model", "mock", "--fail-on-denied"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn the_last_message_and_logs_follow_no_link_in_the_workspace() {
    use std::os::unix::fs::symlink;
    for (flag, name) in [
        ("--output-last-message", "file"),
        ("--output-last-message", "dangling"),
        ("--output-last-message", "directory/new"),
        ("--output-last-message", "second-name"),
        ("--debug-file", "file"),
        ("--debug-file", "directory/new"),
        ("--telemetry-outfile", "file"),
    ] {
        let program = qwen();
        let (here, home) = (program.cwd_path().to_owned(), program.home_path().to_owned());
        std::fs::write(home.join("profile"), "mine").unwrap();
        symlink(home.join("profile"), here.join("file")).unwrap();
        symlink(home.join("new"), here.join("dangling")).unwrap();
        symlink(&home, here.join("directory")).unwrap();
        std::fs::hard_link(home.join("profile"), here.join("second-name")).unwrap();
        let ended = program.clone().args(["-p", "Hello", "--model", "demo", flag, name]).run();
        assert_eq!(
            std::fs::read_to_string(home.join("profile")).unwrap(),
            "mine",
            "{flag} {name}: {ended:?}"
        );
        assert!(!home.join("new").exists(), "{flag} {name}: {ended:?}");
    }
    // A link that the user made outside the workspace is followed.
    let program = qwen();
    symlink(program.home_path().join("target"), program.home_path().join("link")).unwrap();
    let link = program.home_path().join("link");
    let ended =
        program.clone().args(["-p", "Hello", "--model", "demo", "--output-last-message"]).arg(&link).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(std::fs::read_to_string(program.home_path().join("target")).is_ok_and(|text| !text.is_empty()));
}

#[test]
fn a_failed_command_shows_its_exit_code_and_last_line_and_a_refusal_follows_its_text() {
    let mock = MockModel::with([
        text_and_call(
            "Let me try.",
            "run_shell_command",
            r#"{"command":"echo one; echo two >&2; echo; exit 3"}"#,
        ),
        text_and_call("Now the other.", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Done."),
    ]);
    let allow = ["--allowed-tools", "run_shell_command(echo),run_shell_command(exit)"];
    let ended = qwen().with_model(&mock).args(["--model", "mock", "-p", "x"]).args(allow).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{ended:?}");
    let at = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("no {text:?}: {ended:?}"));
    assert!(at("exit 3: two") > at("Let me try."), "{ended:?}");
    assert!(at("`touch made`") > at("Now the other."), "{ended:?}");
}

#[test]
fn files_that_commands_changed_count_as_changed() {
    let command =
        json!({"command": "echo y >> old.txt; mkdir -p src; echo x > src/new.txt; echo z > ignored.log"});
    let mock = MockModel::with([
        text_and_call("", "write_file", r#"{"file_path":"written.txt","content":"x\n"}"#),
        Reply::call("c2", "run_shell_command", &command.to_string()),
        Reply::text("Done."),
    ]);
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--yolo"]);
    for (name, content) in [("old.txt", "x\n"), ("untouched.txt", "x\n"), (".gitignore", "*.log\n")] {
        let file = std::fs::File::create(program.cwd_path().join(name)).unwrap();
        (&file).write_all(content.as_bytes()).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let ended = program.run();
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.ends_with("3 files changed (written.txt, old.txt, src/new.txt)"), "{last}");
}

#[test]
fn calls_of_sub_agents_are_listed_with_verbose() {
    let agent = json!({"description": "look", "prompt": "Look", "subagent_type": "explore"}).to_string();
    let mock = MockModel::with([
        Reply::call("c1", "agent", &agent),
        Reply::call("d1", "read_file", r#"{"file_path":"missing.txt"}"#),
        Reply::text("Seen."),
        Reply::text("Done."),
    ]);
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--verbose"]);
    let ended = program.run();
    let listed = r#"  sub-agent: read_file {"file_path":"missing.txt"}: missing.txt does not exist."#;
    assert!(ended.stderr.lines().any(|line| line == listed), "{}", ended.stderr);
}

#[test]
fn a_refused_call_of_a_sub_agent_is_reported_like_any_other() {
    let mock = MockModel::with([
        Reply::call("c1", "agent", r#"{"description":"make","prompt":"Make it"}"#),
        Reply::call("d1", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Not made."),
        Reply::text("Done."),
    ]);
    let ended = qwen().with_model(&mock).args(["-p", "x", "--model", "mock"]).run();
    let told = "qwen: sub-agent: run_shell_command requires permission for `touch made`";
    assert!(ended.stderr.lines().any(|line| line.starts_with(told)), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 call denied"), "{}", ended.stderr);
}

#[test]
fn a_failed_command_is_reported_by_its_own_last_line_and_a_refusal_by_its_reason() {
    let call = |id: &str, command: &str| {
        Reply::call(id, "run_shell_command", &json!({ "command": command }).to_string())
    };
    let edit = json!({"file_path": "none.txt", "old_string": "a", "new_string": "b"}).to_string();
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, "c1", "edit", &edit),
            sse::call(1, "c2", "run_shell_command", r#"{"command":"python3 -V > x"}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        call("c3", "echo one; echo 'touch: Read-only file system'; exit 1"),
        call("c4", "echo last; exit 4"),
        Reply::text("Done."),
    ]);
    let rules = ["--allowed-tools", "Bash(echo *),Bash(exit *)"];
    let ended = qwen().with_model(&mock).args(["-p", "x", "--model", "mock"]).args(rules).run();
    assert!(!ended.stderr.contains("Note:"), "{ended:?}");
    assert!(ended.stderr.contains("qwen: run_shell_command requires permission for `python3"), "{ended:?}");
    assert!(ended.stderr.contains("exit 1: touch: Read-only file system\n"), "{ended:?}");
    assert!(
        ended.stderr.contains("qwen: run_shell_command `echo last; exit 4`: exit 4: last\n"),
        "{ended:?}"
    );
}
