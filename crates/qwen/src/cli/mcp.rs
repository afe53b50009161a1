//! `qwen mcp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::Configuration;
use super::supervision::seconds;

/// `qwen mcp`
#[derive(Subcommand, Debug)]
pub enum McpAction {
    /// Connect to every server and show its state
    List(McpListArgs),
    /// Be an MCP server on standard input and output, with one tool that runs the agent
    Serve(McpServeArgs),
}

/// `qwen mcp serve`
#[derive(Args, Debug)]
pub struct McpServeArgs {
    /// Run sessions in this directory or below it; may be given several times (default: the current directory)
    #[arg(long, value_name = "DIR")]
    pub workspace: Vec<PathBuf>,

    /// Deny a permission request that no one has answered after this many seconds (default: no limit)
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub approval_timeout: Option<Duration>,

    /// Flags for every worker, after '--'
    #[arg(last = true, value_name = "WORKER FLAGS")]
    pub worker_args: Vec<String>,
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
