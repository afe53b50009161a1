//! "Version Negotiation and Error Semantics".

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, each_format, echo, ends_turn, is_error, passes_check, qwen, worker};

#[test]
fn the_first_line_announces_protocol_formats_and_capabilities() {
    each_format(|format| {
        let mock = echo();
        let host = Host::with(&mock, format);
        let metadata = &host.hello["metadata"];
        assert_eq!(
            (&metadata["protocol_version"], &metadata["output_format"]),
            (&json!("1.0"), &json!(format))
        );
        assert_eq!(metadata["input_format"], "stream-json");
        assert!(!metadata["capabilities"].as_array().unwrap().is_empty());
        assert_eq!(metadata["session_id"], host.hello["session_id"]);
        assert!(host.hello["system_fingerprint"].is_string() && host.hello.get("usage").is_none());
        host.leave();
    });
}

#[test]
fn an_announced_capability_can_be_required() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    let capabilities = host.hello["metadata"]["capabilities"].clone();
    host.send(json!({"protocol_version": "1.9", "requires": capabilities, "messages": [{"role": "user", "content": "x"}]}));
    assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "done");
    host.leave();
}

#[test]
fn what_is_not_supported_is_unsupported_protocol_and_a_non_zero_exit() {
    let demands = [
        json!({"protocol_version": "2.0", "messages": [{"role": "user", "content": "x"}]}),
        json!({"requires": ["telepathy"], "input": {"parts": [{"text": "x"}]}}),
        json!({"type": "heartbeat_request", "protocol_version": "0.9"}),
        json!({"type": "control_request", "request_id": "r", "subtype": "initialize", "protocol_version": "2"}),
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "initialize", "protocol_version": "3.1"}}),
    ];
    each_format(|format| {
        for demand in &demands {
            let mock = echo();
            let mut host = Host::with(&mock, format);
            host.send(demand);
            let ended = host.run.wait();
            assert!(ended.code.is_some_and(|code| code != 0), "{demand}: {ended:?}");
            assert!(ended.stderr.contains("not supported"), "words for people: {}", ended.stderr);
            let last = ended.json_lines().pop().unwrap();
            assert_eq!(last["choices"][0]["finish_reason"], "error", "{demand}: {last}");
            assert_eq!(last["metadata"]["error"]["code"], "unsupported_protocol", "{demand}: {last}");
            assert!(mock.requests().is_empty());
        }
    });
}

#[test]
fn unsupported_protocol_in_the_middle_still_ends_every_turn() {
    each_format(|format| {
        let mock = MockModel::with([Reply::new([sse::text("half"), gate("never")])]);
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "one"));
        host.send(chat("p2", "two"));
        mock.reached("never");
        host.send(json!({"type": "heartbeat_request", "protocol_version": "9"}));
        let ended = host.run.wait();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let lines = ended.json_lines();
        assert_eq!(lines.iter().filter(|line| ends_turn(line)).count(), 2, "{lines:#?}");
        assert!(lines.iter().any(|line| line["metadata"]["error"]["code"] == "unsupported_protocol"));
    });
}

#[test]
fn a_fatal_error_is_an_openai_error_object_on_stdout_and_words_on_stderr() {
    let cases: [(&[&str], i32); 3] = [
        (&["--input-format", "stream-json", "--no-such-flag"], 2),
        (&["--input-format", "stream-json", "--session-id", "../x"], 42),
        (&["--input-format", "stream-json", "--resume", "nowhere"], 42),
    ];
    for (flags, code) in cases {
        let ended = qwen().args(["--dialect", "qwen", "--output-format", "stream-json"]).args(flags).run();
        assert_eq!(ended.code, Some(code), "{flags:?}: {ended:?}");
        let lines = ended.json_lines();
        let [line] = &lines[..] else { panic!("{flags:?}: {lines:#?}") };
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["error"], "the bare object: {line}");
        assert!(line["error"]["message"].is_string() && line["error"]["type"].is_string(), "{line}");
        for key in ["param", "code"] {
            assert!(line["error"].get(key).is_some(), "{line}");
        }
        assert!(!ended.stderr.is_empty());
    }
}

#[test]
fn a_recoverable_error_is_told_in_the_terminal_record_and_the_worker_goes_on() {
    each_format(|format| {
        let mock =
            MockModel::with([Reply::status(400, r#"{"error":{"message":"too long"}}"#), Reply::text("ok")]);
        let mut host = Host::with(&mock, format);
        let end = host.say("x").pop().unwrap();
        assert_eq!(
            (&end["metadata"]["turn"]["status"], &end["choices"][0]["finish_reason"]),
            (&json!("error"), &json!("stop"))
        );
        let error = &end["metadata"]["error"];
        assert!(error["message"].as_str().unwrap().contains("too long"), "{error}");
        for key in ["type", "param", "code"] {
            assert!(error.get(key).is_some(), "{error}");
        }
        host.is_well();
        host.leave();
    });
}

#[test]
fn a_bad_line_is_a_completion_with_an_error_and_no_turn() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(r#"{"type":"bogus"}"#);
        let line = host.run.json();
        let object = if format == "stream-json" { "chat.completion" } else { "chat.completion.chunk" };
        assert_eq!((&line["object"], &line["choices"][0]["finish_reason"]), (&json!(object), &json!("stop")));
        assert!(
            is_error(&line) && line["metadata"]["error"]["message"].as_str().unwrap().contains("bogus"),
            "{line}"
        );
        host.leave();
    });
}

#[test]
fn control_errors_are_attached_to_the_turn() {
    each_format(|format| {
        let mock = MockModel::with([Reply::text("ok")]);
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"hooks": {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]}}));
        host.send(chat("p", "x"));
        let question = host.question();
        let error = json!({"message": "down", "retryable": true});
        host.send(json!({"type": "control_response", "request_id": question["request_id"],
            "response": {"subtype": "error", "error": error}}));
        let end = host.turn().pop().unwrap();
        let errors = end["metadata"]["turn"]["control_errors"].as_array().unwrap();
        assert_eq!(end["metadata"]["control_errors"], json!(errors), "where spec 1 looks for them too");
        assert_eq!(errors.len(), 1, "{end}");
        assert!(
            errors[0]["message"].as_str().unwrap().contains("down") && errors[0]["retryable"] == true,
            "{end}"
        );
        host.leave();
    });
}

#[test]
fn stderr_stays_empty_and_stdout_is_protocol_only() {
    each_format(|format| {
        let mock = echo();
        let input = format!("{}\nnot json\n{}\n", chat("p1", "one"), chat("p2", "two"));
        let ended = worker(&mock, format).stdin(input).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        passes_check(&ended.stdout);
        let ends: Vec<Value> = ended.json_lines().into_iter().filter(ends_turn).collect();
        assert_eq!(ends.len(), 2);
    });
}
