//! MCP servers, out of the settings.

use std::path::Path;
use std::sync::Arc;

use qwen_events::ErrorInfo;
use qwen_mcp::{ServerConfig, ServerStatus, Status, parse_server};

use super::Settings;
use super::file::{self, Layer, Node, unusable};

/// The servers that are configured.
pub(super) struct Servers {
    /// Those that are used.
    pub wanted: Vec<(Arc<str>, ServerConfig)>,
    /// Those that `mcp.allowed` and `mcp.excluded` leave out.
    pub unwanted: Vec<(Arc<str>, ServerConfig)>,
}

impl Servers {
    /// Adds a server, which the settings may not want.
    fn add(&mut self, name: &str, server: ServerConfig, settings: &file::Mcp) {
        let allowed = settings.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name));
        let wanted = allowed && !settings.excluded.iter().any(|one| one == name);
        let list = if wanted { &mut self.wanted } else { &mut self.unwanted };
        list.push((name.into(), server));
    }

    /// Adds those of plugins. A name that the settings give to a server stays that server's.
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

/// The servers that a file of a folder names that is not trusted. They are only ever shown, so what cannot be read is
/// passed over.
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
