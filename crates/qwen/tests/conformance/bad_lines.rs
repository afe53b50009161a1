//! Lines that are no JSON, or JSON that no line may be: one error each, wherever they come, and the worker
//! goes on.

use mock_model::{Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, each_format, echo, ends_turn, is_error};

/// The longest line that is read.
const LIMIT: usize = 64 * 1024 * 1024;

/// Bad lines, and the code of the error that each costs.
fn bad_lines() -> Vec<(Vec<u8>, &'static str)> {
    let deep =
        |open: &str, close: &str| format!("{{\"messages\":{}{}}}", open.repeat(10_000), close.repeat(10_000));
    let mut lines: Vec<(Vec<u8>, &'static str)> = [
        ("not json", "invalid_json"),
        ("{", "invalid_json"),
        ("}", "invalid_json"),
        ("{\"messages\":", "invalid_json"),
        ("{'type':'user'}", "invalid_json"),
        ("{\"type\":\"heartbeat_request\"} trailing", "invalid_json"),
        ("{\"type\":\"heartbeat_request\"}{\"type\":\"heartbeat_request\"}", "invalid_json"),
        ("NaN", "invalid_json"),
        ("{\"type\":\"heartbeat_request\",}", "invalid_json"),
        ("{\"type\":\"heartbeat_request\", \"x\": 0x10}", "invalid_json"),
        ("{\"a\":\"\\x\"}", "invalid_json"),
        ("\u{0}", "invalid_json"),
        ("{\"type\":\"heartbeat\u{0}_request\"}", "invalid_json"),
        ("[1,2,3]", "not_an_object"),
        ("\"a text\"", "not_an_object"),
        ("42", "not_an_object"),
        ("-1.5e300", "not_an_object"),
        ("true", "not_an_object"),
        ("null", "not_an_object"),
        ("{}", "missing_field"),
        ("{\"type\":\"no_such_type\"}", "unknown_type"),
        ("{\"type\":\"\"}", "unknown_type"),
        ("{\"type\":7}", "wrong_type"),
        ("{\"type\":\"heartbeat_request\",\"type\":\"user\"}", "duplicate_key"),
        ("{\"type\":\"heartbeat_request\",\"x\":{\"y\":1,\"\\u0079\":2}}", "duplicate_key"),
        ("{\"type\":\"heartbeat_request\",\"x\":\"\\ud800\"}", "lone_surrogate"),
        ("{\"type\":\"heartbeat_request\",\"\\udc00\":1}", "lone_surrogate"),
    ]
    .into_iter()
    .map(|(line, code)| (line.as_bytes().to_vec(), code))
    .collect();
    lines.push((deep("[", "]").into_bytes(), "too_deep"));
    lines.push((deep("{\"a\":", "}").replace(":}", ":1}").into_bytes(), "too_deep"));
    lines.push((b"{\"type\":\"heartbeat_request\",\"x\":\"\xff\xfe\"}".to_vec(), "invalid_utf8"));
    lines.push((b"\xc3\x28".to_vec(), "invalid_utf8"));
    lines.push((b"\xed\xa0\x80".to_vec(), "invalid_utf8"));
    lines
}

#[test]
fn each_bad_line_costs_one_error_with_its_own_code() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        for (line, code) in bad_lines() {
            host.run.write(&line);
            host.run.write(b"\n");
            host.send(json!({"type": "heartbeat_request"}));
            let lines = host.run.json_until(|line| line["type"] == "result/heartbeat");
            let codes: Vec<&Value> = lines
                .iter()
                .filter(|line| is_error(line))
                .map(|line| &line["metadata"]["error"]["code"])
                .collect();
            assert_eq!(codes, [code], "{}", String::from_utf8_lossy(&line[..line.len().min(200)]));
        }
        host.is_well();
        host.leave();
    });
}

#[test]
fn garbage_between_the_lines_of_a_turn_changes_nothing_about_it() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("first"), gate("hold"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        let bad = bad_lines();
        host.send(chat("p1", "one"));
        mock.reached("hold");
        let mut input = Vec::new();
        for (line, _) in &bad {
            input.extend_from_slice(line);
            input.push(b'\n');
        }
        host.run.write(&input);
        host.send(chat("p2", "two"));
        host.run.write(&input);
        mock.open("hold");
        host.turn();
        host.turn();
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| is_error(line)).count(), 2 * bad.len());
        let ends: Vec<&Value> =
            lines.iter().filter(|line| ends_turn(line)).map(|line| &line["prompt_id"]).collect();
        assert_eq!(ends, ["p1", "p2"]);
    });
}

#[test]
fn byte_order_marks_blank_lines_and_carriage_returns_do_no_harm() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let beat = r#"{"type":"heartbeat_request"}"#;
        let input = format!(
            "\u{feff}{beat}\n\n\r\n \t \n{beat}\r\n  {beat}  \n\u{feff}\n{}\r\n",
            chat("p1", "x\r\ny")
        );
        host.run.write(input.as_bytes());
        host.turn();
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| line["type"] == "result/heartbeat").count(), 3);
        assert!(!lines.iter().any(is_error), "{lines:#?}");
    });
}

#[test]
fn a_line_may_come_in_any_pieces() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    for byte in chat("p1", "käse 🦀").to_string().as_bytes() {
        host.run.write(&[*byte]);
    }
    host.run.write(b"\n");
    host.turn();
    assert_eq!(mock.wait_for_request(0).last_user_text(), "käse 🦀");
    host.leave();
}

/// A heartbeat of exactly so many bytes.
fn beat_of(size: usize) -> Vec<u8> {
    let (head, tail) = (br#"{"type":"heartbeat_request","pad":""#, br#""}"#);
    let mut line = head.to_vec();
    line.resize(size - tail.len(), b'x');
    line.extend_from_slice(tail);
    line
}

#[test]
fn a_line_of_64_mib_is_read_and_a_longer_one_is_one_error() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    let sizes = [
        (LIMIT, "\n", true),
        (LIMIT, "\r\n", true),
        (LIMIT + 1, "\n", false),
        (LIMIT + 1024 * 1024, "\n", false),
    ];
    for (size, end, read) in sizes {
        host.run.write(&beat_of(size));
        host.run.write(end.as_bytes());
        host.send(json!({"type": "command_hint_request", "text": "/c"}));
        let lines = host.run.json_until(|line| line["type"] == "result/command_hint");
        let beats = lines.iter().filter(|line| line["type"] == "result/heartbeat").count();
        let errors: Vec<&Value> = lines
            .iter()
            .filter(|line| is_error(line))
            .map(|line| &line["metadata"]["error"]["code"])
            .collect();
        assert_eq!(beats, usize::from(read), "{size}");
        assert_eq!(errors, if read { vec![] } else { vec!["line_too_long"] }, "{size}");
    }
    host.is_well();
    host.leave();
}

#[test]
fn a_line_that_is_too_long_and_never_ends_is_one_error_at_the_end_of_input() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    host.run.write(&vec![b'x'; LIMIT + 2]);
    let lines = host.leave();
    assert_eq!(lines.iter().filter(|line| is_error(line)).count(), 1, "{lines:#?}");
}

#[test]
fn a_session_that_nobody_knows_and_a_prompt_id_that_was_used_are_one_error_each() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "one"));
        host.turn();
        let cases = [
            (json!({"session_id": "nowhere", "input": {"parts": [{"text": "x"}]}}), "unknown_session"),
            (json!({"session_id": "../x", "input": {"parts": [{"text": "x"}]}}), "invalid_session_id"),
            (json!({"session_id": "", "input": {"parts": [{"text": "x"}]}}), "empty_session_id"),
            (
                json!({"session_id": "nowhere", "messages": [{"role": "user", "content": "x"}]}),
                "unknown_session",
            ),
            (
                json!({"session_id": "nowhere", "input": {"origin": "system", "parts": [{"text": "x"}]}}),
                "unknown_session",
            ),
            (chat("p1", "again"), "duplicate_prompt_id"),
        ];
        for (line, code) in cases {
            host.send(&line);
            let error = host.run.json();
            assert_eq!(error["metadata"]["error"]["code"], code, "{line}: {error}");
        }
        host.is_well();
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| is_error(line)).count(), 6);
    });
}

#[test]
fn a_prompt_id_that_runs_or_waits_is_used_too() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([gate("hold"), sse::text("x"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        for id in ["p1", "p2", "p1", "p2"] {
            host.send(chat(id, id));
        }
        for _ in 0..2 {
            assert_eq!(host.until(is_error)["metadata"]["error"]["param"], "prompt_id");
        }
        mock.open("hold");
        host.turn();
        host.turn();
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| ends_turn(line)).count(), 2);
    });
}

#[test]
fn the_error_of_a_prompt_that_cannot_be_read_names_that_prompt_and_not_the_running_one() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("x"), gate("hold"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "one"));
        mock.reached("hold");
        let lines = [
            (r#"{"prompt_id":"bad","input":{"parts":[{"text":"a","text":"b"}]}}"#, "duplicate_key"),
            (r#"{"prompt_id":"bad","input":{"parts":[{"text":"\ud800"}]}}"#, "lone_surrogate"),
            (r#"{"prompt_id":"bad","input":{"parts":7}}"#, "wrong_type"),
            (r#"{"prompt_id":"bad","messages":[]}"#, "no_prompt"),
            (r#"{"prompt_id":"bad","type":"prompt","text":"a"}"#, "unknown_type"),
            (
                r#"{"prompt_id":"bad","tool_call_id":"c","input":{"origin":"tool_response","parts":[{"text":"a"}]}}"#,
                "unknown_tool_call",
            ),
        ];
        for (line, code) in lines {
            host.send(line);
            let error = host.until(is_error);
            assert_eq!(
                (&error["metadata"]["error"]["code"], &error["prompt_id"]),
                (&json!(code), &json!("bad")),
                "{line}"
            );
        }
        // A prompt id that is there twice names no prompt.
        host.send(r#"{"prompt_id":"bad","prompt_id":"worse","input":{"parts":[{"text":"a"}]}}"#);
        assert_eq!(host.until(is_error)["prompt_id"], "p1");
        mock.open("hold");
        host.turn();
        host.leave();
    });
}

#[test]
fn a_control_request_that_cannot_be_read_is_answered_under_its_request_id() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let deep = format!(
            r#"{{"type":"control_request","request_id":"r","subtype":"initialize","x":{}1{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        let lines = [
            (
                r#"{"type":"control_request","request_id":"r","subtype":"set_model","model":"a","model":"b"}"#,
                "duplicate_key",
            ),
            (
                r#"{"type":"control_request","request_id":"r","subtype":"set_model","model":"\udfff"}"#,
                "lone_surrogate",
            ),
            (&deep, "too_deep"),
            (
                r#"{"type":"control_request","request_id":"r","subtype":"interrupt","requires":7}"#,
                "wrong_type",
            ),
            (r#"{"type":"control/cancel","request_id":"r","reason":7}"#, "wrong_type"),
        ];
        for (line, code) in lines {
            host.send(line);
            let answer = host.run.json();
            assert_eq!(
                (&answer["type"], &answer["request_id"]),
                (&json!("control_response"), &json!("r")),
                "{line}"
            );
            assert_eq!(answer["response"]["error"]["code"], code, "{line}: {answer}");
        }
        host.send(r#"{"type":"control_request","request_id":"r","request":{"subtype":"set_model","model":"a","model":"b"}}"#);
        let answer = host.run.json();
        assert_eq!(
            (&answer["response"]["subtype"], &answer["response"]["request_id"]),
            (&json!("error"), &json!("r"))
        );
        // Without an id that can be read there is one error.
        host.send(r#"{"type":"control_request","request_id":"r","request_id":"s","subtype":"interrupt"}"#);
        assert!(is_error(&host.run.json()));
        host.is_well();
        host.leave();
    });
}
