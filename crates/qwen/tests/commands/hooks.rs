//! Hooks that live in the host.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{answer, ask, hook_callback, say, until_end, worker};

/// What a question of ours asks, in whichever form it came.
fn body(question: &Value) -> &Value {
    if question["request"].is_object() { &question["request"] } else { question }
}

fn write(name: &str) -> Reply {
    Reply::call("c1", "write_file", &json!({"file_path": name, "content": "x"}).to_string())
}

/// A worker whose host listens to `event` for `matcher`.
fn hooked(mock: &MockModel, event: &str, more: &Value) -> mock_model::process::Run {
    let mut run = worker(mock).start();
    let mut matcher = json!({"matcher": "Write", "hookCallbackIds": ["hook_0"]});
    matcher.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = ask(&mut run, &json!({"subtype": "initialize", "hooks": {event: [matcher]}}));
    assert_eq!(reply["response"]["hook_on_failure_supported"], true, "{reply}");
    run
}

#[test]
fn a_hook_of_the_host_can_refuse_a_call_and_the_model_hears_why() {
    let mock = MockModel::with([write("a.txt"), Reply::text("I see.")]);
    let mut run = hooked(&mock, "PreToolUse", &json!({}));
    say(&mut run, "write");
    let question = hook_callback(&mut run);
    let asked = body(&question);
    assert_eq!(asked["callback_id"], "hook_0", "{question}");
    assert_eq!(asked["input"]["hook_event_name"], "PreToolUse");
    assert_eq!(asked["input"]["tool_name"], "write_file");
    assert_eq!(asked["input"]["tool_input"]["file_path"], "a.txt");
    assert_eq!(asked["input"]["tool_use_id"], "c1");
    for known in ["session_id", "transcript_path", "cwd", "prompt_id", "permission_mode"] {
        assert!(asked["input"][known].is_string(), "{known}");
    }
    let no = json!({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no writes"}});
    answer(&mut run, &question, &no);
    let lines = until_end(&mut run);
    let end = &lines.last().unwrap()["metadata"]["turn"];
    assert_eq!(end["permission_denials"].as_array().unwrap().len(), 1, "{end}");
    let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
    assert!(told.contains("was declined") && told.contains("no writes"), "{told}");
    assert!(!run.finish().stdout.contains(r#""subtype":"can_use_tool""#));
}

#[test]
fn a_hook_that_allows_spares_the_question_and_may_change_the_input() {
    let mock = MockModel::with([write("a.txt"), Reply::text("Done.")]);
    let program = worker(&mock);
    let mut run = program.start();
    ask(&mut run, &json!({"subtype": "initialize", "hooks": [{"event": "PreToolUse", "callback_id": "h"}]}));
    say(&mut run, "write");
    let question = hook_callback(&mut run);
    let yes = json!({"hookSpecificOutput": {
        "permissionDecision": "allow", "updatedInput": {"file_path": "b.txt", "content": "y"}}});
    answer(&mut run, &question, &yes);
    until_end(&mut run);
    assert_eq!(std::fs::read_to_string(program.cwd_path().join("b.txt")).unwrap(), "y");
    assert!(!program.cwd_path().join("a.txt").exists());
}

#[test]
fn a_hook_that_fails_blocks_only_where_it_must_work() {
    for (policy, written) in [("block", false), ("continue", true)] {
        let mock = MockModel::with([write("a.txt"), Reply::text("Done.")]);
        let program = worker(&mock).arg("--yolo");
        let mut run = program.start();
        let matcher = json!({"matcher": "Write", "hookCallbackIds": ["h"], "onFailure": policy});
        ask(&mut run, &json!({"subtype": "initialize", "hooks": {"PreToolUse": [matcher]}}));
        say(&mut run, "write");
        let question = hook_callback(&mut run);
        let failed = json!({"subtype": "error", "request_id": question["request_id"], "error": "crashed"});
        run.write_line(json!({"type": "control_response", "response": failed}));
        until_end(&mut run);
        assert_eq!(program.cwd_path().join("a.txt").exists(), written, "{policy}");
    }
}

#[test]
fn a_prompt_that_a_hook_blocks_never_reaches_the_model() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let mut run = hooked(&mock, "UserPromptSubmit", &json!({"matcher": ""}));
    say(&mut run, "secret");
    let question = hook_callback(&mut run);
    assert_eq!(body(&question)["input"]["prompt"], "secret");
    answer(&mut run, &question, &json!({"decision": "block", "reason": "not this"}));
    let lines = until_end(&mut run);
    let end = lines.last().unwrap();
    assert_eq!(end["metadata"]["turn"]["status"], "error", "{end}");
    assert!(end["metadata"]["error"]["message"].as_str().unwrap().contains("not this"), "{end}");
    assert!(mock.requests().is_empty());

    say(&mut run, "harmless");
    let question = hook_callback(&mut run);
    let context = json!({"hookSpecificOutput": {"additionalContext": "it is Monday"}});
    answer(&mut run, &question, &context);
    until_end(&mut run);
    let told = mock.requests()[0].body.to_string();
    assert!(told.contains("harmless") && told.contains("it is Monday") && !told.contains("secret"), "{told}");
}

#[test]
fn a_stop_hook_sends_the_agent_back_to_work() {
    let mock = MockModel::with([Reply::text("Done."), Reply::text("Really done.")]);
    let mut run = hooked(&mock, "Stop", &json!({"matcher": null}));
    say(&mut run, "work");
    let first = hook_callback(&mut run);
    assert_eq!(body(&first)["input"]["stop_hook_active"], false);
    assert_eq!(body(&first)["input"]["last_assistant_message"], "Done.");
    answer(&mut run, &first, &json!({"decision": "block", "reason": "run the tests"}));
    let second = hook_callback(&mut run);
    assert_eq!(body(&second)["input"]["stop_hook_active"], true);
    answer(&mut run, &second, &json!({}));
    let lines = until_end(&mut run);
    assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done");
    assert!(mock.requests()[1].last_user_text().contains("run the tests"));
}

#[test]
fn a_hook_after_a_tool_adds_to_what_the_model_is_told() {
    let mock = MockModel::with([write("a.txt"), Reply::text("Done.")]);
    let mut run = worker(&mock).arg("--yolo").start();
    ask(&mut run, &json!({"subtype": "initialize", "hooks": {"PostToolUse": [{"hookCallbackIds": ["h"]}]}}));
    say(&mut run, "write");
    let question = hook_callback(&mut run);
    assert!(body(&question)["input"]["tool_response"].is_object(), "{question}");
    answer(&mut run, &question, &json!({"hookSpecificOutput": {"additionalContext": "format it"}}));
    until_end(&mut run);
    let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
    assert!(told.contains("format it"), "{told}");
}
