//! `/api/ws`: the hub's protocol in WebSocket messages.

use std::io::{Read, Write};

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

fn ends(line: &Value) -> bool {
    line["metadata"]["turn"].is_object()
}

#[test]
fn a_socket_opens_a_session_prompts_it_and_answers_its_questions() {
    let mock = MockModel::with([asks("c1"), Reply::text("Done.")]);
    let server = serve(&mock);
    let mut socket = server.socket("/api/ws");
    assert!(socket.head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{}", socket.head);
    assert!(socket.head.to_ascii_lowercase().contains("sec-websocket-protocol: qwen\r\n"), "{}", socket.head);
    let opened = socket.ask(json!({"type": "control_request", "request_id": "1", "subtype": "open"}));
    let id = opened["result"]["session_id"].as_str().unwrap().to_owned();
    socket.send(json!({"session_id": id, "prompt_id": "mine", "input": {"parts": "go"}}));
    let question = socket.until(|line| line["subtype"] == "can_use_tool").pop().unwrap();
    assert_eq!(question["prompt_id"], "mine");
    let answer = json!({"subtype": "success", "result": {"behavior": "allow"}});
    socket
        .send(json!({"type": "control_response", "request_id": question["request_id"], "response": answer}));
    let end = socket.until(ends).pop().unwrap();
    assert_eq!((&end["prompt_id"], &end["metadata"]["turn"]["status"]), (&json!("mine"), &json!("done")));
}

#[test]
fn a_socket_attaches_after_a_number_and_sees_what_event_streams_see() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let server = serve(&mock);
    let id = server.session();
    let whole = server.turn(&id, "a");
    let mut socket = server.socket("/api/ws");
    let attach = json!({"type": "control_request", "request_id": "1", "subtype": "attach", "session_id": id, "after": 0});
    socket.send(attach);
    // The answer may come after the first lines.
    let mut lines = Vec::new();
    let mut is_answered = false;
    while !is_answered || lines.len() < whole.len() {
        let line = socket.line();
        if line["type"] == "control_response" {
            assert_eq!(line["response"]["result"]["last"], whole.len());
            is_answered = true;
        } else {
            lines.push(line);
        }
    }
    let expected: Vec<Value> = whole.iter().map(Event::json).collect();
    assert_eq!(lines, expected);
    server.prompt(&id, "b");
    let numbers: Vec<u64> = socket.until(ends).iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    let first = u64::try_from(whole.len()).unwrap() + 1;
    assert!(numbers.iter().copied().eq(first..first + u64::try_from(numbers.len()).unwrap()), "{numbers:?}");
}

#[test]
fn a_bad_message_is_answered_and_the_socket_stays_open() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let mut socket = server.socket("/api/ws");
    for (message, code) in [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        (r#"{"session_id":"none","input":{"parts":"x"}}"#, "not_found"),
        (r#"{"type":"nothing"}"#, "unknown_type"),
        (r#"{"type":"control_response","request_id":"none","response":{}}"#, "not_found"),
    ] {
        socket.frame(0x81, message.as_bytes());
        assert_eq!(socket.line()["metadata"]["error"]["code"], code, "{message}");
    }
    let refused =
        socket.ask(json!({"type": "control_request", "request_id": "1", "subtype": "open", "cwd": "/etc"}));
    assert_eq!(refused["error"]["code"], "workspace_not_allowed");
    let unknown = socket.ask(json!({"type": "control_request", "request_id": "2", "subtype": "shell"}));
    assert_eq!(unknown["error"]["code"], "unknown_request");
    socket.frame(0x89, b"are you there");
    assert_eq!(socket.next_frame(), (10, b"are you there".to_vec()));
    socket.frame(0x88, &1000_u16.to_be_bytes());
    assert_eq!(socket.next_frame(), (8, 1000_u16.to_be_bytes().to_vec()));
}

#[test]
fn frames_that_no_client_may_send_close_the_socket() {
    let mock = MockModel::start();
    let server = serve(&mock);
    for (first, payload, code) in
        [(0x82, "binary", 1003_u16), (0x83, "", 1002), (0xc1, "", 1002), (0x80, "", 1002)]
    {
        let mut socket = server.socket("/api/ws");
        socket.frame(first, payload.as_bytes());
        assert_eq!(socket.next_frame(), (8, code.to_be_bytes().to_vec()), "{first:x}");
        let mut rest = Vec::new();
        socket.reader.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
    }
    let mut unmasked = server.socket("/api/ws");
    unmasked.reader.get_mut().write_all(b"\x81\x02{}").unwrap();
    assert_eq!(unmasked.next_frame(), (8, 1002_u16.to_be_bytes().to_vec()));
    assert_eq!(server.get("/api/sessions").status, 200);
}

#[test]
fn a_socket_passes_the_same_gate() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let (host, token) = (server.host(), format!("qwen.token.{TOKEN}"));
    let bearer = format!("Bearer {TOKEN}");
    let own = format!("http://{host}");
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&[("Host", &host)], "401"),
        (&[("Host", &host), ("Sec-WebSocket-Protocol", &token[..token.len() - 1])], "401"),
        (&[("Host", "evil.example"), ("Sec-WebSocket-Protocol", &token)], "403"),
        (&[("Host", &host), ("Sec-WebSocket-Protocol", &token), ("Origin", "https://evil.example")], "403"),
        (&[("Host", &host), ("Sec-WebSocket-Protocol", &token), ("Sec-Fetch-Site", "cross-site")], "403"),
        (&[("Host", &host), ("Sec-WebSocket-Protocol", &token), ("Origin", &own)], "101"),
        (&[("Host", &host), ("Authorization", &bearer)], "101"),
    ];
    for (headers, status) in cases {
        let socket = server.upgrade("/api/ws", headers);
        assert!(socket.head.starts_with(&format!("HTTP/1.1 {status}")), "{headers:?} {}", socket.head);
    }
    assert_eq!(server.get("/api/ws").status, 426);
}

#[test]
fn the_token_for_watching_only_follows() {
    let mock = MockModel::with([Reply::text("One.")]);
    let program = program(&mock);
    let mut server = start(&program);
    let id = server.session();
    server.turn(&id, "a");
    let watch = std::fs::read_to_string(program.qwen_home_path().join("serve/watch-token")).unwrap();
    watch.trim().clone_into(&mut server.token);
    let mut socket = server.socket("/api/ws");
    let attach = json!({"type": "control_request", "request_id": "1", "subtype": "attach", "session_id": id});
    assert_eq!(socket.ask(attach)["subtype"], "success");
    let open = socket.ask(json!({"type": "control_request", "request_id": "2", "subtype": "open"}));
    assert_eq!(open["error"]["code"], "read_only");
    socket.send(json!({"session_id": id, "input": {"parts": "x"}}));
    assert_eq!(socket.line()["metadata"]["error"]["code"], "read_only");
    assert_eq!(mock.requests().len(), 1);
}
