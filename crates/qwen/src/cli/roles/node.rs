//! `qwen node` and its flags.

use std::path::PathBuf;

use clap::Args;
use qwen_kernel::config::{NodeWorkspace, WorkspaceKind};

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
    /// Announce a label, by which `open` selects nodes; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Announce a directory in which sessions may run, of the kind local or shared (by nodes with the same ID);
    /// may be given several times
    #[arg(long, value_name = "ID=PATH[:KIND]", value_parser = workspace)]
    pub workspace: Vec<NodeWorkspace>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Parses a label.
pub fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Parses an announced directory.
pub fn workspace(text: &str) -> Result<NodeWorkspace, String> {
    let (id, place) = text.split_once('=').ok_or("give ID=PATH or ID=PATH:KIND")?;
    let (path, kind) = match place.rsplit_once(':') {
        Some((path, kind)) if !kind.contains('/') => {
            (path, WorkspaceKind::parse(kind).ok_or("the kinds are local and shared")?)
        }
        _ => (place, WorkspaceKind::Local),
    };
    Ok(NodeWorkspace { id: id.trim().to_owned(), path: PathBuf::from(path), kind })
}
