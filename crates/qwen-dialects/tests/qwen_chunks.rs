//! What `stream-chunk-json` of the `qwen` dialect promises.
#![expect(clippy::unwrap_used, reason = "tests may say what they expect, outside the test functions too")]

mod story;

use proptest::prelude::*;
use qwen_dialects::qwen::wire::ChatCompletionChunk;
use qwen_dialects::{Dialect, Format, qwen};
use qwen_events::{Body, EndStatus};
use serde_json::{Value, json};
use story::{PROMPT, Story, call, turn_end};

fn lines(story: &Story) -> Vec<String> {
    story.lines(qwen::encoder(&story::info(Dialect::Qwen, Format::StreamChunkJson)))
}

/// Each chunk after the handshake: its delta and its finish reason.
fn chunks(story: &Story) -> Vec<(Value, Value)> {
    lines(story)
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["object"] == "chat.completion.chunk" && line["choices"][0].is_object())
        .map(|line| (line["choices"][0]["delta"].clone(), line["choices"][0]["finish_reason"].clone()))
        .collect()
}

fn role() -> (Value, Value) {
    (json!({"role": "assistant"}), Value::Null)
}

fn text(text: &str) -> (Value, Value) {
    (json!({"content": text}), Value::Null)
}

fn finish(reason: &str) -> (Value, Value) {
    (json!({}), json!(reason))
}

#[test]
fn a_message_is_its_role_its_pieces_and_its_finish() {
    let edit = call("tool-1", "edit", r#"{"path":"main.py"}"#);
    let story = Story::turn().message("Look", &[&edit]).run(&edit, "ok").message("Done", &[]).done("Done");
    assert_eq!(
        chunks(&story),
        [
            role(),
            text("Lo"),
            text("ok"),
            (
                json!({"tool_calls": [{
                    "index": 0, "id": "tool-1", "type": "function", "function": {"name": "edit", "arguments": "{"},
                }]}),
                Value::Null
            ),
            (
                json!({"tool_calls": [{"index": 0, "function": {"arguments": r#""path":"main.py"}"#}}]}),
                Value::Null
            ),
            finish("tool_calls"),
            role(),
            text("Do"),
            text("ne"),
            finish("stop"),
        ]
    );
}

#[test]
fn the_last_chunk_has_the_usage_and_the_summary_of_the_turn() {
    let lines = lines(&Story::turn().message("Done", &[]).done("Done"));
    let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(last["usage"]["total_tokens"], 1800);
    assert_eq!(last["metadata"]["turn"]["status"], "done");
    let summaries = lines.iter().filter(|line| line.contains("\"turn\":")).count();
    assert_eq!(summaries, 1);
}

#[test]
fn a_turn_without_words_still_has_a_message() {
    assert_eq!(chunks(&Story::turn().end(EndStatus::Error, "", None)), [role(), finish("stop")]);
    let edit = call("tool-1", "edit", "{}");
    let cut = Story::turn().message("", &[&edit]).end(EndStatus::Cancelled, "", None);
    assert_eq!(chunks(&cut)[3..], [finish("tool_calls"), role(), finish("stop")]);
}

#[test]
fn a_call_that_was_not_streamed_comes_whole() {
    let edit = call("tool-1", "edit", r#"{"a":1}"#);
    let story = Story::turn()
        .message_start()
        .then(Body::ToolCall(edit.clone()))
        .message_end("", &[&edit])
        .end(EndStatus::MaxToolCalls, "", None);
    assert_eq!(
        chunks(&story)[1].0["tool_calls"][0],
        json!({"index": 0, "id": "tool-1", "type": "function", "function": {"name": "edit", "arguments": r#"{"a":1}"#}})
    );
}

#[test]
fn a_message_that_is_followed_by_another_is_finished_before_it() {
    let story = Story::turn().message("ab", &[]).message("cd", &[]).done("cd");
    assert_eq!(
        chunks(&story),
        [role(), text("a"), text("b"), finish("stop"), role(), text("c"), text("d"), finish("stop")]
    );
}

#[test]
fn an_answer_that_was_never_streamed_is_streamed_at_the_end() {
    let story = Story::turn().message("ab", &[]).done("The best one.");
    assert_eq!(chunks(&story)[3..], [finish("stop"), role(), text("The best one."), finish("stop")]);
}

#[test]
fn a_withdrawn_prompt_does_not_disturb_the_message_under_way() {
    let withdrawn = turn_end("session-123########2", EndStatus::Cancelled, "");
    let story = Story::turn()
        .message_start()
        .text("a")
        .then(Body::TurnEnd(Box::new(withdrawn)))
        .text("b")
        .message_end("ab", &[])
        .done("ab");
    let of_turn: Vec<(Value, Value)> = lines(&story)
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["choices"][0].is_object() && line["prompt_id"] == PROMPT)
        .map(|line| (line["choices"][0]["delta"].clone(), line["choices"][0]["finish_reason"].clone()))
        .collect();
    assert_eq!(of_turn, [role(), text("a"), text("b"), finish("stop")]);
}

proptest! {
    /// The pieces are written by hand around a rendered prefix: what serde makes of the same chunk is the
    /// same line.
    #[test]
    fn what_is_written_by_hand_is_what_serde_writes(
        pieces in prop::collection::vec(any::<String>(), 1..20),
        arguments in prop::collection::vec(any::<String>(), 1..20),
    ) {
        let mut story = Story::turn().message_start();
        for piece in &pieces {
            story = story.text(piece);
        }
        let edit = call("tool-\"1\"", "edit", "{}");
        for piece in &arguments {
            story = story.then(Body::ToolCallDelta {
                index: 0,
                call_id: edit.id.clone(),
                name: edit.name.clone(),
                arguments: piece.as_str().into(),
            });
        }
        let lines = lines(&story);
        let spoken: String = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter_map(|line| line["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect();
        prop_assert_eq!(spoken, pieces.concat());
        for line in &lines {
            let chunk: ChatCompletionChunk<'_> = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&serde_json::to_string(&chunk).unwrap(), line);
        }
    }
}
