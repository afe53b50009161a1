//! Spec 3: the flat stream, event by event, and what its rules say about errors, tools and several turns.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, ReplyEvent, Step, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, asked, judged, of, qwen, shell, told, toolmaker, worker};

const LITE: &str = "claude-lite";

#[test]
fn the_start_event_names_the_message_and_the_model() {
    let mock = MockModel::with([Reply::text("hi")]);
    let lines = told(&asked(&mock, LITE), LITE, 0);
    let start = &lines[0];
    assert_eq!((&start["type"], &start["message"]["model"]), (&json!("message_start"), &json!("mock")));
    assert!(start["message"]["id"].as_str().is_some_and(|id| !id.is_empty()), "{start}");
}

#[test]
fn content_events_are_the_type_and_the_piece_and_nothing_else() {
    let pieces = ["one ", "two\n", "流 \u{1F600} \"three\""];
    let mock = MockModel::with([Reply::new(pieces.map(|piece| ReplyEvent::Text(piece.to_owned()).step()))]);
    let lines = told(&asked(&mock, LITE), LITE, 0);
    let expected: Vec<Value> =
        pieces.iter().map(|piece| json!({ "type": "content_block_delta", "text": piece })).collect();
    assert_eq!(lines[1..4], expected);
}

#[test]
fn the_finish_event_has_the_reason_under_both_names_and_the_tokens_of_the_turn() {
    let lines = told(&asked(&toolmaker(), LITE).arg("--yolo"), LITE, 0);
    let expected = json!({ "type": "message_stop", "stop_reason": "stop_turn", "reason": "stop_turn",
        "usage": { "input_tokens": 300, "output_tokens": 50 } });
    assert_eq!(lines.last(), Some(&expected));
}

#[test]
fn tool_calls_have_a_name_and_arguments_and_are_told_before_their_results() {
    let lines = told(&asked(&toolmaker(), LITE).arg("--yolo"), LITE, 0);
    let calls = of(&lines, "tool_call");
    let named: Vec<(&str, &Value)> =
        calls.iter().map(|call| (call["name"].as_str().unwrap(), &call["arguments"])).collect();
    let (command, path) =
        (json!({ "command": "echo out; echo err >&2" }), json!({ "file_path": "nothing.txt" }));
    let nothing = json!({});
    assert_eq!(
        named,
        [
            ("run_shell_command", &command),
            ("read_file", &path),
            ("read_file", &nothing),
            ("no_such_tool", &nothing)
        ]
    );
    let place = |kind: &str, id: &str| lines.iter().position(|line| line["type"] == kind && line["id"] == id);
    for (id, failed) in [("ok", false), ("fails", true), ("broken", true), ("unknown", true)] {
        let result = place("tool_result", id).unwrap();
        assert!(place("tool_call", id).unwrap() < result);
        assert_eq!(lines[result]["is_error"], failed, "{id}");
    }
    assert_eq!((of(&lines, "message_start").len(), of(&lines, "message_stop").len()), (1, 1));
}

#[test]
fn objects_are_written_as_soon_as_they_arrive() {
    let mock = MockModel::with([Reply::new([
        sse::text("first"),
        gate("more"),
        sse::text("last"),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let mut run = asked(&mock, LITE).start();
    run.close_stdin();
    let seen = run.json_until(|line| line["type"] == "content_block_delta");
    assert_eq!(seen.last().unwrap()["text"], "first");
    assert!(!run.has_ended());
    mock.open("more");
    assert_eq!(run.wait().code, Some(0));
}

/// A model that asks for a list, twice.
fn listing() -> Vec<Reply> {
    ["c1", "c2"].map(|id| Reply::call(id, "list_directory", r#"{"path":"."}"#)).into()
}

/// A model that gives this reason to stop.
fn finishing(reason: &str) -> Vec<Reply> {
    vec![Reply::new([ReplyEvent::Text("x".into()).step(), ReplyEvent::Finish(reason.into()).step()])]
}

/// What ends a turn, the exit code, and the reason.
type Ending = (&'static str, fn() -> Vec<Reply>, &'static [&'static str], i32, &'static str);

#[test]
fn every_end_has_its_reason_its_exit_code_and_its_error_before_it() {
    let endings: &[Ending] = &[
        ("stop", || finishing("stop"), &[], 0, "stop_turn"),
        ("length", || finishing("length"), &[], 0, "max_tokens"),
        ("filter", || finishing("content_filter"), &[], 1, "error"),
        ("400", || vec![Reply::status(400, "{}")], &[], 1, "error"),
        ("401", || vec![Reply::status(401, "{}")], &[], 41, "error"),
        ("cut", || vec![Reply::new([sse::text("half"), Step::Close])], &[], 1, "error"),
        ("turns", listing, &["--max-session-turns", "1"], 53, "max_turns"),
        ("calls", listing, &["--max-tool-calls", "1"], 55, "max_tool_calls"),
        ("tokens", listing, &["--max-tokens-total", "15"], 55, "max_tokens"),
        ("time", listing, &["--max-wall-time", "0"], 55, "max_wall_time"),
    ];
    for (name, replies, flags, code, reason) in endings {
        let ended = asked(&MockModel::with(replies()), LITE).args(*flags).run();
        assert_eq!(ended.code, Some(*code), "{name}: {ended:?}");
        let lines = judged(LITE, &ended.stdout);
        let [first, .., before, stop] = &lines[..] else { panic!("{name}: {lines:#?}") };
        assert_eq!(
            (&first["type"], &stop["stop_reason"]),
            (&json!("message_start"), &json!(reason)),
            "{name}"
        );
        assert!(stop["usage"]["input_tokens"].is_u64() && stop["usage"]["output_tokens"].is_u64(), "{stop}");
        let failed = *code != 0;
        assert_eq!(before["type"] == "error", failed, "{name}: {before}");
        if failed {
            // As JSON on standard output and as words on standard error.
            let message = before["error"]["message"].as_str().unwrap();
            assert_eq!(ended.stderr.matches(message).count(), 1, "{name}: {}", ended.stderr);
            assert!(before["error"]["type"].is_string(), "{before}");
        }
    }
}

#[test]
fn a_signal_stops_the_message() {
    for (signal, code, reason) in [(Signal::INT, 130, "cancelled"), (Signal::TERM, 143, "interrupted")] {
        let mock = MockModel::with([Reply::new([sse::text("half"), gate("never")])]);
        let mut run = asked(&mock, LITE).start();
        run.close_stdin();
        run.json_until(|line| line["type"] == "content_block_delta");
        run.signal(signal);
        let ended = run.wait();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(judged(LITE, &ended.stdout).last().unwrap()["stop_reason"], reason);
    }
}

#[test]
fn each_turn_of_a_worker_is_one_message_of_its_own() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let mut host = Host::of(&worker(&mock, LITE), LITE);
    let ids: Vec<Value> = ["one", "two"]
        .iter()
        .map(|text| {
            let lines = host.say(text);
            let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["message_start", "content_block_delta", "message_stop"]);
            assert_eq!(lines[1]["text"], *text);
            lines[0]["message"]["id"].clone()
        })
        .collect();
    assert_ne!(ids[0], ids[1]);
    host.leave();
}

#[test]
fn what_a_command_says_beside_a_turn_is_a_message_after_it() {
    let mock = MockModel::with([Reply::new([
        sse::text("Hel"),
        gate("more"),
        sse::text("lo"),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let mut host = Host::of(&worker(&mock, LITE), LITE);
    host.ask("hi");
    let mut lines = host.run.json_until(|line| line["type"] == "content_block_delta");
    host.ask("/nosuch");
    // A heartbeat's answer shows that the command was read.
    host.run.write_line(json!({ "type": "heartbeat_request" }));
    host.run.json_until(|line| line["type"] == "result/heartbeat");
    mock.open("more");
    lines.extend(host.turn("allow"));
    let said: String =
        of(&lines, "content_block_delta").iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(said, "Hello", "a message has one author");
    let command = host.turn("allow");
    assert!(command[1]["text"].as_str().unwrap().contains("/nosuch"), "{command:#?}");
    assert_ne!(command[0]["message"]["id"], lines[0]["message"]["id"]);
    host.leave();
}

#[test]
fn a_tool_that_needs_an_answer_is_asked_about_on_the_control_channel() {
    for (behavior, failed) in [("allow", false), ("deny", true)] {
        let mock = MockModel::with([Reply::new([shell("c1", "touch made")]), Reply::text("ok")]);
        let mut host = Host::of(&worker(&mock, LITE), LITE);
        host.ask("go");
        let lines = host.turn(behavior);
        let question = of(&lines, "control_request")[0];
        assert_eq!(
            (&question["subtype"], &question["tool"]["name"]),
            (&json!("can_use_tool"), &json!("run_shell_command"))
        );
        assert_eq!(of(&lines, "tool_result")[0]["is_error"], failed);
        assert_eq!(host.file("made").exists(), !failed);
        host.leave();
    }
}

#[test]
fn a_bad_line_is_an_error_line_and_costs_nothing_else() {
    let mock = MockModel::with([Reply::text("still here")]);
    let mut host = Host::of(&worker(&mock, LITE), LITE);
    host.run.write_line("{broken");
    let line = host.run.json();
    assert_eq!((&line["type"], &line["error"]["code"]), (&json!("error"), &json!("invalid_json")));
    assert_eq!(host.say("well?")[1]["text"], "still here");
    host.leave();
}

#[test]
fn thinking_is_told_apart_from_content() {
    let mock = MockModel::with([Reply::new([
        ReplyEvent::Thought("hm".into()).step(),
        ReplyEvent::Text("hi".into()).step(),
    ])]);
    let lines = told(&asked(&mock, LITE), LITE, 0);
    assert_eq!(lines[1], json!({ "type": "thinking_delta", "text": "hm" }));
    assert_eq!(lines[2], json!({ "type": "content_block_delta", "text": "hi" }));
}

#[test]
fn the_checker_knows_every_object_that_the_spec_prints() {
    let usage = json!({ "input_tokens": 10, "output_tokens": 25 });
    for (object, sound) in [
        (json!({ "type": "content_block_delta", "text": "chunk of content" }), true),
        (json!({ "type": "message_start", "message": { "id": "message_id", "model": "model_name" } }), true),
        (json!({ "type": "message_stop", "stop_reason": "stop_turn", "usage": usage }), true),
        (json!({ "type": "message_stop", "reason": "finish_reason", "usage": usage }), true),
        (json!({ "type": "tool_call", "name": "tool_name", "arguments": { "param": "value" } }), true),
        (json!({ "type": "message_stop", "usage": usage }), false),
        (json!({ "type": "message_start", "message": { "id": "message_id" } }), false),
        (json!({ "type": "tool_call", "name": "tool_name", "arguments": "{}" }), false),
    ] {
        let checked = qwen().args(["check", "--fragment", "--dialect", LITE]).stdin(object.to_string()).run();
        assert_eq!(checked.code, Some(i32::from(!sound)), "{object}: {checked:?}");
    }
}

#[test]
fn text_and_json_are_still_there() {
    let run = |format: &str| {
        let mock = MockModel::with([Reply::text("hi")]);
        qwen().with_model(&mock).args(["--model", "mock", "-p", "x", "-o", format]).run()
    };
    assert_eq!(run("text").stdout, "hi\n");
    assert_eq!(run("json").json_lines().len(), 1);
    assert_eq!(run("stream-json").json_lines().len(), 3);
}

#[test]
fn a_foreign_stream_with_more_fields_or_the_other_name_of_the_reason_is_checked_and_viewed() {
    let usage = json!({ "input_tokens": 10, "output_tokens": 25 });
    for (message, stop) in [
        (json!({ "id": "m", "role": "assistant", "model": "x" }), "stop_reason"),
        (json!({ "id": "m", "model": "x" }), "reason"),
        (json!({ "id": "m", "role": "assistant", "model": "x", "content": [] }), "reason"),
    ] {
        let lines = [
            json!({ "type": "message_start", "message": message }),
            json!({ "type": "tool_call", "name": "look", "arguments": {} }),
            json!({ "type": "content_block_delta", "text": "found it" }),
            json!({ "type": "message_stop", stop: "stop_turn", "usage": usage }),
        ];
        let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let checked = qwen().arg("check").stdin(&stream).run();
        assert!(checked.code == Some(0) && checked.stderr.contains(LITE), "{stream}{checked:?}");
        let viewed = qwen().arg("view").stdin(&stream).run();
        assert!(viewed.stdout.contains("look") && viewed.stdout.contains("25 written"), "{viewed:?}");
        assert!(!viewed.stdout.contains("not understood"), "{viewed:?}");
    }
}
