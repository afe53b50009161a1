//! Official servers, as people use them.

use qwen_events::{Channel, MediaSource};
use qwen_mcp::Status;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::installed::{OFFICIAL, everything, python};
use crate::scene::{Scene, call, while_running};

fn python_scene() -> Scene {
    Scene::new(&json!({"command": python().to_str().unwrap(), "args": [OFFICIAL]}))
}

#[tokio::test]
async fn a_server_made_with_the_python_package_serves_tools_and_resources() {
    let scene = python_scene();
    scene.connect().await;
    let status = scene.status();
    assert_eq!((status.status, status.error), (Status::Connected, None));
    assert_eq!(status.server_info.unwrap().as_str(), r#"{"name":"official","version":"1.2.3"}"#);
    assert_eq!(scene.servers.instructions(), [("s".into(), "Add numbers.".into())]);
    assert_eq!(&*scene.tool("add").spec().description, "Adds two numbers.");
    assert!(scene.tool("add").spec().parameters.as_str().contains(r#""required":["a","b"]"#));

    assert_eq!(scene.call("add", &json!({"a": 1, "b": 41})).await.text, "42");
    let picture = scene.call("picture", &json!({})).await;
    assert_eq!(&*picture.media[0].mime_type, "image/gif");
    assert!(matches!(&picture.media[0].source, MediaSource::Base64(data) if data.starts_with("R0lGOD")));
    let failed = scene.call("fail", &json!({})).await;
    assert_eq!(failed.error_code, Some("mcp_tool_error"));
    assert!(failed.text.contains("Error executing tool fail"), "{}", failed.text);
    let wrong = scene.call("add", &json!({"a": "x"})).await;
    assert!(wrong.error_code.is_some(), "{}", wrong.text);

    let listed = scene.servers.resources(crate::scene::PATIENCE).await;
    assert_eq!((&*listed[0].uri, &*listed[0].name), ("note://today", "note"));
    let contents = scene.servers.read_resource("s", "note://today", &CancellationToken::new()).await.unwrap();
    assert_eq!(contents.text, "Water the plants.");
    assert!(scene.servers.read_resource("s", "note://never", &CancellationToken::new()).await.is_err());
    scene.servers.shutdown().await;
}

#[tokio::test]
async fn a_server_of_the_package_that_refuses_the_handshake_is_used_without_one() {
    let scene = Scene::new(&json!({"command": python().to_str().unwrap(), "args": [OFFICIAL, "stateless"]}));
    scene.connect().await;
    let status = scene.status();
    assert_eq!((status.status, status.error), (Status::Connected, None));
    assert_eq!(status.server_info.unwrap().as_str(), r#"{"name":"official","version":"1.2.3"}"#);
    assert_eq!(scene.servers.instructions(), [("s".into(), "Add numbers.".into())]);
    assert_eq!(scene.call("add", &json!({"a": 1, "b": 41})).await.text, "42");
    let contents = scene.servers.read_resource("s", "note://today", &CancellationToken::new()).await.unwrap();
    assert_eq!(contents.text, "Water the plants.");
    its_progress_becomes_output(&scene).await;
    its_work_is_cancelled_with_the_call(scene).await;
}

#[tokio::test]
async fn progress_becomes_output_and_work_is_cancelled_with_its_call() {
    let scene = python_scene();
    scene.connect().await;
    its_progress_becomes_output(&scene).await;
    its_work_is_cancelled_with_the_call(scene).await;
}

async fn its_progress_becomes_output(scene: &Scene) {
    assert_eq!(scene.call("work", &json!({"steps": 2})).await.text, "worked");
    assert_eq!(scene.fixture.streamed(Channel::Stdout), "[1/2] step 1\n[2/2] step 2\n");
}

async fn its_work_is_cancelled_with_the_call(scene: Scene) {
    scene.fixture.fifo("cancelled");
    let (tool, arguments) = (scene.tool("wait"), call(&json!({})));
    let mut running = tool.run(&arguments, &scene.fixture.cx);
    while !scene.fixture.streamed(Channel::Stdout).ends_with(
        "waiting
",
    ) {
        while_running(&mut running, scene.fixture.sink.news.notified()).await;
    }
    scene.fixture.cx.cancel.cancel();
    assert!(running.await.cancelled);
    assert_eq!(scene.fixture.read_when_written("cancelled").await, "yes");
}

#[tokio::test]
async fn tools_that_it_adds_are_there_in_the_next_turn() {
    let scene = python_scene();
    scene.connect().await;
    let before = scene.servers.tools().len();
    assert_eq!(scene.call("grow", &json!({})).await.text, "grown");
    scene.connect().await;
    assert_eq!(scene.servers.tools().len(), before + 1);
    assert_eq!(scene.call("fresh", &json!({})).await.text, "new");
    assert!(!scene.servers.has_changed("mcp__s__fresh"), "a new tool was never anything else");
}

#[tokio::test]
async fn the_reference_server_of_the_typescript_package_works() {
    let scene = Scene::new(&everything());
    scene.connect().await;
    let status = scene.status();
    assert_eq!((status.status, status.error), (Status::Connected, None));
    assert!(status.warnings.is_empty(), "{:?}", status.warnings);
    let echoed = scene.call("echo", &json!({"message": "hello"})).await;
    assert_eq!((echoed.text.as_str(), echoed.error_code), ("Echo: hello", None));
    let image = scene.call("get-tiny-image", &json!({})).await;
    assert_eq!(&*image.media[0].mime_type, "image/png");
    let long = scene.call("trigger-long-running-operation", &json!({"duration": 0.2, "steps": 2})).await;
    assert_eq!(long.error_code, None, "{}", long.text);
    assert_eq!(scene.fixture.streamed(Channel::Stdout), "[1/2]\n[2/2]\n");
    let listed = scene.servers.resources(crate::scene::PATIENCE).await;
    let first = scene.servers.read_resource("s", &listed[0].uri, &CancellationToken::new()).await.unwrap();
    assert!(!first.text.is_empty());
    scene.servers.shutdown().await;
}
