//! The MCP client: servers that programs, addresses or the host provide, and their tools.
//!
//! A server is never trusted: whatever it does (floods, hangs, dies, prints rubbish, changes its tools) costs the call
//! that met it one error. Nothing it says about itself grants anything.

mod catalogue;
mod config;
mod error;
mod expand;
mod host;
mod http;
mod inbox;
mod message;
mod meter;
mod peer;
mod remote_tool;
mod result;
mod server;
mod servers;
mod stdio;
mod up;
mod visible;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::ErrorInfo;

pub use config::{
    ConfigError, Confinement, ServerConfig, Transport, parse_config, parse_server, parse_servers,
};
pub use error::McpError;
pub use expand::expand;
pub use host::HostLink;
pub use remote_tool::{CallContext, ProgressSink, RemoteTool};
pub use result::{CallResult, ResourceContents, TextSink};
pub use servers::{ServerStatus, Servers, Status, ToolEntry};
pub use up::ResourceEntry;

use qwen_sandbox::ProcessSandbox;
use qwen_sandbox::process::Environment;

/// Opens the sandbox for the program of a server.
pub type EnterSandbox = Arc<dyn Fn(&ServerConfig) -> Result<ProcessSandbox, ErrorInfo> + Send + Sync>;

/// What servers need of the session.
pub struct Deps {
    /// Where programs start.
    pub cwd: PathBuf,
    /// The environment of programs, and the variables that configurations may use.
    pub env: Arc<Environment>,
    /// Opens the sandbox that a server's configuration calls for. Without it programs run unconfined.
    pub sandbox: Option<EnterSandbox>,
    /// How addresses are reached.
    pub http: qwen_http::ClientConfig,
    /// The way to servers that live in the host.
    pub host: Option<Arc<dyn HostLink>>,
    /// How long a server may take to start and introduce itself.
    pub start_timeout: Duration,
    /// How long one request may take, unless the server's configuration says otherwise.
    pub call_timeout: Duration,
}

impl Deps {
    /// Our own environment, no sandbox, no host, and the default time-outs.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            env: Arc::new(Environment::inherited()),
            sandbox: None,
            http: qwen_http::ClientConfig::default(),
            host: None,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(600),
        }
    }
}
