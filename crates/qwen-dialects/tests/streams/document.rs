//! `--output-format json`: a turn as one document.

use qwen_dialects::{Dialect, Document, Encoder, Format, StreamInfo};
use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, Event, SessionId};
use serde_json::{Value, json};

use crate::script::{Script, info, whole_turn};

fn documents(dialect: Dialect, events: &[Event]) -> Vec<Value> {
    let info =
        StreamInfo { format: Format::Json, session_state: true, partial_messages: true, ..info(dialect) };
    crate::script::lines(&info, events)
}

#[test]
fn claude_gives_the_result_alone_once_a_turn() {
    let documents = documents(Dialect::Claude, &[whole_turn(), whole_turn()].concat());
    assert_eq!(documents.len(), 2);
    for document in documents {
        assert_eq!((&document["type"], &document["result"]), (&json!("result"), &json!("Done.")));
    }
}

#[test]
fn the_others_give_their_events_and_the_reply() {
    for dialect in [Dialect::ClaudeLite, Dialect::Loom, Dialect::LoomExport] {
        let stream = crate::script::lines(&info(dialect), &[whole_turn(), whole_turn()].concat());
        let documents = documents(dialect, &[whole_turn(), whole_turn()].concat());
        assert_eq!(documents.len(), 2, "{dialect:?}");
        let mut events = Vec::new();
        for document in &documents {
            assert_eq!(document.as_object().unwrap().len(), 2);
            assert_eq!(document["reply"], "Done.");
            events.extend(document["events"].as_array().unwrap().clone());
        }
        let expected: Vec<_> = stream.into_iter().filter(|line| line.get("reply").is_none()).collect();
        assert_eq!(events, expected, "{dialect:?}");
    }
}

#[test]
fn a_failed_turn_is_a_document_with_an_empty_reply() {
    let error = ErrorInfo::new(ErrorKind::Internal, "internal", "our fault");
    let events = Script::turn().finish(EndStatus::Error, "half", Some(error));
    for dialect in [Dialect::ClaudeLite, Dialect::Loom, Dialect::LoomExport] {
        let documents = documents(dialect, &events);
        assert_eq!((documents.len(), &documents[0]["reply"]), (1, &json!("")), "{dialect:?}");
        assert!(documents[0]["events"].to_string().contains("our fault"));
    }
    let documents = documents(Dialect::Claude, &events);
    assert_eq!((documents.len(), &documents[0]["errors"]), (1, &json!(["our fault"])));
}

#[test]
fn urgent_lines_are_written_at_once() {
    let bad = || Body::Error(Box::new(ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON")));
    for dialect in [Dialect::Claude, Dialect::ClaudeLite, Dialect::Loom, Dialect::LoomExport] {
        let mut script = Script::default();
        script.push(bad());
        assert!(documents(dialect, &script.events)[0].to_string().contains("not JSON"), "{dialect:?}");

        let mut script = Script::turn();
        script
            .ask("req-1", "call_1")
            .push(Body::Heartbeat(qwen_events::Heartbeat::idle(SessionId::parse("sess-001").unwrap())));
        let documents = documents(dialect, &script.events);
        let types: Vec<_> = documents.iter().map(|document| document["type"].clone()).collect();
        assert_eq!(json!(types), json!(["control_request", "result/heartbeat"]), "{dialect:?}");
    }
}

#[test]
fn a_fatal_error_comes_out_whether_or_not_a_turn_is_open() {
    let fatal = || Body::Fatal(Box::new(ErrorInfo::new(ErrorKind::Settings, "bad_settings", "no model")));
    for dialect in [Dialect::Claude, Dialect::ClaudeLite, Dialect::Loom, Dialect::LoomExport] {
        for mut script in [Script::default(), Script::turn()] {
            script.push(fatal());
            let documents = documents(dialect, &script.events);
            assert_eq!(documents.len(), 1, "{dialect:?}");
            assert!(documents[0].to_string().contains("no model"), "{dialect:?}");
            if dialect != Dialect::Claude {
                assert_eq!(documents[0]["reply"], "");
            }
        }
    }
}

/// Stands for a stream whose last line of a turn is its terminal record.
struct Counting(u64);

impl Encoder for Counting {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        self.0 += 1;
        out.extend_from_slice(format!("{{\"n\":{}}}\n", self.0).as_bytes());
        if matches!(event.body, Body::TurnEnd(_)) {
            out.extend_from_slice(b"{\"terminal\":true}\n");
        }
    }
}

#[test]
fn qwen_gives_the_last_line_of_the_turn() {
    let mut document = Document::new(Dialect::Qwen, Box::new(Counting(0)));
    let mut out = Vec::new();
    for event in whole_turn() {
        document.encode(&event, &mut out);
    }
    assert_eq!(out, b"{\"terminal\":true}\n");
}
