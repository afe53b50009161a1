//! The host's requests about MCP servers: additions, changes and status.

use std::sync::Arc;

use qwen_engine::Emitter;
use qwen_events::{Body, ControlReply, ErrorInfo, ErrorKind, Initialize, Json};
use qwen_mcp::{ServerConfig, ServerStatus, Servers, Transport, parse_server};
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// The changes of MCP servers that the host requested.
#[derive(Default)]
pub(super) struct McpControl {
    /// The servers that the host added, and their configurations.
    host_servers: Vec<(Arc<str>, Json)>,
    pending: Vec<PendingChange>,
}

impl McpControl {
    /// Applies a change in a separate task, because starting a server may take long. The task answers the
    /// request.
    pub fn start(
        &mut self,
        change: McpChange,
        request_id: Arc<str>,
        nested: bool,
        servers: Arc<Servers>,
        emit: Emitter,
    ) {
        let (id, withdrawn) = (request_id.clone(), CancellationToken::new());
        let cancelled = withdrawn.clone();
        let task = tokio::spawn(async move {
            let reply = |result| Body::ControlReply(Box::new(ControlReply { request_id, nested, result }));
            let change = apply(&servers, change);
            tokio::pin!(change);
            tokio::select! {
                result = &mut change => {
                    emit.emit(reply(result.map(|value| Json::trusted(value.to_string())))).await;
                }
                () = cancelled.cancelled() => {
                    let message = "the request was taken back";
                    emit.emit(reply(Err(ErrorInfo::new(ErrorKind::Input, "cancelled", message)))).await;
                    // The change still completes, so that no server is left half started.
                    let _ = change.await;
                }
            }
        });
        self.pending.retain(|change| !change.task.is_finished());
        self.pending.push(PendingChange { request_id: id, withdrawn, task: task.abort_handle() });
    }

    /// Cancels a request, which is still answered once. A request that was already answered is not affected.
    pub fn cancel(&self, request_id: &str) {
        let matching = self.pending.iter().filter(|change| *change.request_id == *request_id);
        matching.for_each(|change| change.withdrawn.cancel());
    }

    /// The change after which the host's servers are exactly these: servers that it added before, and servers
    /// inside the host, are removed unless they are named again.
    pub fn replacement(&mut self, servers: Vec<(Arc<str>, Json)>, current: &Servers) -> McpChange {
        let before = std::mem::take(&mut self.host_servers);
        let there = current.status();
        let hosted = there.iter().filter(|server| server.transport == "sdk").map(|server| &server.name);
        let added = before.iter().map(|(name, _)| name);
        let mut gone: Vec<Arc<str>> = Vec::new();
        for name in hosted.chain(added) {
            if !gone.contains(name) && !servers.iter().any(|(wanted, _)| wanted == name) {
                gone.push(name.clone());
            }
        }
        let mut come: Vec<(Arc<str>, ServerConfig)> = Vec::new();
        let mut errors = Map::new();
        for (name, json) in &servers {
            let value: Value = serde_json::from_str(json.as_str()).unwrap_or_default();
            let in_host = value["type"] == "sdk";
            let known = there.iter().find(|server| server.name == *name);
            let same = before.contains(&(name.clone(), json.clone()));
            if known.is_some_and(|server| same || in_host && server.transport == "sdk") {
                continue;
            }
            let config =
                if in_host { Ok(ServerConfig::new(Transport::Host)) } else { parse_server(name, &value) };
            match config {
                Ok(config) => come.push((name.clone(), config)),
                Err(error) => {
                    errors.insert(name.to_string(), error.to_string().into());
                }
            }
        }
        self.host_servers = servers;
        McpChange::Replace { gone, come, errors }
    }
}

/// Adds the servers of the handshake. Returns an error for each unusable one.
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

/// The status of the servers, in the shape of both SDK families.
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

/// A change or a question that is answered once it is complete.
pub(super) enum McpChange {
    Reconnect(Arc<str>),
    Toggle(Arc<str>, bool),
    /// Stops some servers and starts others.
    Replace {
        gone: Vec<Arc<str>>,
        come: Vec<(Arc<str>, ServerConfig)>,
        errors: Map<String, Value>,
    },
    /// Reads a resource that the host shows.
    Read {
        server: Arc<str>,
        uri: Arc<str>,
    },
}

/// A change in progress, which the host may cancel.
struct PendingChange {
    request_id: Arc<str>,
    withdrawn: CancellationToken,
    task: AbortHandle,
}

async fn apply(servers: &Servers, change: McpChange) -> Result<Value, ErrorInfo> {
    let done = match change {
        McpChange::Reconnect(name) => servers.reconnect(&name).await,
        McpChange::Toggle(name, enabled) => servers.toggle(&name, enabled).await,
        McpChange::Replace { gone, come, errors } => return Ok(replace(servers, gone, come, errors).await),
        McpChange::Read { server, uri } => return read(servers, &server, &uri).await,
    };
    done.map(|()| json!({}))
        .map_err(|error| ErrorInfo::new(ErrorKind::Input, "mcp_failed", error.to_string()))
}

/// Reads a resource of the interface that a server's tool has.
async fn read(servers: &Servers, server: &str, uri: &str) -> Result<Value, ErrorInfo> {
    if !uri.starts_with("ui://") {
        let message = "only resources with a ui:// address can be read";
        return Err(ErrorInfo::new(ErrorKind::Input, "invalid_value", message).with_param("uri"));
    }
    let result = servers.read_raw_resource(server, uri).await;
    let result = result.map_err(|error| ErrorInfo::new(ErrorKind::Input, "mcp_failed", error.to_string()))?;
    let result: Value = serde_json::from_str(result.as_str()).unwrap_or_default();
    Ok(json!({"contents": result["contents"]}))
}

/// Stops some servers and starts others. A server that fails to start stays registered, so that it can be
/// retried.
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
