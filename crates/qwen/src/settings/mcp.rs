//! MCP servers, out of the settings.

use std::path::Path;
use std::sync::Arc;

use qwen_events::ErrorInfo;
use qwen_tools::mcp::{ServerConfig, ServerStatus, Status, parse_server};

use super::Settings;
use super::file::{self, Layer, Node, unusable};

/// The servers that are configured.
pub(super) struct Servers {
    /// Those that are used.
    pub wanted: Vec<(Arc<str>, ServerConfig)>,
    /// Those that `mcp.allowed` and `mcp.excluded` leave out.
    pub unwanted: Vec<(Arc<str>, ServerConfig)>,
}

/// The servers of the settings.
pub(super) fn resolve(root: &Node, settings: &Settings) -> Result<Servers, ErrorInfo> {
    let mcp = &settings.mcp;
    let mut servers = Servers { wanted: Vec::new(), unwanted: Vec::new() };
    for field in root.at("mcpServers").and_then(Node::object).into_iter().flat_map(|object| &object.0) {
        let mut server = parse_server(&field.key, &field.node.to_json())
            .map_err(|error| unusable(format!("{}: {error}", field.origin)))?;
        server.confinement.of_workspace = field.node.origin.source.layer == Layer::Workspace;
        let wanted = mcp.allowed.as_ref().is_none_or(|allowed| allowed.contains(&field.key))
            && !mcp.excluded.contains(&field.key);
        let list = if wanted { &mut servers.wanted } else { &mut servers.unwanted };
        list.push((field.key.as_str().into(), server));
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
