//! What providers of OpenAI's wire really send.

use qwen_events::{Finish, Usage};
use qwen_model::Piece;

use crate::asking::{answer_to, ask_server};
use crate::server::{Server, Then, chunked, stream};

const PLAIN: &str = concat!(
    ": keep-alive\n\n",
    r#"data: {"id":"1","model":"qwen-coder-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"1","model":"qwen-coder-1","choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
    "\n\n",
    r#"data: {"id":"1","choices":[{"index":0,"delta":{"content":"lo — 你好"}}]}"#,
    "\n\n",
    r#"data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"id":"1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":8}}}"#,
    "\n\ndata: [DONE]\n\n",
);

#[tokio::test]
async fn a_plain_answer_streams() {
    let server = Server::once(stream(PLAIN)).await;
    let outcome = ask_server(&server).await;
    let usage = Usage { prompt_tokens: 12, completion_tokens: 3, cached_tokens: 8, ..Usage::default() };
    assert_eq!(
        outcome.pieces,
        [
            Piece::Start { model: "qwen-coder-1".into() },
            Piece::Text("Hel".into()),
            Piece::Text("lo — 你好".into()),
            Piece::Usage(usage),
            Piece::Finish(Finish::Stop),
        ]
    );
    assert_eq!(outcome.error, None);
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("authorization"), Some("Bearer sk-geheim-0123456789"));
    assert_eq!(request.header("host"), Some(server.address.to_string().as_str()));
}

#[tokio::test]
async fn the_answer_is_the_same_however_its_bytes_are_cut() {
    for sizes in [&[1][..], &[2, 3], &[7], &[64, 1], &[100_000]] {
        for ending in ["\n", "\r\n", "\r"] {
            let body = PLAIN.replace('\n', ending);
            let server = Server::answering([(chunked(body.as_bytes(), sizes), Then::KeepOpen)]).await;
            let outcome = ask_server(&server).await;
            assert_eq!(outcome.text(), "Hello — 你好", "{sizes:?} {ending:?}");
            assert_eq!(outcome.finish(), Some(Finish::Stop));
        }
    }
}

#[tokio::test]
async fn running_usage_survives_a_broken_answer() {
    let outcome = answer_to(stream(concat!(
        r#"data: {"choices":[{"delta":{"content":"Hel"}}],"usage":{"prompt_tokens":12,"completion_tokens":1}}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"content":"lo"}}],"usage":{"prompt_tokens":12,"completion_tokens":2}}"#,
        "\n\n",
    )))
    .await;
    assert_eq!((outcome.code(), outcome.text().as_str()), ("stream_broken", "Hello"));
    let told = Usage { prompt_tokens: 12, completion_tokens: 2, ..Usage::default() };
    assert_eq!(outcome.usage(), Some(told));
}

#[tokio::test]
async fn a_stream_that_ends_without_a_reason_is_broken() {
    let outcome =
        answer_to(stream(r#"data: {"choices":[{"delta":{"content":"half"}}]}"#.to_owned() + "\n\n")).await;
    assert_eq!(outcome.text(), "half");
    assert_eq!(outcome.code(), "stream_broken");
}
