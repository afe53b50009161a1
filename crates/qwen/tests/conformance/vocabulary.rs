//! Tool vocabularies: a session uses one set of names for tools and arguments, towards the model and towards its host.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::stage::{CLAUDE, FORMATS, Host, chat, echo, shell, worker};

const CLAUDE_NAMES: [&str; 12] = [
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "Read",
    "TodoWrite",
    "WebFetch",
    "Write",
];

/// A user line of Claude's SDKs.
fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

/// The names of the tools that the model was told about.
fn told(mock: &MockModel) -> Vec<String> {
    let tools = mock.requests()[0].body["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn claude(mock: &MockModel) -> Program {
    worker(mock, CLAUDE).args(["--tool-names", "claude"])
}

#[test]
fn model_and_host_see_claudes_names_where_the_session_uses_them() {
    let mock = echo();
    mock.push(Reply::call("c1", "Bash", &shell("touch asked")));
    let program = claude(&mock);
    let cwd = program.cwd_path().to_owned();
    let mut host = Host::start_in(program, CLAUDE);
    host.send(user("go"));
    let init = host.until(|line| line["subtype"] == "init");
    let listed: Vec<&str> =
        init["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let question = host.question();
    assert_eq!(question["request"]["tool_name"], "Bash", "{question}");
    assert_eq!(question["request"]["input"], json!({"command": "touch asked"}));
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow", "updatedInput": {}}});
    host.send(json!({"type": "control_response", "response": response}));
    host.turn();
    assert!(cwd.join("asked").exists(), "an empty updatedInput keeps the arguments");
    let told = told(&mock);
    for name in CLAUDE_NAMES {
        assert!(told.iter().any(|tool| tool == name), "{name} is not among {told:?}");
        assert!(listed.contains(&name), "{name} is not among {listed:?}");
    }
    let ours = |name: &str| name == "run_shell_command" || name == "read_file" || name == "agent";
    assert!(
        !told.iter().any(|name| ours(name)) && !listed.iter().any(|name| ours(name)),
        "{told:?} {listed:?}"
    );
    let lines = host.leave();
    let used =
        lines.iter().filter(|line| line["type"] == "assistant").map(|line| line["message"].to_string());
    assert!(used.collect::<String>().contains(r#""name":"Bash""#));
}

#[test]
fn claudes_own_hosts_get_claudes_names_and_others_ours() {
    for (variable, flags, expected) in [
        (Some("sdk-py"), &[][..], "Bash"),
        (Some("sdk-py"), &["--tool-names", "qwen"][..], "run_shell_command"),
        (None, &[][..], "run_shell_command"),
    ] {
        let mock = echo();
        let mut program = worker(&mock, FORMATS[0]).args(flags);
        if let Some(value) = variable {
            program = program.env("CLAUDE_CODE_ENTRYPOINT", value);
        }
        let mut host = Host::start(program);
        host.send(chat("p1", "go"));
        host.turn();
        assert!(told(&mock).iter().any(|name| name == expected), "{variable:?} {flags:?}: {:?}", told(&mock));
        host.leave();
    }
}

#[test]
fn rules_of_either_vocabulary_hold_for_both() {
    for rule in ["Bash(rm *)", "run_shell_command(rm *)"] {
        for (names, tool) in [("claude", "Bash"), ("qwen", "run_shell_command")] {
            let mock = echo();
            mock.push(Reply::call("c1", tool, &shell("rm -f kept")));
            let program = worker(&mock, FORMATS[0]).args([
                "--tool-names",
                names,
                "--approval-mode",
                "yolo",
                "--disallowed-tools",
                rule,
            ]);
            let kept = program.cwd_path().join("kept");
            std::fs::write(&kept, "x").unwrap();
            let mut host = Host::start(program);
            host.send(chat("p1", "go"));
            let end = host.turn().pop().unwrap();
            assert!(kept.exists(), "{rule} {names}");
            assert_eq!(end["metadata"]["turn"]["permission_denials"][0]["tool_name"], tool, "{end}");
            host.leave();
        }
    }
}

#[test]
fn arguments_have_claudes_names_and_meaning() {
    let mock = echo();
    mock.push(Reply::call("c1", "Read", r#"{"file_path":"lines","offset":2,"limit":1}"#));
    mock.push(Reply::call("c2", "Grep", r#"{"pattern":"line","head_limit":1}"#));
    let program = claude(&mock).args(["--approval-mode", "yolo"]);
    std::fs::write(program.cwd_path().join("lines"), "line one\nline two\nline three\n").unwrap();
    let mut host = Host::start_in(program, CLAUDE);
    host.send(user("go"));
    host.turn();
    let results: Vec<String> = mock.requests()[1..]
        .iter()
        .map(|request| request.body["messages"].as_array().unwrap().last().unwrap().to_string())
        .collect();
    assert!(results[0].contains("line two") && !results[0].contains("line one"), "{}", results[0]);
    assert!(results[1].contains("line one") && !results[1].contains("unknown"), "{}", results[1]);
    host.leave();
}

#[test]
fn an_approved_question_about_a_path_outside_the_workspace_grants_it_for_that_call() {
    let mock = echo();
    let program = worker(&mock, FORMATS[0]);
    let outside = program.home_path().join("outside.txt");
    let arguments = |content: &str| json!({"file_path": outside, "content": content}).to_string();
    mock.push(Reply::call("c1", "write_file", &arguments("approved")));
    mock.push(Reply::call("c2", "write_file", &arguments("refused")));
    let mut host = Host::start(program);
    host.send(chat("p1", "go"));
    for behavior in ["allow", "deny"] {
        let question = host.question();
        host.answer(&question, json!({"behavior": behavior}));
    }
    host.turn();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "approved", "each call asks anew");
    host.leave();
}
