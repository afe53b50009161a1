//! No frame exceeds one mebibyte, whatever the model sends: clients disconnect from agents with longer lines.
//! [`crate::frames::check`] measures every frame.

use mock_model::{MockModel, Reply, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, status};

const LONG: usize = 2 * 1024 * 1024;

/// Calls with one part that is far too long: the call's id, name and arguments.
fn calls() -> Vec<(String, String, Value)> {
    let long = "A".repeat(LONG);
    // Written as six bytes each.
    let control = "\u{1}".repeat(LONG / 4);
    let call = |name: &str, arguments: Value| ("c1".to_owned(), name.to_owned(), arguments);
    let todos: Vec<Value> = (0..400)
        .map(|n| json!({"id": n.to_string(), "content": "\u{1}".repeat(3000), "status": "pending"}))
        .collect();
    let question = json!({"question": long, "header": "H", "options": [{"label": "a"}, {"label": "b"}]});
    vec![
        call("read_file", json!({"file_path": format!("/tmp/{long}")})),
        call("glob", json!({"pattern": long, "path": control})),
        call("todo_write", json!({"todos": todos})),
        call("run_shell_command", json!({"command": format!("echo {long}")})),
        call("write_file", json!({"file_path": "new.txt", "content": control})),
        call("write_file", json!({"file_path": format!("/tmp/{long}"), "content": "x"})),
        call("exit_plan_mode", json!({"plan": control})),
        call("ask_user_question", json!({"questions": [question]})),
        call("agent", json!({"subagent_type": long, "description": long, "prompt": "x"})),
        call(&format!("mcp__server__{long}"), json!({"a": control})),
        call(&long, json!({})),
        ("i".repeat(LONG), "glob".to_owned(), json!({"pattern": "*"})),
    ]
}

#[test]
fn no_frame_exceeds_one_mebibyte_whatever_the_model_calls() {
    for (id, name, arguments) in calls() {
        let mock = MockModel::with([Reply::call(&id, &name, &arguments.to_string())]);
        // The request may be too long for the model; then the conversation is summarized first.
        for _ in 0..4 {
            mock.push(Reply::text("ok"));
        }
        let mut editor = Editor::with(program(&mock), &json!({"elicitation": {"form": {}}}));
        let session = editor.session();
        let prompt = editor.prompt(&session, "Go");
        loop {
            let frame = editor.next();
            match frame["method"].as_str() {
                Some("session/request_permission") => editor.select(&frame, "allow_once"),
                Some("elicitation/create") => editor.answer(&frame, &json!({"action": "decline"})),
                _ if frame["id"] == prompt => break,
                _ => {}
            }
        }
        editor.ask("session/close", &json!({"sessionId": session}));
        let params = json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []});
        let load = editor.send("session/load", &params);
        assert!(editor.response(load).1["result"].is_object());
    }
}

#[test]
fn long_ids_of_two_calls_stay_different() {
    let id = |end: &str| format!("{}{end}", "i".repeat(5000));
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, &id("1"), "glob", r#"{"pattern":"*"}"#),
            sse::call(1, &id("2"), "glob", r#"{"pattern":"[""#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("ok"),
    ]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "Go");
    let calls = crate::editor::updates(&frames, "tool_call");
    let ids: Vec<&str> = calls.iter().map(|call| call["toolCallId"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| id.len() < 300), "{ids:?}");
    assert_eq!(status(&frames, ids[0]), "completed");
    assert_eq!(status(&frames, ids[1]), "failed");
}

#[test]
fn long_texts_arrive_whole_in_several_frames() {
    let long = "\u{1}".repeat(LONG / 4);
    let mock = MockModel::with([Reply::new([
        sse::thought(&long),
        sse::text(&long),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "Go");
    assert_eq!(crate::editor::text(&frames, "agent_message_chunk").len(), long.len());
    assert_eq!(crate::editor::text(&frames, "agent_thought_chunk").len(), long.len());
}
