//! `?dialect=`: the events of a session in every dialect.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

/// The dialects besides `qwen`, and what the last event of a turn contains.
const DIALECTS: [(&str, &str); 6] = [
    ("claude", r#""type":"result""#),
    ("claude-lite", r#""type":"message_stop""#),
    ("loom", r#""reply":"#),
    ("loom-export", r#""reply":"#),
    ("core", r#""type":"finished""#),
    ("acp", r#""stopReason":"#),
];

/// A server with one session, which has had a turn with an approved command and a plain one.
fn recorded() -> (Server, String, u64) {
    let mock = MockModel::with([asks("c1"), Reply::text("Done."), Reply::text("Again.")]);
    let server = serve(&mock);
    let id = server.session();
    let (_, after) = server.prompt(&id, "first");
    let mut events = server.follow(&id, after);
    let request = events.until(is_question).last().unwrap().json()["request_id"].as_str().unwrap().to_owned();
    assert_eq!(server.post(&format!("/api/approvals/{request}"), json!({"decision": "allow"})).status, 200);
    events.until(is_end);
    let last = server.turn(&id, "second").last().unwrap().number();
    (server, id, last)
}

fn path(id: &str, dialect: &str) -> String {
    format!("/api/sessions/{id}/events?dialect={dialect}")
}

#[test]
fn every_dialect_passes_the_checker() {
    let (server, id, last) = recorded();
    for (dialect, end) in DIALECTS {
        let events = server.stream(&path(&id, dialect), Some("0")).until(|event| event.number() == last);
        assert!(events.last().unwrap().data.contains(end), "{dialect}: {:?}", events.last());
        let text: String = events.iter().map(|event| format!("{}\n", event.data)).collect();
        let shown = text.matches("Done.").count();
        assert!(shown > 0 && text.contains("run_shell_command"), "{dialect}: {text}");
        let checked = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
            .args(["check", "--dialect", dialect])
            .stdin(&text)
            .run();
        assert_eq!(checked.code, Some(0), "{dialect}: {}{}\n{text}", checked.stdout, checked.stderr);
    }
}

#[test]
fn a_reader_of_any_dialect_that_reconnects_misses_and_repeats_nothing() {
    let (server, id, last) = recorded();
    for (dialect, _) in DIALECTS {
        let path = path(&id, dialect);
        let read = |after: &str| server.stream(&path, Some(after)).until(|event| event.number() == last);
        let whole = read("0");
        let numbers: Vec<u64> = whole.iter().map(Event::number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{dialect}: {numbers:?}");
        for cut in (1..whole.len()).step_by(3) {
            let rest = read(&numbers[cut - 1].to_string());
            assert_eq!(rest, whole[cut..], "{dialect}, after {}", numbers[cut - 1]);
        }
    }
}

#[test]
fn without_partial_messages_claude_has_no_pieces() {
    let (server, id, last) = recorded();
    let read = |partial: &str| {
        let path = format!("{}&partial={partial}", path(&id, "claude"));
        let events = server.stream(&path, Some("0")).until(|event| event.number() == last);
        events.iter().filter(|event| event.data.contains(r#""type":"stream_event""#)).count()
    };
    assert!(read("true") > 0);
    assert_eq!(read("false"), 0);
}

#[test]
fn an_unknown_dialect_is_refused_with_those_that_exist() {
    let server = serve(&MockModel::with([]));
    let id = server.session();
    for path in [path(&id, "klingon"), path(&id, ""), "/api/events?dialect=claude".to_owned()] {
        assert_eq!(server.get(&path).status, 400, "{path}");
    }
    let capabilities: Value = server.get("/api/capabilities").json();
    assert_eq!(capabilities["dialects"].as_array().unwrap().len(), 7);
}
