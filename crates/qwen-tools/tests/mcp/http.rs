//! Servers behind an address: an official one, and some that answer as they like.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use qwen_events::Channel;
use qwen_mcp::Status;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::fixture::Fixture;
use crate::installed::{OFFICIAL, python};
use crate::scene::{Scene, call};

/// A process that ends with the test.
struct Leashed(Child);

impl Drop for Leashed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn official(directory: &std::path::Path, further: &[&str]) -> (Leashed, u16) {
    let mut child = Command::new(python())
        .args([OFFICIAL, "http"])
        .args(further)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Leashed(child), line.trim().parse().unwrap())
}

fn at(port: u16) -> Value {
    json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")})
}

#[tokio::test]
async fn an_official_server_is_used_over_http_as_over_pipes() {
    let place = Fixture::new();
    place.fifo("cancelled");
    let (_server, port) = official(place.path(), &[]);
    let scene = Scene::new(&at(port));
    scene.connect().await;
    tools_and_resources_work(&scene).await;

    // What it says unasked comes over a stream of its own.
    assert_eq!(scene.call("grow", &json!({})).await.text, "grown");
    while !scene.status().tools.iter().any(|tool| &*tool.name == "fresh") {
        scene.connect().await;
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.call("fresh", &json!({})).await.text, "new");

    work_is_cancelled_with_its_call(&scene, &place).await;
    scene.servers.shutdown().await;
}

#[tokio::test]
async fn an_official_server_that_refuses_the_handshake_is_used_over_http_without_one() {
    let place = Fixture::new();
    place.fifo("cancelled");
    let (_server, port) = official(place.path(), &["stateless"]);
    let scene = Scene::new(&at(port));
    scene.connect().await;
    tools_and_resources_work(&scene).await;
    // The connection that is closed is all that the server learns.
    work_is_cancelled_with_its_call(&scene, &place).await;
    scene.servers.shutdown().await;
}

async fn tools_and_resources_work(scene: &Scene) {
    assert_eq!((scene.status().status, scene.status().error), (Status::Connected, None));
    assert_eq!(scene.call("add", &json!({"a": 1, "b": 41})).await.text, "42");
    assert_eq!(scene.call("work", &json!({"steps": 2})).await.text, "worked");
    assert_eq!(scene.fixture.streamed(Channel::Stdout), "[1/2] step 1\n[2/2] step 2\n");
    let contents = scene.servers.read_resource("s", "note://today", &CancellationToken::new()).await.unwrap();
    assert_eq!(contents.text, "Water the plants.");
}

async fn work_is_cancelled_with_its_call(scene: &Scene, place: &Fixture) {
    let tool = scene.tool("wait");
    let arguments = call(&json!({}));
    let mut running = tool.run(&arguments, &scene.fixture.cx);
    loop {
        tokio::select! {
            outcome = &mut running => panic!("it ended by itself: {outcome:?}"),
            () = scene.fixture.sink.news.notified() => {}
        }
        if scene.fixture.streamed(Channel::Stdout).ends_with("waiting\n") {
            break;
        }
    }
    scene.fixture.cx.cancel.cancel();
    assert!(running.await.cancelled);
    assert_eq!(place.read_when_written("cancelled").await, "yes");
}

/// One request as it came.
#[derive(Clone)]
struct Asked {
    line: String,
    head: String,
    body: Value,
}

impl Asked {
    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

type Answer = Arc<dyn Fn(&Asked) -> String + Send + Sync>;

/// A server that answers each request with the bytes that `answer` gives, and closes the connection.
struct Scripted {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    async fn start(answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (seen, answer): (_, Answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), answer.clone()));
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<Asked>>>, answer: Answer) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        break (head.clone(), length.map_or(0, |length| length.parse::<usize>().unwrap()));
    };
    while bytes.len() < head.len() + 4 + length {
        stream.read_buf(&mut bytes).await.unwrap();
    }
    let body = serde_json::from_slice(&bytes[head.len() + 4..]).unwrap_or_default();
    let asked = Asked { line: head.lines().next().unwrap().to_owned(), head, body };
    seen.lock().unwrap().push(asked.clone());
    let _ = stream.write_all(answer(&asked).as_bytes()).await;
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

fn json_response(asked: &Asked, result: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}).to_string();
    response("200 OK", "content-type: application/json; charset=utf-8\r\n", &body)
}

/// A server with one tool, whose calls are answered by `call`.
async fn with_tool(call: impl Fn(&Asked) -> String + Send + Sync + 'static) -> (Scene, Scripted) {
    let server = Scripted::start(move |asked| match asked.method() {
        "initialize" => {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}});
            json_response(asked, &hello).replace("\r\n\r\n", "\r\nMcp-Session-Id: abc\r\n\r\n")
        }
        "tools/list" => json_response(asked, &json!({"tools": [{"name": "t"}]})),
        "tools/call" => call(asked),
        "" => response("405 Method Not Allowed", "", ""),
        _ => response("202 Accepted", "", ""),
    })
    .await;
    let mut config = at(server.port);
    config["headers"] = json!({"Authorization": "Bearer ${TEST_KEY:-none}"});
    let scene = Scene::new(&config);
    scene.connect().await;
    assert_eq!(scene.status().error, None);
    (scene, server)
}

#[tokio::test]
async fn requests_carry_the_session_the_version_and_the_given_headers() {
    let (scene, server) =
        with_tool(|asked| json_response(asked, &json!({"content": [{"type": "text", "text": "ok"}]}))).await;
    assert_eq!(scene.call("t", &json!({})).await.text, "ok");
    scene.servers.shutdown().await;
    let asked = server.asked();
    let find = |method: &str| asked.iter().find(|asked| asked.method() == method).unwrap().head.clone();
    let (hello, call) = (find("initialize"), find("tools/call"));
    assert!(!hello.contains("mcp-session-id") && !hello.contains("mcp-protocol-version"), "{hello}");
    for header in [
        "mcp-session-id: abc",
        "mcp-protocol-version: 2025-06-18",
        "authorization: bearer none",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
    ] {
        assert!(call.contains(header), "{header} is missing in {call}");
    }
    assert!(asked.last().unwrap().line.starts_with("delete /mcp"), "it takes leave");
}

#[tokio::test]
async fn an_answer_that_is_none_costs_one_error_and_the_next_call_works() {
    let flood = {
        let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"x\"}}\n\n";
        event.repeat(6_000)
    };
    #[rustfmt::skip]
    let cases = [
        (response("200 OK", "content-type: text/html\r\n", "<p>Hello"), "mcp_protocol_error", "content type `text/html`"),
        (response("200 OK", "content-type: application/json\r\n", "rubbish"), "mcp_protocol_error", "without an answer"),
        (response("200 OK", "content-type: text/event-stream\r\n", ": hm\n\n"), "mcp_protocol_error", "without an answer"),
        (response("200 OK", "content-type: text/event-stream\r\n", &flood), "mcp_flood", "sent a flood of messages"),
        (response("401 Unauthorized", "", "who\u{1b}[31m?"), "mcp_error", "answered 401 Unauthorized: who\\u{1b}[31m?. Put its credentials"),
        (response("307 Temporary Redirect", "location: http://169.254.169.254/\r\n", ""), "mcp_error", "Redirects are not followed"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\ncontent-type: application/json\r\n\r\n{".to_owned(), "mcp_server_died", "cannot be reached"),
        ("rubbish\r\n\r\n".to_owned(), "mcp_server_died", "cannot be reached"),
    ];
    for (answer, code, words) in cases {
        let first = Mutex::new(Some(answer.clone()));
        let (scene, _server) = with_tool(move |asked| match first.lock().unwrap().take() {
            Some(answer) => answer,
            None => json_response(asked, &json!({"content": [{"type": "text", "text": "ok"}]})),
        })
        .await;
        let outcome = scene.call("t", &json!({})).await;
        let start = &answer[..answer.len().min(120)];
        assert_eq!(outcome.error_code, Some(code), "{start}: {}", outcome.text);
        assert!(outcome.text.contains(words), "{start}: {}", outcome.text);
        scene.connect().await;
        assert_eq!(scene.call("t", &json!({})).await.text, "ok", "{start}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_replaced_silently() {
    let calls = Mutex::new(0);
    let (scene, server) = with_tool(move |asked| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        if *calls == 1 {
            return response("404 Not Found", "", "no such session");
        }
        json_response(asked, &json!({"content": [{"type": "text", "text": "ok"}]}))
    })
    .await;
    assert_eq!(scene.call("t", &json!({})).await.text, "ok");
    assert_eq!(server.asked().iter().filter(|asked| asked.method() == "initialize").count(), 2);
}

#[tokio::test]
async fn an_address_that_nobody_serves_is_a_failed_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let scene = Scene::new(&at(port));
    scene.connect().await;
    let status = scene.status();
    assert_eq!(status.status, Status::Failed);
    assert!(status.error.unwrap().contains("cannot connect to 127.0.0.1"));
    let old = Scene::new(&json!({"type": "sse", "url": "http://127.0.0.1:1/sse"}));
    old.connect().await;
    assert!(old.status().error.unwrap().contains("the old transport `sse` is not supported"));
}
