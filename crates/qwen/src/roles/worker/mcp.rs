//! What the host says and asks about MCP servers.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Initialize, Json};
use qwen_mcp::{ServerConfig, ServerStatus, Servers, Transport, parse_server};
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Adds the servers that the handshake names. One that cannot be used is left out, and why is returned.
pub(super) fn register(servers: &Servers, initialize: &Initialize) -> Vec<ErrorInfo> {
    let hosted = initialize.sdk_mcp_servers.iter().map(|name| (name, Ok(ServerConfig::new(Transport::Host))));
    let further = initialize.mcp_servers.iter().map(|(name, config)| {
        let value = serde_json::from_str::<Value>(config.as_str()).unwrap_or_default();
        (name, parse_server(name, &value))
    });
    hosted
        .chain(further)
        .filter_map(|(name, config)| {
            config
                .and_then(|config| servers.add(name.clone(), config))
                .map_err(|error| ErrorInfo::new(ErrorKind::Input, "invalid_mcp_server", error.to_string()))
                .err()
        })
        .collect()
}

/// How the servers are, in the words of both families of SDKs.
pub(super) fn status(servers: &Servers) -> Value {
    let all = servers.status();
    let by_name: serde_json::Map<String, Value> =
        all.iter().map(|server| (server.name.to_string(), server.status.name().into())).collect();
    let list: Vec<Value> = all.iter().map(one).collect();
    json!({"subtype": "mcp_server_status", "mcpServers": list, "status": by_name})
}

fn one(server: &ServerStatus) -> Value {
    let raw = |json: &Option<Json>| {
        json.as_ref()
            .and_then(|json| serde_json::from_str::<Value>(json.as_str()).ok())
            .unwrap_or(Value::Null)
    };
    let tools: Vec<Value> = server
        .tools
        .iter()
        .map(|tool| match raw(&tool.annotations) {
            Value::Null => json!({"name": &*tool.name}),
            annotations => json!({"name": &*tool.name, "annotations": annotations}),
        })
        .collect();
    json!({
        "name": &*server.name,
        "status": server.status.name(),
        "serverInfo": raw(&server.server_info),
        "error": server.error.as_deref(),
        "scope": if server.transport == "sdk" { "dynamic" } else { "local" },
        "tools": tools,
    })
}

/// A change that takes its time and is answered when it is done.
pub(super) enum Change {
    Reconnect(Arc<str>),
    Toggle(Arc<str>, bool),
    /// Ends some servers, and starts others in their place.
    Replace {
        gone: Vec<Arc<str>>,
        come: Vec<(Arc<str>, ServerConfig)>,
        errors: Map<String, Value>,
    },
}

/// A change that is under way, which the host may take back.
pub(super) struct OpenChange {
    pub request_id: Arc<str>,
    pub taken_back: CancellationToken,
    pub task: AbortHandle,
}

/// Makes a change.
pub(super) async fn change(servers: &Servers, change: Change) -> Result<Value, ErrorInfo> {
    let done = match change {
        Change::Reconnect(name) => servers.reconnect(&name).await,
        Change::Toggle(name, enabled) => servers.toggle(&name, enabled).await,
        Change::Replace { gone, come, errors } => return Ok(replace(servers, gone, come, errors).await),
    };
    done.map(|()| json!({}))
        .map_err(|error| ErrorInfo::new(ErrorKind::Input, "mcp_failed", error.to_string()))
}

/// Ends some servers and starts others. One that cannot be started stays, so that it can be tried again.
async fn replace(
    servers: &Servers,
    gone: Vec<Arc<str>>,
    come: Vec<(Arc<str>, ServerConfig)>,
    mut errors: Map<String, Value>,
) -> Value {
    let mut removed = Vec::new();
    for name in gone {
        if servers.remove(&name).await {
            removed.push(name.to_string());
        }
    }
    let mut added = Vec::new();
    for (name, config) in come {
        if let Err(error) = servers.add(name.clone(), config) {
            errors.insert(name.to_string(), error.to_string().into());
            continue;
        }
        added.push(name.to_string());
        if let Err(error) = servers.reconnect(&name).await {
            errors.insert(name.to_string(), error.to_string().into());
        }
    }
    json!({"added": added, "removed": removed, "errors": errors})
}
