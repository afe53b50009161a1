//! `qwen mcp list`: the status of every MCP server, determined by connecting to it.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use qwen_engine::HeadlessHost;
use qwen_events::ErrorInfo;
use qwen_mcp::{ServerStatus, Status};
use serde_json::{Value, json};

use crate::cli::{McpListArgs, Run};
use crate::runtime::exit;
use crate::session::ProcessContext;
use crate::settings::{Config, Invocation, Layered, OutputWire};

/// The text to print, and whether every enabled server is usable.
pub struct ServerListing {
    pub text: String,
    pub all_usable: bool,
}

/// Connects to the servers, within the given time, and stops them again.
pub async fn list(args: &McpListArgs, invocation: &mut Invocation) -> Result<ServerListing, ErrorInfo> {
    let run = Run {
        mcp_config: args.mcp_config.clone(),
        configuration: args.configuration.clone(),
        no_session_persistence: true,
        ..Run::default()
    };
    let layered = Layered::load(&run, invocation)?;
    let settings = layered.settings()?;
    let wire = OutputWire::resolve(&run, invocation, Some(&settings.output))?;
    let config = Config::resolve(&run, invocation, settings, layered, &wire)?;
    for warning in &config.diagnostics.warnings {
        exit::report(&format!("qwen: {}", config.diagnostics.redactor.redact(warning)));
    }
    let process = ProcessContext::new(Arc::new(config), Arc::new(HeadlessHost), None)?;
    let limit = Duration::from_secs(args.timeout);
    process.services.mcp.connect_all(limit).await;
    let mut servers = process.services.mcp.status();
    for server in servers.iter_mut().filter(|server| server.status == Status::Pending) {
        server.status = Status::Failed;
        server.error = Some(format!("it did not start within {} s", limit.as_secs()).into());
    }
    // The processes that they started end with them. The wait is limited to the same time as their start.
    let _ = tokio::time::timeout(limit, process.services.mcp.shutdown()).await;
    servers.extend(process.config.extensions.unused_mcp_servers());
    let all_usable = servers.iter().all(|server| server.status != Status::Failed);
    let text = if args.json { as_json(&servers) } else { as_text(&servers) };
    Ok(ServerListing { text: process.config.diagnostics.redactor.redact(&text).into_owned(), all_usable })
}

fn as_json(servers: &[ServerStatus]) -> String {
    let one = |server: &ServerStatus| {
        let info = server.server_info.as_ref().and_then(|info| serde_json::from_str(info.as_str()).ok());
        let names: Vec<&str> = server.tools.iter().map(|tool| &*tool.name).collect();
        let warnings: Vec<&str> = server.warnings.iter().map(|warning| &**warning).collect();
        json!({
            "name": &*server.name,
            "status": server.status.name(),
            "transport": server.transport,
            "tools": names.len(),
            "tool_names": names,
            "error": server.error.as_deref(),
            "server_info": info.unwrap_or(Value::Null),
            "warnings": warnings,
        })
    };
    format!("{:#}\n", Value::Array(servers.iter().map(one).collect()))
}

fn as_text(servers: &[ServerStatus]) -> String {
    if servers.is_empty() {
        return "No MCP server is configured.\n".to_owned();
    }
    let names = servers.iter().map(|server| server.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    for server in servers {
        let _ = write!(text, "{:names$}  {:9}  {:5}", server.name, server.status.name(), server.transport);
        if server.status == Status::Connected {
            let count = server.tools.len();
            let _ = write!(text, "  {count} {}", if count == 1 { "tool" } else { "tools" });
        }
        let why = match server.status {
            Status::Untrusted => Some("this folder is not trusted; see 'qwen trust'"),
            _ => server.error.as_deref(),
        };
        if let Some(why) = why {
            let _ = write!(text, "  {}", why.replace('\n', " "));
        }
        text.push('\n');
        for warning in &server.warnings {
            let _ = writeln!(text, "{:names$}  {warning}", "");
        }
    }
    text
}
