//! Tools of the host, offered to workers as an MCP server without a process.

use std::sync::Arc;

use serde_json::{Value, json};

use super::CallbackFuture;

type Run = Arc<dyn Fn(Value) -> CallbackFuture<Result<String, String>> + Send + Sync>;

#[derive(Clone)]
pub struct HostTool {
    name: String,
    description: String,
    schema: Value,
    run: Run,
}

impl HostTool {
    /// A tool with the JSON Schema of its arguments. `run` returns the result for the model, or the reason
    /// of the failure.
    pub fn new<F, A>(name: &str, description: &str, schema: Value, run: F) -> Self
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            run: Arc::new(move |arguments| Box::pin(run(arguments))),
        }
    }
}

#[derive(Clone, Default)]
pub struct ToolServer {
    tools: Vec<HostTool>,
}

impl ToolServer {
    pub fn new(tools: Vec<HostTool>) -> Self {
        Self { tools }
    }

    /// Answers a JSON-RPC message; the answer to a notification is null.
    pub async fn handle(&self, message: &Value) -> Value {
        let id = message["id"].clone();
        let reply = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let fail = |code: i32, why: String| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}});
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => reply(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "qwen-kernel", "version": env!("CARGO_PKG_VERSION")},
            })),
            "ping" => reply(json!({})),
            "tools/list" => {
                let tools: Vec<Value> = self
                    .tools
                    .iter()
                    .map(|tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.schema}))
                    .collect();
                reply(json!({"tools": tools}))
            }
            "tools/call" => {
                let name = message["params"]["name"].as_str().unwrap_or_default();
                let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
                    return fail(-32602, format!("there is no tool '{name}'"));
                };
                let (text, is_error) = match (tool.run)(message["params"]["arguments"].clone()).await {
                    Ok(text) => (text, false),
                    Err(why) => (why, true),
                };
                reply(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
            }
            method if message["id"].is_null() || method.starts_with("notifications/") => Value::Null,
            method => fail(-32601, format!("there is no method '{method}'")),
        }
    }
}
