//! Connections: reused, lost, cut off.

use qwen_events::{ErrorKind, Finish};
use qwen_model::build;

use crate::asking::{answer_to, ask, ask_server, config, request};
use crate::server::{Server, Then, chunked, sized, stream};

fn answer(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

#[tokio::test]
async fn a_connection_that_stays_open_is_used_again() {
    let first = chunked(answer("one").as_bytes(), &[9]);
    let second = sized("200 OK", "text/event-stream", answer("two"));
    let server = Server::answering([(first, Then::KeepOpen), (second, Then::KeepOpen)]).await;
    let model = build(&config(&server)).unwrap();
    assert_eq!(ask(&*model, request("1")).await.text(), "one");
    assert_eq!(ask(&*model, request("2")).await.text(), "two");
    let connections: Vec<_> = server.requests().iter().map(|received| received.connection).collect();
    assert_eq!(connections, [0, 0]);
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced_silently() {
    // The server promises to keep the connection and drops it at the next request, without a byte.
    let server = Server::start(|mut connection| async move {
        connection.request().await;
        connection.say(sized("200 OK", "text/event-stream", answer("yes"))).await;
        connection.request().await;
    })
    .await;
    let model = build(&config(&server)).unwrap();
    for _ in 0..3 {
        let outcome = ask(&*model, request("hello")).await;
        assert_eq!((outcome.text().as_str(), outcome.retries().len()), ("yes", 0));
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    use futures_util::StreamExt;
    let (closed, mut is_closed) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |mut connection| {
        let closed = closed.clone();
        async move {
            connection.request().await;
            connection.say(stream("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")).await;
            connection.closed().await;
            closed.send(()).unwrap();
        }
    })
    .await;
    let model = build(&config(&server)).unwrap();
    let mut pieces = model.call(request("hello"));
    pieces.next().await.unwrap().unwrap();
    pieces.next().await.unwrap().unwrap();
    drop(pieces);
    is_closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_refused_connection_is_reported_with_the_address() {
    let server = Server::once("").await;
    let config = config(&server);
    let address = server.address.to_string();
    drop(server);
    // The listener is closed once its task is gone.
    let outcome = loop {
        let outcome = ask(&*build(&config).unwrap(), request("hello")).await;
        if outcome.code() == "connection_failed" {
            break outcome;
        }
        tokio::task::yield_now().await;
    };
    assert!(outcome.message().contains(&address), "{}", outcome.message());
    let error = outcome.error.unwrap().0;
    assert_eq!((error.kind, error.retryable), (ErrorKind::Network, true));
}

#[tokio::test]
async fn a_server_that_closes_without_a_word_is_a_lost_connection() {
    let outcome = answer_to("").await;
    assert_eq!(outcome.code(), "connection_lost");
}

#[tokio::test]
async fn the_length_of_a_body_is_believed() {
    let body = answer("whole");
    let outcome = answer_to(sized("200 OK", "text/event-stream", &body)).await;
    assert_eq!((outcome.text().as_str(), outcome.finish()), ("whole", Some(Finish::Stop)));
    let server = Server::once(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n{}",
            &body[..40]
        )
        .into_bytes(),
    )
    .await;
    assert_eq!(ask_server(&server).await.code(), "stream_broken");
}
