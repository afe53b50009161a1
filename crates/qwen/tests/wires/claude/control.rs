//! Control requests with which Claude's SDKs ask about a session and change it.

use std::fs;

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use super::{CLAUDE, claude_sdk, control};
use crate::harness::{Host, of};

/// Sends a request that must succeed and returns its answer.
#[track_caller]
fn answered(host: &mut Host, request: &Value) -> Value {
    let answer = control(host, request);
    assert_eq!(answer["subtype"], "success", "{request}: {answer}");
    answer["response"].clone()
}

/// Sends a request that must fail and returns the error.
#[track_caller]
fn refused(host: &mut Host, request: &Value) -> String {
    let answer = control(host, request);
    assert_eq!(answer["subtype"], "error", "{request}: {answer}");
    answer["error"].as_str().unwrap().to_owned()
}

#[test]
fn usage_and_cost_of_the_session_are_told_as_data_and_in_words() {
    let mock = MockModel::with([
        Reply::call("c", "Write", r#"{"file_path":"a.txt","content":"one\ntwo\n"}"#),
        Reply::text("Done."),
    ]);
    let mut host = Host::of(&claude_sdk(&mock).args(["--permission-mode", "acceptEdits"]), CLAUDE);
    let result = host.say("Go").pop().unwrap();
    let usage = answered(&mut host, &json!({"subtype": "get_usage"}));
    let session = &usage["session"];
    let tokens = &session["model_usage"]["mock"];
    assert_eq!(tokens["inputTokens"], result["modelUsage"]["mock"]["inputTokens"], "{usage}");
    assert_eq!(tokens["outputTokens"], result["modelUsage"]["mock"]["outputTokens"], "{usage}");
    assert_eq!((&session["total_lines_added"], &session["total_lines_removed"]), (&json!(2), &json!(0)));
    assert!(session["total_duration_ms"].is_u64() && session["total_api_duration_ms"].is_u64(), "{usage}");
    assert!(session["total_cost_usd"].is_number(), "{usage}");
    for (field, value) in [
        ("subscription_type", Value::Null),
        ("rate_limits_available", json!(false)),
        ("rate_limits", Value::Null),
        ("behaviors", Value::Null),
    ] {
        assert_eq!(usage.get(field), Some(&value), "{field}");
    }
    let cost = answered(&mut host, &json!({"subtype": "get_session_cost"}));
    let text = cost["text"].as_str().unwrap();
    for line in ["Total cost:", "2 lines added, 0 lines removed", "   mock:  "] {
        assert!(text.contains(line), "{text}");
    }
    host.leave();
}

#[test]
fn skills_that_appear_while_a_session_runs_can_be_loaded() {
    let mock = MockModel::with([
        Reply::text("Hello."),
        Reply::call("c", "Skill", r#"{"skill":"greet"}"#),
        Reply::text("Done."),
    ]);
    let program = claude_sdk(&mock).args(["--setting-sources", "project"]);
    let mut host = Host::of(&program, CLAUDE);
    let first = host.say("Hello");
    assert_eq!(super::init(&first)["skills"], json!([]));
    let folder = program.cwd_path().join(".claude/skills/greet");
    fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: greet\ndescription: Says hello.\n---\nSay hello to a heron.\n";
    fs::write(folder.join("SKILL.md"), skill).unwrap();
    let loaded = answered(&mut host, &json!({"subtype": "reload_skills"}));
    assert_eq!(
        loaded["skills"],
        json!([{"name": "greet", "description": "Says hello.", "argumentHint": ""}])
    );
    let lines = host.say("Greet");
    assert_eq!(super::init(&lines)["skills"], json!(["greet"]));
    let result = &of(&lines, "user")[0]["message"]["content"][0];
    assert!(result["content"].as_str().unwrap().contains("Say hello to a heron."), "{result}");
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(answered(&mut host, &json!({"subtype": "reload_skills"}))["skills"], json!([]));
    host.leave();
}

#[test]
fn a_host_is_told_what_plugins_brought_and_that_none_can_be_added_later() {
    let mock = MockModel::start();
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let state = answered(&mut host, &json!({"subtype": "reload_plugins"}));
    assert_eq!((&state["plugins"], &state["mcpServers"]), (&json!([]), &json!([])));
    assert_eq!(state["error_count"], 0);
    assert!(state["commands"].as_array().unwrap().iter().any(|command| command["name"] == "compact"));
    assert!(state["agents"].as_array().unwrap().iter().any(|agent| agent["name"] == "general-purpose"));
    let more = json!([{"type": "local", "path": "/nowhere"}]);
    let error = refused(&mut host, &json!({"subtype": "reload_plugins", "add_plugins": more}));
    assert!(error.contains("--plugin-dir"), "{error}");
    host.leave();
}

#[test]
fn settings_models_and_rules_can_be_asked() {
    let mock = MockModel::start();
    let flags =
        ["--allowedTools", "Bash(ls *)", "--disallowedTools", "WebFetch", "--permission-mode", "plan"];
    let program = claude_sdk(&mock).args(flags);
    let mut host = Host::of(&program, CLAUDE);
    let settings = answered(&mut host, &json!({"subtype": "get_settings"}));
    assert_eq!(settings["applied"], json!({"model": "mock", "effort": null}));
    let permissions = &settings["effective"]["permissions"];
    assert_eq!(
        (&permissions["allow"], &permissions["defaultMode"]),
        (&json!(["Bash(ls *)"]), &json!("plan"))
    );
    let rules = answered(&mut host, &json!({"subtype": "list_permission_rules"}));
    let state = &rules["state"];
    let rule = |behavior: &str, rule: &str| json!({"behavior": behavior, "source": "cliArg", "rule": rule, "editability": "session"});
    assert_eq!(state["rules"], json!([rule("deny", "WebFetch"), rule("allow", "Bash(ls *)")]));
    assert_eq!((&state["workspaceDirectories"], &state["managedOnly"]), (&json!([]), &json!(false)));
    let models = answered(&mut host, &json!({"subtype": "list_models"}));
    assert_eq!(models["models"][0]["value"], "mock");
    host.leave();
}

#[test]
fn directories_below_the_workspace_can_be_registered_and_no_others() {
    let mock = MockModel::start();
    let program = claude_sdk(&mock);
    fs::create_dir(program.cwd_path().join("sub")).unwrap();
    let mut host = Host::of(&program, CLAUDE);
    let register = |directory: &str| json!({"subtype": "register_repo_root", "directory": directory});
    let below = host.file("sub").canonicalize().unwrap();
    assert_eq!(answered(&mut host, &register("sub"))["directory"], json!(below));
    for directory in ["/", "..", ".", "nowhere", "sub/../.."] {
        refused(&mut host, &register(directory));
    }
    host.leave();
}

#[test]
fn files_are_suggested_for_what_was_typed() {
    let mock = MockModel::start();
    let program = claude_sdk(&mock);
    fs::create_dir(program.cwd_path().join("src")).unwrap();
    fs::write(program.cwd_path().join("src/heron.rs"), "").unwrap();
    let mut host = Host::of(&program, CLAUDE);
    let found = answered(&mut host, &json!({"subtype": "file_suggestions", "query": "heron"}));
    assert_eq!(found["suggestions"], json!([{"path": "src/heron.rs"}]));
    assert!(found["cwd"].is_string(), "{found}");
    host.leave();
}

#[test]
fn the_output_of_a_command_in_the_background_can_be_read() {
    let mock = MockModel::with([
        Reply::call("c", "Bash", r#"{"command":"echo heron","run_in_background":true}"#),
        Reply::text("Done."),
    ]);
    let program = claude_sdk(&mock).args(["--permission-mode", "bypassPermissions"]);
    let mut host = Host::of(&program, CLAUDE);
    let mut lines = host.say("Go");
    while !lines.iter().any(|line| line["subtype"] == "task_notification") {
        lines.push(host.run.json());
    }
    let started = lines.iter().find(|line| line["subtype"] == "task_started").unwrap();
    let request = json!({"subtype": "get_task_output", "task_id": started["task_id"]});
    let output = answered(&mut host, &request);
    assert_eq!(output, json!({"output": "heron\n", "total_bytes": 6, "truncated": false}));
    let error = refused(&mut host, &json!({"subtype": "get_task_output", "task_id": "nothing"}));
    assert!(error.contains("nothing"), "{error}");
    let moved = json!({"subtype": "background_tasks", "tool_use_id": "c"});
    assert_eq!(answered(&mut host, &moved)["backgrounded"], json!(false), "it is there already");
    host.leave();
}

#[test]
fn a_session_can_be_named_once_it_has_a_transcript() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let program = claude_sdk(&mock);
    let place = program.cwd_path().join("claude");
    let mut host = Host::of(&program.clone().env("CLAUDE_CONFIG_DIR", &place), CLAUDE);
    let rename = json!({"subtype": "rename_session", "title": "About herons"});
    refused(&mut host, &rename);
    let result = host.say("Go").pop().unwrap();
    answered(&mut host, &rename);
    host.leave();
    let folder = fs::read_dir(place.join("projects")).unwrap().next().unwrap().unwrap().path();
    let id = result["session_id"].as_str().unwrap();
    let transcript = fs::read_to_string(folder.join(format!("{id}.jsonl"))).unwrap();
    let last: Value = serde_json::from_str(transcript.lines().last().unwrap()).unwrap();
    assert_eq!(last, json!({"type": "custom-title", "customTitle": "About herons", "sessionId": id}));
}

#[test]
fn a_server_can_be_asked_about_in_modes_that_would_run_its_tools() {
    let mock = MockModel::start();
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let mode = |mode: Value| json!({"subtype": "set_mcp_permission_mode_override", "serverName": "db", "mode": mode});
    let rules = json!({"subtype": "list_permission_rules"});
    let answer = answered(&mut host, &mode(json!("default")));
    assert!(answer["warning"].as_str().unwrap().contains("db"), "{answer}");
    let listed = answered(&mut host, &rules);
    assert_eq!(
        (&listed["state"]["rules"][0]["behavior"], &listed["state"]["rules"][0]["rule"]),
        (&json!("ask"), &json!("mcp__db"))
    );
    refused(&mut host, &mode(json!("bypassPermissions")));
    assert_eq!(answered(&mut host, &mode(Value::Null)), json!({}));
    assert_eq!(answered(&mut host, &rules)["state"]["rules"], json!([]));
    host.leave();
}

#[test]
fn a_request_that_nobody_answers_here_is_an_error_and_the_session_goes_on() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    for subtype in [
        "side_question",
        "generate_session_title",
        "set_color",
        "get_binary_version",
        "update_settings",
        "mcp_call",
    ] {
        let error = refused(&mut host, &json!({"subtype": subtype}));
        assert!(error.contains(subtype), "{error}");
    }
    let resource = |uri: &str| json!({"subtype": "mcp_read_resource", "serverName": "db", "uri": uri});
    assert!(refused(&mut host, &resource("ui://x")).contains("db"));
    assert!(refused(&mut host, &resource("file:///etc/passwd")).contains("ui://"));
    assert_eq!(host.say("Go").pop().unwrap()["subtype"], "success");
    host.leave();
}
