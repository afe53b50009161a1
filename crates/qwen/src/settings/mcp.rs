//! MCP servers from flags.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_tools::mcp::{ServerConfig, parse_config};

use crate::cli::Run;

/// The servers that `--mcp-config` names, as JSON or as the file that holds it.
pub(super) fn resolve(run: &Run) -> Result<Vec<(Arc<str>, ServerConfig)>, ErrorInfo> {
    let mut servers = Vec::new();
    for given in run.mcp_config.iter().filter(|given| !given.is_empty()) {
        let unusable = |what: &str, why: String| {
            let message = format!("--mcp-config {what}: {why}");
            ErrorInfo::new(ErrorKind::Settings, "invalid_mcp_config", message)
        };
        if given.trim_start().starts_with('{') {
            servers.extend(parse_config(given).map_err(|error| unusable("(JSON)", error.to_string()))?);
        } else {
            let text = std::fs::read_to_string(given).map_err(|error| unusable(given, error.to_string()))?;
            servers.extend(parse_config(&text).map_err(|error| unusable(given, error.to_string()))?);
        }
    }
    Ok(servers)
}
