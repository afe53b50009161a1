//! Anthropic's wire.

use std::sync::Arc;

use qwen_events::{
    CallId, ErrorKind, Finish, Json, Media, MediaSource, Message, Part, Role, ToolCall, ToolResult, ToolSpec,
    Usage,
};
use qwen_model::{ModelConfig, Piece, Provider, Request, build};
use serde_json::{Value, json};

use crate::asking::{KEY, Outcome, ask, config, request};
use crate::server::{Server, Then, response, stream};

async fn asked(server: &Server, request: Request) -> Outcome {
    let config = ModelConfig { provider: Provider::Anthropic, ..config(server) };
    ask(&*build(&config).unwrap(), request).await
}

async fn events(events: &[&str]) -> Outcome {
    let body: Vec<String> = events
        .iter()
        .map(|event| {
            let kind = serde_json::from_str::<Value>(event).unwrap()["type"].as_str().unwrap().to_owned();
            format!("event: {kind}\ndata: {event}\n\n")
        })
        .collect();
    asked(&Server::once(stream(body.concat())).await, request("hello")).await
}

const START: &str = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_read_input_tokens":30,"cache_creation_input_tokens":7,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

#[tokio::test]
async fn reported_usage_survives_a_broken_answer() {
    let told = Usage {
        prompt_tokens: 42,
        completion_tokens: 1,
        cached_tokens: 30,
        cache_write_tokens: 7,
        ..Usage::default()
    };
    let hello = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#;
    let outcome = events(&[START, hello]).await;
    assert_eq!((outcome.code(), outcome.text().as_str()), ("stream_broken", "Hello"));
    assert_eq!(outcome.usage(), Some(told));
    // Counts are no part of the answer: without a token the call is tried again.
    let server = Server::answering([
        (stream(format!("data: {START}\n\n")), Then::Close),
        (stream(format!("data: {START}\n\ndata: {hello}\n\ndata: {STOP}\n\n")), Then::Close),
    ])
    .await;
    let again = ModelConfig { provider: Provider::Anthropic, max_retries: 1, ..config(&server) };
    let outcome = ask(&*build(&again).unwrap(), request("hello")).await;
    assert_eq!((outcome.retries().len(), outcome.text().as_str()), (1, "Hello"));
    assert_eq!(outcome.usage(), Some(told));
}

#[tokio::test]
async fn an_answer_with_thinking_text_and_calls_streams() {
    let outcome = events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me see"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"read_file","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"ls","input":{}}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"whole","input":{"b":1}}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":44}}"#,
        STOP,
    ])
    .await;
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.pieces[1], Piece::Start { model: "claude-x".into() });
    assert_eq!((outcome.thought().as_str(), outcome.text().as_str()), ("Hm", "Let me see"));
    assert_eq!(outcome.pieces[3], Piece::ThoughtSignature("sig==".into()));
    let calls = outcome.calls();
    assert_eq!(calls[0], ("toolu_1".into(), "read_file".into(), r#"{"file_path":"a"}"#.into()));
    assert_eq!(calls[1], ("toolu_2".into(), "ls".into(), "{}".into()));
    assert_eq!((calls[2].1.as_str(), calls[2].2.as_str()), ("whole", r#"{"b":1}"#));
    assert_eq!(outcome.finish(), Some(Finish::ToolCalls));
    let usage = Usage {
        prompt_tokens: 42,
        completion_tokens: 44,
        cached_tokens: 30,
        cache_write_tokens: 7,
        ..Usage::default()
    };
    assert_eq!(outcome.usage(), Some(usage));
}

#[tokio::test]
async fn reasons_to_stop_are_translated() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("tool_use", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("refusal", Finish::ContentFilter),
    ] {
        let delta = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":1}}}}"#
        );
        let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
        for end in [&[START, text, &delta, STOP][..], &[START, text, &delta]] {
            let outcome = events(end).await;
            assert_eq!((outcome.finish(), outcome.error), (Some(finish), None), "{reason}");
        }
    }
}

#[tokio::test]
async fn failures_are_told() {
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let told = events(&[START, overloaded]).await.error.unwrap().0;
    assert_eq!((told.code, told.status, told.retryable), ("overloaded", Some(529), true));
    let outcome = events(&[START, text, overloaded]).await;
    assert_eq!((outcome.text().as_str(), outcome.code()), ("a", "overloaded"));
    assert_eq!(events(&[START, text]).await.code(), "stream_broken");
    assert_eq!(events(&[START]).await.code(), "empty_stream");
    assert_eq!(events(&[START, STOP]).await.code(), "empty_stream");
    let refused = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let server = Server::once(response("401 Unauthorized", "application/json", refused)).await;
    let outcome = asked(&server, request("hello")).await;
    assert!(outcome.message().contains("invalid x-api-key"));
    assert_eq!(outcome.error.unwrap().0.kind, ErrorKind::Auth);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"type":"message","model":"m","content":[{"type":"text","text":"hi"},
        {"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let server = Server::once(response("200 OK", "application/json", body)).await;
    let outcome = asked(&server, request("hello")).await;
    assert_eq!((outcome.text().as_str(), outcome.finish()), ("hi", Some(Finish::ToolCalls)));
    assert_eq!(outcome.calls(), [("t".into(), "f".into(), r#"{"a":1}"#.into())]);
}

#[tokio::test]
async fn the_request_is_what_the_wire_demands() {
    let call = |id: &str| {
        Part::Call(Arc::new(ToolCall::new(CallId::new(id), "f".into(), Json::trusted(r#"{"a":1}"#))))
    };
    let image = Media { mime_type: "image/png".into(), source: MediaSource::Base64("QUJD".into()) };
    let result = |id: &str, media: Vec<Media>, is_error| Message {
        role: Role::Tool,
        parts: vec![Part::Result(ToolResult {
            call_id: CallId::new(id),
            name: "f".into(),
            text: "r".into(),
            media,
            is_error,
        })],
    };
    let thought = |text: &str, signature: Option<&str>| Part::Thought {
        text: text.into(),
        signature: signature.map(Into::into),
    };
    let mut asking = request("one");
    Arc::make_mut(&mut asking.messages).extend([
        Message::text(Role::User, "two"),
        Message {
            role: Role::Assistant,
            parts: vec![
                thought("hm", Some("sig")),
                thought("", Some("redacted_thinking:ENC")),
                thought("unsigned", None),
                Part::Text("  ".into()),
                call("functions.f:0"),
                call("b"),
            ],
        },
        result("functions.f:0", vec![image.clone()], false),
        result("b", vec![], true),
        Message { role: Role::User, parts: vec![Part::Text("three".into()), Part::Media(image)] },
    ]);
    asking.tools = Arc::from([ToolSpec {
        name: "f".into(),
        description: "does f".into(),
        parameters: Json::trusted(r#"{"type":"object"}"#),
    }]);
    asking.sampling.temperature = Some(0.5);
    asking.sampling.stop = vec!["END".into()];
    let server = Server::once(stream("")).await;
    asked(&server, asking.clone()).await;
    let received = server.requests().remove(0);
    assert!(received.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("x-api-key"), Some(KEY));
    assert_eq!(received.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(received.header("authorization"), None);
    let body: Value = serde_json::from_str(&received.body).unwrap();
    let cached = json!({"type":"ephemeral"});
    let png = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}});
    let mut cached_png = png.clone();
    cached_png["cache_control"] = cached.clone();
    assert_eq!(
        body,
        json!({
            "model": "qwen-coder",
            "max_tokens": 8192,
            "system": [{"type":"text","text":"You help.","cache_control":cached}],
            "messages": [
                {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
                {"role":"assistant","content":[
                    {"type":"thinking","thinking":"hm","signature":"sig"},
                    {"type":"redacted_thinking","data":"ENC"},
                    {"type":"tool_use","id":"functions_f_0","name":"f","input":{"a":1}},
                    {"type":"tool_use","id":"b","name":"f","input":{"a":1}}]},
                {"role":"user","content":[
                    {"type":"tool_result","tool_use_id":"functions_f_0","content":[{"type":"text","text":"r"},png]},
                    {"type":"tool_result","tool_use_id":"b","content":"r","is_error":true},
                    {"type":"text","text":"three"},
                    cached_png]},
            ],
            "tools": [{"name":"f","description":"does f","input_schema":{"type":"object"}}],
            "stream": true,
            "temperature": 0.5,
            "stop_sequences": ["END"],
        })
    );
    asking.sampling.effort = Some("high".into());
    asking.sampling.max_tokens = Some(100);
    let server = Server::once(stream("")).await;
    asked(&server, asking).await;
    let body: Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    assert_eq!(body["thinking"], json!({"type":"enabled","budget_tokens":16384}));
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(16484), &Value::Null));
}

#[tokio::test]
async fn a_paused_answer_goes_on_and_is_one_answer() {
    let said = |text: &str, reason: &str| {
        let delta =
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
        let end =
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}});
        stream(format!("data: {START}\n\ndata: {delta}\n\ndata: {end}\n\ndata: {STOP}\n\n"))
    };
    let server = Server::answering([
        (said("Let me ", "pause_turn"), Then::Close),
        (said("search. ", "pause_turn"), Then::Close),
        (said("Found.", "end_turn"), Then::Close),
    ])
    .await;
    let outcome = asked(&server, request("hello")).await;
    assert_eq!(outcome.text(), "Let me search. Found.");
    assert_eq!(outcome.pieces.iter().filter(|piece| matches!(piece, Piece::Start { .. })).count(), 1);
    assert_eq!(outcome.pieces.last(), Some(&Piece::Finish(Finish::Stop)));
    assert_eq!(outcome.usage().unwrap().completion_tokens, 6);
    let bodies: Vec<Value> =
        server.requests().iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect();
    let continued = &bodies[2]["messages"][1];
    assert_eq!(continued["role"], "assistant");
    assert_eq!(continued["content"][1]["text"], "search. ");
}
