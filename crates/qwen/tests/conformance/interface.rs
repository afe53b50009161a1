//! "Interface Overview" and "Output Format Semantics": the flags, and what each format is.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{Host, chat, each_format, echo, openai, passes_check, qwen, worker};

#[test]
fn input_and_output_formats_take_the_three_words_of_the_table() {
    for flag in ["--input-format", "--output-format"] {
        for word in ["text", "stream-json", "stream-chunk-json"] {
            let mock = echo();
            let ended = qwen().with_model(&mock).args(["-p", "Hello", "--model", "mock", flag, word]).run();
            assert_eq!(ended.code, Some(0), "{flag} {word}: {ended:?}");
            assert_eq!(mock.requests().len(), 1, "{flag} {word}");
        }
        let ended = qwen().args(["-p", "Hello", flag, "stream-yaml"]).run();
        assert_eq!(ended.code, Some(2), "{flag}: {ended:?}");
    }
}

#[test]
fn structured_input_chooses_the_output_format_of_the_same_name() {
    for (word, object) in [("stream-json", "chat.completion"), ("stream-chunk-json", "chat.completion.chunk")]
    {
        let mock = echo();
        let flags = ["--dialect", "qwen", "--input-format", word];
        let ended = qwen().with_model(&mock).args(flags).stdin(openai("x").to_string()).run();
        let lines = ended.json_lines();
        assert_eq!(
            (&lines[0]["object"], &lines[0]["metadata"]["input_format"]),
            (&json!(object), &json!(word))
        );
        assert_eq!(lines[0]["metadata"]["output_format"], word);
        passes_check(&ended.stdout);
    }
}

#[test]
fn text_mode_writes_words_and_no_json() {
    let mock = MockModel::with([Reply::text("Hello there.")]);
    let ended = qwen().with_model(&mock).args(["-p", "Hello", "--output-format", "text"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hello there.\n"));
}

#[test]
fn every_line_of_a_structured_mode_is_one_json_object() {
    each_format(|format| {
        let mock = MockModel::with([
            Reply::call("c1", "run_shell_command", r#"{"command":"printf 'a\\nb'; echo err >&2"}"#),
            Reply::text("line one\nline two\r\n\u{2028}three"),
        ]);
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        host.say("several\nlines");
        let lines = host.leave();
        assert!(lines.iter().all(Value::is_object), "{lines:#?}");
    });
}

#[test]
fn a_line_of_a_turn_carries_session_prompt_and_completion_id() {
    each_format(|format| {
        let mock = MockModel::with([
            Reply::call("c1", "list_directory", r#"{"path":"."}"#),
            Reply::text("Two files."),
        ]);
        let mut host = Host::with(&mock, format);
        host.send(chat("s########1", "look"));
        let object = if format == "stream-json" { "chat.completion" } else { "chat.completion.chunk" };
        for line in host.turn() {
            assert_eq!(
                (&line["session_id"], &line["prompt_id"]),
                (&json!("s"), &json!("s########1")),
                "{line}"
            );
            if line.get("type").is_none() {
                assert_eq!((&line["object"], &line["id"]), (&json!(object), &json!("chatcmpl-s")), "{line}");
                assert!(line["created"].is_u64() && line["model"].is_string(), "{line}");
            }
        }
        host.leave();
    });
}

#[test]
fn each_sdk_prompt_of_a_batch_gets_its_own_answer_in_order() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        for n in 1..=5 {
            host.send(chat(&format!("p{n}"), &format!("prompt {n}")));
        }
        for n in 1..=5 {
            let end = host.turn().pop().unwrap();
            assert_eq!(end["prompt_id"], format!("p{n}"), "{end}");
        }
        host.leave();
    });
}
