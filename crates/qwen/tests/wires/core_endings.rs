//! DESIGN's `core`: content, thoughts, notices, and the one terminal record of each turn.

use mock_model::{MockModel, Reply, ReplyEvent, Step, sse};
use serde_json::{Value, json};

use crate::harness::{Host, asked, fields, of, qwen, told, toolmaker, worker};

const CORE: &str = "core";

#[test]
fn content_is_a_string_a_piece_and_a_thought_has_subject_and_description() {
    let lines = told(&asked(&toolmaker(), CORE).arg("--yolo"), CORE, 0);
    assert_eq!(
        lines[0],
        json!({ "type": "thought", "value": { "subject": "Looking", "description": "around" } })
    );
    assert_eq!(lines[1], json!({ "type": "content", "value": "Let me " }));
    assert_eq!(lines[2], json!({ "type": "content", "value": "look." }));
}

#[test]
fn finished_has_the_reason_and_the_tokens_of_the_whole_turn() {
    let lines = told(&asked(&toolmaker(), CORE).arg("--yolo"), CORE, 0);
    let (last, rest) = lines.split_last().unwrap();
    assert_eq!((&last["type"], &last["value"]["reason"]), (&json!("finished"), &json!("STOP")));
    let tokens = json!({ "promptTokenCount": 300, "candidatesTokenCount": 50, "totalTokenCount": 350 });
    assert_eq!(last["value"]["usageMetadata"], tokens);
    assert!(of(rest, "finished").is_empty(), "one a turn");
}

/// How the model ends, the exit code, the terminal record's type, and what its value has.
type Ending = (&'static str, fn() -> Vec<Reply>, &'static [&'static str], i32, &'static str, Value);

fn finishing(reason: &str) -> Vec<Reply> {
    vec![Reply::new([ReplyEvent::Text("x".into()).step(), ReplyEvent::Finish(reason.into()).step()])]
}

fn listing() -> Vec<Reply> {
    ["c1", "c2"].map(|id| Reply::call(id, "list_directory", r#"{"path":"."}"#)).into()
}

#[test]
fn every_end_is_one_record_with_cause_and_tokens() {
    let endings: [Ending; 10] = [
        ("stop", || finishing("stop"), &[], 0, "finished", json!({ "reason": "STOP" })),
        ("length", || finishing("length"), &[], 0, "finished", json!({ "reason": "MAX_TOKENS" })),
        (
            "filter",
            || finishing("content_filter"),
            &[],
            1,
            "error",
            json!({ "error": { "code": "content_filter" } }),
        ),
        ("400", || vec![Reply::status(400, "{}")], &[], 1, "error", json!({ "error": { "status": 400 } })),
        ("401", || vec![Reply::status(401, "{}")], &[], 41, "error", json!({ "error": { "status": 401 } })),
        ("404", || vec![Reply::status(404, "{}")], &[], 1, "error", json!({ "error": { "status": 404 } })),
        (
            "cut",
            || vec![Reply::new([sse::text("half"), Step::Close])],
            &[],
            1,
            "error",
            json!({ "error": {} }),
        ),
        (
            "turns",
            listing,
            &["--max-session-turns", "1"],
            53,
            "error",
            json!({ "error": { "code": "max_turns" } }),
        ),
        (
            "calls",
            listing,
            &["--max-tool-calls", "1"],
            55,
            "error",
            json!({ "error": { "code": "max_tool_calls" } }),
        ),
        (
            "time",
            listing,
            &["--max-wall-time", "0"],
            55,
            "error",
            json!({ "error": { "code": "max_wall_time" } }),
        ),
    ];
    for (name, replies, flags, code, kind, value) in endings {
        let lines = told(&asked(&MockModel::with(replies()), CORE).args(flags), CORE, code);
        let terminal: Vec<&Value> = lines
            .iter()
            .filter(|line| ["finished", "error", "user_cancelled"].iter().any(|k| line["type"] == *k))
            .collect();
        assert_eq!((terminal.len(), terminal[0]), (1, lines.last().unwrap()), "{name}");
        let end = terminal[0];
        assert_eq!(end["type"], kind, "{name}");
        for (field, expected) in value.as_object().unwrap() {
            match expected {
                Value::Object(inside) => {
                    assert!(end["value"][field]["message"].as_str().is_some_and(|m| !m.is_empty()), "{name}");
                    assert!(
                        inside.iter().all(|(key, wanted)| end["value"][field][key] == *wanted),
                        "{name}: {end}"
                    );
                }
                _ => assert_eq!(end["value"][field], *expected, "{name}"),
            }
        }
        let tokens = fields(&end["value"]["usageMetadata"]);
        for count in ["candidatesTokenCount", "promptTokenCount", "totalTokenCount"] {
            assert!(tokens.contains(&count), "{name}: {end}");
        }
    }
}

#[test]
fn a_bad_line_is_an_input_error_and_no_end() {
    let mock = MockModel::with([Reply::text("still here")]);
    let mut host = Host::of(&worker(&mock, CORE), CORE);
    for (bad, code) in [("{broken", "invalid_json"), (r#"{"type":"nonsense"}"#, "unknown_type")] {
        host.run.write_line(bad);
        let line = host.run.json();
        assert_eq!((&line["type"], &line["value"]["error"]["code"]), (&json!("input_error"), &json!(code)));
        assert!(line["value"]["error"]["message"].is_string());
    }
    let lines = host.say("well?");
    assert_eq!((&lines[0]["value"], &lines[1]["type"]), (&json!("still here"), &json!("finished")));
    host.leave();
}

#[test]
fn a_compressed_conversation_is_told_with_both_sizes() {
    let mock = MockModel::with([Reply::text("a long answer"), Reply::text("a summary")]);
    let mut host = Host::of(&worker(&mock, CORE), CORE);
    host.say("hi");
    host.ask("/compress");
    let lines = host.run.json_until(|line| line["type"] == "chat_compressed");
    let value = &lines.last().unwrap()["value"];
    assert_eq!(fields(value), ["newTokenCount", "originalTokenCount"]);
    assert!(value["originalTokenCount"].is_u64() && value["newTokenCount"].is_u64(), "{value}");
    host.leave();
}

#[test]
fn turns_of_a_worker_have_prompt_ids_of_their_own() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let mut host = Host::of(&worker(&mock, CORE).args(["--session-id", "s-1"]), CORE);
    for turn in 1..=2 {
        let end = host.say("x").pop().unwrap();
        assert_eq!(end["value"]["prompt_id"], format!("s-1########{turn}"));
    }
    host.leave();
}

#[test]
fn a_repeated_attempt_is_told_and_costs_no_terminal_record() {
    let overloaded = || Step::Status(429, vec![("retry-after".into(), "0".into())], "{}".into());
    let mock = MockModel::with([Reply::new([overloaded()]), Reply::text("fine")]);
    let lines = told(&asked(&mock, CORE), CORE, 0);
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["retry", "content", "finished"]);
    assert_eq!(lines[0]["value"]["status"], 429);
}

#[test]
fn a_command_is_answered_without_a_model() {
    let ended = qwen().args(["-p", "/help", "--dialect", CORE]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json_lines()[0]["type"], "result/command");
}
