//! `/acp`: the Agent Client Protocol in WebSocket messages.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::*;
use crate::socket::Socket;

impl Socket {
    /// Sends a request and returns the messages up to its response, which is the last.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the parameters in place")]
    #[track_caller]
    fn call(&mut self, id: u64, method: &str, params: Value) -> Vec<Value> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.until(|line| line["id"] == id && line["method"].is_null())
    }

    /// The result of a request that succeeds.
    #[track_caller]
    fn result(&mut self, id: u64, method: &str, params: Value) -> Value {
        let response = self.call(id, method, params).pop().unwrap();
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }
}

/// A connection that is initialized.
fn connect(server: &Server) -> Socket {
    let mut socket = server.socket("/acp");
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let agent = socket.result(0, "initialize", params);
    assert_eq!(
        (&agent["protocolVersion"], &agent["agentCapabilities"]["loadSession"]),
        (&json!(1), &json!(true))
    );
    socket
}

fn workspace(server: &Server) -> String {
    server.get("/api/capabilities").json()["workspaces"][0].as_str().unwrap().to_owned()
}

#[track_caller]
fn create(socket: &mut Socket, server: &Server) -> String {
    let params = json!({"cwd": workspace(server), "mcpServers": []});
    let session = socket.result(1, "session/new", params);
    assert_eq!(session["modes"]["availableModes"].as_array().unwrap().len(), 4);
    session["sessionId"].as_str().unwrap().to_owned()
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// The texts of the updates of one kind.
fn texts(lines: &[Value], kind: &str) -> String {
    let updates = lines.iter().map(|line| &line["params"]["update"]);
    let of_kind = updates.filter(|update| update["sessionUpdate"] == kind);
    of_kind.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn an_editor_prompts_and_answers_a_permission_request() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done.")]);
    let server = serve(&mock);
    let mut socket = connect(&server);
    let id = create(&mut socket, &server);
    socket.send(json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt(&id, "go")}));
    let question = socket.until(|line| line["method"] == "session/request_permission").pop().unwrap();
    let options = question["params"]["options"].as_array().unwrap();
    let ids: Vec<&str> = options.iter().map(|option| option["optionId"].as_str().unwrap()).collect();
    assert!(ids.contains(&"allow_once") && !ids.contains(&"allow_always"), "{ids:?}");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    socket.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    let lines = socket.until(|line| line["id"] == 2);
    assert_eq!(lines.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(texts(&lines, "agent_message_chunk"), "Done.");
    assert!(
        lines.iter().all(|line| line["params"]["sessionId"] == id.as_str() || line["id"] == 2),
        "{lines:#?}"
    );
    // The session is one of the server's: everyone sees it.
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["title"], "go");
}

#[test]
fn a_question_that_was_answered_elsewhere_is_withdrawn() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done.")]);
    let server = serve(&mock);
    let mut socket = connect(&server);
    let id = create(&mut socket, &server);
    socket.send(json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt(&id, "go")}));
    let question = socket.until(|line| line["method"] == "session/request_permission").pop().unwrap();
    let approval = question["id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/approvals/{approval}"), json!({"decision": "deny"})).status, 200);
    let lines = socket.until(|line| line["id"] == 2);
    let withdrawn = lines.iter().find(|line| line["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], approval);
    // A late answer changes nothing.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    socket.send(json!({"jsonrpc": "2.0", "id": approval, "result": outcome}));
    assert_eq!(socket.result(3, "session/list", json!({}))["sessions"][0]["sessionId"], id.as_str());
}

#[test]
fn a_session_of_another_client_is_loaded_with_its_history_and_its_open_question() {
    let mock = MockModel::with([Reply::text("One."), asks("c1"), Reply::text("Two.")]);
    let server = serve(&mock);
    let id = server.session();
    server.turn(&id, "first");
    let (_, after) = server.prompt(&id, "second");
    server.follow(&id, after).until(is_question);
    let mut socket = connect(&server);
    let params = json!({"sessionId": id, "cwd": workspace(&server), "mcpServers": []});
    socket.send(json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params}));
    let (mut is_loaded, mut question, mut lines) = (false, Value::Null, Vec::new());
    while !is_loaded || question.is_null() {
        let line = socket.line();
        is_loaded |= line["id"] == 1;
        if line["method"] == "session/request_permission" {
            question = line.clone();
        }
        lines.push(line);
    }
    assert_eq!(texts(&lines, "user_message_chunk"), "firstsecond");
    assert_eq!(texts(&lines, "agent_message_chunk"), "One.");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    socket.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    let lines = socket.until(|line| line["params"]["update"]["content"]["text"] == "Two.");
    assert_eq!(texts(&lines, "agent_message_chunk"), "Two.");
}

#[test]
fn a_cancelled_prompt_answers_cancelled() {
    let mock = MockModel::with([
        Reply::text("first"),
        Reply::new([sse::role(), sse::text("A"), gate("never"), sse::done()]),
    ]);
    let server = serve(&mock);
    let mut socket = connect(&server);
    let id = create(&mut socket, &server);
    assert_eq!(socket.result(2, "session/prompt", prompt(&id, "a"))["stopReason"], "end_turn");
    socket.send(json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt(&id, "b")}));
    socket.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}}));
    let lines = socket.until(|line| line["id"] == 3);
    assert_eq!(lines.last().unwrap()["result"]["stopReason"], "cancelled");
}

#[test]
fn what_is_wrong_is_one_error_and_the_connection_stays_open() {
    let server = serve(&MockModel::with([]));
    let mut socket = server.socket("/acp");
    let early = socket.call(1, "session/list", json!({})).pop().unwrap();
    assert_eq!(early["error"]["code"], -32600);
    let mut socket = connect(&server);
    let cwd = workspace(&server);
    for (method, params, code) in [
        ("session/new", json!({"cwd": "/etc", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": format!("{cwd}/.."), "mcpServers": []}), -32602),
        (
            "session/new",
            json!({"cwd": cwd, "mcpServers": [{"name": "x", "command": "touch", "args": ["owned"], "env": []}]}),
            -32602,
        ),
        ("session/load", json!({"sessionId": "../token", "cwd": cwd, "mcpServers": []}), -32002),
        ("session/prompt", json!({"sessionId": "none", "prompt": []}), -32002),
        ("session/cancel", json!({"sessionId": "none"}), -32600),
        ("session/explode", json!({}), -32601),
    ] {
        let answer = socket.call(7, method, params).pop().unwrap();
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    socket.frame(0x81, b"no json");
    assert_eq!(socket.line()["error"]["code"], -32700);
    let id = create(&mut socket, &server);
    let empty = socket.call(8, "session/prompt", json!({"sessionId": id, "prompt": []})).pop().unwrap();
    assert_eq!(empty["error"]["code"], -32602);
    assert_eq!(socket.result(9, "session/set_mode", json!({"sessionId": id, "modeId": "plan"})), json!({}));
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["mode"], "plan");
    assert_eq!(socket.result(10, "session/delete", json!({"sessionId": id})), json!({}));
    assert_eq!(server.get(&format!("/api/sessions/{id}")).status, 404);
}

#[test]
fn an_editor_passes_the_same_gate_and_is_no_watcher() {
    let mock = MockModel::with([]);
    let program = program(&mock);
    let server = start(&program);
    let host = server.host();
    let watch = std::fs::read_to_string(program.qwen_home_path().join("serve/watch-token")).unwrap();
    let full = format!("qwen.token.{}", server.token);
    let watching = format!("qwen.token.{}", watch.trim());
    for (headers, status) in [
        (vec![("Host", host.as_str())], 401),
        (vec![("Host", &host), ("Sec-WebSocket-Protocol", &watching)], 403),
        (vec![("Host", "evil.example"), ("Sec-WebSocket-Protocol", &full)], 403),
        (vec![("Host", &host), ("Sec-WebSocket-Protocol", &full), ("Origin", "http://evil.example")], 403),
        (vec![("Host", &host), ("Sec-WebSocket-Protocol", &full)], 101),
    ] {
        let socket = server.upgrade("/acp", &headers);
        assert!(socket.head.starts_with(&format!("HTTP/1.1 {status}")), "{headers:?}: {}", socket.head);
    }
    assert_eq!(server.get("/acp").status, 426);
}
