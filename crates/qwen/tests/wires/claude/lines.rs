//! Lines and fields that only hosts of Claude's family send and read.

use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use super::{CLAUDE, claude_sdk};
use crate::harness::{Host, call, of};

#[test]
fn what_was_pasted_reaches_the_model_behind_what_was_typed() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let message = json!({"role": "user", "content": "Look at this:"});
    let pasted = json!(["a heron", [{"type": "text", "text": "a crane"}]]);
    host.run.write_line(json!({"type": "user", "message": message, "pasted_content": pasted}));
    while host.run.json()["type"] != "result" {}
    let sent = mock.requests()[0].body.to_string();
    assert!(sent.contains(r"Look at this:\n\na heron\n\na crane"), "{sent}");
    host.leave();
}

#[test]
fn a_line_that_asks_nothing_is_remembered_and_still_has_its_result() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let message = json!({"role": "user", "content": "There is a heron."});
    host.run.write_line(json!({"type": "user", "message": message, "shouldQuery": false}));
    let result = loop {
        let line = host.run.json();
        assert_ne!(line["type"], "assistant", "nobody was asked");
        if line["type"] == "result" {
            break line;
        }
    };
    assert_eq!(
        (&result["subtype"], &result["num_turns"], &result["result"]),
        (&json!("success"), &json!(0), &json!(""))
    );
    assert!(mock.requests().is_empty());
    host.say("What is there?");
    let sent = mock.requests()[0].body.to_string();
    assert!(sent.contains("There is a heron.") && sent.contains("What is there?"), "{sent}");
    host.leave();
}

#[test]
fn a_call_that_is_refused_without_a_question_is_told_before_its_result() {
    let write = r#"{"file_path":"made","content":"x"}"#;
    let denied = |flags: &[&str], kind: &str| {
        let mock = MockModel::with([Reply::call("c", "Write", write), Reply::text("Done.")]);
        let mut host = Host::of(&claude_sdk(&mock).args(flags), CLAUDE);
        let lines = host.say("Go");
        let at = lines.iter().position(|line| line["subtype"] == "permission_denied").unwrap();
        let (told, result) = (&lines[at], &lines[at + 1]["message"]["content"][0]);
        assert_eq!((&told["tool_name"], &told["tool_use_id"]), (&json!("Write"), &json!("c")));
        assert_eq!((&told["message"], &told["decision_reason_type"]), (&result["content"], &json!(kind)));
        assert!(told["decision_reason"].is_string() && told["uuid"].is_string(), "{told}");
        host.leave();
    };
    denied(&["--permission-mode", "dontAsk"], "mode");
    denied(&[], "mode");
    denied(&["--permission-mode", "bypassPermissions", "--disallowedTools", "Write(made)"], "rule");
    let mock = MockModel::with([Reply::call("c", "Write", write), Reply::text("Done.")]);
    let mut host = Host::of(&claude_sdk(&mock).args(["--permission-prompt-tool", "stdio"]), CLAUDE);
    host.ask("Go");
    loop {
        let line = host.run.json();
        assert_ne!(line["subtype"], "permission_denied", "the host was asked");
        if line["type"] == "control_request" {
            let answer = json!({"behavior": "deny", "message": "no"});
            let response =
                json!({"subtype": "success", "request_id": line["request_id"], "response": answer});
            host.run.write_line(json!({"type": "control_response", "response": response}));
        }
        if line["type"] == "result" {
            break;
        }
    }
    host.leave();
}

#[test]
fn a_result_has_the_usage_that_claudes_package_declares_and_names_its_prompt() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let (uuid, message) = ("3f0a4f34-0000-4000-8000-000000000008", json!({"role": "user", "content": "Go"}));
    host.run.write_line(json!({"type": "user", "message": message, "uuid": uuid}));
    let result = loop {
        let line = host.run.json();
        if line["type"] == "result" {
            break line;
        }
    };
    assert_eq!(result["user_message_uuid"], uuid);
    let usage = &result["usage"];
    assert_eq!(usage["server_tool_use"], json!({"web_search_requests": 0, "web_fetch_requests": 0}));
    assert_eq!(
        usage["cache_creation"],
        json!({"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0})
    );
    assert_eq!(usage["service_tier"], "standard");
    host.leave();
}

#[test]
fn the_tasks_in_the_background_are_listed_whenever_one_starts_or_ends() {
    let mock = MockModel::with([
        Reply::call("c", "Bash", r#"{"command":"true","description":"d","run_in_background":true}"#),
        Reply::text("Done."),
    ]);
    let mut host = Host::of(&claude_sdk(&mock).args(["--permission-mode", "bypassPermissions"]), CLAUDE);
    let mut lines = host.say("Go");
    let listed = |lines: &[Value]| -> Vec<Value> {
        let listed = lines.iter().filter(|line| line["subtype"] == "background_tasks_changed");
        listed.map(|line| line["tasks"].clone()).collect()
    };
    while listed(&lines).len() < 2 {
        lines.push(host.run.json());
    }
    let started = lines.iter().find(|line| line["subtype"] == "task_started").unwrap();
    let task = json!({"task_id": started["task_id"], "task_type": "local_bash", "description": "d"});
    assert_eq!(listed(&lines), [json!([task]), json!([])]);
    let updated = lines.iter().find(|line| line["subtype"] == "task_updated").unwrap();
    assert_eq!(updated["patch"]["status"], "completed");
    host.leave();
}

#[test]
fn questions_that_are_answered_in_the_dialog_say_so() {
    let ask = json!({"questions": [{
        "question": "Which?", "header": "H", "multiSelect": false,
        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
    }]});
    let mock = MockModel::with([
        Reply::call("c1", "AskUserQuestion", &ask.to_string()),
        Reply::call("c2", "Bash", r#"{"command":"touch x"}"#),
        Reply::text("Done."),
    ]);
    let mut host = Host::of(&claude_sdk(&mock).args(["--permission-prompt-tool", "stdio"]), CLAUDE);
    let lines = host.say("Go");
    let asked = of(&lines, "control_request");
    assert_eq!(asked[0]["request"]["requires_user_interaction"], json!(true));
    assert_eq!(asked[1]["request"].get("requires_user_interaction"), None);
    host.leave();
}

#[test]
fn the_end_of_a_compaction_says_who_wanted_it() {
    let mock = MockModel::with([Reply::text("Hello."), Reply::text("A summary.")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    host.say("Hello");
    let lines = host.say("/compact");
    let boundary = lines.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    assert_eq!(boundary["compact_metadata"]["trigger"], "manual", "{boundary}");
    host.leave();
}

#[test]
fn every_entry_of_a_message_has_its_whole_usage() {
    let mock = MockModel::with([
        Reply::new([
            ReplyEvent::Text("I look.".into()).step(),
            call("c", "Bash", &json!({"command": "echo out"})),
            ReplyEvent::Usage { input: 100, output: 20 }.step(),
        ]),
        Reply::text("Done."),
    ]);
    let program = claude_sdk(&mock);
    let place = program.cwd_path().join("claude");
    let mut host = Host::of(&program.clone().env("CLAUDE_CONFIG_DIR", &place), CLAUDE);
    let id = host.say("Go").pop().unwrap()["session_id"].as_str().unwrap().to_owned();
    host.leave();
    let folder = std::fs::read_dir(place.join("projects")).unwrap().next().unwrap().unwrap().path();
    let transcript = std::fs::read_to_string(folder.join(format!("{id}.jsonl"))).unwrap();
    let entries: Vec<Value> = transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "assistant", "user", "assistant"]);
    for entry in &entries[1..3] {
        assert_eq!(entry["message"]["id"], entries[1]["message"]["id"]);
        let usage = &entry["message"]["usage"];
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(100), &json!(20)), "{entry}");
    }
}
