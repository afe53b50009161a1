//! `qwen node` and its flags.

use clap::Args;

use super::HubArgs;

/// `qwen node`
#[derive(Args, Debug, Clone)]
pub struct NodeArgs {
    /// The name of this machine on the bus; its host name by default
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Announce that all nodes with this ID have the same files, so that sessions may continue on any of them
    #[arg(long, value_name = "ID")]
    pub shared_workspace: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}
