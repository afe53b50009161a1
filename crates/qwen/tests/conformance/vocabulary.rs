//! Tool vocabularies: a session uses one set of names for tools and arguments, towards the model and towards
//! its host.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{CLAUDE, FORMATS, Host, chat, echo, shell, worker};

const CLAUDE_NAMES: [&str; 16] = [
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "NotebookEdit",
    "Read",
    "Task",
    "TaskOutput",
    "TaskStop",
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
    mock.push(Reply::call("c2", "Grep", r#"{"pattern":"line","head_limit":1,"output_mode":"content"}"#));
    mock.push(Reply::call("c3", "Grep", r#"{"pattern":"line"}"#));
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
    assert!(results[0].contains("continue with offset 3"), "{}", results[0]);
    assert!(results[1].contains("line one") && !results[1].contains("unknown"), "{}", results[1]);
    assert!(
        results[2].contains("lines") && !results[2].contains("line one"),
        "files by default: {}",
        results[2]
    );
    host.leave();
}

/// The results of calls that the model makes one after the other, in a session with Claude's names.
fn results_of(calls: &[(&str, Value)], prepare: impl FnOnce(&std::path::Path)) -> (Vec<String>, Vec<Value>) {
    let mock = echo();
    for (at, (tool, arguments)) in calls.iter().enumerate() {
        mock.push(Reply::call(&format!("c{at}"), tool, &arguments.to_string()));
    }
    let program = claude(&mock).args(["--approval-mode", "yolo"]);
    prepare(program.cwd_path());
    let mut host = Host::start_in(program, CLAUDE);
    host.send(user("go"));
    let lines = host.turn();
    host.leave();
    let results = lines.iter().filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_null());
    let results = results.flat_map(|line| line["message"]["content"].as_array().cloned().unwrap_or_default());
    let results =
        results.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string());
    (results.collect(), lines)
}

#[test]
fn a_cell_of_a_notebook_is_edited() {
    let book = |cell: &str, source: &str| json!({ "notebook_path": "b.ipynb", "cell_id": cell, "new_source": source });
    let calls = [
        ("NotebookEdit", book("cell-0", "print(2)")),
        ("NotebookEdit", book("no-such-cell", "x")),
        ("Bash", json!({ "command": "cat b.ipynb" })),
    ];
    let (results, _) = results_of(&calls, |cwd| {
        let cell = json!({ "cell_type": "code", "metadata": {}, "source": ["print(1)"], "outputs": [1], "execution_count": 4 });
        let book = json!({ "nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell] });
        std::fs::write(cwd.join("b.ipynb"), book.to_string()).unwrap();
    });
    assert!(results[0].contains("Replaced the cell cell-0"), "{results:?}");
    assert!(results[1].contains("no cell 'no-such-cell'"), "{results:?}");
    assert!(results[2].contains("print(2)") && !results[2].contains("print(1)"), "{results:?}");
}

#[test]
fn background_tasks_are_read_and_stopped_by_every_name_of_their_tools() {
    let start = |command: &str| {
        (
            "Bash",
            json!({ "command": command, "run_in_background": true, "timeout": 5000, "description": "d" }),
        )
    };
    let calls = [
        start("echo one"),
        ("TaskOutput", json!({ "task_id": "shell-1", "block": true, "timeout": 600_000 })),
        start("sleep 600"),
        ("TaskOutput", json!({ "task_id": "shell-2", "block": false, "timeout": 1 })),
        ("TaskStop", json!({ "task_id": "shell-2" })),
        start("sleep 600"),
        ("BashOutput", json!({ "bash_id": "shell-3" })),
        ("KillShell", json!({ "shell_id": "shell-3" })),
        start("sleep 600"),
        ("TaskStop", json!({ "shell_id": "shell-4" })),
    ];
    let (results, lines) = results_of(&calls, |_| {});
    assert_eq!(results.len(), calls.len(), "{lines:#?}");
    assert!(results[1].contains("one"), "a wait lasts until the end: {results:?}");
    for (at, expected) in [
        (3, "It is running"),
        (4, "It was ended"),
        (6, "It is running"),
        (7, "It was ended"),
        (9, "It was ended"),
    ] {
        assert!(results[at].contains(expected), "{at}: {results:?}");
    }
}

#[test]
fn a_sub_agent_takes_the_arguments_of_claudes_tool_and_refuses_an_unknown_isolation() {
    let asked = |more: Value| {
        let mut arguments = json!({ "description": "d", "prompt": "p", "subagent_type": "Explore" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let calls = [
        ("Task", asked(json!({ "model": "haiku", "name": "n", "mode": "plan", "run_in_background": false }))),
        ("Task", asked(json!({ "isolation": "remote" }))),
    ];
    let mock = echo();
    mock.push(Reply::call("c0", calls[0].0, &calls[0].1.to_string()));
    mock.push(Reply::text("looked around"));
    mock.push(Reply::call("c1", calls[1].0, &calls[1].1.to_string()));
    let mut host = Host::start_in(claude(&mock), CLAUDE);
    host.send(user("go"));
    let lines = host.turn();
    host.leave();
    let requests = mock.requests();
    assert_eq!(
        requests[1].body["model"], requests[0].body["model"],
        "Claude's names of models are not sent to another server"
    );
    let told: String = lines.iter().filter(|line| line["type"] == "user").map(Value::to_string).collect();
    assert!(
        told.contains("looked around") && told.contains("`isolation` must be \\\"worktree\\\""),
        "{told}"
    );
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

#[test]
fn the_mode_yolo_and_a_rule_that_names_it_read_a_path_outside_the_workspace_and_write_none() {
    for by_rule in [false, true] {
        let mock = echo();
        let program = worker(&mock, FORMATS[0]);
        let path = program.home_path().join("outside.txt");
        std::fs::write(&path, "readable").unwrap();
        let program = if by_rule {
            program.args([format!("--allowed-tools=Read(/{})", path.display())])
        } else {
            program.args(["--yolo"])
        };
        mock.push(Reply::call("c1", "read_file", &json!({"file_path": path}).to_string()));
        mock.push(Reply::call(
            "c2",
            "write_file",
            &json!({"file_path": path, "content": "changed"}).to_string(),
        ));
        let mut host = Host::start(program);
        host.send(chat("p1", "go"));
        if by_rule {
            let question = host.question();
            host.answer(&question, json!({"behavior": "deny"}));
        }
        host.turn();
        let sent = mock.requests()[1].body.to_string();
        assert!(sent.contains("readable"), "{sent}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "readable");
        host.leave();
    }
}

#[test]
fn a_denied_action_of_background_tasks_leaves_the_other_one() {
    let mock = echo();
    mock.push(Reply::call("c1", "Bash", r#"{"command":"sleep 600","run_in_background":true}"#));
    mock.push(Reply::call("c2", "BashOutput", r#"{"bash_id":"shell-1"}"#));
    let mut host = Host::start_in(claude(&mock).args(["--yolo", "--disallowedTools", "KillShell"]), CLAUDE);
    host.send(user("go"));
    let lines = host.turn();
    host.leave();
    let told = told(&mock);
    let offered = |name: &str| told.iter().any(|tool| tool == name);
    assert!(offered("BashOutput") && offered("TaskOutput"), "{told:?}");
    assert!(!offered("KillShell") && !offered("TaskStop"), "{told:?}");
    let results: String = lines.iter().filter(|line| line["type"] == "user").map(Value::to_string).collect();
    assert!(results.contains("It is running"), "{results}");

    // In our vocabulary one tool does both.
    let mock = echo();
    mock.push(Reply::call("c1", "run_shell_command", r#"{"command":"sleep 600","is_background":true}"#));
    mock.push(Reply::call("c2", "shell_task", r#"{"task_id":"shell-1","action":"kill"}"#));
    mock.push(Reply::call("c3", "shell_task", r#"{"task_id":"shell-1","action":"output"}"#));
    let mut host =
        Host::start_in(worker(&mock, CLAUDE).args(["--yolo", "--exclude-tools", "KillShell"]), CLAUDE);
    host.send(user("go"));
    let lines = host.turn();
    host.leave();
    let results: String = lines.iter().filter(|line| line["type"] == "user").map(Value::to_string).collect();
    assert!(results.contains("Permission for shell_task was declined"), "{results}");
    assert!(results.contains("It is running"), "{results}");
}
