//! `qwen mcp`.

use clap::{Args, Subcommand};

use super::Configuration;

/// `qwen mcp`
#[derive(Subcommand, Debug)]
pub enum McpAction {
    /// Connect to every server and show its state
    List(McpListArgs),
}

/// `qwen mcp list`
#[derive(Args, Debug)]
pub struct McpListArgs {
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,

    /// Exit with 1 if an enabled server cannot be used
    #[arg(long)]
    pub check: bool,

    /// How long servers may take to start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,

    /// Add MCP servers: a file, or JSON like '{"mcpServers":{…}}'
    #[arg(long, value_name = "FILE|JSON")]
    pub mcp_config: Vec<String>,

    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,
}
