//! The MCP client: servers over stdio, HTTP or the host, and their tools.
//!
//! Servers are not trusted: if one floods us, hangs, dies, sends invalid output or changes its tools,
//! the only effect is an error for the affected call. A server's claims about itself grant nothing.

mod config;
mod connection;
mod error;
mod peer;
mod request;
mod server;
mod servers;
mod tools;
mod transport;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::ErrorInfo;

pub use config::expand::expand;
pub use config::{
    Confinement, McpConfigError, ServerConfig, Transport, parse_config, parse_server, parse_servers,
};
pub use connection::ResourceEntry;
pub use error::McpError;
pub use servers::{ServerStatus, Servers, Status, ToolEntry};
pub use tools::remote_tool::{ProgressSink, RemoteCallContext, RemoteTool};
pub use tools::result::{CallResult, ResourceContents, TextSink};
pub use transport::host::{HostAnswer, HostLink};

use qwen_sandbox::ProcessSandbox;
use qwen_sandbox::process::Environment;

/// Opens the sandbox for the program of a server.
pub type EnterSandbox = Arc<dyn Fn(&ServerConfig) -> Result<ProcessSandbox, ErrorInfo> + Send + Sync>;

/// Session state that servers need.
pub struct Deps {
    /// Default working directory of server programs.
    pub cwd: PathBuf,
    /// The environment of programs, and the variables that configurations may use.
    pub env: Arc<Environment>,
    /// What servers that the workspace configures get, and do not get.
    pub workspace: WorkspaceServers,
    /// Opens the sandbox that a server's configuration calls for. Without it programs run unconfined.
    pub sandbox: Option<EnterSandbox>,
    pub http: qwen_http::ClientConfig,
    /// The connection to servers inside the host.
    pub host: Option<Arc<dyn HostLink>>,
    /// Time limit for starting a server, including `initialize`.
    pub start_timeout: Duration,
    /// Default time limit of one request.
    pub call_timeout: Duration,
}

/// The limits of servers that a trusted workspace configures.
#[derive(Clone, Default)]
pub struct WorkspaceServers {
    /// Variables that are removed from the environment of their programs.
    pub withheld: Vec<String>,
    /// The variables that their configuration may name, besides `HOME`, `PATH` and the like.
    pub variables: Vec<String>,
    /// Private addresses that may be called all the same, as `host:port`.
    pub private_hosts: Vec<String>,
}

impl Deps {
    /// Uses this process's environment, no sandbox, no host, and the default time-outs.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            env: Arc::new(Environment::inherited()),
            workspace: WorkspaceServers::default(),
            sandbox: None,
            http: qwen_http::ClientConfig::default(),
            host: None,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(600),
        }
    }
}
