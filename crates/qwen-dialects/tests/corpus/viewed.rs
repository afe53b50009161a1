//! What a person sees of the corpus.

use qwen_dialects::Dialect;
use qwen_dialects::view::{ViewOptions, Viewer};

use crate::accepted::changed;
use crate::files::{read, streams};

pub const PLAIN: ViewOptions = ViewOptions { color: false, width: 80, height: None };

/// The transcript of a stream.
pub fn view(dialect: Option<Dialect>, options: ViewOptions, bytes: &[u8]) -> String {
    let mut viewer = Viewer::new(dialect, options);
    let mut out = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        viewer.push_line(line, &mut out);
    }
    viewer.finish(&mut out);
    String::from_utf8(out).expect("a transcript is text")
}

#[test]
fn transcripts_read_well() {
    for path in [
        "plain-answer/claude.jsonl",
        "thought/claude.partial.jsonl",
        "thought/loom.jsonl",
        "one-tool/loom.jsonl",
        "parallel-tools/loom.jsonl",
        "parallel-tools/qwen.stream-chunk-json.jsonl",
        "denied-tool/qwen.jsonl",
        "denied-tool/claude.partial.jsonl",
        "cancel-in-tool/core.jsonl",
        "cancel-in-text/loom-export.jsonl",
        "broken-stream/claude-lite.jsonl",
        "retry/claude.jsonl",
        "max-tool-calls/loom.json.jsonl",
        "tot/loom.jsonl",
        "got/loom.jsonl",
        "multi-byte-text/loom.jsonl",
        "two-megabyte-output/qwen.jsonl.gz",
        "two-turns/claude-lite.json.jsonl",
    ] {
        let name = path.trim_end_matches(".gz").trim_end_matches(".jsonl").replace('/', "--");
        insta::assert_snapshot!(name, view(None, PLAIN, &read(path)));
    }
}

#[test]
fn every_dialect_shows_the_answer_and_the_end() {
    for stream in streams() {
        let shown = view(None, PLAIN, &stream.bytes);
        assert!(!shown.contains("not understood"), "{}: {shown}", stream.path);
        assert!(!shown.contains("the stream ends"), "{}: {shown}", stream.path);
        if stream.trace == "plain-answer" {
            assert!(shown.contains("Hello! What shall we build?\n"), "{}: {shown}", stream.path);
            assert!(shown.contains("✓ done"), "{}: {shown}", stream.path);
        }
    }
}

/// The lines of a stream of the corpus.
fn lines(path: &str) -> Vec<String> {
    String::from_utf8(read(path)).unwrap().lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn sessions_that_are_interleaved_are_told_apart() {
    let first = lines("one-tool/loom.jsonl");
    let second: Vec<String> =
        lines("thought/loom.jsonl").iter().map(|line| line.replace("session-123", "session-456")).collect();
    let mut merged = String::new();
    for at in 0..first.len().max(second.len()) {
        merged.extend(first.get(at).map(String::as_str));
        merged.extend(second.get(at).map(String::as_str));
    }
    insta::assert_snapshot!("interleaved", view(None, PLAIN, merged.as_bytes()));
}

#[test]
fn lines_that_come_a_little_out_of_order_or_twice_make_no_difference() {
    let whole = lines("parallel-tools/loom.jsonl");
    let expected = view(None, PLAIN, whole.concat().as_bytes());
    let mut shuffled = whole.clone();
    for group in shuffled.chunks_mut(7) {
        group.reverse();
    }
    assert_eq!(view(None, PLAIN, shuffled.concat().as_bytes()), expected);
    let twice: String = whole.iter().flat_map(|line| [line.as_str(), line]).collect();
    assert_eq!(view(None, PLAIN, twice.as_bytes()), expected);
}

#[test]
fn a_stream_without_envelope_shows_the_same_but_the_session() {
    let whole = read("one-tool/loom.jsonl");
    let bare = changed(&String::from_utf8(whole.clone()).unwrap(), |object| {
        object.retain(|key, _| !matches!(key.as_str(), "session_id" | "node_id" | "event_id"));
    });
    let shown = view(None, PLAIN, &whole);
    let (_header, expected) = shown.split_once('\n').unwrap();
    assert_eq!(view(None, PLAIN, bare.as_bytes()), expected);
    assert_eq!(view(None, PLAIN, &read("one-tool/loom-export.jsonl")), expected);
}

#[test]
fn an_invalid_line_is_shown_as_such_and_the_view_continues() {
    let mut broken = lines("plain-answer/qwen.jsonl");
    broken.insert(1, "nonsense \u{1b}[31m\n".to_owned());
    broken.insert(2, "\n".to_owned());
    broken.insert(3, "{\"type\":\"whatever\"}\n".to_owned());
    insta::assert_snapshot!("nonsense", view(None, PLAIN, broken.concat().as_bytes()));
}

#[test]
fn colours_are_ours_alone() {
    let options = ViewOptions { color: true, width: 80, height: None };
    insta::assert_snapshot!(
        "colours",
        view(None, options, &read("multi-byte-text/loom.jsonl")).replace('\u{1b}', "ESC")
    );
}

#[test]
fn two_sessions_that_write_at_the_same_time_are_merged_block_by_block() {
    let chunk = |session: &str, text: &str| {
        format!(r#"{{"session_id":"{session}","type":"message_chunk","content":"{text}","id":"think"}}"#)
            + "\n"
    };
    let mut merged = String::new();
    for n in 0..20 {
        merged += &chunk("a", &format!("a{n} "));
        merged += &chunk("b", &format!("b{n} "));
    }
    merged += "{\"session_id\":\"a\",\"reply\":\"\"}\n{\"session_id\":\"b\",\"reply\":\"\"}\n";
    let shown = view(None, PLAIN, merged.as_bytes());
    assert_eq!(shown.matches("── ").count(), 2, "{shown}");
    let text = shown.replace('\n', "");
    for session in ["a", "b"] {
        let whole: String = (0..20).map(|n| format!("{session}{n} ")).collect();
        assert!(text.contains(whole.trim_end()), "{shown}");
    }
}
