//! Refusals and mistakes say what was refused, why, and what to do.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply};

use crate::harness::{qwen, text_and_call};

fn refusal(tool: &str, arguments: &str, flags: &[&str]) -> String {
    let mock = MockModel::with([text_and_call("", tool, arguments), Reply::text("No.")]);
    let ended = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "-q"]).args(flags).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "No.\n"), "{ended:?}");
    ended.stderr
}

#[test]
fn a_refused_command_is_shown_with_the_rule_that_allows_it() {
    let told = refusal("run_shell_command", r#"{"command":"touch made && make all"}"#, &[]);
    assert!(told.contains("`touch made && make all`"), "{told}");
    assert!(told.contains("--allowed-tools 'Bash(touch *),Bash(make *)'"), "{told}");
    let allowed = ["--allowed-tools", "Bash(touch *),Bash(make *)"];
    let told = refusal("run_shell_command", r#"{"command":"touch made && make all"}"#, &allowed);
    assert_eq!(told, "", "the flag that is named helps");
}

#[test]
fn a_remedy_allows_no_more_than_the_call_needs() {
    let told = refusal("run_shell_command", r#"{"command":"git add -A && git commit -m x"}"#, &[]);
    assert!(told.contains("--allowed-tools 'Bash(git add *),Bash(git commit *)'"), "{told}");
    let told = refusal("save_memory", r#"{"fact":"x"}"#, &[]);
    assert!(told.contains("--allowed-tools 'save_memory'") && !told.contains("yolo"), "{told}");
}

#[test]
fn a_refused_edit_is_shown_with_the_mode_that_allows_it() {
    let told = refusal("write_file", r#"{"file_path":"new.txt","content":"x"}"#, &[]);
    assert!(told.contains("`new.txt`") && told.contains("--approval-mode auto-edit"), "{told}");
    let told =
        refusal("write_file", r#"{"file_path":"new.txt","content":"x"}"#, &["--approval-mode", "auto-edit"]);
    assert_eq!(told, "");
}

#[test]
fn plan_mode_says_that_it_only_reads() {
    let told =
        refusal("write_file", r#"{"file_path":"new.txt","content":"x"}"#, &["--approval-mode", "plan"]);
    assert!(told.contains("plan") && told.contains("--approval-mode default"), "{told}");
}

#[test]
fn a_call_that_a_rule_forbids_is_shown_with_the_place_of_the_rule() {
    let command = r#"{"command":"rm -r build"}"#;
    let told = refusal("run_shell_command", command, &["--yolo", "--exclude-tools", "Bash(rm *)"]);
    for part in ["`rm -r build`", "Bash(rm *)", "--exclude-tools"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for list in ["deny", "ask"] {
        let settings = format!(r#"{{"permissions":{{"{list}":["Bash(rm *)"]}}}}"#);
        let told = refusal("run_shell_command", command, &["--yolo", "--settings", &settings]);
        assert!(told.contains("`rm -r build`") && told.contains("change the rule in --settings:1"), "{told}");
    }
}

#[test]
fn a_command_that_the_sandbox_made_fail_is_told_to_the_user_once_with_the_remedy() {
    if qwen().arg("sandbox").run().code != Some(0) {
        return;
    }
    let unreachable = r#"{"command":"echo 'Could not resolve host: example.org' >&2; false"}"#;
    let elsewhere = r#"{"command":"echo 'cannot touch: Read-only file system' >&2; false"}"#;
    let call = |arguments| text_and_call("", "run_shell_command", arguments);
    let own_fault = call(r#"{"command":"echo 'expected 1, found 2'; false"}"#);
    let replies = [call(unreachable), call(unreachable), call(elsewhere), own_fault, Reply::text("No.")];
    let mock = MockModel::with(replies);
    let ended =
        qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "-q", "--yolo", "--sandbox"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "No.\n"), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let remedies = ["--sandbox-network", "--include-directories"];
    assert_eq!(lines.len(), remedies.len(), "{lines:#?}");
    for (line, remedy) in lines.iter().zip(remedies) {
        assert!(
            line.contains("the sandbox may have made run_shell_command") && line.contains(remedy),
            "{line}"
        );
    }
}

#[test]
fn a_host_that_reads_text_is_not_asked_because_it_could_not_see_the_question() {
    let call = text_and_call("", "run_shell_command", r#"{"command":"touch made"}"#);
    let mock = MockModel::with([call, Reply::text("It was refused.")]);
    let program = qwen().with_model(&mock).args([
        "--input-format",
        "stream-json",
        "--output-format",
        "text",
        "--model",
        "mock",
    ]);
    let mut run = program.start();
    run.write_line(serde_json::json!({"messages": [{"role": "user", "content": "make a file"}]}));
    // Input stays open: nothing but the missing listener refuses the call.
    assert_eq!(run.line().as_deref(), Some("It was refused."));
    run.close_stdin();
    let ended = run.wait();
    assert!(ended.code == Some(0) && ended.stderr.contains("--allowed-tools"), "{ended:?}");
    assert!(!program.cwd_path().join("made").exists());
}

#[test]
fn a_call_that_only_a_person_can_allow_says_so() {
    let hook = r#"{"file_path":".git/hooks/pre-commit","content":"x"}"#;
    let told = refusal("write_file", hook, &["--yolo"]);
    assert!(told.contains(".git/hooks/pre-commit`") && told.contains("--ask-later"), "{told}");
}

#[test]
fn a_rule_that_names_no_tool_is_an_error_where_it_forbids_and_a_warning_where_it_allows() {
    let run = |flags: &[&str]| {
        let mock = MockModel::with([Reply::text("Hi")]);
        qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "-q"]).args(flags).run()
    };
    let denied = run(&["--exclude-tools", "Bsah(rm *)"]);
    assert_eq!(denied.code, Some(2), "{denied:?}");
    assert!(denied.stderr.contains("'Bsah'") && denied.stderr.contains("did you mean 'Bash'?"), "{denied:?}");
    for list in ["deny", "ask"] {
        let settings = format!(r#"{{"permissions":{{"{list}":["Reed(secret)"]}}}}"#);
        let ended = run(&["--settings", &settings]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("did you mean 'Read'?"), "{ended:?}");
    }
    let allowed = run(&["--allowed-tools", "Bsah(ls *)"]);
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), "Hi\n"), "{allowed:?}");
    assert!(allowed.stderr.contains("did you mean 'Bash'?"), "{allowed:?}");
    let foreign = run(&["--exclude-tools", "WebSearch,mcp__x__y,KillShell"]);
    assert_eq!(
        (foreign.code, foreign.stderr.as_str()),
        (Some(0), ""),
        "tools of other vocabularies are known"
    );
}

#[test]
fn a_matcher_that_names_no_tool_is_reported() {
    let run = |event: &str, matcher: &str| {
        let mock = MockModel::with([Reply::text("Hi")]);
        let hooks = format!(
            r#"{{"hooks":{{"{event}":[{{"matcher":"{matcher}","hooks":[{{"type":"command","command":"true"}}]}}]}}}}"#
        );
        qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "-q", "--settings", &hooks]).run()
    };
    let ended = run("PreToolUse", "Edit|Bsah");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert!(ended.stderr.contains("did you mean 'Bash'?") && !ended.stderr.contains("'Edit'"), "{ended:?}");
    for (event, matcher) in [
        ("PreToolUse", "^(Bash|write_file)$"),
        ("PostToolUse", "mcp__.*"),
        ("PreToolUse", "*"),
        ("SessionStart", "startup"),
    ] {
        let ended = run(event, matcher);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{event} {matcher}");
    }
}

#[test]
fn a_sub_agent_with_an_unknown_tool_is_reported() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "-q"]);
    let agents = program.qwen_home_path().join("agents");
    fs::create_dir_all(&agents).unwrap();
    let helper = "---\nname: helper\ndescription: Helps\ntools: Read, Bsah\n---\nHelp.\n";
    fs::write(agents.join("helper.md"), helper).unwrap();
    let ended = program.run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert!(ended.stderr.contains("'helper'") && ended.stderr.contains("did you mean 'Bash'?"), "{ended:?}");
}

#[test]
fn mistyped_subcommands_and_agents_are_recognised() {
    for (words, meant) in [
        (&["sesions", "list"][..], "qwen sessions"),
        (&["shcema"], "qwen schema"),
        (&["confg"], "qwen config"),
        (&["help", "sesions"], "qwen help sessions"),
        (&["login"], "there is no subcommand 'login' here"),
        (&["version"], "qwen --version"),
        (&["confg", "--json"], "qwen config"),
        (&["--json", "confg"], "qwen config"),
        (&["--model", "demo", "doctr"], "qwen doctor"),
        (&["sesions", "list", "--all"], "qwen sessions"),
        (&["modles", "--model", "demo", "--verbose"], "qwen models"),
    ] {
        let ended = qwen().args(words).run();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(meant) && ended.stderr.contains("-p"), "{ended:?}");
    }
    let ended = qwen().args(["-p", "x", "--model", "demo", "--agent", "reakt"]).run();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("did you mean 'react'?"), "{ended:?}");
    let program = qwen().args(["-p", "x", "--model", "demo", "--trust-workspace", "--agent", "reviwer"]);
    let agents = program.cwd_path().join(".qwen/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("reviewer.md"), "---\nname: reviewer\ndescription: d\n---\nReview.\n").unwrap();
    let ended = program.run();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("react, tot, got, agot, and the sub-agents"), "{ended:?}");
    assert!(ended.stderr.contains("did you mean 'reviewer'?"), "{ended:?}");
    let ended = qwen().args(["-p", "/hlep", "--model", "demo"]).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("Did you mean '/help'?"), "{ended:?}");
}

#[test]
fn without_a_sandbox_one_warning_is_printed_and_with_the_flag_the_run_fails_at_its_start() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let wrapper = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/without_sandbox.py");
    let run = |flags: &[&str]| {
        let mock = MockModel::with([
            text_and_call("", "run_shell_command", r#"{"command":"echo one"}"#),
            text_and_call("", "run_shell_command", r#"{"command":"echo two"}"#),
            Reply::text("Done."),
        ]);
        let program = Program::new("python3").with_model(&mock);
        let program =
            program.args([wrapper, env!("CARGO_BIN_EXE_qwen"), "-p", "x", "--model", "mock", "--yolo"]);
        (program.args(flags).run(), mock.requests().len())
    };
    let (ended, calls) = run(&[]);
    assert_eq!((ended.code, ended.stdout.as_str(), calls), (Some(0), "Done.\n", 3), "{ended:?}");
    assert_eq!(ended.stderr.matches("WITHOUT A SANDBOX").count(), 1, "{ended:?}");
    let (ended, calls) = run(&["--sandbox"]);
    assert_eq!((ended.code, ended.stdout.as_str(), calls), (Some(44), "", 0), "{ended:?}");
    assert!(ended.stderr.contains("cannot confine") && ended.stderr.contains("qwen sandbox"), "{ended:?}");
}

#[test]
fn ask_later_shows_what_waits_and_how_to_answer() {
    let mock = MockModel::with([
        text_and_call("", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Made."),
    ]);
    let program = qwen().with_model(&mock).args(["--model", "mock", "-q"]);
    let ended = program.clone().args(["-p", "x", "--ask-later", "--session-id", "s"]).run();
    assert!(ended.stderr.contains("touch made"), "{ended:?}");
    let answer = "qwen --resume s --answer c1=allow";
    assert!(ended.stderr.contains(answer), "{ended:?}");
    let ended = program.clone().args(answer.split(' ').skip(1)).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Made.\n"), "{ended:?}");
    assert!(fs::exists(program.cwd_path().join("made")).unwrap());
}
