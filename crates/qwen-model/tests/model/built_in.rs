//! The demo model, recordings and their replay.

use std::sync::Arc;

use qwen_events::{CallId, Finish, Json, Message, Part, Role, ToolCall, ToolResult, ToolSpec};
use qwen_model::{ModelConfig, Piece, Provider, Request, build};

use crate::asking::{KEY, ask, config, request};
use crate::server::{Server, Then, response, stream};

fn tools(names: &[&str]) -> Arc<[ToolSpec]> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: "a tool".into(),
        parameters: Json::trusted(r#"{"type":"object"}"#),
    };
    names.iter().map(spec).collect()
}

#[tokio::test]
async fn the_demo_model_says_what_it_is() {
    let model = build(&ModelConfig::new(Provider::Demo, "demo")).unwrap();
    assert_eq!(model.name(), "demo");
    let outcome = ask(&*model, request("hello there")).await;
    assert!(outcome.text().starts_with("I am the built-in demo model"), "{}", outcome.text());
    assert!(outcome.text().contains("hello there"));
    assert!(outcome.pieces.iter().filter(|piece| matches!(piece, Piece::Text(_))).count() > 10, "it streams");
    assert_eq!(outcome.finish(), Some(Finish::Stop));
    assert!(outcome.usage().unwrap().estimated);
    let again = ask(&*model, request("hello there")).await;
    assert_eq!(again.pieces, outcome.pieces);
}

#[tokio::test]
async fn the_demo_model_uses_a_tool_and_tells_what_came_back() {
    let model = build(&ModelConfig::new(Provider::Demo, "demo")).unwrap();
    let mut asking = Request { tools: tools(&["read_file"]), ..request("please read notes.txt") };
    let outcome = ask(&*model, asking.clone()).await;
    assert!(matches!(outcome.pieces[1], Piece::Thought(_)), "it thinks first: {:?}", outcome.pieces);
    let (id, name, arguments) = outcome.calls().remove(0);
    assert_eq!((name.as_str(), arguments.as_str()), ("read_file", r#"{"file_path":"notes.txt"}"#));
    assert_eq!(outcome.finish(), Some(Finish::ToolCalls));

    let id = CallId::new(id);
    let call = ToolCall::new(id.clone(), "read_file".into(), Json::trusted(arguments));
    let lines: Vec<String> = (1..=9).map(|n| format!("line {n}")).collect();
    let text = lines.join("\n");
    let result = ToolResult {
        call_id: id,
        name: "read_file".into(),
        text: text.into(),
        media: vec![],
        is_error: false,
    };
    let messages = Arc::make_mut(&mut asking.messages);
    messages.push(Message { role: Role::Assistant, parts: vec![Part::Call(Arc::new(call))] });
    messages.push(Message { role: Role::Tool, parts: vec![Part::Result(result)] });
    let told = ask(&*model, asking).await.text();
    assert!(told.contains("read_file") && told.contains("9 lines") && told.contains("line 5\n"), "{told}");
    assert!(!told.contains("line 6"), "{told}");
}

#[tokio::test]
async fn the_demo_model_calls_no_tool_that_is_not_on_offer() {
    let model = build(&ModelConfig::new(Provider::Demo, "demo")).unwrap();
    let outcome = ask(&*model, Request { tools: tools(&["edit"]), ..request("run date") }).await;
    assert_eq!(outcome.calls(), []);
    assert!(outcome.text().contains("no tool"), "{}", outcome.text());
}

#[tokio::test]
async fn a_recording_plays_back_what_was_said_errors_included_and_holds_no_key() {
    let first = concat!(
        r#"data: {"model":"m","choices":[{"delta":{"reasoning_content":"hm","content":"hi"}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let echo = format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#);
    let leak = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{KEY}\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    let server = Server::answering([
        (response("500 Internal Server Error", "text/plain", "later"), Then::Close),
        (stream(first), Then::Close),
        (response("401 Unauthorized", "application/json", echo), Then::Close),
        (stream(leak), Then::Close),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let model =
        build(&ModelConfig { record: Some(file.clone()), max_retries: 1, ..config(&server) }).unwrap();
    let heard = [ask(&*model, request("one")).await, ask(&*model, request("two")).await];
    // A model that says the key itself: the recording must not.
    drop(model.call(request("never polled")));
    let mut leaking = model.call(request("three"));
    while let Some(item) = futures_util::StreamExt::next(&mut leaking).await {
        item.unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert!(!recorded.contains(KEY), "{recorded}");
    assert_eq!(recorded.lines().count(), 3, "a call that was never begun leaves no trace");

    let replay = build(&ModelConfig::new(Provider::Replay(file), "")).unwrap();
    for outcome in heard {
        let played = ask(&*replay, request("anything")).await;
        assert_eq!((played.pieces, played.error), (outcome.pieces, outcome.error));
    }
    ask(&*replay, request("the last one")).await;
    assert_eq!(ask(&*replay, request("one too many")).await.code(), "replay_exhausted");
}

#[test]
fn a_recording_that_cannot_be_used_is_refused_with_its_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.jsonl");
    let refused = |config: ModelConfig| {
        build(&config).err().map(|error| (error.code, error.message.to_string())).unwrap()
    };
    let replay = || ModelConfig::new(Provider::Replay(file.clone()), "");
    assert_eq!(refused(replay()).0, "replay_unreadable");
    std::fs::write(&file, "{\"request\":\"d\",\"model\":\"m\",\"pieces\":[]}\n{\"request\":1}\n").unwrap();
    let (code, message) = refused(replay());
    assert_eq!(code, "replay_invalid");
    assert!(message.contains("line 2") && message.contains("calls.jsonl"), "{message}");
    let record = Some(folder.path().join("no/such/folder/file"));
    let (code, _) = refused(ModelConfig { record, ..ModelConfig::new(Provider::Demo, "demo") });
    assert_eq!(code, "record_unwritable");
}

fn oracle(spec: &str) -> Result<Arc<dyn qwen_model::Model>, qwen_events::ErrorInfo> {
    build(&ModelConfig::new(Provider::Oracle(spec.into()), "oracle"))
}

#[tokio::test]
async fn an_oracle_answers_the_same_prompt_with_the_same_words_whatever_was_asked_before() {
    let puzzles = ["4 9 10 13", "1 5 5 5", "3 3 8 8", "2 3 4 5", "6 7 8 9"];
    let first = oracle("game24?seed=3").unwrap();
    let mut forwards = Vec::new();
    for puzzle in puzzles {
        forwards.push(ask(&*first, request(puzzle)).await.text());
    }
    let second = oracle("game24?q=0.3&p=0.7&seed=3&delay=0").unwrap();
    for (puzzle, answer) in puzzles.iter().zip(&forwards).rev() {
        assert_eq!(&ask(&*second, request(puzzle)).await.text(), answer, "{puzzle}");
    }
    let other = oracle("game24?seed=4").unwrap();
    let mut others = Vec::new();
    for puzzle in puzzles {
        others.push(ask(&*other, request(puzzle)).await.text());
    }
    assert_ne!(forwards, others);
}

#[test]
fn an_oracle_that_cannot_be_is_refused_with_what_there_is() {
    for (spec, word) in [
        ("chess", "game24, sort, intersect and capacity"),
        ("game24?q=2", "from 0 to 1"),
        ("game24?q=much", "q=much"),
        ("game24?quality=1", "it has seed, delay, q, p"),
        ("sort?seed", "seed=VALUE"),
        ("capacity?cap=-1", "cap=-1"),
    ] {
        let error = oracle(spec).err().unwrap();
        assert_eq!(error.code, "oracle_invalid");
        assert!(error.message.contains(word), "{spec}: {error}");
    }
}
