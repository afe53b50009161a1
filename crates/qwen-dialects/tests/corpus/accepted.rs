//! Streams that are not in the corpus and nothing is wrong with.

use qwen_dialects::check::{Checker, Level, Mode};
use qwen_dialects::{Dialect, Format, StreamMode, encoder};
use qwen_events::{Body, ErrorInfo, ErrorKind, Event, Scope, Timestamp};

use crate::checked::check;
use crate::files::{read, streams};
use crate::streams::{Variant, info};
use crate::traces;

#[track_caller]
fn sound(dialect: Option<Dialect>, stream: &str) {
    let found = check(dialect, Mode::Stream, stream.as_bytes());
    assert!(found.is_empty(), "{found:#?}\n{stream}");
}

fn text(path: &str) -> String {
    String::from_utf8(read(path)).unwrap()
}

/// Each line of a stream with its fields changed.
pub fn changed(
    stream: &str,
    mut change: impl FnMut(&mut serde_json::Map<String, serde_json::Value>),
) -> String {
    let mut lines = String::new();
    for line in stream.lines() {
        let mut object = serde_json::from_str(line).unwrap();
        change(&mut object);
        lines += &serde_json::Value::Object(object).to_string();
        lines.push('\n');
    }
    lines
}

/// The lines of two streams in turn, the second as another session.
fn interleaved(path: &str) -> String {
    let (first, second) = (text(path), text(path).replace("session-123", "session-456"));
    first.lines().zip(second.lines()).flat_map(|(a, b)| [a, "\n", b, "\n"]).collect()
}

#[test]
fn sessions_that_are_interleaved() {
    sound(None, &interleaved("one-tool/loom.jsonl"));
    sound(None, &interleaved("one-tool/qwen.jsonl"));
    sound(None, &interleaved("one-tool/qwen.stream-chunk-json.jsonl"));
    let claude = interleaved("one-tool/claude.partial.jsonl");
    let found = check(None, Mode::Stream, claude.as_bytes());
    assert!(found.iter().all(|finding| finding.rule == "uuid"), "{found:#?}");
}

#[test]
fn sessions_that_share_one_numbering() {
    let mut number = 0;
    let stream = changed(&interleaved("one-tool/loom.jsonl"), |object| {
        number += 1;
        object.insert("event_id".to_owned(), number.into());
    });
    sound(None, &stream);
}

#[test]
fn loom_without_the_envelope_or_parts_of_it() {
    for missing in [&["event_id"][..], &["session_id"], &["node_id"], &["session_id", "node_id", "event_id"]]
    {
        let stripped = changed(&text("two-turns/loom.jsonl"), |object| {
            object.retain(|key, _| !missing.contains(&key.as_str()));
        });
        sound(Some(Dialect::Loom), &stripped);
    }
    sound(
        None,
        "{\"type\":\"run_start\"}\n{\"type\":\"node_enter\",\"id\":\"think\"}\n{\"type\":\"message_chunk\",\"content\":\"Hello\",\"id\":\"think\"}\n{\"type\":\"node_exit\",\"id\":\"think\",\"result\":\"Ok\"}\n{\"reply\":\"Hello\"}\n",
    );
    sound(
        None,
        "{\"type\":\"run_start\",\"run_id\":null,\"session_id\":null,\"event_id\":0}\n{\"reply\":\"\",\"event_id\":1}\n",
    );
}

#[test]
fn loom_narrowed_to_some_families_of_events() {
    use StreamMode::{Checkpoints, Custom, Messages, Tasks, Tools, Updates, Values};
    for modes in [
        &[Values][..],
        &[Updates],
        &[Messages],
        &[Custom],
        &[Checkpoints],
        &[Tasks],
        &[Tools],
        &[Messages, Tools],
        &[Tasks, Updates],
        &[Messages, Values, Updates],
    ] {
        for (name, trace) in traces::all().into_iter().filter(|(name, _)| *name != "two-megabyte-output") {
            let variant = Variant { dialect: Dialect::Loom, format: Format::StreamJson, partial: false };
            let mut encoder =
                encoder(&qwen_dialects::StreamInfo { stream_modes: modes.to_vec(), ..info(variant) });
            let mut out = Vec::new();
            for event in &trace.events {
                encoder.encode(event, &mut out);
            }
            let found = check(Some(Dialect::Loom), Mode::Stream, &out);
            assert!(found.is_empty(), "{name} with {modes:?}: {found:#?}\n{}", String::from_utf8_lossy(&out));
        }
    }
}

#[test]
fn a_process_that_cannot_go_on() {
    let error = ErrorInfo::new(ErrorKind::Settings, "no_model", "no model is configured: set OPENAI_MODEL");
    let at = Timestamp(1_739_430_000_000);
    let fatal = Event { at, scope: Scope::default(), body: Body::Fatal(Box::new(error)) };
    let turn = &traces::all()[0].1.events;
    for variant in Variant::all() {
        for before in [0, turn.len() / 2, turn.len()] {
            let events: Vec<Event> = turn[..before].iter().chain([&fatal]).cloned().collect();
            let stream = variant.encode(&events);
            let found = check(Some(variant.dialect), Mode::Stream, &stream);
            // A node that was under way stays so.
            let found: Vec<_> =
                found.iter().filter(|finding| !["node", "message"].contains(&finding.rule)).collect();
            assert!(
                found.is_empty(),
                "{} after {before}: {found:#?}\n{}",
                variant.file_name(),
                String::from_utf8_lossy(&stream)
            );
        }
    }
}

#[test]
fn lines_that_any_dialect_may_begin_with_wait_for_the_dialect() {
    let heartbeat =
        "{\"type\":\"result/heartbeat\",\"session_id\":\"session-123\",\"status\":\"ok\",\"ts\":1}\n";
    for path in ["plain-answer/claude.jsonl", "plain-answer/loom.jsonl", "plain-answer/core.jsonl"] {
        let stream = heartbeat.repeat(20) + &text(path);
        sound(None, &stream);
    }
    sound(None, heartbeat);
}

#[test]
fn values_that_are_spread_over_lines_are_fragments_too() {
    let pretty =
        "{\n  \"type\": \"x-qwen-thought\",\n  \"subject\": \"a\",\n  \"description\": \"b }{ \\\" c\"\n}\n";
    let found = |text: &str| -> Vec<(u64, &'static str)> {
        check(None, Mode::Fragment, text.as_bytes())
            .iter()
            .map(|finding| (finding.line, finding.rule))
            .collect()
    };
    assert_eq!(found(&pretty.repeat(2)), []);
    assert_eq!(found(&pretty.replace("x-qwen-thought", "x-qwen-hunch")), [(1, "unknown-type")]);
    assert_eq!(found(&format!("{{\"type\":\n{pretty}")), [(1, "json")]);
    assert_eq!(found("{\n\"type\": 1"), [(1, "json"), (2, "no-newline")]);
    assert_eq!(check(None, Mode::Stream, pretty.as_bytes()).len(), 5, "in a stream every line is whole");
}

#[test]
fn a_line_over_the_limit_is_one_error() {
    let mut checker = Checker::new(None, Mode::Stream);
    let lines = text("plain-answer/claude-lite.jsonl");
    let mut found = Vec::new();
    for (number, line) in lines.split_inclusive('\n').enumerate() {
        if number == 1 {
            found.extend(checker.push_oversized(64));
        }
        found.extend(checker.push_line(line.as_bytes()));
    }
    found.extend(checker.finish());
    let found: Vec<_> = found.iter().map(|finding| (finding.line, finding.level, finding.rule)).collect();
    assert_eq!(found, [(2, Level::Error, "too-long")]);
}

#[test]
fn two_streams_of_one_session_behind_each_other_are_wrong_once() {
    let twice = text("plain-answer/loom.jsonl").repeat(2);
    let rules: Vec<_> =
        check(None, Mode::Stream, twice.as_bytes()).iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["event-id"]);
    let others = streams()
        .iter()
        .filter(|stream| stream.trace == "plain-answer" && stream.variant.dialect == Dialect::LoomExport);
    for stream in others {
        assert_eq!(check(None, Mode::Stream, &stream.bytes.repeat(2)), [], "{}", stream.path);
    }
}
