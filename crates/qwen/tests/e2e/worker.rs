//! A worker: `--input-format stream-json`. Lines of any shape in, turns out, until input ends or a signal
//! comes.

use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply, Request, gate, sse};
use serde_json::{Value, json};

use crate::harness::{judged, qwen};
use crate::stdout_kind::wait_stuck;
use crate::stream_content::StreamContent;
use crate::wire::{self, CLAUDE, LITE, QWEN, QWEN_CHUNK, STREAMS, Wire};

fn worker(mock: &MockModel, wire: Wire) -> Program {
    qwen().with_model(mock).args(["--input-format", "stream-json"]).args(wire.flags())
}

/// A model that repeats the prompt.
fn echo() -> MockModel {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| Some(Reply::text(&format!("<{}>", request.last_user_text()))));
    mock
}

fn openai(text: &str) -> String {
    json!({ "model": "qwen-coder", "messages": [{ "role": "user", "content": text }] }).to_string()
}

fn chat_request(session: &str, prompt_id: Option<&str>, text: &str) -> String {
    let parts = json!([{ "type": "text", "text": text }]);
    let mut line =
        json!({ "session_id": session, "input": { "origin": "user", "parts": parts, "command": null } });
    if let Some(id) = prompt_id {
        line["prompt_id"] = id.into();
    }
    line.to_string()
}

fn user(text: &str) -> String {
    json!({ "type": "user", "session_id": "", "message": { "role": "user", "content": text }, "parent_tool_use_id": null })
        .to_string()
}

fn statuses(told: &StreamContent) -> Vec<&str> {
    told.ends.iter().map(|end| end.status.as_str()).collect()
}

/// Reads up to the terminal record of the turn under way.
#[track_caller]
fn turn(wire: Wire, run: &mut Run) -> Vec<Value> {
    run.json_until(|line| match wire.dialect {
        "qwen" => line["metadata"]["turn"].is_object(),
        "claude" => line["type"] == "result",
        "claude-lite" => line["type"] == "message_stop",
        "core" => line["type"] == "finished" || line["type"] == "error" || line["type"] == "user_cancelled",
        _ => line["reply"].is_string(),
    })
}

#[test]
fn a_line_is_read_by_its_shape_whichever_dialect_is_spoken() {
    wire::each(&STREAMS, |wire| {
        let mock = echo();
        let parts =
            json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "four" }] }] });
        let lines = [openai("one"), chat_request("session-1", None, "two"), user("three"), parts.to_string()];
        let ended = worker(&mock, wire).stdin(lines.join("\n")).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told = judged(wire, &ended);
        // A session that the worker does not hold is refused, except where the caller's word for it is
        // ignored.
        let (ends, errors) = if wire.dialect == "claude" { (4, 0) } else { (3, 1) };
        assert_eq!((statuses(&told), told.errors.len()), (vec!["done"; ends], errors), "{told:#?}");
        let asked: Vec<String> = mock.requests().iter().map(|request| request.last_user_text()).collect();
        let expected: &[&str] = if wire.dialect == "claude" {
            &["one", "two", "three", "four"]
        } else {
            &["one", "three", "four"]
        };
        assert_eq!(asked, expected);
    });
}

#[test]
fn a_bad_line_costs_one_error_and_never_the_process() {
    let deep = "[".repeat(10_000);
    let bad: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        b"{".to_vec(),
        b"{\"messages\":".to_vec(),
        b"[1,2,3]".to_vec(),
        b"\"a text\"".to_vec(),
        b"42".to_vec(),
        b"null".to_vec(),
        b"{}".to_vec(),
        b"{\"type\":\"no_such_type\"}".to_vec(),
        b"{\"type\":7}".to_vec(),
        b"{\"messages\":[]}".to_vec(),
        b"{\"messages\":\"hello\"}".to_vec(),
        b"{\"messages\":[{\"role\":\"wizard\",\"content\":\"x\"}]}".to_vec(),
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}".to_vec(),
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"messages\":[]}".to_vec(),
        b"{\"input\":{\"origin\":\"martian\",\"parts\":[{\"text\":\"x\"}]}}".to_vec(),
        b"{\"session_id\":7,\"input\":{\"parts\":[{\"text\":\"x\"}]}}".to_vec(),
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}".to_vec(),
        format!("{{\"messages\":{deep}").into_bytes(),
        b"\x00\x01\x02".to_vec(),
    ];
    wire::each(&STREAMS, |wire| {
        let mock = echo();
        let mut run = worker(&mock, wire).start();
        run.write_line(openai("before"));
        for line in &bad {
            run.write(line);
            run.write(b"\n");
        }
        run.write_line(openai("after"));
        let ended = run.finish();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(statuses(&told), ["done", "done"]);
        assert_eq!(told.errors.len(), bad.len(), "one error a line: {:#?}", told.errors);
        assert!(
            told.errors.iter().any(|error| error.contains("no_such_type")),
            "the type is named: {:#?}",
            told.errors
        );
        assert_eq!(told.text, "<before><after>");
    });
}

#[test]
fn a_bad_line_names_what_is_wrong_in_each_dialects_own_frame() {
    let mock = echo();
    let frame = |wire: Wire| {
        let ended = worker(&mock, wire).stdin("{\"type\":\"bogus\"}\n").run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json_lines().last().unwrap().clone()
    };
    let line = frame(QWEN);
    assert_eq!(line["object"], "chat.completion");
    let error = &line["metadata"]["error"];
    assert!(error["message"].as_str().unwrap().contains("bogus"), "{line}");
    assert!(error["type"].is_string() && error["code"].is_string() && error.get("param").is_some(), "{line}");
    assert!(
        line["metadata"].get("turn").is_none() && line["choices"][0]["finish_reason"] == "stop",
        "{line}"
    );
    assert_eq!(frame(QWEN_CHUNK)["object"], "chat.completion.chunk");
    let line = frame(CLAUDE);
    assert_eq!((&line["type"], &line["subtype"]), (&"system".into(), &"input_error".into()), "{line}");
    assert_eq!(frame(LITE)["type"], "error");
    assert_eq!(frame(wire::LOOM)["value"]["kind"], "error");
    assert_eq!(frame(wire::EXPORT)["Custom"]["kind"], "error");
    assert_eq!(frame(wire::CORE)["type"], "input_error");
}

#[test]
fn a_line_over_the_limit_costs_one_error_and_the_next_is_read() {
    let mock = echo();
    let mut run = worker(&mock, LITE).start();
    run.write(&vec![b'x'; 64 * 1024 * 1024 + 1]);
    run.write(b"\n");
    run.write_line(openai("after"));
    let ended = run.finish();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let told = judged(LITE, &ended);
    assert_eq!((statuses(&told), told.errors.len()), (vec!["done"], 1), "{told:#?}");
    assert!(told.errors[0].contains("64 MiB"), "{told:#?}");
}

#[test]
fn empty_lines_carriage_returns_and_a_missing_last_newline_do_no_harm() {
    wire::each(&STREAMS, |wire| {
        let mock = echo();
        let input = format!("\n\r\n   \n{}\r\n\n{}", openai("one"), openai("two"));
        let ended = worker(&mock, wire).stdin(input).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(
            (statuses(&told), told.errors.len(), told.text.as_str()),
            (vec!["done"; 2], 0, "<one><two>")
        );
    });
}

#[test]
fn turns_of_one_worker_share_a_conversation_and_count_on() {
    let mock = echo();
    let mut run = worker(&mock, QWEN).start();
    let hello = run.json();
    assert_eq!(hello["metadata"]["input_format"], "stream-json", "the handshake comes before any input");
    for (n, text) in ["one", "two", "three"].iter().enumerate() {
        run.write_line(chat_request("session-123", None, text));
        let lines = turn(QWEN, &mut run);
        for line in &lines {
            assert_eq!(line["session_id"], "session-123", "the first request's session is adopted: {line}");
            assert_eq!(line["prompt_id"], format!("session-123########{}", n + 1), "{line}");
        }
        assert_eq!(lines.last().unwrap()["id"], "chatcmpl-session-123");
    }
    assert_eq!(run.finish().code, Some(0));
    let roles: Vec<Value> = mock.requests()[2].messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"]);
}

#[test]
fn the_specs_own_request_is_obeyed() {
    let mock = echo();
    let line = r#"{"session_id":"session-123","prompt_id":"session-123########7","model":"qwen-coder","input":{"origin":"user","parts":[{"type":"text","text":"Please fix the bug"}],"command":null},"options":{"temperature":0.2,"tool_overrides":["EditTool"]}}"#;
    let ended = worker(&mock, QWEN).stdin(line).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = judged(QWEN, &ended);
    assert_eq!((statuses(&told), told.errors.len()), (vec!["done"], 0));
    assert_eq!(told.lines.last().unwrap()["prompt_id"], "session-123########7");
    let request = &mock.requests()[0];
    assert_eq!((&request.body["model"], &request.body["temperature"]), (&"qwen-coder".into(), &0.2.into()));
    assert_eq!(request.tool_names(), ["edit"]);
}

#[test]
fn names_that_cannot_be_used_are_one_error_each() {
    let mock = echo();
    let mut run = worker(&mock, QWEN).start();
    run.json();
    run.write_line(chat_request("held", Some("p-1"), "one"));
    turn(QWEN, &mut run);
    let cases = [
        (chat_request("other", None, "x"), "session_id"),
        (chat_request("../x", None, "x"), "session_id"),
        (chat_request("", None, "x"), "session_id"),
        (chat_request("held", Some("p-1"), "x"), "prompt_id"),
    ];
    for (line, param) in cases {
        run.write_line(&line);
        let error = run.json();
        assert_eq!(error["metadata"]["error"]["param"], param, "{line}: {error}");
        assert!(error["metadata"].get("turn").is_none(), "{error}");
    }
    run.write_line(chat_request("held", Some("p-2"), "two"));
    assert_eq!(turn(QWEN, &mut run).last().unwrap()["choices"][0]["message"]["content"], "<two>");
    run.write_line(chat_request("_new", None, "three"));
    let fresh = turn(QWEN, &mut run).last().unwrap().clone();
    assert_ne!(fresh["session_id"], "held");
    assert_eq!(mock.requests()[2].messages().len(), 2, "a new session has no past");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_prompt_on_the_command_line_is_the_first_turn() {
    for args in [&["-p", "zero"][..], &["zero"]] {
        let mock = echo();
        let ended = worker(&mock, QWEN).args(args).stdin(openai("one")).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(QWEN, &ended);
        assert_eq!((statuses(&told), told.text.as_str()), (vec!["done", "done"], "<zero><one>"));
    }
}

#[test]
fn prompts_wait_their_turn() {
    wire::each(&STREAMS, |wire| {
        let mock = echo();
        mock.push(Reply::new([sse::text("first"), gate("hold"), sse::finish("stop"), sse::done()]));
        let mut run = worker(&mock, wire).start();
        for text in ["one", "two", "three"] {
            run.write_line(openai(text));
        }
        mock.reached("hold");
        assert_eq!(mock.requests().len(), 1, "one turn at a time");
        mock.open("hold");
        let told = judged(wire, &run.finish());
        assert_eq!((statuses(&told), told.text.as_str()), (vec!["done"; 3], "first<two><three>"));
    });
}

#[test]
fn the_end_of_input_lets_the_turn_finish() {
    wire::each(&STREAMS, |wire| {
        let mock = MockModel::with([Reply::new([
            sse::text("one"),
            gate("half"),
            sse::text("two"),
            sse::finish("stop"),
            sse::done(),
        ])]);
        let mut run = worker(&mock, wire).start();
        run.write_line(openai("x"));
        run.close_stdin();
        mock.reached("half");
        mock.open("half");
        let ended = run.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let told = judged(wire, &ended);
        assert_eq!((statuses(&told), told.text.as_str()), (vec!["done"], "onetwo"));
    });
}

#[test]
fn no_input_at_all_is_a_session_without_turns() {
    for wire in STREAMS {
        let ended = worker(&MockModel::start(), wire).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{wire:?}");
        let lines = ended.json_lines();
        assert_eq!(lines.len(), usize::from(wire.dialect == "qwen"), "{wire:?}: {ended:?}");
    }
}

#[test]
fn the_exit_code_tells_only_claudes_sdks_about_a_failed_turn() {
    let cases = [
        (QWEN, &[][..], 0),
        (CLAUDE, &[], 1),
        (CLAUDE, &["--channel=SDK"], 0),
        (LITE, &[], 0),
        (wire::LOOM, &[], 0),
    ];
    for (wire, flags, code) in cases {
        let mock = MockModel::with([Reply::status(400, "no")]);
        let ended = worker(&mock, wire).args(flags).stdin(user("x")).run();
        assert_eq!(ended.code, Some(code), "{wire:?} {flags:?}: {ended:?}");
        assert_eq!(statuses(&judged(wire, &ended)), ["error"]);
        // A later success is what counts.
        let mock = MockModel::with([Reply::status(400, "no"), Reply::text("ok")]);
        let ended = worker(&mock, wire).args(flags).stdin(format!("{}\n{}\n", user("x"), user("y"))).run();
        assert_eq!(ended.code, Some(0), "{wire:?} {flags:?}: {ended:?}");
        assert_eq!(statuses(&judged(wire, &ended)), ["error", "done"]);
    }
}

#[test]
fn a_signal_at_rest_ends_the_worker() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mock = echo();
        let mut run = worker(&mock, QWEN).start();
        run.json();
        run.write_line(openai("one"));
        turn(QWEN, &mut run);
        run.signal(signal);
        let ended = run.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""));
        assert_eq!(statuses(&judged(QWEN, &ended)), ["done"]);
    }
}

#[test]
fn a_signal_in_a_turn_gives_its_terminal_record() {
    wire::each(&STREAMS, |wire| {
        for (signal, status, code) in [(Signal::INT, "cancelled", 130), (Signal::TERM, "interrupted", 143)] {
            let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
            let mut run = worker(&mock, wire).start();
            run.write_line(openai("x"));
            mock.reached("never");
            run.signal(signal);
            let ended = run.wait();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{ended:?}");
            assert_eq!(statuses(&judged(wire, &ended)), [status]);
            mock.client_gone(0);
        }
    });
}

#[test]
fn prompts_that_wait_when_a_signal_comes_get_their_terminal_records_too() {
    wire::each(&STREAMS, |wire| {
        for (signal, status, code) in [(Signal::INT, "cancelled", 130), (Signal::TERM, "interrupted", 143)] {
            let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
            let mut run = worker(&mock, wire).start();
            run.write_line([openai("one"), openai("two"), openai("three")].join("\n"));
            mock.reached("never");
            run.signal(signal);
            let ended = run.wait();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{ended:?}");
            assert_eq!(statuses(&judged(wire, &ended)), [status; 3]);
            assert_eq!(mock.requests().len(), 1);
        }
    });
}

#[test]
fn a_cancel_ends_the_turn_and_the_worker_goes_on() {
    let mock = echo();
    mock.push(Reply::new([sse::text("one"), gate("never")]));
    let mut run = worker(&mock, QWEN).start();
    run.json();
    run.write_line(r#"{"type":"control/cancel","session_id":"s","reason":"escape"}"#);
    let noop = run.json();
    assert_eq!((&noop["type"], &noop["status"]), (&"result/cancel".into(), &"noop".into()), "{noop}");
    run.write_line(chat_request("s", Some("p"), "x"));
    mock.reached("never");
    run.write_line(
        r#"{"type":"control/cancel","session_id":"s","prompt_id":"p","reason":"escape","request_id":"r-1"}"#,
    );
    let lines = turn(QWEN, &mut run);
    let result = lines.iter().find(|line| line["type"] == "result/cancel").unwrap();
    assert_eq!((&result["status"], &result["prompt_id"]), (&"ok".into(), &"p".into()), "{result}");
    let response = lines.iter().find(|line| line["type"] == "control_response").unwrap();
    assert_eq!(response["request_id"], "r-1");
    assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "cancelled");
    mock.client_gone(0);
    run.write_line(chat_request("s", None, "again"));
    assert_eq!(turn(QWEN, &mut run).last().unwrap()["metadata"]["turn"]["status"], "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_cancel_is_heard_while_nobody_reads() {
    let interrupt = r#"{"type":"control_request","request_id":"r-1","request":{"subtype":"interrupt"}}"#;
    let cancel = r#"{"type":"control/cancel","session_id":"s","reason":"escape","request_id":"r-1"}"#;
    for (wire, line) in [(QWEN_CHUNK, cancel), (wire::CLAUDE_PARTIAL, interrupt)] {
        let flood = (0..5000).map(|n| sse::text(&format!("{n:1000}"))).chain([gate("never")]);
        let mock = MockModel::with([Reply::new(flood)]);
        let mut run = worker(&mock, wire).start();
        run.write_line(user("x"));
        // Not a line is taken: what does not fit into the pipe waits on our side, and the model with it.
        mock.wait_for_request(0);
        wait_stuck(&run, mock.port());
        run.write_line(line);
        mock.client_gone(0);
        let ended = run.finish();
        let told = judged(wire, &ended);
        assert_eq!(statuses(&told), ["cancelled"]);
        assert!(ended.stdout.contains("\"r-1\""), "the request is answered: {wire:?}");
    }
}

#[test]
fn a_heartbeat_is_answered_at_rest_and_at_work() {
    wire::each(&STREAMS, |wire| {
        let mock =
            MockModel::with([Reply::new([gate("hold"), sse::text("one"), sse::finish("stop"), sse::done()])]);
        let mut run = worker(&mock, wire).start();
        let beat = |line: &Value| line["type"] == "result/heartbeat";
        run.write_line(r#"{"type":"heartbeat_request","session_id":"session-123"}"#);
        let answer = run.json_until(beat).pop().unwrap();
        assert_eq!(answer["status"], "ok", "{answer}");
        assert!(answer["ts"].is_u64(), "{answer}");
        run.write_line(openai("x"));
        mock.reached("hold");
        run.write_line(r#"{"type":"heartbeat_request"}"#);
        run.json_until(beat);
        mock.open("hold");
        assert_eq!(run.finish().code, Some(0));
    });
}

#[test]
fn another_protocol_version_is_fatal() {
    let wanted = [
        json!({ "protocol_version": "2.0", "messages": [{ "role": "user", "content": "x" }] }),
        json!({ "requires": ["telepathy"], "messages": [{ "role": "user", "content": "x" }] }),
    ];
    for line in wanted {
        let mock = echo();
        let mut run = worker(&mock, QWEN).start();
        run.write_line(&line);
        // Standard input stays open: the worker ends by itself.
        let ended = run.wait();
        assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
        let last = ended.json_lines().pop().unwrap();
        assert_eq!(last["choices"][0]["finish_reason"], "error", "{last}");
        assert_eq!(last["metadata"]["error"]["code"], "unsupported_protocol", "{last}");
        assert_eq!(mock.requests().len(), 0);
    }
    let mock = echo();
    let fine = json!({ "protocol_version": "1.7", "requires": ["cancel"], "messages": [{ "role": "user", "content": "x" }] });
    let ended = worker(&mock, QWEN).stdin(fine.to_string()).run();
    assert_eq!((ended.code, statuses(&judged(QWEN, &ended))), (Some(0), vec!["done"]));
}

#[test]
fn a_prompt_without_a_model_still_gets_its_terminal_record() {
    wire::each(&STREAMS, |wire| {
        let ended = qwen().args(["--input-format", "stream-json"]).args(wire.flags()).stdin(user("x")).run();
        let told = judged(wire, &ended);
        assert_eq!(statuses(&told), ["error"], "{ended:?}");
        let error = told.ends[0].error.clone().unwrap();
        assert!(error.contains("OPENAI_API_KEY"), "{error}");
        assert_eq!(told.errors, Vec::<String>::new(), "one error");
    });
}

#[test]
fn a_whole_conversation_in_one_line_is_the_past_of_its_prompt() {
    let mock = echo();
    let line = json!({ "messages": [
        { "role": "system", "content": "You are a pirate." },
        { "role": "user", "content": "Who are you?" },
        { "role": "assistant", "content": "Arr!" },
        { "role": "user", "content": "Again?" },
    ] });
    let ended = worker(&mock, QWEN).stdin(line.to_string()).run();
    assert_eq!(statuses(&judged(QWEN, &ended)), ["done"], "{ended:?}");
    let request = &mock.requests()[0];
    let said: Vec<(&str, &str)> = request
        .messages()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert!(said[0].0 == "system" && said[0].1.contains("You are a pirate."), "{said:?}");
    assert_eq!(said[1..], [("user", "Who are you?"), ("assistant", "Arr!"), ("user", "Again?")]);
}
