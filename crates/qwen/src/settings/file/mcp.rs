//! `mcpServers`: servers that provide tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// An MCP server: a program (`command`), or an address (`url`, `httpUrl`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServer {
    /// The transport: `stdio`, `http`, or `sdk` for a server inside the host. Derived from the other keys if absent.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The name of a server inside the host.
    pub name: Option<String>,
    /// The program to start.
    pub command: Option<String>,
    /// The arguments of the command.
    pub args: Vec<String>,
    /// Environment variables for the program.
    pub env: BTreeMap<String, String>,
    /// The working directory of the command.
    pub cwd: Option<String>,
    /// The address of an HTTP server.
    pub url: Option<String>,
    /// The same as `url`, and preferred to it.
    pub http_url: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The time limit of a request, in milliseconds.
    pub timeout: Option<u64>,
    /// Run its tools without approval. A workspace cannot set this.
    pub trust: Option<bool>,
    /// Whether its program runs in the sandbox, as commands do. A workspace cannot set this.
    pub sandbox: Option<bool>,
    /// Whether its program has network access; by default it does, unless a workspace defines the server. A
    /// workspace cannot set this.
    pub network: Option<bool>,
    /// Additional directories that its program may write to. A workspace cannot set this.
    pub writable_directories: Vec<String>,
    /// Offer only these of its tools.
    pub include_tools: Option<Vec<String>>,
    /// Do not offer these of its tools.
    pub exclude_tools: Vec<String>,
    /// Describe its tools to the model in every request, even if the schemas exceed `tools.schemaBudget`.
    pub always_load: Option<bool>,
    /// The purpose of the server, for users.
    pub description: Option<String>,
    /// Do not start it.
    pub disabled: Option<bool>,
    /// Start it, which is the default.
    pub enabled: Option<bool>,
}
