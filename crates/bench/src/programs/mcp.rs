//! The smallest MCP server: one tool, over standard input and output.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

/// Serves until standard input ends.
pub(super) fn run() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?).unwrap_or_default();
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "bench", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{
                "name": "echo",
                "description": "Says it again.",
                "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
            }] }),
            _ => json!({}),
        };
        // What has no id wants no answer.
        if !request["id"].is_null() {
            writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))?;
            out.flush()?;
        }
    }
    Ok(())
}
