//! What goes wrong, and how it is told.

use std::time::Duration;

use qwen_events::{ErrorKind, Timeout};
use qwen_model::{ModelConfig, Piece, Timeouts, build};

use crate::asking::{KEY, answer_to, ask, config, request};
use crate::server::{Server, Then, response, stream};

fn answer(text: &str) -> Vec<u8> {
    stream(format!(
        "data: {{\"model\":\"m\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    ))
}

fn error(status: &str, body: &str) -> Vec<u8> {
    response(status, "application/json", body)
}

#[tokio::test]
async fn refusals_are_told_with_the_servers_words_and_without_the_key() {
    let echo =
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"invalid_api_key"}}}}"#);
    let outcome = answer_to(error("401 Unauthorized", &echo)).await;
    assert!(outcome.message().contains("Incorrect API key provided: ***"), "{}", outcome.message());
    let told = outcome.error.unwrap().0;
    assert_eq!((told.kind, told.status, told.exit_code()), (ErrorKind::Auth, Some(401), 41));

    // The quote is cut in the middle of the key.
    let outcome =
        answer_to(response("401 Unauthorized", "text/plain", format!("{}{KEY}", "x".repeat(190)))).await;
    assert!(!outcome.message().contains("sk-ge"), "{}", outcome.message());

    let body = r#"{"error":{"message":"This model's maximum context length is 8192 tokens"}}"#;
    assert_eq!(answer_to(error("400 Bad Request", body)).await.code(), "context_length_exceeded");
    let body = r#"{"error":{"message":"The model `x` does not exist"}}"#;
    assert_eq!(answer_to(error("404 Not Found", body)).await.code(), "model_not_found");
    let endless = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(1_000_000));
    let outcome = answer_to(error("400 Bad Request", &endless)).await;
    assert_eq!(outcome.code(), "invalid_request");
    assert!(outcome.message().len() < 5000);
}

#[tokio::test]
async fn a_compressed_answer_that_nobody_asked_for_is_named_and_not_asked_for_again() {
    let head = |status: &str, coding: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-encoding: {coding}\r\n\r\n")
    };
    for coding in ["gzip", "deflate", "br", "zstd", "GZIP"] {
        let server = Server::once([head("200 OK", coding).as_bytes(), b"\x1f\x8b\x08\0\0"].concat()).await;
        let outcome = ask(&*build(&config(&server)).unwrap(), request("hello")).await;
        assert_eq!((outcome.code(), outcome.retries().len()), ("compressed_answer", 0), "{coding}");
        let wanted = format!("content-encoding: {}", coding.to_lowercase());
        assert!(outcome.message().contains(&wanted), "{}", outcome.message());
        assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
    }
    let outcome = answer_to([head("400 Bad Request", "gzip").as_bytes(), b"\x1f\x8b\x08\0\0"].concat()).await;
    assert_eq!(outcome.code(), "invalid_request");
    assert!(outcome.message().contains("compressed as `gzip`"), "{}", outcome.message());
    let plain = String::from_utf8(answer("hi"))
        .unwrap()
        .replace("\r\n\r\n", "\r\ncontent-encoding: identity\r\n\r\n");
    assert_eq!(answer_to(plain).await.text(), "hi");
}

#[tokio::test]
async fn an_invalid_answer_is_named_and_quoted() {
    let html = "<!DOCTYPE html>\n<html><head><title>Welcome to nginx!</title></head></html>";
    for (bytes, code, quoted) in [
        (response("200 OK", "text/html", html), "not_an_event_stream", "<!DOCTYPE html>\\n<html>"),
        (response("200 OK", "text/html", html.repeat(1000)), "not_an_event_stream", "Welcome to nginx"),
        (response("200 OK", "text/plain", "OK"), "not_an_event_stream", "OK"),
        (response("200 OK", "text/plain", "da"), "not_an_event_stream", "da"),
        (response("200 OK", "application/json", "[1,2,3]"), "invalid_chunk", "not a JSON object"),
        (response("200 OK", "application/json", "\"text\""), "invalid_chunk", "not a JSON object"),
        (response("200 OK", "application/json", "{\"ok\":true}"), "invalid_chunk", "without an answer"),
        (response("200 OK", "application/json", "{\"choices\":"), "invalid_chunk", "EOF"),
        (stream("data: [1,2,3]\n\n"), "invalid_chunk", "[1,2,3]"),
        (stream("data: []\n\n"), "invalid_chunk", "[]"),
        (stream("data: 17\n\n"), "invalid_chunk", "17"),
        (stream("data: not json at all\n\n"), "invalid_chunk", "not json at all"),
        (stream("data: {\"choices\":7}\n\n"), "invalid_chunk", "expected a list"),
        (
            stream(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n"),
            "invalid_utf8",
            "UTF-8",
        ),
        (response("200 OK", "application/json", b"{\"\xff\":1}"), "invalid_utf8", "UTF-8"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec(), "connection_lost", ""),
    ] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        let outcome = answer_to(bytes).await;
        assert_eq!(outcome.code(), code, "{shown}: {}", outcome.message());
        assert!(outcome.message().contains(quoted), "{shown}: {}", outcome.message());
        assert_eq!(outcome.pieces, [], "{shown}");
    }
}

#[tokio::test]
async fn nothing_at_all_is_an_empty_stream() {
    for body in
        ["", "\n\n", ": ping\n\n: ping\n\n", "data: [DONE]\n\n", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"]
    {
        assert_eq!(answer_to(stream(body)).await.code(), "empty_stream", "{body:?}");
    }
    let garbage: Vec<u8> = (0..4096_u32).map(|n| (n * 7 % 251) as u8).collect();
    assert_eq!(answer_to(stream(garbage)).await.code(), "empty_stream");
}

#[tokio::test]
async fn an_error_inside_the_stream_is_the_calls_error() {
    let spoken = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    for (event, code, status) in [
        (r#"data: {"error":{"message":"boom","code":429}}"#, "rate_limited", Some(429)),
        (r#"data: {"error":{"message":"boom","type":"server_error"}}"#, "server_error", Some(500)),
        (r#"data: {"error":"boom"}"#, "model_error", None),
        (
            r#"data: {"object":"error","message":"boom","type":"BadRequestError","code":400}"#,
            "invalid_request",
            Some(400),
        ),
        ("event: error\ndata: {\"message\":\"boom\"}", "model_error", None),
        (
            r#"data: {"choices":[{"error":{"message":"boom","code":502},"finish_reason":"error"}]}"#,
            "server_error",
            Some(502),
        ),
    ] {
        let outcome = answer_to(stream(format!("{spoken}{event}\n\n"))).await;
        assert_eq!((outcome.text().as_str(), outcome.code()), ("half", code), "{event}");
        assert!(outcome.message().contains("boom"), "{event}: {}", outcome.message());
        assert_eq!(outcome.error.unwrap().0.status, status, "{event}");
    }
    // The same with nothing before it, as JSON.
    let outcome = answer_to(response("200 OK", "application/json", r#"{"error":{"message":"boom"}}"#)).await;
    assert!(outcome.message().contains("boom"));
}

#[tokio::test]
async fn a_stream_cut_off_is_broken_wherever_it_is_cut() {
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"ab\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"cd\"}}]}\n\n";
    for cut in 1..whole.len() {
        let outcome = answer_to(stream(&whole[..cut])).await;
        let code = if outcome.text().is_empty() { "empty_stream" } else { "stream_broken" };
        assert_eq!(outcome.code(), code, "{:?}", &whole[..cut]);
        assert!("abcd".starts_with(&outcome.text()));
        assert_eq!(outcome.error.unwrap().0.kind, ErrorKind::Network);
    }
}

#[tokio::test]
async fn one_event_of_ten_megabytes_is_read() {
    let text = "x".repeat(10 * 1024 * 1024);
    let outcome = answer_to(answer(&text)).await;
    assert!(outcome.text() == text, "{} bytes", outcome.text().len());
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let answers = [
        (error("500 Internal Server Error", "{}"), Then::Close),
        (error("503 Service Unavailable", ""), Then::Close),
        (error("429 Too Many Requests", "{}"), Then::Close),
        (b"".to_vec(), Then::Close),
        (stream(": here\n\n"), Then::Close),
        (answer("at last"), Then::Close),
    ];
    let server = Server::answering(answers).await;
    let model = build(&ModelConfig { max_retries: 5, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    let codes: Vec<_> = outcome.retries().iter().map(|(attempt, _, code)| (*attempt, *code)).collect();
    let expected = [
        (1, "server_error"),
        (2, "server_error"),
        (3, "rate_limited"),
        (4, "connection_lost"),
        (5, "empty_stream"),
    ];
    assert_eq!(codes, expected);
    assert_eq!((outcome.text().as_str(), outcome.error), ("at last", None));
    let limits: Vec<_> = (outcome.pieces.iter())
        .filter_map(
            |piece| if let Piece::RateLimit(limit) = piece { Some(limit.status.name()) } else { None },
        )
        .collect();
    assert_eq!(limits, ["rejected", "allowed"], "a refusal is told, and its end");
    let start = outcome.pieces.iter().position(|piece| matches!(piece, Piece::Start { .. }));
    let retried = outcome.pieces.iter().rposition(|piece| matches!(piece, Piece::Retry { .. }));
    assert!(start > retried, "the start follows the retries");
    let bodies: Vec<_> = server.requests().into_iter().map(|received| received.body).collect();
    assert_eq!(bodies.len(), 6);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "every attempt sends the same");
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let slow_down = |header: &str| {
        (
            format!("HTTP/1.1 429 Too Many Requests\r\n{header}\r\nContent-Length: 0\r\n\r\n").into_bytes(),
            Then::Close,
        )
    };
    let server = Server::answering([
        slow_down("Retry-After: 0"),
        slow_down("retry-after-ms: 3"),
        slow_down("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"),
        (answer("ok"), Then::Close),
    ])
    .await;
    let model = build(&ModelConfig { max_retries: 3, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    let delays: Vec<_> = outcome.retries().iter().map(|(_, delay, _)| *delay).collect();
    assert_eq!(delays, [0, 3, 0]);
    assert_eq!(outcome.text(), "ok");
}

#[tokio::test]
async fn a_limit_with_a_known_reset_waits_and_is_not_counted_as_a_retry() {
    let limited = || {
        let head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
        (head.as_bytes().to_vec(), Then::Close)
    };
    let server = Server::answering([limited(), limited(), (answer("ok"), Then::Close)]).await;
    let model = build(&ModelConfig { max_retries: 0, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    let waits = outcome.pieces.iter().filter(|piece| matches!(piece, Piece::Waiting { delay_ms: 1000, .. }));
    assert_eq!((waits.count(), outcome.retries().len()), (2, 0));
    assert_eq!(outcome.text(), "ok");
}

#[tokio::test]
async fn a_reset_beyond_the_longest_wait_is_an_error_at_once() {
    for head in [
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 601\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 529 Overloaded\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 700\r\nContent-Length: 0\r\n\r\n",
    ] {
        let server = Server::once(head.as_bytes()).await;
        let model = build(&ModelConfig { max_retries: 9, ..config(&server) }).unwrap();
        let outcome = ask(&*model, request("hello")).await;
        assert!(outcome.message().contains("model.maxWait"), "{}", outcome.message());
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_wait_that_a_server_asks_for_has_a_bound() {
    use futures_util::StreamExt;
    let head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n";
    let server = Server::once(head.as_bytes()).await;
    let model = build(&ModelConfig { max_retries: 1, ..config(&server) }).unwrap();
    let first = model.call(request("hello")).next().await.unwrap().unwrap();
    assert!(matches!(first, Piece::Retry { delay_ms: 60_000, .. }), "{first:?}");
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for status in
        ["400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "422 Unprocessable Entity"]
    {
        let server = Server::once(error(status, "{}")).await;
        let model = build(&ModelConfig { max_retries: 4, ..config(&server) }).unwrap();
        let outcome = ask(&*model, request("hello")).await;
        assert_eq!((outcome.retries().len(), server.requests().len()), (0, 1), "{status}");
    }
}

#[tokio::test]
async fn when_the_attempts_are_used_up_the_last_error_stands() {
    let server =
        Server::answering((0..3).map(|_| (error("500 Internal Server Error", "{}"), Then::Close))).await;
    let model = build(&ModelConfig { max_retries: 2, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    assert_eq!((outcome.retries().len(), outcome.code()), (2, "server_error"));
    assert!(outcome.message().contains("after 3 attempts"), "{}", outcome.message());
}

#[tokio::test]
async fn another_model_goes_on() {
    let missing = error("404 Not Found", r#"{"error":{"message":"model not found"}}"#);
    let overloaded = error("529 Overloaded", "{}");
    let server =
        Server::answering([(missing, Then::Close), (overloaded, Then::Close), (answer("ok"), Then::Close)])
            .await;
    let fallback_models = vec!["second".to_owned(), "third".to_owned()];
    let model = build(&ModelConfig { fallback_models, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    let moves: Vec<_> = outcome
        .pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Fallback { from, to, error } => Some((&**from, &**to, error.code)),
            _ => None,
        })
        .collect();
    assert_eq!(moves, [("qwen-coder", "second", "model_not_found"), ("second", "third", "overloaded")]);
    assert_eq!(outcome.text(), "ok");
    let bodies: Vec<_> = server.requests().into_iter().map(|received| received.body).collect();
    assert!(bodies[0].contains(r#""model":"qwen-coder""#) && bodies[2].contains(r#""model":"third""#));
}

#[tokio::test]
async fn no_first_token_in_time_is_a_named_time_out_whatever_else_is_sent() {
    // The head does not come; it comes and nothing else; keep-alives come and no token.
    for talk in ["", "head", "keep-alives"] {
        let server = Server::start(move |mut connection| async move {
            connection.request().await;
            if !talk.is_empty() {
                connection.say(stream("")).await;
            }
            if talk == "keep-alives" {
                connection
                    .say(": still here\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n")
                    .await;
            }
            connection.closed().await;
        })
        .await;
        let timeouts = Timeouts { first_token: Duration::from_millis(50), ..Timeouts::default() };
        let model = build(&ModelConfig { timeouts, ..config(&server) }).unwrap();
        let outcome = ask(&*model, request("hello")).await;
        assert!(
            outcome.message().contains("first token") && outcome.message().contains("0.05 s"),
            "{}",
            outcome.message()
        );
        let told = outcome.error.unwrap().0;
        assert_eq!((told.kind, told.retryable), (ErrorKind::Timeout(Timeout::FirstToken), true), "{talk}");
    }
}

#[tokio::test]
async fn a_stream_that_stands_still_is_a_named_time_out_and_final() {
    let server = Server::start(|mut connection| async move {
        connection.request().await;
        connection.say(stream("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")).await;
        connection.closed().await;
    })
    .await;
    let timeouts = Timeouts { stall: Duration::from_millis(50), ..Timeouts::default() };
    let model = build(&ModelConfig { timeouts, max_retries: 3, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("half", 0));
    assert!(
        outcome.message().contains("stream stall") && outcome.message().contains("0.05 s"),
        "{}",
        outcome.message()
    );
    assert_eq!(outcome.error.unwrap().0.kind, ErrorKind::Timeout(Timeout::Stall));
}

#[tokio::test]
async fn a_server_that_forgets_to_end_after_the_reason_has_answered() {
    let server = Server::start(|mut connection| async move {
        connection.request().await;
        connection
            .say(stream(
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
            ))
            .await;
        connection.closed().await;
    })
    .await;
    let timeouts = Timeouts { stall: Duration::from_millis(50), ..Timeouts::default() };
    let model = build(&ModelConfig { timeouts, ..config(&server) }).unwrap();
    let outcome = ask(&*model, request("hello")).await;
    assert_eq!((outcome.text().as_str(), outcome.error), ("a", None));
}

#[tokio::test]
async fn a_base_url_that_cannot_be_called_is_told() {
    let server = Server::once("").await;
    for (base, code) in [("not a url", "invalid_base_url"), ("ftp://h/v1", "invalid_base_url")] {
        let model = build(&ModelConfig { base_url: Some(base.into()), ..config(&server) }).unwrap();
        assert_eq!(ask(&*model, request("hello")).await.code(), code, "{base}");
    }
}
