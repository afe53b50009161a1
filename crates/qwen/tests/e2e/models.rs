//! Where answers come from, and the odd forms that they take: every wire tells them alike.

use std::fs;

use mock_model::{MockModel, Reply, ReplyEvent, Step, sse};
use serde_json::{Value, json};

use crate::harness::{asked, judged, qwen};
use crate::wire::{self, CLAUDE, LITE, LOOM, QWEN};

#[test]
fn the_demo_needs_neither_key_nor_network() {
    wire::each(&wire::all(), |wire| {
        let program = qwen().args(["-p", "Look around", "--model", "demo", "-q"]).args(wire.flags());
        fs::write(program.cwd_path().join("README.md"), "# A project\n").unwrap();
        let ended = program.run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(told.end().status, "done");
        assert!(!told.text.is_empty());
    });
    let ended = qwen().args(["-p", "Look around", "--model", "demo", "-q"]).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.ends_with('\n') && !ended.stdout.contains('\u{1b}'), "{ended:?}");
}

#[test]
fn calls_of_a_script_with_the_same_id_are_told_apart() {
    wire::each(&wire::all(), |wire| {
        let program = qwen().args(["-p", "x", "--model", "script:same.json", "-q"]).args(wire.flags());
        let script = r#"[[{"tool_call":{"name":"list_directory","arguments":{"path":"."},"id":"c"}},
            {"tool_call":{"name":"glob","arguments":{"pattern":"*"},"id":"c"}}],[{"text":"Done."}]]"#;
        fs::write(program.cwd_path().join("same.json"), script).unwrap();
        let ended = program.run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert_eq!(judged(wire, &ended).end().status, "done");
    });
}

#[test]
fn a_script_or_recording_that_cannot_be_used_is_bad_input() {
    for model in ["script:missing", "script:bad", "replay:missing", "replay:bad"] {
        let program = qwen().args(["-p", "x", "--model", model]);
        fs::write(program.cwd_path().join("bad"), "{").unwrap();
        let ended = program.run();
        let file = model.split(':').next_back().unwrap();
        assert!(ended.code == Some(42) && ended.stderr.contains(file), "{model}: {ended:?}");
    }
}

#[test]
fn anthropics_wire_tells_the_same_story() {
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([
            Reply::new([
                ReplyEvent::Thought("hm".into()).step(),
                ReplyEvent::Text("Let me look. ".into()).step(),
                ReplyEvent::call("toolu_1", "list_directory", r#"{"path":"."}"#).step(),
            ]),
            Reply::text("Done."),
        ]);
        let program = qwen().env("ANTHROPIC_BASE_URL", mock.origin()).env("ANTHROPIC_API_KEY", "k");
        let ended = program.args(["-p", "x", "--yolo"]).args(wire.flags()).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!((told.end().status.as_str(), told.end().tokens), ("done", (20, 10)));
        assert!(told.text.ends_with("Done."), "{told:#?}");
        assert_eq!(mock.requests()[0].header("x-api-key"), Some("k"));
        assert_eq!(mock.requests().len(), 2);
    });
}

#[test]
fn a_recording_replays_without_the_server_and_holds_no_key() {
    let mock = MockModel::with([
        Reply::new([
            ReplyEvent::Text("Let me look. ".into()).step(),
            ReplyEvent::call("c1", "list_directory", r#"{"path":"."}"#).step(),
        ]),
        Reply::text("Done."),
    ]);
    let program = asked(&mock, LITE).arg("--yolo").env("OPENAI_API_KEY", "sk-geheim-4f9a1c7e");
    let path = program.home_path().join("recording.jsonl");
    let ended = program.clone().arg("--record").arg(&path).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let first = judged(LITE, &ended);
    assert!(!fs::read_to_string(&path).unwrap().contains("geheim"));
    drop(mock);
    let replay = qwen().args(["-p", "Hello", "--yolo", "--model"]).arg(format!("replay:{}", path.display()));
    let ended = replay.args(LITE.flags()).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let again = judged(LITE, &ended);
    assert_eq!((again.text.as_str(), again.calls.len()), (first.text.as_str(), 1));
    assert_eq!(again.end().tokens, first.end().tokens);
}

#[test]
fn another_model_goes_on_where_the_first_does_not_exist() {
    wire::each(&wire::all(), |wire| {
        let gone = r#"{"error":{"message":"The model `mock` does not exist","code":"model_not_found"}}"#;
        let mock = MockModel::with([Reply::status(404, gone), Reply::text("Hi")]);
        let ended = asked(&mock, wire).args(["--fallback-model", "other"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(judged(wire, &ended).text, "Hi");
        assert!(
            ended.stderr.contains("mock") && ended.stderr.contains("other"),
            "people are told: {ended:?}"
        );
        assert_eq!(mock.requests()[1].body["model"], "other");
    });
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let whole = json!({ "id": "x", "object": "chat.completion", "model": "mock",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 } });
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([Reply::status(200, &whole.to_string())]);
        let ended = asked(&mock, wire).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!((told.text.as_str(), told.end().tokens), ("Hi", (3, 4)));
    });
}

#[test]
fn odd_but_whole_answers_are_done() {
    let replies: [(&str, Reply, &str); 6] = [
        ("nothing", Reply::new([sse::finish("stop"), sse::done()]), ""),
        ("only a thought", Reply::new([ReplyEvent::Thought("hm".into()).step()]), ""),
        ("no end mark", Reply::new([sse::text("Hi"), sse::finish("stop")]), "Hi"),
        ("cut after the finish", Reply::new([sse::text("Hi"), sse::finish("stop"), Step::Close]), "Hi"),
        (
            "tool calls without any",
            Reply::new([sse::text("Hi"), sse::finish("tool_calls"), sse::done()]),
            "Hi",
        ),
        (
            "keep-alives and split characters",
            Reply::new([
                sse::comment("ping"),
                sse::raw(b"data: {\"choices\":[{\"delta\":{\"content\":\"H\xc3"),
                sse::raw(b"\xa4\"}}]}\r\n\r\n"),
                sse::comment("ping"),
                sse::finish("stop"),
                sse::done(),
            ]),
            "H\u{e4}",
        ),
    ];
    wire::each(&wire::all(), |wire| {
        for (name, reply, text) in &replies {
            let mock = MockModel::with([reply.clone()]);
            let ended = asked(&mock, wire).run();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{name}: {ended:?}");
            let told = judged(wire, &ended);
            assert_eq!((told.end().status.as_str(), told.text.as_str()), ("done", *text), "{name}");
        }
    });
}

#[test]
fn a_server_that_gives_every_call_the_same_id_confuses_nobody() {
    wire::each(&wire::all(), |wire| {
        let call = || Reply::call("call_0", "list_directory", r#"{"path":"."}"#);
        let twice = Reply::new([
            ReplyEvent::call("call_0", "list_directory", r#"{"path":"."}"#).step(),
            ReplyEvent::call("call_0", "glob", r#"{"pattern":"*"}"#).step(),
        ]);
        let mock = MockModel::with([call(), call(), twice, Reply::text("Done.")]);
        let ended = asked(&mock, wire).arg("--yolo").run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(told.end().status, "done");
        if !(wire.is_document() && matches!(wire.dialect, "qwen" | "claude")) {
            let mut ids: Vec<&str> = told.calls.iter().map(|call| call.id.as_str()).collect();
            let mut results: Vec<&str> = told.results.iter().map(|result| result.id.as_str()).collect();
            ids.sort_unstable();
            results.sort_unstable();
            assert_eq!(ids, results, "each call has its own result");
            ids.dedup();
            assert_eq!(ids.len(), 4, "each call has its own id");
        }
        let last = mock.requests()[3].clone();
        let answered: Vec<&str> =
            last.messages().iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        let asked: Vec<&str> = last
            .messages()
            .iter()
            .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
            .map(|call| call["id"].as_str().unwrap())
            .collect();
        assert_eq!(asked, answered, "the conversation stays valid");
    });
}

#[test]
fn the_limit_on_model_calls_holds_over_the_turns_of_a_session() {
    for wire in [QWEN, CLAUDE, LITE, LOOM] {
        let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
        let flags = ["--input-format", "stream-json", "--max-session-turns", "2"];
        let line = r#"{"type":"user","message":{"role":"user","content":"x"}}"#;
        let program = qwen().with_model(&mock).args(flags).args(wire.flags());
        let ended = program.stdin([line, line, line].join("\n")).run();
        let told = judged(wire, &ended);
        let statuses: Vec<&str> = told.ends.iter().map(|end| end.status.as_str()).collect();
        assert_eq!(statuses, ["done", "done", "max_turns"], "{wire:?}");
        assert_eq!(mock.requests().len(), 2, "{wire:?}");
    }
}

#[test]
fn a_worker_that_writes_documents_writes_one_a_turn() {
    for wire in wire::DOCUMENTS {
        let mock = MockModel::with(["one", "two"].map(Reply::text));
        let line = r#"{"messages":[{"role":"user","content":"x"}]}"#;
        let program = qwen().with_model(&mock).args(["--input-format", "stream-json"]).args(wire.flags());
        let ended = program.stdin([line, line].join("\n")).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{wire:?}");
        let documents: Vec<&str> = ended.stdout.split_inclusive('\n').collect();
        assert_eq!(documents.len(), 2, "{wire:?}: {ended:?}");
        assert!(documents[0].contains("one") && documents[1].contains("two"), "{wire:?}: {ended:?}");
    }
}

#[test]
fn what_a_provider_puts_on_a_call_goes_back_with_it_in_this_turn_and_after_a_resume() {
    let signed = json!({"google": {"thought_signature": "c2lnbmVk"}});
    let call = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [{
        "index": 0, "id": "c1", "type": "function", "extra_content": signed,
        "function": {"name": "list_directory", "arguments": "{\"path\":\".\"}"},
    }]}}]});
    let mock = MockModel::with([
        Reply::new([sse::raw(format!("data: {call}\n\n")), sse::finish("tool_calls"), sse::done()]),
        Reply::text("one file"),
        Reply::text("still one"),
    ]);
    let program = qwen().with_model(&mock);
    let first = program.clone().args(["-p", "look", "--session-id", "signed"]).run();
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = program.args(["-p", "and now?", "--resume", "signed"]).run();
    assert_eq!(second.code, Some(0), "{second:?}");
    for number in [1, 2] {
        let request = &mock.requests()[number];
        let calls: Vec<&Value> = request
            .messages()
            .iter()
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten()
            .collect();
        assert_eq!(calls.len(), 1, "{:?}", request.messages());
        assert_eq!(calls[0]["extra_content"], signed, "request {number}");
    }
    assert!(!first.stdout.contains("c2lnbmVk"), "{first:?}");
}
