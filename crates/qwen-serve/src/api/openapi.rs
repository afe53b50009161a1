//! The description of our API, at `/api/openapi.json`. A test compares it with `schemas/openapi.json`, and tries
//! every route of it.

use serde_json::{Map, Value, json};

/// A route as the document describes it.
struct Route {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// The status of success.
    status: u16,
    /// The name of the schema of the request's body; empty if it has none.
    body: &'static str,
    /// The name of the schema of the response; empty if it has no body, `events` for a stream.
    result: &'static str,
}

const fn route(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    status: u16,
    body: &'static str,
    result: &'static str,
) -> Route {
    Route { method, path, summary, status, body, result }
}

const ROUTES: [Route; 23] = [
    route("get", "/health", "Whether the server runs; needs no token.", 200, "", "Health"),
    route("get", "/api/capabilities", "What this server can do.", 200, "", "Capabilities"),
    route("get", "/api/openapi.json", "This document.", 200, "", "Document"),
    route("get", "/api/events", "The events of all sessions.", 200, "", "events"),
    route("get", "/api/ws", "The hub's protocol in WebSocket messages.", 101, "", ""),
    route("get", "/api/nodes", "The nodes on the bus, on which sessions run.", 200, "", "Nodes"),
    route("get", "/api/approvals", "The open permission requests of all sessions.", 200, "", "Approvals"),
    route(
        "post",
        "/api/approvals/{approval}",
        "Answers a permission request. The first answer wins.",
        200,
        "Decision",
        "Decided",
    ),
    route("get", "/api/sessions", "The sessions, the most recently used first.", 200, "", "Sessions"),
    route("post", "/api/sessions", "Creates a session.", 201, "NewSession", "Created"),
    route("get", "/api/sessions/{session}", "A session.", 200, "", "Session"),
    route(
        "patch",
        "/api/sessions/{session}",
        "Changes title, model or mode.",
        200,
        "SessionChange",
        "Session",
    ),
    route("delete", "/api/sessions/{session}", "Deletes a session with its log and its events.", 204, "", ""),
    route(
        "post",
        "/api/sessions/{session}/fork",
        "Creates a session with a copy of the conversation.",
        201,
        "",
        "Forked",
    ),
    route(
        "get",
        "/api/sessions/{session}/snapshot",
        "The messages so far, open approvals, the last event id.",
        200,
        "",
        "Snapshot",
    ),
    route("get", "/api/sessions/{session}/events", "The events of a session.", 200, "", "events"),
    route(
        "post",
        "/api/sessions/{session}/prompts",
        "Submits a prompt; it waits for the running turn.",
        202,
        "Prompt",
        "Accepted",
    ),
    route(
        "delete",
        "/api/sessions/{session}/prompts/{prompt}",
        "Withdraws a prompt that waits.",
        202,
        "",
        "Withdrawn",
    ),
    route(
        "post",
        "/api/sessions/{session}/steer",
        "Submits a prompt that joins the running turn.",
        202,
        "Prompt",
        "Accepted",
    ),
    route("post", "/api/sessions/{session}/cancel", "Cancels the running turn.", 202, "", "Cancelled"),
    route("get", "/v1/models", "OpenAI's list of models: the agents.", 200, "", "Models"),
    route("post", "/mcp", "The agent as an MCP server (streamable HTTP).", 200, "Message", "Message"),
    route("post", "/ag-ui", "A run of AG-UI.", 200, "Message", "events"),
];

/// Returns the OpenAPI document of the routes below `/api` and some others.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "qwen serve", "version": "1.0", "description": "Sessions over HTTP. See docs/serve.md."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let json_content = |name: &str| json!({"application/json": {"schema": reference(name)}});
    let mut success = json!({"description": "Success"});
    match route.result {
        "" => {}
        "events" => success["content"] = json!({"text/event-stream": {"schema": {"type": "string"}}}),
        name => success["content"] = json_content(name),
    }
    let mut operation = json!({
        "summary": route.summary,
        "responses": {
            route.status.to_string(): success,
            "default": {"description": "An error", "content": json_content("Error")},
        },
    });
    if route.path == "/health" {
        operation["security"] = json!([]);
    }
    if !route.body.is_empty() {
        operation["requestBody"] = json!({"required": true, "content": json_content(route.body)});
    }
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if route.path.ends_with("/events") {
        let text = json!({"type": "string"});
        parameters.push(json!({"name": "Last-Event-ID", "in": "header", "schema": text, "description": "The last event that the client has; 0 is the start."}));
        parameters.push(
            json!({"name": "after", "in": "query", "schema": text, "description": "As Last-Event-ID."}),
        );
        parameters
            .push(json!({"name": "dialect", "in": "query", "schema": {"type": "string", "enum": qwen_dialects::Dialect::ALL.map(qwen_dialects::Dialect::name)}}));
        parameters.push(json!({"name": "partial", "in": "query", "schema": {"type": "boolean", "default": true}, "description": "False joins the pieces of each message; not for the events of all sessions."}));
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

/// A schema of an object: its properties, and which of them are required.
#[expect(clippy::needless_pass_by_value, reason = "callers write the properties in place")]
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn schemas() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let any = json!({"type": "object"});
    let mode = json!({"type": "string", "enum": ["plan", "default", "auto-edit", "yolo"]});
    let agent = json!({"type": "string", "enum": ["react", "tot", "got", "agot"]});
    let status = json!({"type": "string", "enum": ["idle", "running", "waiting"]});
    let objects = json!({"type": "array", "items": {"type": "object"}});
    let parts = json!({"oneOf": [{"type": "string"}, objects]});
    let decision = json!({"type": "string", "enum": ["allow", "deny"]});
    json!({
        "Health": object(json!({"status": {"const": "ok"}}), &["status"]),
        "Capabilities": object(json!({"version": text, "api": text, "dialects": texts, "protocols": texts, "workspaces": texts, "agents": texts, "modes": texts, "limits": any, "draining": {"type": "boolean"}}), &["version", "api", "dialects", "workspaces", "limits"]),
        "Nodes": object(json!({"has_bus": {"type": "boolean"}, "nodes": objects}), &["has_bus", "nodes"]),
        "Document": any,
        "Message": any,
        "Models": object(json!({"object": {"const": "list"}, "data": objects}), &["object", "data"]),
        "Error": object(json!({"error": object(json!({"code": text, "message": text, "type": text}), &["code", "message"])}), &["error"]),
        "NewSession": object(json!({"workspace": text, "model": text, "mode": mode, "agent": agent, "title": text}), &[]),
        "SessionChange": object(json!({"title": text, "model": text, "mode": mode}), &[]),
        "Created": object(json!({"id": text}), &["id"]),
        "Forked": object(json!({"id": text, "forked_from": text}), &["id", "forked_from"]),
        "Session": object(json!({"id": text, "workspace": text, "title": text, "model": {"type": ["string", "null"]}, "mode": {"type": ["string", "null"]}, "agent": {"type": ["string", "null"]}, "created_at": number, "updated_at": number, "status": status, "running": {"type": ["string", "null"]}, "queued": texts, "approvals": number, "last_event_id": number}), &["id", "workspace", "title", "status", "queued", "last_event_id"]),
        "Sessions": object(json!({"sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}}}), &["sessions"]),
        "Snapshot": object(json!({"session_id": text, "last_event_id": number, "messages": objects, "approvals": objects}), &["session_id", "last_event_id", "messages", "approvals"]),
        "Prompt": object(json!({"prompt": parts}), &["prompt"]),
        "Accepted": object(json!({"prompt_id": text, "after": number}), &["prompt_id", "after"]),
        "Withdrawn": object(json!({"prompt_id": text}), &["prompt_id"]),
        "Cancelled": object(json!({"status": {"enum": ["ok", "noop"]}}), &["status"]),
        "Approval": object(json!({"id": text, "session_id": text, "prompt_id": text, "tool": any, "metadata": any, "asked_at": number}), &["id", "session_id", "tool"]),
        "Approvals": object(json!({"approvals": {"type": "array", "items": {"$ref": "#/components/schemas/Approval"}}}), &["approvals"]),
        "Decision": object(json!({"decision": decision, "updated_input": any, "message": text}), &["decision"]),
        "Decided": object(json!({"id": text, "decision": decision}), &["id", "decision"]),
    })
}
