//! What goes out on OpenAI's wire.

use std::sync::Arc;

use qwen_events::{
    CallId, Json, Media, MediaSource, Message, Part, Role, Sampling, ToolCall, ToolResult, ToolSpec,
};
use qwen_model::{ModelConfig, Request, Secret, build};
use serde_json::{Value, json};

use crate::asking::{ask, config, request};
use crate::server::{Received, Server, stream};

async fn sent(request: Request) -> Received {
    let server = Server::once(stream("")).await;
    ask(&*build(&config(&server)).unwrap(), request).await;
    server.requests().remove(0)
}

async fn body(request: Request) -> Value {
    serde_json::from_str(&sent(request).await.body).unwrap()
}

#[tokio::test]
async fn a_small_request_has_nothing_superfluous() {
    assert_eq!(
        body(request("hi \"there\"\n")).await,
        json!({
            "model": "qwen-coder",
            "messages": [{"role":"system","content":"You help."},{"role":"user","content":"hi \"there\"\n"}],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn a_conversation_with_calls_and_images_is_sent_in_the_order_that_servers_accept() {
    let image = Media { mime_type: "image/png".into(), source: MediaSource::Base64("QUJD".into()) };
    let linked = Media { mime_type: "image/jpeg".into(), source: MediaSource::Url("http://h/i.jpg".into()) };
    let call = |id: &str, arguments: &str, malformed: Option<&str>| {
        Part::Call(Arc::new(ToolCall {
            malformed: malformed.map(Into::into),
            ..ToolCall::new(CallId::new(id), "f".into(), Json::trusted(arguments))
        }))
    };
    let result = |id: &str, media: Vec<Media>| Message {
        role: Role::Tool,
        parts: vec![Part::Result(ToolResult {
            call_id: CallId::new(id),
            name: "f".into(),
            text: format!("result of {id}").into(),
            media,
            is_error: false,
        })],
    };
    let mut asking = request("look");
    asking.system = "".into();
    Arc::make_mut(&mut asking.messages).extend([
        Message {
            role: Role::Assistant,
            parts: vec![
                Part::Thought { text: "secret thought".into(), signature: None },
                call("x", r#"{"a":"é"}"#, None),
                call("y", "{}", Some("{broken")),
            ],
        },
        result("x", vec![image.clone()]),
        result("y", vec![]),
        Message { role: Role::Assistant, parts: vec![Part::Text("I ".into()), Part::Text("see".into())] },
        Message { role: Role::User, parts: vec![Part::Text("and this?".into()), Part::Media(linked)] },
        Message { role: Role::User, parts: vec![Part::Text("one".into()), Part::Text("two".into())] },
    ]);
    asking.tools = Arc::from([ToolSpec {
        name: "f".into(),
        description: "does f".into(),
        parameters: Json::trusted(r#"{"type":"object","properties":{"b":{},"a":{}}}"#),
    }]);
    let received = sent(asking).await;
    assert!(
        received.body.contains(r#""parameters":{"type":"object","properties":{"b":{},"a":{}}}"#),
        "as it was given"
    );
    let body: Value = serde_json::from_str(&received.body).unwrap();
    let function = |id: &str, arguments: &str| json!({"id":id,"type":"function","function":{"name":"f","arguments":arguments}});
    assert_eq!(
        body["messages"],
        json!([
            {"role":"user","content":"look"},
            {"role":"assistant","content":null,"tool_calls":[function("x", r#"{"a":"é"}"#), function("y", "{}")]},
            {"role":"tool","tool_call_id":"x","content":"result of x"},
            {"role":"tool","tool_call_id":"y","content":"result of y"},
            {"role":"user","content":[
                {"type":"text","text":"The tool results above came with this:"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]},
            {"role":"assistant","content":"I see"},
            {"role":"user","content":[
                {"type":"text","text":"and this?"},
                {"type":"image_url","image_url":{"url":"http://h/i.jpg"}}]},
            {"role":"user","content":"one\ntwo"},
        ])
    );
    assert_eq!(
        body["tools"],
        json!([{"type":"function","function":{"name":"f","description":"does f","parameters":{"type":"object","properties":{"a":{},"b":{}}}}}])
    );
}

#[tokio::test]
async fn sampling_and_schema_are_passed_on() {
    let mut asking = request("hi");
    asking.model = Some("other-model".into());
    asking.sampling = Sampling {
        temperature: Some(0.0),
        top_p: Some(0.9),
        max_tokens: Some(50),
        seed: Some(-1),
        stop: vec!["a".into(), "b".into()],
        effort: Some("low".into()),
        ..Sampling::default()
    };
    asking.response_schema = Some(Json::trusted(r#"{"type":"object"}"#));
    let body = body(asking).await;
    for (field, value) in [
        ("model", json!("other-model")),
        ("temperature", json!(0.0)),
        ("top_p", json!(0.9)),
        ("max_tokens", json!(50)),
        ("seed", json!(-1)),
        ("stop", json!(["a", "b"])),
        ("reasoning_effort", json!("low")),
        (
            "response_format",
            json!({"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}),
        ),
    ] {
        assert_eq!(body[field], value, "{field}");
    }
}

#[tokio::test]
async fn headers_of_the_users_own_are_sent_and_may_replace_ours() {
    let server = Server::once(stream("")).await;
    let extra_headers = vec![
        ("X-Team".to_owned(), Secret::new("blue")),
        ("authorization".to_owned(), Secret::new("Custom token")),
    ];
    let config = ModelConfig { extra_headers, ..config(&server) };
    ask(&*build(&config).unwrap(), request("hi")).await;
    let received = server.requests().remove(0);
    assert_eq!(received.header("x-team"), Some("blue"));
    assert_eq!(received.header("authorization"), Some("Custom token"));
    assert_eq!(received.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn provider_fields_are_returned_with_their_call_and_message() {
    let signature = r#"chat.completions:{"reasoning_details":[{"type":"reasoning.encrypted","data":"d"}]}"#;
    let fields = r#"{"extra_content":{"google":{"thought_signature":"c2ln"}},"id":"not this"}"#;
    let call = ToolCall {
        provider_fields: Some(Json::trusted(fields)),
        ..ToolCall::new(CallId::new("x"), "f".into(), Json::trusted("{}"))
    };
    let mut asking = request("look");
    Arc::make_mut(&mut asking.messages).push(Message {
        role: Role::Assistant,
        parts: vec![
            Part::Thought { text: "hm".into(), signature: Some(signature.into()) },
            Part::Thought { text: "other".into(), signature: Some("of another provider".into()) },
            Part::Call(Arc::new(call)),
        ],
    });
    let sent = body(asking).await;
    assert_eq!(
        sent["messages"][2],
        json!({
            "role": "assistant", "content": null,
            "reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}],
            "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"},
                            "extra_content": {"google": {"thought_signature": "c2ln"}}}],
        })
    );
}
