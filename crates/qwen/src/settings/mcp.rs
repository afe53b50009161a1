//! Resolves MCP servers from the settings.

use std::path::Path;
use std::sync::Arc;

use qwen_events::ErrorInfo;
use qwen_mcp::{ServerConfig, ServerStatus, Status, parse_server};

use super::Settings;
use super::file::{self, Layer, Node, unusable};

pub(super) struct Servers {
    /// Servers that are used.
    pub wanted: Vec<(Arc<str>, ServerConfig)>,
    /// Servers that `mcp.allowed` and `mcp.excluded` disable.
    pub unwanted: Vec<(Arc<str>, ServerConfig)>,
}

impl Servers {
    /// Adds a server to `wanted` or `unwanted`, according to the settings.
    fn add(&mut self, name: &str, server: ServerConfig, settings: &file::Mcp) {
        let allowed = settings.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name));
        let wanted = allowed && !settings.excluded.iter().any(|one| one == name);
        let list = if wanted { &mut self.wanted } else { &mut self.unwanted };
        list.push((name.into(), server));
    }

    /// Adds the servers of plugins. A server of the settings keeps its name if a plugin uses the same one.
    pub fn add_those_of_plugins(
        &mut self,
        servers: Vec<(Arc<str>, ServerConfig)>,
        settings: &Settings,
        warnings: &mut Vec<String>,
    ) {
        for (name, server) in servers {
            if self.wanted.iter().chain(&self.unwanted).any(|(taken, _)| *taken == name) {
                warnings.push(format!(
                    "--plugin-dir: there is an MCP server '{name}' already; the plugin's is left out"
                ));
            } else {
                self.add(&name, server, &settings.mcp);
            }
        }
    }
}

/// The servers of the settings.
pub(super) fn resolve(root: &Node, settings: &Settings) -> Result<Servers, ErrorInfo> {
    let mut servers = Servers { wanted: Vec::new(), unwanted: Vec::new() };
    for field in root.at("mcpServers").and_then(Node::object).into_iter().flat_map(|object| &object.0) {
        let mut server = parse_server(&field.key, &field.node.to_json())
            .map_err(|error| unusable(format!("{}: {error}", field.origin)))?;
        server.confinement.of_workspace = field.node.origin.source.layer == Layer::Workspace;
        servers.add(&field.key, server, &settings.mcp);
    }
    Ok(servers)
}

/// The servers in the settings file of an untrusted folder. They are only displayed, so an unreadable entry
/// is skipped.
pub(super) fn untrusted(path: &Path) -> Vec<ServerStatus> {
    let Ok(Some(document)) = file::load(path, Layer::Workspace) else { return Vec::new() };
    let fields =
        document.root.at("mcpServers").and_then(Node::object).into_iter().flat_map(|object| &object.0);
    fields
        .filter_map(|field| {
            let server = parse_server(&field.key, &field.node.to_json()).ok()?;
            Some(ServerStatus::unused(field.key.as_str().into(), &server, Status::Untrusted))
        })
        .collect()
}
