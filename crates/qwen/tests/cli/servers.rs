//! `qwen models`, `qwen doctor`, the manual page, the version and the environment in the system prompt.

use std::fs;

use mock_model::process::{Program, Signal};
use mock_model::{MockModel, Reply, gate};
use serde_json::{Value, json};

use crate::harness::{qwen, shell};

/// A server that offers these models and answers.
fn offering(names: &[&str]) -> MockModel {
    let mock = MockModel::with([Reply::text("Hi"), Reply::text("Hi")]);
    mock.offer_models(names);
    mock
}

#[test]
fn models_lists_what_the_server_offers_and_marks_the_configured_one() {
    let mock = offering(&["small", "large"]);
    let program = qwen().with_model(&mock);
    let ended = program.clone().args(["models", "--model", "large"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "  small\n* large\n"), "{ended:?}");
    let ended = program.clone().args(["models", "--json"]).run();
    let models: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&models[0]["id"], &models[0]["configured"]), (&"small".into(), &false.into()));
    let ended = qwen().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").args(["models"]).run();
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert!(ended.stderr.contains("127.0.0.1:1/v1/models"), "{ended:?}");
}

#[test]
fn without_a_configured_model_the_only_one_of_the_server_is_used() {
    let mock = offering(&["only-one"]);
    let program = qwen().with_model(&mock);
    let ended = program.clone().args(["-p", "x", "-q"]).run();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "Hi\n", ""));
    assert_eq!(mock.requests()[0].body["model"], "only-one");
    assert_eq!(program.clone().args(["models"]).run().stdout, "* only-one\n");
    let chosen = program.clone().args(["-p", "x", "-q", "--model", "another"]).run();
    assert_eq!(chosen.code, Some(0), "{chosen:?}");
    assert_eq!(mock.requests()[1].body["model"], "another");
}

#[test]
fn several_models_are_listed_and_none_is_guessed() {
    let mock = offering(&["small", "large"]);
    let program = qwen().with_model(&mock);
    let ended = program.clone().args(["-p", "x"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(42), ""), "{ended:?}");
    for part in ["small", "large", "--model NAME"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    let doctor = program.clone().args(["doctor"]).run();
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("small, large"), "{doctor:?}");
    assert_eq!(mock.requests().len(), 0, "nothing was asked");
    let structured = ["--input-format", "stream-json", "--output-format", "stream-json", "--dialect", "qwen"];
    let prompt = r#"{"session_id":"_new","input":{"origin":"user","parts":[{"type":"text","text":"x"}]}}"#;
    let lines = program.clone().args(structured).stdin(format!("{prompt}\n")).run().json_lines();
    let error = &lines.last().unwrap()["metadata"]["error"];
    assert!(error["message"].as_str().unwrap().contains("small, large"), "{lines:?}");
}

#[test]
fn a_server_without_a_list_is_asked_for_the_default_model() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let ended = qwen().with_model(&mock).args(["-p", "x", "-q"]).run();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "Hi\n", ""));
    assert_eq!(mock.requests()[0].body["model"], "qwen3-coder-plus");
}

#[test]
fn a_server_that_offers_no_model_is_named_and_none_is_guessed() {
    let mock = offering(&[]);
    let program = qwen().with_model(&mock);
    for (arguments, code) in [(&["-p", "x"][..], 42), (&["models"], 42), (&["doctor"], 1)] {
        let ended = program.clone().args(arguments).run();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("offers no models") && said.contains("--model NAME"), "{arguments:?}: {said}");
    }
    assert_eq!(mock.requests().len(), 0, "nothing was asked");
}

#[test]
fn settings_of_qwen_code_cause_no_warnings() {
    let theirs = r#"{
        "$version": 4, "model": {"name": "mock", "generationConfig": {"timeout": 60000}, "somethingNewer": 1},
        "security": {"auth": {"selectedType": "qwen-oauth"}, "folderTrust": {"enabled": true}},
        "ui": {"theme": "Qwen Dark"}, "ide": {"enabled": true}, "privacy": {"usageStatisticsEnabled": false},
        "general": {"vimMode": true, "preferredEditor": "vim"}, "agents": {"displayMode": "x"}, "nobodyKnowsThis": {},
        "tools": {"approvalMode": "auto", "useRipgrep": true, "shell": {"pager": "cat"}},
        "context": {"fileFiltering": {"respectGitIgnore": true}}, "modelProviders": {"openai": []}
    }"#;
    let mock = MockModel::with([Reply::text("Hi"), Reply::text("Hi")]);
    let program = qwen().with_model(&mock).args(["-p", "x", "-q"]);
    let file = program.qwen_home_path().join("settings.json");
    fs::create_dir_all(program.qwen_home_path()).unwrap();
    fs::write(&file, theirs).unwrap();
    let ended = program.run();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "Hi\n", ""));
    assert_eq!(mock.requests()[0].body["model"], "mock");
    fs::write(&file, r#"{"$version": 4, "modle": {"name": "x"}}"#).unwrap();
    let ended = program.run();
    assert!(ended.stderr.contains("did you mean \"model\"?"), "a typing error is still reported: {ended:?}");
}

#[test]
fn exceeding_the_limit_of_tokens_is_reported() {
    let mock = MockModel::with([Reply::text("Hi"), Reply::text("Hi")]);
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--max-tokens-total", "4"]);
    let ended = program.clone().arg("-q").run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hi\n"), "{ended:?}");
    assert_eq!(
        ended.stderr,
        "qwen: the limit of 4 tokens was exceeded by 11: 15 are spent (--max-tokens-total)\n"
    );
    let lines = program.clone().args(["--dialect", "qwen"]).run().json_lines();
    assert!(lines.iter().any(|line| line["event"] == "MAX_TOKENS"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done");
}

#[test]
fn doctor_checks_everything_that_a_run_needs() {
    let ended = qwen().args(["doctor", "--model", "demo"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for check in ["settings", "server", "model", "tool call", "sandbox", "mcp", "disk"] {
        assert!(ended.stdout.lines().any(|line| line.starts_with(check)), "{check}: {ended:?}");
    }
    let mock = offering(&["only-one"]);
    let ended = qwen().with_model(&mock).args(["doctor"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("offers one model, 'only-one'"), "{ended:?}");
    assert!(ended.stdout.contains("called no tool"), "{ended:?}");
    let ended = qwen().args(["doctor", "--json"]).run();
    assert_eq!(ended.code, Some(1), "no model is configured: {ended:?}");
    let checks: Value = serde_json::from_str(&ended.stdout).unwrap();
    let model = checks.as_array().unwrap().iter().find(|check| check["check"] == "model").unwrap();
    assert_eq!(model["status"], "failed", "{checks}");
}

#[test]
fn the_manual_page_and_help_describe_every_flag_under_a_heading() {
    let help = qwen().args(["--help"]).run().stdout;
    for heading in ["Input and output:", "Permissions:", "Limits:", "Model:", "Sessions:", "Diagnostics:"] {
        assert!(help.lines().any(|line| line == heading), "{heading}\n{help}");
    }
    let page = qwen().args(["man"]).run().stdout;
    assert!(page.starts_with(".TH QWEN 1") && page.contains(".SH EXIT STATUS"), "{page}");
    for flag in ["approval\\-mode", "output\\-last\\-message", "fail\\-on\\-denied", "no\\-stdin"] {
        assert!(page.contains(flag), "{flag}\n{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = qwen().args(["completions", shell]).run().stdout;
        assert!(script.contains("doctor") && script.contains("complete-values"), "{shell}");
    }
}

#[test]
fn bash_completes_sessions_models_and_agents() {
    let mock = offering(&["small", "large"]);
    let program = qwen().with_model(&mock);
    let stored = program.clone().args(["-p", "x", "--model", "small", "--session-id", "kept", "-q"]).run();
    assert_eq!(stored.code, Some(0), "{stored:?}");
    let script = r#"
        PATH="$(dirname "$QWEN"):$PATH"
        eval "$(qwen completions bash)"
        complete_after() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _qwen_with_values qwen "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[@]}"; }
        complete_after qwen --model la
        complete_after qwen --resume ""
        complete_after qwen sessions show k
        complete_after qwen --agent to
        complete_after qwen doc"#;
    let ended = shell("exec bash -c \"$SCRIPT\"")
        .env("SCRIPT", script)
        .env("QWEN_HOME", program.qwen_home_path())
        .cwd(program.cwd_path())
        .with_model(&mock)
        .run();
    assert_eq!(ended.stdout, "large\nkept\nkept\ntot\ndoctor\n", "{ended:?}");
}

#[test]
fn the_version_can_be_read_by_programs() {
    let text = qwen().args(["--version"]).run().stdout;
    assert!(text.starts_with("qwen ") && text.lines().count() == 1, "{text}");
    for flags in [["--version", "--json"], ["--json", "--version"]] {
        let document: Value = serde_json::from_str(&qwen().args(flags).run().stdout).unwrap();
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["protocol_version"], "1.0");
    }
}

#[test]
fn the_first_message_names_date_platform_shell_and_git_branch() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program =
        qwen().with_model(&mock).env("SHELL", "/bin/zsh").args(["-p", "x", "--model", "mock", "-q"]);
    let init = std::process::Command::new("git")
        .args(["init", "-q", "-b", "topic"])
        .current_dir(program.cwd_path())
        .status();
    assert!(init.unwrap().success());
    assert_eq!(program.run().code, Some(0));
    let request = &mock.requests()[0];
    let first = request.full_body()["messages"][1]["content"].as_str().unwrap().to_owned();
    for part in
        ["\ndate: 20", "\nplatform: linux", "/bin/zsh", "\ngit: branch topic", "\nworking directory: "]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    let size = request.bytes.len();
    assert!(size < 14 * 1024, "the first request has {size} bytes");
}

#[test]
fn a_closed_terminal_still_gets_its_terminal_record() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let flags = ["-p", "x", "--model", "mock", "--output-format", "stream-json", "--dialect", "qwen"];
    let mut run = qwen().with_model(&mock).args(flags).start();
    run.close_stdin();
    mock.reached("never");
    run.signal(Signal::HUP);
    let ended = run.wait();
    let last = ended.json_lines().pop().unwrap();
    assert_eq!(last["metadata"]["turn"]["status"], "interrupted", "{ended:?}");
}

#[test]
fn auth_status_reports_where_the_key_comes_from_and_asks_no_model() {
    let mock = MockModel::start();
    let status = |program: Program, args: &[&str]| {
        let ended = program.args(args).run();
        (ended.code, serde_json::from_str::<Value>(&ended.stdout).unwrap(), ended.stderr)
    };
    for args in [
        &["auth", "status"][..],
        &["auth", "status", "--json"],
        &["--settings", "{}", "auth", "status", "--json"],
    ] {
        let (code, said, _) = status(qwen().with_model(&mock).env("CLAUDE_CONFIG_DIR", "/c"), args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        let expected = json!({
            "loggedIn": true, "authMethod": "api_key", "apiProvider": "openai", "apiKeySource": "OPENAI_API_KEY",
            "configDirectory": "/c", "projectsDirectory": "/c/projects", "loginExpiresAt": null,
        });
        assert_eq!(said, expected, "{args:?}");
    }
    let (code, said, _) = status(qwen(), &["auth", "status"]);
    assert_eq!((code, &said["loggedIn"], said.get("apiKeySource")), (Some(1), &json!(false), None), "{said}");
    let text = qwen().with_model(&mock).args(["auth", "status", "--text"]).run();
    assert_eq!((text.code, &*text.stdout), (Some(0), "API key: OPENAI_API_KEY\n"));
    assert_eq!(qwen().args(["auth", "logout"]).run().code, Some(0));
    let login = qwen().args(["auth", "login", "--console"]).run();
    assert!(login.code == Some(41) && login.stderr.contains("OPENAI_API_KEY"), "{login:?}");
    assert!(mock.requests().is_empty());
}

#[test]
fn a_subcommand_of_another_cli_is_an_error_and_no_prompt() {
    let mock = MockModel::start();
    for words in [&["update"][..], &["setup-token"], &["plugin", "list", "--json"], &["extensions", "list"]] {
        let ended = qwen().with_model(&mock).args(words).run();
        assert!(
            ended.code == Some(2) && ended.stderr.contains("there is no subcommand"),
            "{words:?}: {ended:?}"
        );
    }
    assert!(mock.requests().is_empty());
}
