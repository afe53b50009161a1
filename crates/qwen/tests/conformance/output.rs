//! "`stream-json` Example" and "`stream-chunk-json` Behavior Highlights".

use mock_model::{MockModel, Reply, ReplyEvent, sse};
use serde_json::{Value, json};

use crate::harness::{FORMATS, Host, each_format, openai, worker};

fn fix() -> MockModel {
    MockModel::with([
        Reply::new([
            ReplyEvent::Text("Analyzing...".into()).step(),
            ReplyEvent::call("tool-1", "write_file", r#"{"file_path":"a.txt","content":"x"}"#).step(),
            ReplyEvent::Usage { input: 1200, output: 80 }.step(),
        ]),
        Reply::new([
            ReplyEvent::Text("Fix completed; the file has been updated.".into()).step(),
            ReplyEvent::Usage { input: 1600, output: 200 }.step(),
        ]),
    ])
}

#[test]
fn stream_json_is_a_receipt_the_calls_and_a_closing_summary() {
    let mock = fix();
    let mut host = Host::start(worker(&mock, "stream-json").arg("--yolo"));
    let lines = host.say("fix it");
    let completions: Vec<&Value> = lines.iter().filter(|line| line["object"] == "chat.completion").collect();
    let [call, end] = completions[..] else { panic!("{lines:#?}") };
    let choice = &call["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("tool_calls")));
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(choice["message"]["content"], "Analyzing...");
    let tool = &choice["message"]["tool_calls"][0];
    assert_eq!((&tool["id"], &tool["type"]), (&json!("tool-1"), &json!("function")));
    assert_eq!(tool["function"]["name"], "write_file");
    let arguments: Value = serde_json::from_str(tool["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"file_path": "a.txt", "content": "x"}));
    assert!(call.get("metadata").is_none(), "only the terminal record says more: {call}");
    assert_eq!(
        call["usage"],
        json!({"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280}),
        "{call}"
    );
    let choice = &end["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["content"], "Fix completed; the file has been updated.");
    host.leave();
}

#[test]
fn the_terminal_record_sums_up_the_whole_turn() {
    each_format(|format| {
        let mock = fix();
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        let end = host.say("fix it").pop().unwrap();
        assert_eq!(
            end["usage"],
            json!({"prompt_tokens": 2800, "completion_tokens": 280, "total_tokens": 3080}),
            "{end}"
        );
        let turn = &end["metadata"]["turn"];
        assert_eq!(
            (&turn["status"], &turn["model_calls"], &turn["tool_calls"]),
            (&json!("done"), &json!(2), &json!(1))
        );
        assert!(turn["duration_ms"].is_u64() && turn["permission_denials"] == json!([]), "{turn}");
        assert!(turn.get("usage_by_model").is_some(), "{turn}");
        assert_eq!(end["choices"][0]["finish_reason"], "stop");
        host.leave();
    });
}

#[test]
fn stream_chunk_json_declares_the_role_then_pieces_then_the_finish() {
    let mock =
        MockModel::with([Reply::new(["H", "e", "y"].map(|piece| ReplyEvent::Text(piece.into()).step()))]);
    let mut host = Host::with(&mock, "stream-chunk-json");
    let lines = host.say("greet");
    let deltas: Vec<&Value> = lines
        .iter()
        .filter(|line| line["object"] == "chat.completion.chunk")
        .map(|line| &line["choices"][0])
        .collect();
    assert_eq!(deltas[0]["delta"], json!({"role": "assistant"}));
    let pieces: Vec<&Value> = deltas[1..4].iter().map(|choice| &choice["delta"]["content"]).collect();
    assert_eq!(pieces, ["H", "e", "y"]);
    let last = deltas.last().unwrap();
    assert_eq!((&last["delta"], &last["finish_reason"]), (&json!({}), &json!("stop")));
    let end = lines.last().unwrap();
    assert!(end["usage"].is_object() && end["metadata"]["turn"].is_object(), "{end}");
    host.leave();
}

#[test]
fn stream_chunk_json_streams_tool_calls_in_pieces() {
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, "c1", "list_directory", ""),
            sse::arguments(0, "{\"path\""),
            sse::arguments(0, ":\".\"}"),
            sse::finish("tool_calls"),
            sse::usage(1, 1),
            sse::done(),
        ]),
        Reply::text("Done."),
    ]);
    let mut host = Host::with(&mock, "stream-chunk-json");
    let lines = host.say("list");
    let calls: Vec<&Value> = lines
        .iter()
        .map(|line| &line["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    assert_eq!((&calls[0]["index"], &calls[0]["id"]), (&json!(0), &json!("c1")));
    assert_eq!(calls[0]["function"]["name"], "list_directory");
    let arguments: String =
        calls.iter().map(|call| call["function"]["arguments"].as_str().unwrap_or_default()).collect();
    assert_eq!(arguments, r#"{"path":"."}"#);
    assert!(lines.iter().any(|line| line["choices"][0]["finish_reason"] == "tool_calls"), "{lines:#?}");
    host.leave();
}

#[test]
fn what_the_model_gives_as_its_reason_to_stop_is_told() {
    for format in FORMATS {
        for reason in ["stop", "length", "content_filter"] {
            let mock = MockModel::with([Reply::new([
                ReplyEvent::Text("so far".into()).step(),
                ReplyEvent::Finish(reason.into()).step(),
            ])]);
            let mut host = Host::with(&mock, format);
            host.send(openai("x"));
            let end = host.turn().pop().unwrap();
            assert_eq!(end["choices"][0]["finish_reason"], reason, "{format}: {end}");
            host.leave();
        }
    }
}
