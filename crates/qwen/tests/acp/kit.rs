//! The requirements of the protocol's own test kit, under their names.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, text};

fn raw(mock: &MockModel) -> Editor {
    Editor::raw(program(mock))
}

#[test]
fn initialize_negotiates_the_version() {
    for (requested, answered) in [(1, 1), (2, 1), (65535, 1), (0, 1)] {
        let mut editor = raw(&MockModel::start());
        let result = editor.ask("initialize", &json!({"protocolVersion": requested, "clientInfo": {}}));
        assert_eq!(result["protocolVersion"], answered);
        assert!(result["agentInfo"]["name"].is_string() && result["agentInfo"]["version"].is_string());
        assert_eq!(result["authMethods"][0]["id"], "model-key");
        assert_eq!(result["authMethods"].as_array().unwrap().len(), 1, "a terminal was not advertised");
    }
    let mut editor = raw(&MockModel::start());
    let capabilities = json!({"auth": {"terminal": true}});
    let result = editor.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
    assert_eq!(result["authMethods"][1]["type"], "terminal");
}

#[test]
fn ids_are_echoed_as_integer_string_and_null() {
    let mut editor = Editor::start(&MockModel::start());
    for id in [json!(0), json!(-7), json!(u64::MAX), json!("a"), json!(""), json!("ä\n"), Value::Null] {
        editor.run.write_line(json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}));
        let frame = editor.next();
        assert_eq!(frame["id"], id);
        assert!(frame["result"].is_object());
    }
    editor.run.write_line(r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"session/list"}"#);
    let line = editor.run.line().unwrap();
    assert!(line.contains("\"id\":123456789012345678901234567890,"), "{line}");
}

#[test]
fn notifications_are_never_answered() {
    let mut editor = Editor::start(&MockModel::start());
    editor.notify("session/cancel", &json!({"sessionId": "unknown"}));
    editor.notify("session/cancel", &json!(null));
    editor.notify("_unknown/notification", &json!({}));
    editor.notify("nothing", &json!({}));
    editor.notify("$/cancel_request", &json!({"requestId": 99}));
    let id = editor.send("session/list", &json!({}));
    assert!(editor.response(id).0.is_empty());
}

#[test]
fn unknown_and_custom_requests_are_answered() {
    let mut editor = Editor::start(&MockModel::start());
    for method in ["nothing", "_custom/request", "session/fork", "fs/read_text_file", "logout"] {
        assert_eq!(editor.request(method, &json!({}))["error"]["code"], -32601, "{method}");
    }
    assert!(editor.ask("session/list", &json!({}))["sessions"].is_array(), "usable after errors");
}

#[test]
fn new_sessions_have_different_ids_and_state() {
    let mut editor = Editor::start(&MockModel::start());
    let (one, two) = (editor.session(), editor.session());
    assert!(!one.is_empty() && one != two);
    let opened = editor.ask("session/new", &json!({"cwd": editor.cwd(), "mcpServers": []}));
    let modes = opened["modes"]["availableModes"].as_array().unwrap();
    assert!(modes.iter().any(|mode| mode["id"] == opened["modes"]["currentModeId"]));
    crate::frames::check_options(&opened["configOptions"]);
    for mode in modes {
        let params = json!({"sessionId": opened["sessionId"], "modeId": mode["id"]});
        assert_eq!(editor.ask("session/set_mode", &params), json!({}));
    }
}

#[test]
fn no_update_follows_the_response_and_updates_are_for_the_right_session() {
    let mock = MockModel::with([Reply::text("a"), Reply::text("b")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "Hi");
    assert!(frames.iter().all(|frame| frame["params"]["sessionId"] == session.as_str()));
    let id = editor.send("session/list", &json!({}));
    assert!(editor.response(id).0.is_empty(), "nothing of the turn comes after its response");
}

#[test]
fn cancel_is_answered_with_cancelled_and_nothing_follows() {
    let mock = MockModel::with([Reply::new([sse::text("a"), gate("never")])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    mock.reached("never");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.response(id).1["result"]["stopReason"], "cancelled");
    let id = editor.send("session/list", &json!({}));
    assert!(editor.response(id).0.is_empty());
}

#[test]
fn closing_with_a_running_prompt_ends_it_as_cancelled_first() {
    let mock = MockModel::with([Reply::new([sse::text("a"), gate("never")])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = editor.prompt(&session, "Hi");
    mock.reached("never");
    let close = editor.send("session/close", &json!({"sessionId": session}));
    let (before, response) = editor.response(close);
    assert_eq!(response["result"], json!({}));
    let ended = before.iter().find(|frame| frame["id"] == prompt).expect("the prompt was answered");
    assert_eq!(ended["result"]["stopReason"], "cancelled");
}

#[test]
fn additional_directories_widen_the_workspace() {
    let first = MockModel::start();
    let editor = Editor::start(&first);
    let other = editor.program.home_path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("seen.txt"), "inside").unwrap();
    let mock = MockModel::with([
        Reply::call("c1", "read_file", &json!({"file_path": other.join("seen.txt")}).to_string()),
        Reply::text("ok"),
    ]);
    let mut editor = Editor::with(editor.program.clone().with_model(&mock), &json!({}));
    let params = json!({"cwd": editor.cwd(), "mcpServers": [], "additionalDirectories": [other]});
    let session = editor.ask("session/new", &params)["sessionId"].as_str().unwrap().to_owned();
    let (frames, _) = editor.turn(&session, "Read");
    assert_eq!(crate::editor::status(&frames, "c1"), "completed", "{frames:#?}");
}

#[test]
fn meta_is_accepted_everywhere() {
    let mock = MockModel::with([Reply::text("ok")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = json!({"sessionId": session, "_meta": {"a": 1}, "prompt": [
        {"type": "text", "text": "Hi", "_meta": {"b": null}, "annotations": {"audience": ["user"]}}]});
    let id = editor.send("session/prompt", &prompt);
    let (frames, response) = editor.response(id);
    assert_eq!(response["result"]["stopReason"], "end_turn");
    assert_eq!(text(&frames, "agent_message_chunk"), "ok");
}
