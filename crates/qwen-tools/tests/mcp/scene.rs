//! A session's servers, and calls of their tools.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{CallId, Json, ToolCall};
use qwen_mcp::{Deps, ServerConfig, ServerStatus, Servers, parse_server};
use qwen_tools::{Outcome, Tool, ToolFuture, mcp_tools};
use serde_json::{Value, json};

use crate::fixture::{Fixture, wait_until_gone};

/// Longer than anything here takes; a limit that is reached is a failure of its own.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `event`, which must come before the call ends.
pub async fn while_running(running: &mut ToolFuture<'_>, event: impl Future<Output = ()>) {
    tokio::select! {
        outcome = running => panic!("it ended by itself: {outcome:?}"),
        () = event => {}
    }
}

/// The servers of a session that works in a directory of its own.
pub struct Scene {
    pub fixture: Fixture,
    pub servers: Servers,
}

impl Scene {
    /// One server called `s`.
    pub fn new(config: &Value) -> Self {
        Self::with(config, |_| {})
    }

    pub fn with(config: &Value, change: impl FnOnce(&mut Deps)) -> Self {
        let fixture = Fixture::new();
        let mut deps = Deps::new(fixture.path());
        deps.start_timeout = PATIENCE;
        change(&mut deps);
        let servers = Servers::new([("s".into(), server(config))], deps).unwrap();
        Self { fixture, servers }
    }

    /// A hostile server that does `mode`.
    pub fn hostile(mode: &str) -> Self {
        Self::new(&hostile(mode))
    }

    pub async fn connect(&self) {
        self.servers.connect_all(PATIENCE).await;
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let full = format!("mcp__s__{name}");
        let found = mcp_tools(&self.servers).find(|tool| *tool.spec().name == *full);
        found.unwrap_or_else(|| panic!("there is no {name}: {:?}", self.servers.status()))
    }

    pub async fn call(&self, name: &str, arguments: &Value) -> Outcome {
        let tool = self.tool(name);
        tool.run(&call(arguments), &self.fixture.cx).await
    }

    pub async fn echo(&self) -> String {
        self.call("echo", &json!({"text": "still here"})).await.text
    }

    pub fn status(&self) -> ServerStatus {
        self.servers.status().remove(0)
    }

    /// Every process that a hostile server has noted must be gone.
    pub fn nothing_is_left(&self) {
        for pid in self.fixture.read("pids").lines() {
            wait_until_gone(pid.parse().unwrap());
        }
    }

    pub fn starts(&self) -> usize {
        self.fixture.read("starts").lines().count()
    }
}

pub fn hostile(mode: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/servers/hostile.py");
    json!({"command": "python3", "args": [script, mode]})
}

pub fn server(config: &Value) -> ServerConfig {
    parse_server("s", config).unwrap()
}

pub fn call(arguments: &Value) -> ToolCall {
    ToolCall::new(CallId::new("call-1"), "t".into(), Json::trusted(arguments.to_string()))
}
