//! A turn from its start to its results.

use qwen_dialects::StreamInfo;
use qwen_events::{Body, Finish, Media, MediaSource, MessageEnd, ToolStatus};
use serde_json::json;

use super::{claude, kind, kinds, partial, qwen_sdk};
use crate::script::{Script, bytes, call, lines, tool_end, turn_start, usage, whole_turn};

#[test]
fn a_turn_is_init_a_line_for_each_block_and_result_and_then_the_result() {
    let lines = lines(&claude(), &whole_turn());
    assert_eq!(
        kinds(&lines),
        [
            "system/init",
            "assistant:thinking",
            "assistant:text",
            "assistant:tool_use",
            "assistant:tool_use",
            "user:tool_result",
            "user:tool_result",
            "assistant:text",
            "result/success",
        ]
    );
    let first_message: Vec<_> = lines[1..5].iter().map(|line| &line["message"]["id"]).collect();
    assert!(first_message.iter().all(|id| *id == "msg-1"), "{first_message:?}");
    assert_eq!(lines[7]["message"]["id"], "msg-2");
    let reasons: Vec<_> = lines[1..5].iter().map(|line| &line["message"]["stop_reason"]).collect();
    assert_eq!(json!(reasons), json!([null, null, null, "tool_use"]));
    assert_eq!(lines[7]["message"]["stop_reason"], "end_turn");
    assert_eq!(lines[1]["message"]["content"][0]["signature"], "", "an SDK fails without it");
    assert_eq!(lines[3]["message"]["content"][0]["input"], json!({"file_path": "a"}));
    assert_eq!(
        lines[5]["message"]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "call_1", "is_error": false, "content": "the file"})
    );
    assert_eq!(lines[6]["message"]["content"][0]["is_error"], true);
    assert_eq!(lines[6]["tool_use_result"]["status"], "denied");
    for line in &lines {
        assert_eq!(line["session_id"], "sess-001", "{line}");
        assert_eq!(line["uuid"].as_str().map(str::len), Some(36), "{line}");
    }
}

#[test]
fn pieces_come_inside_their_blocks_and_each_block_closes_before_its_line() {
    let lines = lines(&partial(), &whole_turn());
    assert_eq!(
        kinds(&lines)[1..],
        [
            "stream:message_start",
            "stream:content_block_start#0",
            "stream:content_block_delta#0",
            "stream:content_block_delta#0",
            "stream:content_block_stop#0",
            "assistant:thinking",
            "stream:content_block_start#1",
            "stream:content_block_delta#1",
            "stream:content_block_delta#1",
            "stream:content_block_stop#1",
            "assistant:text",
            "stream:content_block_start#2",
            "stream:content_block_delta#2",
            "stream:content_block_delta#2",
            "stream:content_block_stop#2",
            "stream:content_block_start#3",
            "stream:content_block_delta#3",
            "assistant:tool_use",
            "stream:content_block_stop#3",
            "assistant:tool_use",
            "stream:message_delta",
            "stream:message_stop",
            "user:tool_result",
            "user:tool_result",
            "stream:message_start",
            "stream:content_block_start#0",
            "stream:content_block_delta#0",
            "stream:content_block_delta#0",
            "stream:content_block_stop#0",
            "assistant:text",
            "stream:message_delta",
            "stream:message_stop",
            "result/success",
        ]
    );
    let thinking = &lines[3]["event"]["delta"];
    assert_eq!(thinking["thinking"], thinking["text"], "readers look for it under two names");
    let arguments: String = lines
        .iter()
        .filter(|line| line["event"]["index"] == 2)
        .filter_map(|line| line["event"]["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(arguments, r#"{"file_path":"a"}"#);
    let delta = lines.iter().find(|line| kind(line) == "stream:message_delta").unwrap();
    assert_eq!(delta["event"]["delta"]["stop_reason"], "tool_use");
    assert_eq!(delta["event"]["usage"]["output_tokens"], 62);
}

#[test]
fn the_same_events_and_seed_give_the_same_bytes() {
    assert_eq!(bytes(&partial(), &whole_turn()), bytes(&partial(), &whole_turn()));
    let other = StreamInfo { seed: 8, ..partial() };
    assert_ne!(bytes(&partial(), &whole_turn()), bytes(&other, &whole_turn()));
}

#[test]
fn init_tells_each_sdk_what_it_looks_for() {
    let lines = lines(&claude(), &Script::turn().done(""));
    let init = &lines[0];
    let version: Vec<u64> =
        init["claude_code_version"].as_str().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version.len() == 3 && version >= vec![2, 1, 248], "{version:?}");
    for (key, expected) in [
        ("qwen_code_version", json!("0.1.0")),
        ("cwd", json!("/workspace")),
        ("model", json!("qwen-coder")),
        ("permissionMode", json!("acceptEdits")),
        ("permission_mode", json!("auto-edit")),
        ("tools", json!(["read_file", "write_file"])),
        ("mcp_servers", json!([{"name": "calc", "status": "connected"}])),
        ("slash_commands", json!(["help"])),
        ("apiKeySource", json!("OPENAI_API_KEY")),
        ("output_style", json!("default")),
        ("agents", json!(["general"])),
        ("skills", json!([])),
        ("plugins", json!([])),
    ] {
        assert_eq!(init[key], expected, "{key}");
    }
}

#[test]
fn a_message_that_was_not_streamed_is_shown_whole() {
    let mut script = Script::turn();
    script.push(Body::MessageEnd(Box::new(MessageEnd {
        thought: "".into(),
        signature: None,
        thoughts: Vec::new(),
        message_id: "msg-1".into(),
        model: "qwen-coder".into(),
        text: "All at once.".into(),
        calls: vec![call("call_1", "read_file", r#"{"file_path":"a"}"#)],
        finish: Finish::ToolCalls,
        usage: usage(1, 1),
        aborted: false,
    })));
    let events = script.done("All at once.");
    let whole = lines(&claude(), &events);
    assert_eq!(kinds(&whole)[1..3], ["assistant:text", "assistant:tool_use"]);
    let streamed = lines(&partial(), &events);
    let pieces: Vec<_> = streamed.iter().filter_map(|line| line["event"].get("delta")).collect();
    assert_eq!(pieces[0]["text"], "All at once.");
    assert_eq!(pieces[1]["partial_json"], r#"{"file_path":"a"}"#);
}

#[test]
fn images_in_a_result_are_blocks() {
    let end = qwen_events::ToolEnd {
        media: vec![
            Media { mime_type: "image/png".into(), source: MediaSource::Base64("AAAA".into()) },
            Media {
                mime_type: "application/pdf".into(),
                source: MediaSource::Url("https://x.test/a.pdf".into()),
            },
        ],
        ..tool_end("call_1", "read_file", ToolStatus::Success, "see")
    };
    let mut script = Script::turn();
    script.push(Body::ToolEnd(Box::new(end)));
    let line = lines(&claude(), &script.events).remove(1);
    assert_eq!(
        line["message"]["content"][0]["content"],
        json!([
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
        ])
    );
}

#[test]
fn a_sub_agents_lines_name_its_call_and_never_mix_with_the_main_agents() {
    let mut script = Script::turn();
    script.message().call("task_1", "agent", "{}").end().tool_start("task_1", "agent");
    script.inside(Some("task_1")).message().text("sub ");
    script.inside(Some("task_2")).message().text("other");
    script.inside(Some("task_1")).text("agent").end();
    script.tool_end("call_9", "read_file", ToolStatus::Success, "inner");
    script.inside(None).tool_end("task_1", "agent", ToolStatus::Success, "outer");
    for info in [claude(), partial()] {
        let lines = lines(&info, &script.events);
        let texts: Vec<_> = lines
            .iter()
            .filter(|line| kind(line) == "assistant:text")
            .map(|line| (&line["parent_tool_use_id"], &line["message"]["content"][0]["text"]))
            .collect();
        assert_eq!(json!(texts), json!([["task_1", "sub agent"]]));
        let results: Vec<_> = lines
            .iter()
            .filter(|line| kind(line) == "user:tool_result")
            .map(|line| &line["parent_tool_use_id"])
            .collect();
        assert_eq!(json!(results), json!(["task_1", null]));
        for line in lines.iter().filter(|line| line["event"]["delta"]["text"] == "other") {
            assert_eq!(line["parent_tool_use_id"], "task_2");
        }
    }
}

#[test]
fn the_clients_own_message_is_repeated_only_on_request() {
    let mut start = turn_start("Hello");
    start.message_uuid = Some("11111111-2222-4333-8444-555555555555".into());
    let mut script = Script::default();
    script.push(Body::TurnStart(Box::new(start)));
    assert_eq!(lines(&claude(), &script.events).len(), 1);
    let replaying = StreamInfo { replay_user_messages: true, ..claude() };
    let line = lines(&replaying, &script.events).remove(1);
    assert_eq!(line["message"], json!({"role": "user", "content": "Hello"}));
    assert_eq!(line["uuid"], "11111111-2222-4333-8444-555555555555");
    assert_eq!(line["isReplay"], true);
}

#[test]
fn a_tools_progress_is_for_qwens_sdks_that_want_pieces() {
    let mut script = Script::turn();
    script.tool_start("call_1", "run_shell_command");
    for text in ["a\nb\n", "c"] {
        script.push(Body::ToolOutput {
            call: call("call_1", "run_shell_command", "{}"),
            channel: qwen_events::Channel::Stdout,
            text: text.into(),
        });
    }
    assert_eq!(lines(&partial(), &script.events).len(), 1);
    assert_eq!(lines(&qwen_sdk(), &script.events).len(), 1);
    let all = lines(&StreamInfo { partial_messages: true, ..qwen_sdk() }, &script.events);
    assert_eq!(
        all[2]["event"],
        json!({"type": "tool_progress", "tool_use_id": "call_1", "content":
            {"type": "shell_progress", "elapsedMs": 20, "totalLines": 2, "totalBytes": 5}})
    );
}
