//! Sessions and prompts.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::json;

use crate::harness::*;

#[test]
fn a_prompt_is_answered_as_events_with_gap_free_ids() {
    let mock = MockModel::with([Reply::text("Hello there.")]);
    let server = serve(&mock);
    let id = server.session();
    let (prompt, after) = server.prompt(&id, "hi");
    assert_eq!(after, 0);
    let events = server.follow(&id, after).until(is_end);
    assert_eq!(text(&events), "Hello there.");
    assert_eq!(status(&events), "done");
    for (event, number) in events.iter().zip(1..) {
        assert_eq!(event.number(), number);
        assert_eq!(event.json()["seq"], number);
    }
    assert_eq!(
        events[0].json()["value"],
        json!({"kind": "prompt", "prompt_id": prompt, "parts": "hi", "delivery": "queue"})
    );
    assert_eq!(events.last().unwrap().json()["prompt_id"], prompt.as_str());
}

#[test]
fn the_stream_of_a_session_passes_the_checker() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done."), Reply::text("Again.")]);
    let server = serve(&mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "first");
    let mut events = server.follow(&id, after);
    let mut all = events.until(is_question);
    let request = all.last().unwrap().json()["request_id"].as_str().unwrap().to_owned();
    server.prompt(&id, "second");
    assert_eq!(server.post(&format!("/api/approvals/{request}"), json!({"decision": "allow"})).status, 200);
    all.extend(events.until(is_end));
    all.extend(events.until(is_end));
    let handshake = r#"{"object":"chat.completion.chunk","id":"chatcmpl-x","created":1,"model":"m","session_id":"x","choices":[],"system_fingerprint":"qwen-0.1.0","metadata":{"protocol_version":"1.0","input_format":"stream-json","output_format":"stream-chunk-json","capabilities":[],"session_id":"x"}}"#;
    let lines: String = all.iter().map(|event| format!("{}\n", event.data)).collect();
    let lines = format!("{handshake}\n{lines}");
    let checked = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .args(["check", "--dialect", "qwen"])
        .stdin(&lines)
        .run();
    assert_eq!(checked.code, Some(0), "{}{}\n{lines}", checked.stdout, checked.stderr);
}

#[test]
fn a_session_is_listed_shown_renamed_and_deleted() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let server = serve(&mock);
    let id = server.session();
    server.turn(&id, "the first prompt");
    let path = format!("/api/sessions/{id}");
    let shown = server.get(&path).json();
    assert_eq!((&shown["title"], &shown["status"]), (&json!("the first prompt"), &json!("idle")));
    let renamed = server.send("PATCH", &path, r#"{"title":"other"}"#);
    assert_eq!(renamed.json()["title"], "other");
    let listed = server.get("/api/sessions").json();
    assert_eq!(listed["sessions"][0]["title"], "other");
    assert_eq!(server.send("DELETE", &path, "").status, 204);
    assert_eq!(server.get(&path).status, 404);
    assert_eq!(server.get(&format!("{path}/events")).status, 404);
    assert_eq!(server.get("/api/sessions").json(), json!({"sessions": []}));
}

#[test]
fn a_fork_has_the_conversation_and_leaves_the_original_alone() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let server = serve(&mock);
    let id = server.session();
    server.turn(&id, "remember the word plum");
    let fork = server.post(&format!("/api/sessions/{id}/fork"), json!({}));
    assert_eq!(fork.status, 201, "{fork:?}");
    let fork = fork.json()["id"].as_str().unwrap().to_owned();
    let last = server.get(&format!("/api/sessions/{id}")).json()["last_event_id"].clone();
    let events = server.turn(&fork, "which word?");
    assert_eq!(text(&events), "Two.");
    assert!(mock.wait_for_request(1).body.to_string().contains("plum"));
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["last_event_id"], last);
}

#[test]
fn prompts_queue_in_order_and_can_be_withdrawn() {
    let mock = MockModel::with([
        Reply::new([sse::role(), gate("first"), sse::text("A"), sse::finish("stop"), sse::done()]),
        Reply::text("C"),
    ]);
    let server = serve(&mock);
    let id = server.session();
    let (first, after) = server.prompt(&id, "a");
    mock.reached("first");
    let (second, _) = server.prompt(&id, "b");
    server.prompt(&id, "c");
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["queued"][0], second.as_str());
    let withdraw =
        |prompt: &str| server.send("DELETE", &format!("/api/sessions/{id}/prompts/{prompt}"), "").status;
    assert_eq!((withdraw(&first), withdraw(&second), withdraw("other")), (409, 202, 404));
    mock.open("first");
    let mut events = server.follow(&id, after);
    let ends: Vec<(String, String)> = (0..3)
        .map(|_| {
            let turn = events.until(is_end);
            let end = turn.last().unwrap().json();
            (end["prompt_id"].as_str().unwrap().to_owned(), status(&turn))
        })
        .collect();
    assert!(ends.contains(&(first, "done".to_owned())), "{ends:?}");
    assert!(ends.contains(&(second, "cancelled".to_owned())), "{ends:?}");
}

#[test]
fn a_cancel_ends_the_running_turn_only() {
    let mock = MockModel::with([
        Reply::new([sse::role(), sse::text("A"), gate("never"), sse::done()]),
        Reply::text("B"),
    ]);
    let server = serve(&mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "a");
    mock.reached("never");
    server.prompt(&id, "b");
    let cancel = server.post(&format!("/api/sessions/{id}/cancel"), json!({}));
    assert_eq!((cancel.status, cancel.json()["status"].as_str()), (202, Some("ok")));
    let mut events = server.follow(&id, after);
    assert_eq!(status(&events.until(is_end)), "cancelled");
    assert_eq!(text(&events.until(is_end)), "B");
    assert_eq!(server.post(&format!("/api/sessions/{id}/cancel"), json!({})).json()["status"], "noop");
}

#[test]
fn a_steering_prompt_joins_the_running_turn() {
    let mock = MockModel::with([
        Reply::new([
            sse::role(),
            gate("call"),
            sse::call(0, "c1", "list_directory", "{\"path\":\".\"}"),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("Blue then."),
    ]);
    let server = serve(&mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "choose a colour");
    mock.reached("call");
    let steer = server.post(&format!("/api/sessions/{id}/steer"), json!({"prompt": "blue, please"}));
    assert_eq!(steer.status, 202);
    let mut events = server.follow(&id, after);
    // The worker reads the line before the call is released: the stream shows it first.
    events.until(|event| event.json()["value"]["delivery"] == "steer");
    mock.open("call");
    let turn = events.until(is_end);
    assert!(turn.iter().any(|event| event.json()["event"] == "Steered"), "{turn:#?}");
    assert!(mock.wait_for_request(1).body.to_string().contains("blue, please"));
}

#[test]
fn model_and_mode_can_change_between_turns() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let server = serve(&mock);
    let id = server.session();
    server.turn(&id, "a");
    let path = format!("/api/sessions/{id}");
    let changed = server.send("PATCH", &path, r#"{"model":"other-model","mode":"plan"}"#);
    assert_eq!((changed.status, changed.json()["mode"].as_str()), (200, Some("plan")), "{changed:?}");
    server.turn(&id, "b");
    assert_eq!(mock.wait_for_request(1).body["model"], "other-model");
    assert_eq!(server.send("PATCH", &path, r#"{"mode":"reckless"}"#).status, 400);
}

#[test]
fn sessions_live_only_in_the_workspaces() {
    let mock = MockModel::start();
    let program = program(&mock);
    let inside = program.cwd_path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink("/", program.cwd_path().join("link")).unwrap();
    let server = start(&program);
    let create = |workspace: &str| server.post("/api/sessions", json!({"workspace": workspace}));
    assert_eq!(create(inside.to_str().unwrap()).status, 201);
    let outside = [
        "/".to_owned(),
        "/etc".to_owned(),
        "inside".to_owned(),
        "..".to_owned(),
        "/does/not/exist".to_owned(),
        "/etc\0/x".to_owned(),
        program.cwd_path().join("..").display().to_string(),
        program.cwd_path().join("link").display().to_string(),
        program.cwd_path().join("link/etc").display().to_string(),
    ];
    for path in outside {
        let answer = create(&path);
        assert_eq!((answer.status, answer.code().as_str()), (403, "workspace_not_allowed"), "{path}");
    }
}

#[test]
fn bad_input_gets_one_clear_error() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let id = server.session();
    let prompts = format!("/api/sessions/{id}/prompts");
    let cases = [
        ("POST", "/api/sessions", "{", 400, "invalid_json"),
        ("POST", "/api/sessions", "[]", 400, "invalid_json"),
        ("POST", "/api/sessions", r#"{"mode":"reckless"}"#, 400, "invalid_mode"),
        ("POST", "/api/sessions", r#"{"agent":"--x"}"#, 400, "invalid_agent"),
        ("POST", "/api/sessions", r#"{"args":["--yolo"]}"#, 400, "invalid_json"),
        ("POST", &prompts, "{}", 400, "invalid_prompt"),
        ("POST", &prompts, r#"{"prompt":""}"#, 400, "invalid_prompt"),
        ("POST", &prompts, r#"{"prompt":[]}"#, 400, "invalid_prompt"),
        ("POST", &prompts, r#"{"prompt":7}"#, 400, "invalid_prompt"),
        ("PUT", "/api/sessions", "{}", 405, "method_not_allowed"),
        ("GET", "/api/nothing", "", 404, "not_found"),
        ("GET", "/nothing", "", 404, "not_found"),
        ("GET", "/api/sessions/unknown", "", 404, "not_found"),
        ("GET", "/api/sessions/..%2f..%2fetc", "", 404, "not_found"),
        ("GET", "/api/sessions/../../etc/passwd", "", 404, "not_found"),
        ("GET", "/api/sessions/%00", "", 404, "not_found"),
        ("DELETE", "/api/sessions/.hidden", "", 404, "not_found"),
        ("POST", "/api/approvals/none", r#"{"decision":"allow"}"#, 404, "not_found"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = server.send(method, path, body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path} {body}");
        assert!(!answer.json()["error"]["message"].as_str().unwrap().is_empty());
    }
    for query in ["dialect=other", "partial=maybe"] {
        assert_eq!(server.get(&format!("/api/sessions/{id}/events?{query}")).status, 400);
    }
    assert!(mock.requests().is_empty());
}
