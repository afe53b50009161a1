//! Turns: text, thoughts, calls, stop reasons, cancellation, steering, forms of command output.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, status, text, updates};

#[test]
fn text_and_thoughts_are_messages_with_different_ids() {
    let mock = MockModel::with([Reply::new([
        sse::thought("hm"),
        sse::text("Hel"),
        sse::text("lo"),
        sse::usage(10, 3),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, reason) = editor.turn(&session, "Hi");
    assert_eq!(reason, "end_turn");
    assert_eq!(text(&frames, "agent_message_chunk"), "Hello");
    assert_eq!(text(&frames, "agent_thought_chunk"), "hm");
    let ids =
        |kind| updates(&frames, kind).iter().map(|chunk| chunk["messageId"].clone()).collect::<Vec<_>>();
    let (texts, thoughts) = (ids("agent_message_chunk"), ids("agent_thought_chunk"));
    assert!(texts.iter().all(|id| *id == texts[0]) && texts[0] != thoughts[0]);
    assert!(updates(&frames, "user_message_chunk").is_empty(), "the editor shows the prompt itself");
    let usage = updates(&frames, "usage_update");
    assert_eq!(usage[0]["used"], 13, "{usage:?}");
    assert!(usage[0]["cost"].is_null(), "the model has no price");
    assert_eq!(updates(&frames, "session_info_update")[0]["title"], "Hi");
}

#[test]
fn a_call_is_announced_runs_and_ends() {
    let mock =
        MockModel::with([Reply::call("c1", "read_file", r#"{"file_path":"a.txt"}"#), Reply::text("Done.")]);
    let mut editor = Editor::start(&mock);
    std::fs::write(editor.program.cwd_path().join("a.txt"), "content\n").unwrap();
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "Read a.txt");
    let call = updates(&frames, "tool_call")[0].clone();
    assert_eq!(
        (&call["name"], &call["kind"], &call["status"]),
        (&json!("read_file"), &json!("read"), &json!("pending"))
    );
    let described: Vec<&Value> = updates(&frames, "tool_call_update");
    assert_eq!(described[0]["title"], "Read a.txt");
    assert_eq!(described[0]["rawInput"], json!({"file_path": "a.txt"}));
    assert_eq!(described[0]["locations"][0]["path"], format!("{}/a.txt", editor.cwd()));
    let statuses: Vec<&str> = described.iter().filter_map(|update| update["status"].as_str()).collect();
    assert_eq!(statuses, ["pending", "in_progress", "completed"]);
    assert!(described.last().unwrap()["rawOutput"]["text"].as_str().unwrap().contains("content"));
}

#[test]
fn the_todo_list_is_the_plan() {
    let todos = r#"{"todos":[{"id":"1","content":"first","status":"in_progress"},{"id":"2","content":"second","status":"pending"}]}"#;
    let mock = MockModel::with([Reply::call("c1", "todo_write", todos), Reply::text("ok")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "Plan");
    let plan = updates(&frames, "plan");
    assert_eq!(plan.last().unwrap()["entries"][0]["content"], "first");
    assert_eq!(plan.last().unwrap()["entries"][1]["status"], "pending");
}

#[test]
fn stop_reasons_name_why_the_model_stopped() {
    for (finish, expected) in [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")]
    {
        let mock = MockModel::start();
        for _ in 0..4 {
            mock.push(Reply::new([sse::text("x"), sse::finish(finish), sse::done()]));
        }
        let mut editor = Editor::start(&mock);
        let session = editor.session();
        assert_eq!(editor.turn(&session, "Hi").1, expected);
    }
    let mock = MockModel::with([Reply::call("c1", "glob", r#"{"pattern":"*"}"#), Reply::text("x")]);
    let mut editor = Editor::with(program(&mock).args(["--max-turns", "1"]), &json!({}));
    let session = editor.session();
    assert_eq!(editor.turn(&session, "Hi").1, "max_turn_requests");
}

#[test]
fn a_model_failure_is_a_readable_error_and_the_session_stays_usable() {
    let mock =
        MockModel::with([Reply::status(400, r#"{"error":{"message":"bad\nmodel"}}"#), Reply::text("Fine.")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    let (_, response) = editor.response(id);
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("bad"), "{response}");
    let (frames, reason) = editor.turn(&session, "Again");
    assert_eq!((text(&frames, "agent_message_chunk").as_str(), reason.as_str()), ("Fine.", "end_turn"));
}

#[test]
fn a_cancel_answers_the_prompt_with_cancelled_and_ends_its_calls() {
    let mock = MockModel::with([Reply::new([
        sse::text("one"),
        sse::call(0, "c1", "read_file", "{\"file"),
        gate("never"),
    ])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    mock.reached("never");
    editor.until(|frame| frame["params"]["update"]["sessionUpdate"] == "tool_call");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    let (frames, response) = editor.response(id);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    assert_eq!(status(&frames, "c1"), "failed", "{frames:#?}");
    mock.push(Reply::text("Next."));
    assert_eq!(editor.turn(&session, "Go on").1, "end_turn");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn the_requests_cancel_notification_ends_a_prompt_with_cancelled() {
    let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    mock.reached("never");
    editor.notify("$/cancel_request", &json!({"requestId": id.to_string()}));
    editor.notify("$/cancel_request", &json!({"requestId": id}));
    assert_eq!(editor.response(id).1["result"]["stopReason"], "cancelled");
}

#[test]
fn a_second_prompt_is_refused_and_the_first_continues() {
    let mock =
        MockModel::with([Reply::new([gate("open"), sse::text("one"), sse::finish("stop"), sse::done()])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let first = editor.prompt(&session, "Hi");
    mock.reached("open");
    let second = editor.prompt(&session, "Ho");
    let (_, refused) = editor.response(second);
    assert_eq!(refused["error"]["code"], -32600);
    assert!(refused["error"]["message"].as_str().unwrap().contains("_session/steering"), "{refused}");
    mock.open("open");
    assert_eq!(editor.response(first).1["result"]["stopReason"], "end_turn");
}

#[test]
fn prompts_of_different_sessions_run_concurrently() {
    let mock = MockModel::start();
    mock.push(Reply::new([gate("first"), sse::text("one"), sse::finish("stop"), sse::done()]));
    let mut editor = Editor::start(&mock);
    let (one, two) = (editor.session(), editor.session());
    let first = editor.prompt(&one, "Hi");
    mock.reached("first");
    mock.push(Reply::text("two"));
    let (frames, _) = editor.turn(&two, "Ho");
    assert_eq!(text(&frames, "agent_message_chunk"), "two");
    mock.open("first");
    assert_eq!(editor.response(first).1["result"]["stopReason"], "end_turn");
}

#[test]
fn steering_joins_the_turn_and_asks_for_a_prompt_while_idle() {
    let mock = MockModel::start();
    mock.push(Reply::new([
        gate("open"),
        sse::call(0, "c1", "glob", r#"{"pattern":"*"}"#),
        sse::finish("tool_calls"),
        sse::done(),
    ]));
    mock.push(Reply::text("Steered."));
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let words = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    assert_eq!(editor.ask("_session/steering", &words("idle"))["outcome"], "promptRequired");
    let prompt = editor.prompt(&session, "Hi");
    mock.reached("open");
    let steering = editor.send("_session/steering", &words("and look here"));
    mock.open("open");
    let (_, steered) = editor.response(steering);
    assert_eq!(steered["result"]["outcome"], "injected", "{steered}");
    assert_eq!(editor.response(prompt).1["result"]["stopReason"], "end_turn");
    assert!(mock.requests().last().unwrap().body.to_string().contains("and look here"));
}

#[test]
fn a_steered_prompt_of_a_cancelled_turn_failed() {
    let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")]), Reply::text("two")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = editor.prompt(&session, "Hi");
    mock.reached("never");
    let words = json!({"sessionId": session, "prompt": [{"type": "text", "text": "more"}]});
    let steering = editor.send("_session/steering", &words);
    editor.notify("session/cancel", &json!({"sessionId": session}));
    let (before, response) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled");
    let steered =
        before.iter().find(|frame| frame["id"] == steering).expect("answered before the turn ended");
    assert_eq!(steered["result"]["outcome"], "failed", "{steered}");
    assert_eq!(editor.turn(&session, "Again").1, "end_turn");
    assert_eq!(mock.requests().len(), 2, "the steered prompt did not run");
}

#[test]
fn a_cancel_request_without_an_id_cancels_nothing() {
    let mock =
        MockModel::with([Reply::new([gate("open"), sse::text("one"), sse::finish("stop"), sse::done()])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]});
    editor
        .run
        .write_line(json!({"jsonrpc": "2.0", "id": null, "method": "session/prompt", "params": params}));
    mock.reached("open");
    editor.notify("$/cancel_request", &json!({}));
    mock.open("open");
    let is_answer = |frame: &Value| frame.get("method").is_none() && frame["id"].is_null();
    assert_eq!(editor.until(is_answer).pop().unwrap()["result"]["stopReason"], "end_turn");
}

#[test]
fn prompts_with_the_same_id_are_both_answered() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut editor = Editor::start(&mock);
    for session in [editor.session(), editor.session()] {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]});
        editor.run.write_line(
            json!({"jsonrpc": "2.0", "id": "same", "method": "session/prompt", "params": params}),
        );
    }
    for _ in 0..2 {
        let answer = editor.until(|frame| frame["id"] == "same").pop().unwrap();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
}

#[test]
fn command_output_is_text_unless_the_client_shows_terminals() {
    for (meta, is_terminal) in [(json!({}), false), (json!({"terminal_output": true}), true)] {
        let mock = MockModel::with([
            Reply::call("c1", "run_shell_command", r#"{"command":"echo shown; exit 3"}"#),
            Reply::text("ok"),
        ]);
        let mut editor =
            Editor::with(program(&mock).args(["--approval-mode", "yolo"]), &json!({"_meta": meta}));
        let session = editor.session();
        let (frames, _) = editor.turn(&session, "Run");
        let all = serde_json::to_string(&frames).unwrap();
        assert_eq!(all.contains("\"terminal\""), is_terminal, "{frames:#?}");
        assert_eq!(all.contains("terminal_info"), is_terminal);
        assert_eq!(all.contains("terminal_exit"), is_terminal);
        assert!(all.contains("shown"));
        // The same forms in a replay.
        editor.ask("session/close", &json!({"sessionId": session}));
        let cwd = editor.cwd();
        let id = editor.send("session/load", &json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        let (replayed, _) = editor.response(id);
        assert_eq!(serde_json::to_string(&replayed).unwrap().contains("\"terminal\""), is_terminal);
    }
}

#[test]
fn unstable_usage_and_notices_are_sent_on_request_only() {
    let reply = || Reply::new([sse::text("x"), sse::usage(7, 2), sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([reply(), reply()]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    assert!(editor.response(id).1["result"].get("usage").is_none());
    let mut editor = Editor::with(program(&mock).args(["--acp-unstable", "usage"]), &json!({}));
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    let (_, response) = editor.response(id);
    assert_eq!(response["result"]["usage"]["inputTokens"], 7, "{response}");
    assert_eq!(response["result"]["usage"]["outputTokens"], 2);
}

#[test]
fn slash_commands_answer_as_messages() {
    let mock = MockModel::start();
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let commands =
        editor.until(|frame| frame["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let list = commands.last().unwrap()["params"]["update"]["availableCommands"].clone();
    assert!(list.as_array().unwrap().iter().any(|command| command["name"] == "help"), "{list}");
    let (frames, reason) = editor.turn(&session, "/help");
    assert_eq!(reason, "end_turn");
    assert!(!text(&frames, "agent_message_chunk").is_empty());
}

#[test]
fn images_links_and_resources_reach_the_model() {
    let mock = MockModel::with([Reply::text("ok")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = json!([
        {"type": "text", "text": "See "},
        {"type": "resource_link", "uri": "file:///w/linked.rs", "name": "linked.rs"},
        {"type": "resource", "resource": {"uri": "file:///w/inline.rs", "text": "fn inlined() {}"}},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    ]);
    let response = editor.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    let body = mock.requests()[0].body.to_string();
    for part in ["linked.rs", "fn inlined() {}", "iVBORw0KGgo="] {
        assert!(body.contains(part), "{part}: {body}");
    }
}
