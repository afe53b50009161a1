//! The life cycle of one server: started on first use, restarted after it died, with a restart limit.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::config::REFERENCEABLE_VARIABLES;
use super::config::expand::expand;
use super::connection::Connection;
use super::error::{NO_SERVER, START_FAILED, TIMEOUT};
use super::peer::{Peer, Wire};
use super::transport::host::HostWire;
use super::transport::http::Http;
use super::transport::inbox::Inbox;
use super::transport::stdio::Stdio;
use super::{Deps, McpError, ServerConfig, Transport};
use qwen_sandbox::process::ProcessSpec;
use qwen_sandbox::{ProcessSandbox, SandboxWatcher, Tampering, WatchedCall};

/// How often a server is started again within [`WINDOW`].
const RESTARTS: usize = 3;
const WINDOW: Duration = Duration::from_secs(30);
/// Delay before the first restart; it doubles for each further one.
const BACK_OFF: Duration = Duration::from_millis(100);
pub(super) struct Server {
    pub name: Arc<str>,
    pub config: ServerConfig,
    deps: Arc<Deps>,
    enabled: AtomicBool,
    starting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_starting();
    }
}

#[derive(Default)]
struct State {
    phase: Phase,
    starts: VecDeque<Instant>,
    /// The running task of [`Server::connect_or_refresh`].
    task: Option<AbortHandle>,
    /// True if a turn went on without waiting for the end of that task.
    late: bool,
    /// Looks after the protected names during calls, if the server runs in a sandbox.
    watcher: Option<SandboxWatcher>,
    /// Runs from the start of the program to its introduction.
    starting: Option<WatchedCall>,
    /// What the server did to protected names, until a call reports it.
    tampered: Vec<Tampering>,
}

#[derive(Default, Clone)]
pub(super) enum Phase {
    /// Not needed yet, or starting.
    #[default]
    Pending,
    /// Connected, unless the connection was closed since.
    Connected(Arc<Connection>),
    Failed(McpError),
}

impl Server {
    pub(super) fn new(name: Arc<str>, config: ServerConfig, deps: Arc<Deps>) -> Self {
        let enabled = AtomicBool::new(config.enabled);
        Self { name, config, deps, enabled, starting: tokio::sync::Mutex::default(), state: Mutex::default() }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    pub(super) fn phase(&self) -> Phase {
        self.state().phase.clone()
    }

    /// The connection, if it is open.
    pub(super) fn connected(&self) -> Option<Arc<Connection>> {
        match &self.state().phase {
            Phase::Connected(connection) if connection.peer.closed().is_none() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Time limit of one request.
    pub(super) fn call_limit(&self) -> Duration {
        self.config.timeout.unwrap_or(self.deps.call_timeout)
    }

    /// Returns the connection, and connects first if there is none.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let _one_at_a_time = self.starting.lock().await;
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        if !self.is_enabled() {
            return Err(McpError::new(NO_SERVER, format!("The MCP server `{}` is switched off.", self.name)));
        }
        tokio::time::sleep(self.admit()?).await;
        match self.start().await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.state().phase = Phase::Connected(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                self.state().phase = Phase::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// Connects or refreshes the server if needed: see [`Servers::connect_all`](super::Servers::connect_all).
    /// The work continues if this future is dropped.
    pub(super) async fn connect_or_refresh(self: Arc<Self>) {
        let current = match self.phase() {
            Phase::Pending => false,
            Phase::Failed(_) => true,
            Phase::Connected(connection) => connection.peer.closed().is_none() && !connection.is_outdated(),
        };
        if current || !self.is_enabled() {
            return;
        }
        if self.is_busy() {
            if !self.state().late {
                drop(self.starting.lock().await);
            }
            return;
        }
        let server = self.clone();
        let task = tokio::spawn(async move {
            // Errors appear in the server's status.
            if let Ok(connection) = server.connection().await {
                let _ = connection.refresh().await;
            }
        });
        {
            let mut state = self.state();
            state.task = Some(task.abort_handle());
            state.late = false;
        }
        // An aborted task is also finished.
        let _ = task.await;
    }

    /// True while [`Server::connect_or_refresh`] works.
    fn is_busy(&self) -> bool {
        self.state().task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Notes that a turn continues without this server if it is not ready. Later turns do not wait for it.
    pub(super) fn note_late(&self) {
        if self.is_busy() {
            self.state().late = true;
        }
    }

    /// True if the server has not started yet and a turn went on without it.
    pub(super) fn is_late(&self) -> bool {
        let state = self.state();
        state.late && matches!(state.phase, Phase::Pending)
    }

    /// Aborts a start in progress.
    pub(super) fn stop_starting(&self) {
        if let Some(task) = self.state().task.take() {
            task.abort();
        }
    }

    /// Ends everything at once, without waiting.
    pub(super) fn abandon(&self) {
        self.enabled.store(false, Ordering::Relaxed);
        self.stop_starting();
        self.state().phase = Phase::Pending;
    }

    /// Enables or disables the server. Enabling also connects it.
    pub(super) async fn toggle(&self, enabled: bool) -> Result<(), McpError> {
        self.enabled.store(enabled, Ordering::Relaxed);
        if enabled {
            self.connection().await.map(drop)
        } else {
            self.close().await;
            Ok(())
        }
    }

    /// Reconnects, regardless of the current state.
    pub(super) async fn reconnect(&self) -> Result<(), McpError> {
        self.close().await;
        self.state().starts.clear();
        self.connection().await.map(drop)
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&self) {
        self.stop_starting();
        let _not_while_starting = self.starting.lock().await;
        let phase = std::mem::take(&mut self.state().phase);
        if let Phase::Connected(connection) = phase {
            connection.peer.close().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to look after the protected names for one call. Returns none for a server outside the sandbox.
    pub(super) fn watch_call(&self) -> Option<WatchedCall> {
        let watcher = self.state().watcher.clone();
        watcher.map(|watcher| watcher.begin())
    }

    pub(super) fn add_tampered(&self, tampered: Vec<Tampering>) {
        self.state().tampered.extend(tampered);
    }

    /// What the server did to protected names. Reported once.
    pub(super) fn take_tampering(&self) -> Vec<Tampering> {
        std::mem::take(&mut self.state().tampered)
    }

    /// Admits one more start and returns how long to wait before it.
    fn admit(&self) -> Result<Duration, McpError> {
        let mut state = self.state();
        let now = Instant::now();
        state.starts.retain(|start| now.saturating_duration_since(*start) < WINDOW);
        let restarts = state.starts.len();
        if restarts > RESTARTS {
            let last = match &state.phase {
                Phase::Connected(connection) => connection.peer.closed(),
                Phase::Failed(error) => Some(error.clone()),
                Phase::Pending => None,
            };
            return Err(McpError::new(
                START_FAILED,
                format!(
                    "The MCP server `{}` was started {} times within {} s and did not last; it is left alone for a \
                     while.{}",
                    self.name,
                    restarts,
                    WINDOW.as_secs(),
                    last.map_or_else(String::new, |last| format!(" The last time: {last}"))
                ),
            ));
        }
        state.starts.push_back(now);
        Ok(match restarts {
            0 => Duration::ZERO,
            n => BACK_OFF * (1 << (n - 1)),
        })
    }

    async fn start(&self) -> Result<Connection, McpError> {
        // A long call time-out implies a slow server.
        let limit = self.deps.start_timeout.max(self.config.timeout.unwrap_or_default());
        let inbox = Arc::new(Inbox::new(self.name.clone()));
        match tokio::time::timeout(limit, self.connect(&inbox, limit)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(McpError { code: START_FAILED, ..error }),
            Err(_) => {
                let invalid_line = inbox.invalid_line();
                let printed = invalid_line
                    .map_or_else(String::new, |line| format!(" It printed what is not MCP: {line}"));
                let message = format!(
                    "The MCP server `{}` did not introduce itself within {} ms (the start time-out).{printed}",
                    self.name,
                    limit.as_millis()
                );
                Err(McpError::new(TIMEOUT, message))
            }
        }
    }

    async fn connect(&self, inbox: &Arc<Inbox>, limit: Duration) -> Result<Connection, McpError> {
        let peer = Peer::new(self.name.clone(), self.wire(inbox).await?, inbox.clone());
        let connection = Connection::introduced(peer, self.name.clone(), self.config.clone(), limit).await;
        let starting = std::mem::take(&mut self.state().starting);
        self.add_tampered(starting.map(WatchedCall::end).unwrap_or_default());
        connection
    }

    async fn wire(&self, inbox: &Arc<Inbox>) -> Result<Wire, McpError> {
        match &self.config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let mut environment = (*self.deps.env).clone();
                if self.config.confinement.of_workspace {
                    for name in &self.deps.workspace.withheld {
                        environment.remove(name);
                    }
                }
                for (name, value) in env {
                    environment.set(name, self.filled_in(value)?);
                }
                let cwd = match cwd {
                    Some(cwd) => self.deps.cwd.join(self.filled_in(&cwd.to_string_lossy())?),
                    None => self.deps.cwd.clone(),
                };
                let sandbox = match &self.deps.sandbox {
                    Some(enter) => {
                        Some(enter(&self.config).map_err(|error| self.not_reached(&error.message))?)
                    }
                    None => None,
                };
                {
                    let mut state = self.state();
                    state.watcher = sandbox.as_ref().and_then(ProcessSandbox::watcher);
                    state.starting = state.watcher.as_ref().map(SandboxWatcher::begin);
                }
                let environment = Arc::new(environment);
                let environment =
                    sandbox.as_ref().map_or(environment.clone(), |sandbox| sandbox.environment(environment));
                let mut spec = ProcessSpec::new(self.filled_in(command)?, cwd, environment);
                for arg in args {
                    spec.args.push(self.filled_in(arg)?.into());
                }
                spec.before_exec = sandbox.as_ref().and_then(ProcessSandbox::before_exec);
                Ok(Wire::Stdio(Stdio::start(spec, sandbox, self.name.clone(), inbox.clone()).await?))
            }
            Transport::Http { url, headers } => {
                let headers: Result<Vec<_>, McpError> =
                    headers.iter().map(|(name, value)| Ok((name.clone(), self.filled_in(value)?))).collect();
                let url = self.filled_in(url)?;
                let mut config = self.deps.http.clone();
                if self.config.confinement.of_workspace {
                    config = config.public_only(&url, &self.deps.workspace.private_hosts);
                }
                Ok(Wire::Http(Http::new(self.name.clone(), &url, &headers?, config)?))
            }
            Transport::Host => match &self.deps.host {
                Some(link) => Ok(Wire::Host(HostWire::new(self.name.clone(), link.clone()))),
                None => Err(self.not_reached("no host is there that could hold it")),
            },
            Transport::Unsupported(reason) => Err(self.not_reached(reason)),
        }
    }

    fn not_reached(&self, why: &str) -> McpError {
        McpError::new(START_FAILED, format!("The MCP server `{}` cannot be reached: {why}.", self.name))
    }

    /// Expands variables. Only those that commands get: a configuration cannot read the model's keys.
    fn filled_in(&self, text: &str) -> Result<String, McpError> {
        let is_allowed = |name: &str| {
            !self.config.confinement.of_workspace
                || REFERENCEABLE_VARIABLES.contains(&name)
                || self.deps.workspace.variables.iter().any(|allowed| allowed == name)
        };
        let value = |name: &str| {
            let value = self.deps.env.get(name).filter(|_| is_allowed(name))?;
            Some(value.to_string_lossy().into_owned())
        };
        expand(text, value).map_err(|name| {
            let why = if is_allowed(&name) {
                format!("the variable {name} of its configuration is not set")
            } else {
                format!(
                    "its configuration comes with the workspace and names your variable {name}; if it may have it, add \"{name}\" to \
                     security.workspaceVariables in your own settings"
                )
            };
            self.not_reached(&why)
        })
    }
}
