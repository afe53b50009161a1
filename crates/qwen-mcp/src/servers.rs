//! All servers of a session.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use qwen_events::Json;
use tokio_util::sync::CancellationToken;

use super::config::check_name;
use super::connection::ResourceEntry;
use super::error::NO_SERVER;
use super::peer::CallLimits;
use super::server::{Phase, Server};
use super::tools::catalogue::Fingerprint;
use super::tools::remote_tool::RemoteTool;
use super::tools::result::ResourceContents;
use super::{Deps, McpConfigError, McpError, ServerConfig, Transport};

/// All servers of a session. Nothing is started before [`Servers::connect_all`] or the first call. Dropping
/// it ends all of them, with everything that they started.
pub struct Servers {
    deps: Arc<Deps>,
    all: Mutex<Vec<Arc<Server>>>,
    accepted: Mutex<HashMap<Arc<str>, Fingerprint>>,
    offered: Mutex<HashMap<Arc<str>, Fingerprint>>,
    /// The problems that were already reported.
    reported: Mutex<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Connected,
    /// Not needed yet, or starting.
    Pending,
    /// It could not be started, or it died.
    Failed,
    Disabled,
    /// The folder that names it is not trusted.
    Untrusted,
}

impl Status {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Untrusted => "untrusted",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: Arc<str>,
    /// How it is reached: `stdio`, `http`, `sdk` or `unsupported`.
    pub transport: &'static str,
    pub status: Status,
    pub error: Option<Arc<str>>,
    /// The name and version that the server reports, `{"name":…,"version":…}`.
    pub server_info: Option<Json>,
    pub tools: Vec<ToolEntry>,
    /// Sentences about omitted or suspicious tools.
    pub warnings: Vec<Arc<str>>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEntry {
    /// Its name on the server.
    pub name: Arc<str>,
    /// The server's annotations. They grant nothing.
    pub annotations: Option<Json>,
}

impl ServerStatus {
    /// The status of a server that is not used.
    pub fn unused(name: Arc<str>, config: &ServerConfig, status: Status) -> Self {
        Self {
            name,
            transport: config.transport.name(),
            status,
            error: None,
            server_info: None,
            tools: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Servers {
    pub fn none() -> Self {
        Self {
            deps: Arc::new(super::Deps::new("/")),
            all: Mutex::default(),
            accepted: Mutex::default(),
            offered: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// Creates the set of servers. Refuses names that make tool names ambiguous.
    pub fn new(
        configs: impl IntoIterator<Item = (Arc<str>, ServerConfig)>,
        deps: Deps,
    ) -> Result<Self, McpConfigError> {
        let servers = Self {
            deps: Arc::new(deps),
            all: Mutex::default(),
            accepted: Mutex::default(),
            offered: Mutex::default(),
            reported: Mutex::default(),
        };
        for (name, config) in configs {
            servers.add(name, config)?;
        }
        Ok(servers)
    }

    /// Adds a server. Replaces an existing one of the same name.
    pub fn add(&self, name: Arc<str>, config: ServerConfig) -> Result<(), McpConfigError> {
        check_name(&name).map_err(|problem| McpConfigError::Server { server: name.to_string(), problem })?;
        let server = Arc::new(Server::new(name, config, self.deps.clone()));
        let mut all = lock(&self.all);
        match all.iter_mut().find(|known| known.name == server.name) {
            Some(known) => *known = server,
            None => all.push(server),
        }
        Ok(())
    }

    /// Removes a server and ends it. Returns false if there is none of that name.
    pub async fn remove(&self, name: &str) -> bool {
        let gone = {
            let mut all = lock(&self.all);
            let at = all.iter().position(|server| &*server.name == name);
            at.map(|at| all.remove(at))
        };
        match gone {
            Some(server) => {
                server.close().await;
                true
            }
            None => false,
        }
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }

    /// Updates all servers concurrently: connects those not used yet, restarts those that died, and lists the
    /// tools again of those that reported a change. A server that could not be started stays failed until
    /// [`Servers::reconnect`]. Returns after `limit` at the latest; servers that are not ready by then
    /// continue in the background and are pending, and no later call waits for them. Called at the start of
    /// each turn; it costs nothing when there is nothing to do.
    pub async fn connect_all(&self, limit: Duration) {
        let all = self.servers();
        if all.is_empty() {
            return;
        }
        let updates = join_all(all.iter().cloned().map(Server::connect_or_refresh));
        if tokio::time::timeout(limit, updates).await.is_err() {
            for server in &all {
                server.note_late();
            }
        }
    }

    /// The tools of all connected servers, for the registry of a turn.
    pub fn tools(&self) -> Vec<RemoteTool> {
        let mut tools = Vec::new();
        let mut offered = HashMap::new();
        for server in self.servers() {
            let Some(connection) = server.connected() else { continue };
            for definition in &connection.catalogue().tools {
                let tool = RemoteTool::new(server.clone(), definition.clone());
                let name = definition.spec.name.clone();
                lock(&self.accepted).entry(name.clone()).or_insert(tool.fingerprint());
                offered.insert(name, tool.fingerprint());
                tools.push(tool);
            }
        }
        *lock(&self.offered) = offered;
        tools
    }

    /// True if the definition of a tool, given by its full name, differs from when it was first offered or
    /// last accepted in this session. Earlier approvals then do not apply, because they were for a different
    /// tool.
    pub fn has_changed(&self, tool: &str) -> bool {
        let offered = lock(&self.offered).get(tool).copied();
        offered.is_some() && lock(&self.accepted).get(tool).copied() != offered
    }

    /// Records that the user has approved the current definition of a tool.
    pub fn accept(&self, tool: &str) {
        let offered =
            lock(&self.offered).get_key_value(tool).map(|(name, fingerprint)| (name.clone(), *fingerprint));
        if let Some((name, fingerprint)) = offered {
            lock(&self.accepted).insert(name, fingerprint);
        }
    }

    /// True if the configuration of the tool's server sets `trust`.
    pub fn is_trusted(&self, tool: &str) -> bool {
        let server =
            tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
        server.and_then(|server| self.get(server).ok()).is_some_and(|server| server.config.trust)
    }

    /// The status of every server, in order.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.servers().iter().map(|server| status(server)).collect()
    }

    /// Problems that were not reported yet: servers that are late or could not be started and why, omitted
    /// tools, and suspicious tools.
    pub fn take_problems(&self) -> Vec<String> {
        let late = self.servers().into_iter().filter(|server| server.is_late());
        let late = late.map(|server| {
            format!(
                "The MCP server '{}' has not started yet; the turn continues without its tools, which are \
                 offered as soon as it has.",
                server.name
            )
        });
        let servers = self.status();
        let problems = servers.iter().flat_map(|server| {
            let failed = server.error.iter().filter(|_| server.status == Status::Failed);
            let failed =
                failed.map(|error| format!("The MCP server '{}' cannot be used: {error}", server.name));
            let warned = server.warnings.iter();
            failed.chain(warned.map(|warning| format!("The MCP server '{}': {warning}", server.name)))
        });
        let mut reported = lock(&self.reported);
        late.chain(problems).filter(|problem| reported.insert(problem.clone())).collect()
    }

    /// The instructions of connected servers for the model: name and text.
    pub fn instructions(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let of = |server: Arc<Server>| {
            let text = server.connected()?.introduction.instructions.clone()?;
            Some((server.name.clone(), text))
        };
        self.servers().into_iter().filter_map(of).collect()
    }

    pub async fn reconnect(&self, name: &str) -> Result<(), McpError> {
        self.get(name)?.reconnect().await
    }

    /// Enables or disables a server.
    pub async fn toggle(&self, name: &str, enabled: bool) -> Result<(), McpError> {
        self.get(name)?.toggle(enabled).await
    }

    /// Reads a resource. Connects its server if needed.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ResourceContents, McpError> {
        let server = self.get(server)?;
        let limits = CallLimits { limit: Some(server.call_limit()), cancel: Some(cancel), output: None };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(McpError::new(super::error::CANCELLED, "The request for the resource was withdrawn.")),
            connection = server.connection() => connection?.read_resource(uri, &limits).await,
        }
    }

    /// Reads a resource of a connected server and returns the result as the server sent it.
    pub async fn read_raw_resource(&self, server: &str, uri: &str) -> Result<Json, McpError> {
        let server = self.get(server)?;
        let up = server.connected().ok_or_else(|| {
            McpError::new(NO_SERVER, format!("The MCP server `{}` is not connected.", server.name))
        })?;
        let limits = CallLimits { limit: Some(server.call_limit()), cancel: None, output: None };
        let result = up.read_raw_resource(uri, &limits).await?;
        Ok(Json::trusted(result.get()))
    }

    /// The resources that connected servers list within `limit`. Starts no server. A server that fails or is
    /// late contributes none. Servers in the host contribute none either: their response would need the
    /// control channel, which is waiting for this result.
    pub async fn resources(&self, limit: Duration) -> Vec<ResourceEntry> {
        let of = |server: Arc<Server>| async move {
            match server.connected().filter(|_| !matches!(server.config.transport, Transport::Host)) {
                Some(connection) => match tokio::time::timeout(limit, connection.resources()).await {
                    Ok(listed) => listed.unwrap_or_default(),
                    Err(_) => Vec::new(),
                },
                None => Vec::new(),
            }
        };
        join_all(self.servers().into_iter().map(of)).await.into_iter().flatten().collect()
    }

    /// Processes an unsolicited message from a server in the host.
    pub async fn receive(&self, server: &str, message: &Json) -> Result<(), McpError> {
        let connection = self.get(server)?.connected();
        let connection = connection.ok_or_else(|| {
            McpError::new(NO_SERVER, format!("The MCP server `{server}` is not connected."))
        })?;
        // All its requests are refused. A refusal could only be returned as the response to this message.
        connection.peer.inbox().receive(message.as_str().as_bytes()).await.map(drop)
    }

    /// Ends all servers and waits until all their processes have ended.
    pub async fn shutdown(&self) {
        let servers = self.servers();
        join_all(servers.iter().map(|server| server.close())).await;
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        lock(&self.all).clone()
    }

    fn get(&self, name: &str) -> Result<Arc<Server>, McpError> {
        let found = lock(&self.all).iter().find(|server| &*server.name == name).cloned();
        found.ok_or_else(|| {
            McpError::new(NO_SERVER, format!("There is no MCP server called `{}`.", name.escape_debug()))
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in self.servers() {
            server.abandon();
        }
    }
}

fn status(server: &Server) -> ServerStatus {
    let mut found = ServerStatus::unused(server.name.clone(), &server.config, Status::Pending);
    let failed = |error: &McpError| (Status::Failed, Some(Arc::from(error.message.as_str())));
    match server.phase() {
        _ if !server.is_enabled() => found.status = Status::Disabled,
        Phase::Pending => {}
        Phase::Failed(error) => (found.status, found.error) = failed(&error),
        Phase::Connected(connection) => {
            (found.status, found.error) = match connection.peer.closed() {
                Some(error) => failed(&error),
                None => (Status::Connected, None),
            };
            found.server_info =
                connection.introduction.info.as_ref().map(|info| Json::trusted(info.to_string()));
            let catalogue = connection.catalogue();
            found.warnings.clone_from(&catalogue.warnings);
            let entry = |tool: &super::tools::catalogue::Definition| ToolEntry {
                name: tool.name.clone(),
                annotations: tool.annotations.clone(),
            };
            found.tools = catalogue.tools.iter().map(entry).collect();
        }
    }
    found
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
