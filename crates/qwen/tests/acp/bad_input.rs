//! Bad input costs one error each, and nothing else.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::editor::{Editor, program};

/// Each method with parameters that are right, for the session in the placeholder.
fn methods(session: &str, cwd: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("authenticate", json!({"methodId": "model-key"})),
        ("session/new", json!({"cwd": cwd, "mcpServers": []})),
        ("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})),
        ("session/resume", json!({"sessionId": session, "cwd": cwd})),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "default"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "default"})),
        ("session/close", json!({"sessionId": session})),
        ("_session/steering", json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hi"}]})),
    ]
}

#[test]
fn every_field_that_is_missing_null_or_of_the_wrong_type_is_one_error() {
    let mut editor = Editor::start(&MockModel::start());
    let session = editor.session();
    for (method, params) in methods(&session, &editor.cwd()) {
        for name in params.as_object().unwrap().keys() {
            for broken in [None, Some(Value::Null), Some(json!(1)), Some(json!({})), Some(json!(true))] {
                let mut params = params.clone();
                match &broken {
                    Some(value) => params[name] = value.clone(),
                    None => drop(params.as_object_mut().unwrap().remove(name)),
                }
                let response = editor.request(method, &params);
                assert_eq!(response["error"]["code"], -32602, "{method} {name} {broken:?}: {response}");
                assert!(response["error"]["message"].as_str().unwrap().contains(name.as_str()), "{response}");
            }
        }
    }
    assert_eq!(editor.ask("session/close", &json!({"sessionId": session})), json!({}), "it is still open");
}

#[test]
fn every_text_that_is_far_too_long_has_one_short_answer() {
    let mock = MockModel::start();
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let long = "x".repeat(5 * 1024 * 1024);
    for (method, params) in methods(&session, &editor.cwd()) {
        for (name, value) in params.as_object().unwrap() {
            if !value.is_string() {
                continue;
            }
            let mut params = params.clone();
            params[name] = long.as_str().into();
            let response = editor.request(method, &params);
            let code = response["error"]["code"].as_i64().unwrap();
            assert!([-32602, -32002].contains(&code), "{method} {name}: {code}");
            assert!(response.to_string().len() < 4096, "{method} {name}");
        }
    }
    assert_eq!(editor.ask("session/close", &json!({"sessionId": session})), json!({}), "it is still open");
}

#[test]
fn unknown_sessions_and_directories_have_their_codes() {
    let mut editor = Editor::start(&MockModel::start());
    let cwd = editor.cwd();
    for (method, params) in methods("no-such-session", &cwd) {
        if params.get("sessionId").is_some() {
            let response = editor.request(method, &params);
            assert_eq!(response["error"]["code"], -32002, "{method}: {response}");
        }
    }
    for id in ["", "../x", "a b", &"x".repeat(500)] {
        assert_eq!(
            editor.request("session/close", &json!({"sessionId": id}))["error"]["code"],
            -32002,
            "{id}"
        );
    }
    for cwd in ["relative", "", "/no/such/directory", "./x"] {
        let response = editor.request("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!(response["error"]["code"], -32602, "{cwd}: {response}");
    }
    let session = editor.session();
    for prompt in [
        json!([]),
        json!([{"type": "text", "text": ""}]),
        json!([{"type": "audio", "data": "", "mimeType": "a/b"}]),
        json!([1]),
    ] {
        let response = editor.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        assert_eq!(response["error"]["code"], -32602, "{prompt}: {response}");
    }
}

#[test]
fn methods_before_initialize_and_a_second_initialize_are_refused() {
    let mut editor = Editor::raw(program(&MockModel::start()));
    for (method, params) in methods("s", "/") {
        assert_eq!(editor.request(method, &params)["error"]["code"], -32600, "{method}");
    }
    for params in [
        json!({}),
        json!({"protocolVersion": "1"}),
        json!({"protocolVersion": null}),
        json!({"protocolVersion": 1, "clientCapabilities": 1}),
    ] {
        assert_eq!(editor.request("initialize", &params)["error"]["code"], -32602, "{params}");
    }
    editor.ask("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(editor.request("initialize", &json!({"protocolVersion": 1}))["error"]["code"], -32600);
}

#[test]
fn lines_that_are_no_messages_cost_one_error_each() {
    let mut editor = Editor::start(&MockModel::start());
    for (line, code) in [
        ("garbage", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("\u{0}", -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\"}]", -32600),
        ("42", -32600),
        ("\"text\"", -32600),
        ("null", -32600),
        ("{}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"x\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"x\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"result\":{}}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":7}", -32600),
    ] {
        editor.run.write_line(line);
        let frame = editor.next();
        assert_eq!(frame["error"]["code"], code, "{line}: {frame}");
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    editor.run.write_line(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\",\"params\":{{\"a\":{deep}}}}}"
    ));
    assert!(editor.next()["error"]["code"].is_i64());
    editor.run.write(b"\xff\xfe\n");
    assert_eq!(editor.next()["error"]["code"], -32700);
    editor.run.write(b"\n  \n");
    editor.run.write_line(json!({"jsonrpc": "2.0", "id": "nothing", "result": {}}));
    editor.run.write_line(json!({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}}));
    let id = editor.send("session/list", &json!({}));
    assert!(editor.response(id).0.is_empty(), "answers to nothing are ignored");
}

#[test]
fn a_line_of_33_mb_is_refused_and_the_next_one_is_read() {
    let mut editor = Editor::start(&MockModel::start());
    let mut line = vec![b' '; 33 * 1024 * 1024];
    line[0] = b'{';
    line.push(b'\n');
    editor.run.write(&line);
    let frame = editor.next();
    assert_eq!(frame["error"]["code"], -32600);
    assert!(frame["error"]["message"].as_str().unwrap().contains("32 MiB"), "{frame}");
    assert!(editor.ask("session/list", &json!({}))["sessions"].is_array());
}

#[test]
fn an_id_that_no_frame_can_hold_is_refused() {
    let mut editor = Editor::start(&MockModel::start());
    let long = "x".repeat(100_000);
    editor.run.write_line(json!({"jsonrpc": "2.0", "id": long, "method": "session/list"}));
    assert_eq!(editor.next()["id"], long);
    let too_long = "x".repeat(2 * 1024 * 1024);
    editor.run.write_line(json!({"jsonrpc": "2.0", "id": too_long, "method": "session/list"}));
    let frame = editor.next();
    assert_eq!((&frame["id"], &frame["error"]["code"]), (&Value::Null, &json!(-32600)));
}

#[test]
fn bad_requests_leave_another_sessions_turn_alone() {
    let mock = MockModel::start();
    mock.push(Reply::new([
        mock_model::gate("open"),
        mock_model::sse::text("fine"),
        mock_model::sse::finish("stop"),
        mock_model::sse::done(),
    ]));
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = editor.prompt(&session, "Hi");
    mock.reached("open");
    editor.run.write_line("garbage");
    for (method, _) in methods("x", "/") {
        editor.send(method, &json!({"sessionId": 7}));
    }
    mock.open("open");
    let (frames, response) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn");
    assert_eq!(crate::editor::text(&frames, "agent_message_chunk"), "fine");
}

#[test]
fn flags_that_choose_a_session_are_refused() {
    for flags in [["--resume", "x"], ["-p", "x"], ["--dialect", "qwen"], ["--input-format", "stream-json"]] {
        let ended = program(&MockModel::start()).args(flags).run();
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty() && ended.stderr.contains("--acp"), "{ended:?}");
    }
}
