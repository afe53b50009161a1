//! `mcpServers`: servers that bring tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// An MCP server: a program (`command`), or an address (`url`, `httpUrl`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServer {
    /// How the server is reached: `stdio`, `sse`, `http`, or `sdk` for one that lives in the host. Usually plain from
    /// the rest.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The name of a server that lives in the host.
    pub name: Option<String>,
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for it.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// The address of a server that streams events, or of an HTTP one when `type` says so.
    pub url: Option<String>,
    /// The address of an HTTP server.
    pub http_url: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// How long a request may take, in milliseconds.
    pub timeout: Option<u64>,
    /// Its tools run without asking. A workspace cannot set this.
    pub trust: Option<bool>,
    /// Whether its program is fenced in like commands are. A workspace cannot set this.
    pub sandbox: Option<bool>,
    /// Whether its program reaches the network: by default it does, unless it came with a workspace, which cannot set
    /// this.
    pub network: Option<bool>,
    /// Further directories that its program may write. A workspace cannot set this.
    pub writable_directories: Vec<String>,
    /// Only these of its tools.
    pub include_tools: Option<Vec<String>>,
    /// Not these of its tools.
    pub exclude_tools: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Do not start it.
    pub disabled: Option<bool>,
    /// Start it, which is the default.
    pub enabled: Option<bool>,
}
