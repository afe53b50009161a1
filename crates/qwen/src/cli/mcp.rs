//! `qwen mcp`.

use clap::{Args, Subcommand};

use super::Configuration;

/// `qwen mcp`
#[derive(Subcommand, Debug)]
pub enum McpAction {
    /// Connect to every server and show how it is
    List(McpListArgs),
}

/// `qwen mcp list`
#[derive(Args, Debug)]
pub struct McpListArgs {
    /// As one JSON array
    #[arg(long)]
    pub json: bool,

    /// Exit with 1 when a server that is to be used cannot be
    #[arg(long)]
    pub check: bool,

    /// How long servers may take to come up, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,

    /// Further servers: a file, or JSON like '{"mcpServers":{…}}'
    #[arg(long, value_name = "FILE|JSON")]
    pub mcp_config: Vec<String>,

    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,
}
