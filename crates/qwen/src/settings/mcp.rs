//! MCP servers, out of the settings.

use std::sync::Arc;

use qwen_events::ErrorInfo;
use qwen_tools::mcp::{ServerConfig, parse_server};

use super::Settings;
use super::file::{Layer, Node, unusable};

/// The servers that are wanted.
pub(super) fn resolve(root: &Node, settings: &Settings) -> Result<Vec<(Arc<str>, ServerConfig)>, ErrorInfo> {
    let servers = root.at("mcpServers").and_then(Node::object).into_iter().flat_map(|object| &object.0);
    let mcp = &settings.mcp;
    let wanted = servers.filter(|field| {
        mcp.allowed.as_ref().is_none_or(|allowed| allowed.contains(&field.key))
            && !mcp.excluded.contains(&field.key)
    });
    wanted
        .map(|field| {
            let mut server = parse_server(&field.key, &field.node.to_json())
                .map_err(|error| unusable(format!("{}: {error}", field.origin)))?;
            server.confinement.of_workspace = field.node.origin.source.layer == Layer::Workspace;
            Ok((field.key.as_str().into(), server))
        })
        .collect()
}
