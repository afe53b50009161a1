//! Servers that live in the host, as its SDKs run them.

use std::sync::{Arc, Mutex};

use qwen_events::{Channel, ErrorInfo, ErrorKind, Json};
use qwen_mcp::{HostAnswer, HostLink, Status};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::scene::{Scene, call, while_running};

/// Answers as an SDK does and remembers what it was asked.
#[derive(Default)]
struct Host {
    asked: Mutex<Vec<Value>>,
    in_the_call: Notify,
    taken_back: Notify,
}

impl Host {
    async fn answer(&self, message: &Value, cancel: &CancellationToken) -> Result<Value, ErrorInfo> {
        self.asked.lock().unwrap().push(message.clone());
        let result = match message["method"].as_str().unwrap() {
            "initialize" => {
                json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1.0.0"}})
            }
            "tools/list" => {
                json!({"tools": [{"name": "add"}, {"name": "wait"}, {"name": "fail"}, {"name": "stray"}]})
            }
            "tools/call" => match message["params"]["name"].as_str().unwrap() {
                "add" => json!({"content": [{"type": "text", "text": "3"}]}),
                "stray" => return Ok(json!({"jsonrpc": "2.0", "id": 999, "result": {}})),
                "fail" => {
                    return Err(ErrorInfo::new(ErrorKind::Input, "x", "standard input was closed"));
                }
                _ => {
                    self.in_the_call.notify_one();
                    cancel.cancelled().await;
                    self.taken_back.notify_one();
                    return Err(ErrorInfo::new(ErrorKind::Input, "cancelled", "the turn was cancelled"));
                }
            },
            // What SDKs answer to a notification.
            _ => return Ok(json!({"jsonrpc": "2.0", "result": {}, "id": 0})),
        };
        Ok(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

impl HostLink for Host {
    fn message<'a>(&'a self, to: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        assert_eq!(to, "s");
        let message: Value = serde_json::from_str(message.as_str()).unwrap();
        Box::pin(async move {
            let answer = self.answer(&message, cancel).await?;
            Ok(Json::trusted(json!({"mcp_response": answer}).to_string()))
        })
    }
}

fn scene() -> (Scene, Arc<Host>) {
    let host = Arc::new(Host::default());
    let scene = Scene::with(&json!({"type": "sdk", "name": "s"}), |deps| deps.host = Some(host.clone()));
    (scene, host)
}

#[tokio::test]
async fn the_host_is_greeted_and_asked_in_the_order_that_sdks_expect() {
    let (scene, host) = scene();
    scene.connect().await;
    assert_eq!(scene.status().status, Status::Connected);
    assert_eq!(scene.status().server_info.unwrap().as_str(), r#"{"name":"calc","version":"1.0.0"}"#);
    assert_eq!(scene.call("add", &json!({"a": 1, "b": 2})).await.text, "3");
    let asked = host.asked.lock().unwrap().clone();
    let order: Vec<(Option<u64>, &str)> =
        asked.iter().map(|message| (message["id"].as_u64(), message["method"].as_str().unwrap())).collect();
    assert_eq!(
        order,
        [
            (Some(0), "initialize"),
            (None, "notifications/initialized"),
            (Some(1), "tools/list"),
            (Some(2), "tools/call")
        ]
    );
    assert_eq!(asked[3]["params"]["arguments"], json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn a_host_that_fails_or_answers_something_else_costs_one_error() {
    let (scene, _) = scene();
    scene.connect().await;
    let outcome = scene.call("fail", &json!({})).await;
    assert_eq!(outcome.error_code, Some("mcp_protocol_error"));
    assert!(outcome.text.contains("did not answer: standard input was closed"), "{}", outcome.text);
    let outcome = scene.call("stray", &json!({})).await;
    assert!(outcome.text.contains("ended its response without an answer"), "{}", outcome.text);
    assert_eq!(scene.call("add", &json!({})).await.text, "3");
}

#[tokio::test]
async fn a_cancelled_call_is_taken_back_from_the_host() {
    let (scene, host) = scene();
    scene.connect().await;
    let (tool, arguments) = (scene.tool("wait"), call(&json!({})));
    let mut running = tool.run(&arguments, &scene.fixture.cx);
    while_running(&mut running, host.in_the_call.notified()).await;
    scene.fixture.cx.cancel.cancel();
    assert!(running.await.cancelled);
    host.taken_back.notified().await;
}

#[tokio::test]
async fn an_unsolicited_message_of_the_host_is_handled() {
    let (scene, host) = scene();
    scene.connect().await;
    let (tool, arguments) = (scene.tool("wait"), call(&json!({})));
    let mut running = tool.run(&arguments, &scene.fixture.cx);
    while_running(&mut running, host.in_the_call.notified()).await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 2, "progress": 1}});
    scene.servers.receive("s", &Json::trusted(progress.to_string())).await.unwrap();
    while_running(&mut running, scene.fixture.sink.news.notified()).await;
    assert_eq!(scene.fixture.streamed(Channel::Stdout), "[1]\n");
    assert!(scene.servers.receive("nobody", &Json::empty_object()).await.is_err());
}

#[tokio::test]
async fn without_a_host_such_a_server_has_failed() {
    let scene = Scene::new(&json!({"type": "sdk", "name": "s"}));
    scene.connect().await;
    assert_eq!(
        &*scene.status().error.unwrap(),
        "The MCP server `s` cannot be reached: no host is there that could hold it."
    );
}
