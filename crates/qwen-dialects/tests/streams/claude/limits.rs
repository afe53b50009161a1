//! Lines that the SDKs can read.

use qwen_dialects::StreamInfo;
use qwen_events::{Body, Display, Media, MediaSource, ToolStatus};

use super::{claude, kind, qwen_sdk};
use crate::script::{Script, bytes, diff, parse, tool_end, turn_start};

#[test]
fn a_tools_result_never_makes_a_line_that_its_reader_cannot_take() {
    let long = "\"line\"\n\u{1}é".repeat(400_000);
    let picture =
        Media { mime_type: "image/png".into(), source: MediaSource::Base64("A".repeat(2_000_000).into()) };
    let mut huge_diff = diff("a.rs");
    huge_diff.modified = long.as_str().into();
    let plain = tool_end("call_1", "run_shell_command", ToolStatus::Success, "short");
    for (what, info, limit) in [("claude", claude(), 1 << 20), ("qwen", qwen_sdk(), 1 << 16)] {
        for (case, end, keeps) in [
            ("text", qwen_events::ToolEnd { text: long.as_str().into(), ..plain.clone() }, "left out"),
            (
                "display",
                qwen_events::ToolEnd { display: Some(Display::FileDiff(huge_diff.clone())), ..plain.clone() },
                "short",
            ),
            ("image", qwen_events::ToolEnd { media: vec![picture.clone()], ..plain.clone() }, "short"),
            (
                "all",
                qwen_events::ToolEnd {
                    text: long.as_str().into(),
                    media: vec![picture.clone()],
                    display: Some(Display::FileDiff(huge_diff.clone())),
                    output_file: Some("/tmp/out.txt".into()),
                    ..plain.clone()
                },
                "The whole is in /tmp/out.txt",
            ),
        ] {
            let mut script = Script::turn();
            script.push(Body::ToolEnd(Box::new(end)));
            let stream = bytes(&info, &script.events);
            let longest = stream.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
            assert!(longest < limit, "{what} {case}: {longest}");
            let line = parse(&stream).remove(1);
            let content = line["message"]["content"][0]["content"].as_str().unwrap();
            assert!(content.contains(keeps), "{what} {case}: {}", &content[..100.min(content.len())]);
            if case == "text" {
                assert!(content.starts_with("\"line\"\n") && content.ends_with('é'));
                assert!(longest > limit * 9 / 10, "{what}: not cut to the bone: {longest}");
            }
        }
    }
}

#[test]
fn a_long_message_takes_several_lines_and_a_long_answer_is_cut_in_the_result() {
    let long = "\"quoted\"\n".repeat(200_000);
    for (info, limit) in [(claude(), 1 << 20), (qwen_sdk(), 1 << 16)] {
        let info = StreamInfo { replay_user_messages: true, ..info };
        let mut script = Script::default();
        script.push(Body::TurnStart(Box::new(turn_start(&long))));
        script.message().thought(&long).text(&long).end();
        let stream = bytes(&info, &script.done(&long));
        assert!(stream.split(|byte| *byte == b'\n').all(|line| line.len() < limit));
        let lines = parse(&stream);
        for (block, key) in [("assistant:text", "text"), ("assistant:thinking", "thinking")] {
            let blocks: Vec<_> = lines.iter().filter(|line| kind(line) == block).collect();
            let said: String =
                blocks.iter().map(|line| line["message"]["content"][0][key].as_str().unwrap()).collect();
            assert_eq!(said, long);
            assert!(blocks.iter().all(|line| line["message"]["id"] == "msg-1"));
        }
        let texts: Vec<_> = lines.iter().filter(|line| kind(line) == "assistant:text").collect();
        let (last, others) = texts.split_last().unwrap();
        assert_eq!(last["message"]["stop_reason"], "end_turn");
        assert!(others.iter().all(|line| line["message"]["stop_reason"].is_null()));
        let result = lines.last().unwrap()["result"].as_str().unwrap();
        assert!(result.starts_with("\"quoted\"") && result.contains("left out"));
    }
}
