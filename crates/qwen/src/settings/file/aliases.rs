//! Keys that other programs use for settings of ours.

use super::foreign;
use super::node::{Field, Node, Value};

/// Pairs of another program's key and our key.
const ALIASES: &[(&str, &str)] = &[
    ("approvalMode", "permissions.defaultMode"),
    ("tools.approvalMode", "permissions.defaultMode"),
    ("allowedTools", "permissions.allow"),
    ("disallowedTools", "permissions.deny"),
    ("permissions.additionalDirectories", "context.includeDirectories"),
    ("maxSessionTurns", "limits.maxSessionTurns"),
    ("model.maxSessionTurns", "limits.maxSessionTurns"),
    ("model.maxToolCalls", "limits.maxToolCalls"),
    ("model.maxWallTimeSeconds", "limits.maxWallTime"),
    ("security.auth.selectedType", "model.authType"),
    ("security.auth.apiKey", "model.apiKey"),
    ("security.auth.baseUrl", "model.baseUrl"),
    ("disabledMcpjsonServers", "mcp.excluded"),
    ("effortLevel", "model.effort"),
    ("allowMCPServers", "mcp.allowed"),
    ("excludeMCPServers", "mcp.excluded"),
    ("fallbackModel", "model.fallbackModels"),
    ("outputStyle", "output.style"),
    ("proxy", "model.proxy"),
    ("credentials", "tools.network.credentials"),
    ("general.vimMode", "terminal.vim"),
    ("ui.accessibility.screenReader", "terminal.screenReader"),
];

/// Moves values from other programs' keys to ours. If both keys are set, ours wins.
pub(super) fn translate(root: &mut Node) {
    // Older versions of those programs write `"model": "name"`.
    if let Some(node) = root.at("model").filter(|node| matches!(node.value, Value::Text(_))).cloned() {
        let origin = node.origin.clone();
        root.put("model", &origin, Node::empty(origin.clone()));
        root.put("model.name", &origin, node);
    }
    for (theirs, ours) in ALIASES {
        let Some(mut field) = root.remove(theirs) else { continue };
        if root.at(ours).is_some() || is_only_theirs(ours, &field.node) {
            continue;
        }
        if *ours == "model.fallbackModels" && matches!(field.node.value, Value::Text(_)) {
            let origin = field.node.origin.clone();
            field.node = Node { origin, value: Value::List(vec![field.node]) };
        }
        root.put(ours, &field.origin, field.node);
    }
    sandbox(root);
    if root.at("security.auth").and_then(Node::object).is_some_and(|auth| auth.0.is_empty()) {
        root.remove("security.auth");
    }
}

/// True for a value that only Qwen Code supports, such as a sign-in method.
fn is_only_theirs(ours: &str, node: &Node) -> bool {
    let Value::Text(word) = &node.value else { return false };
    ours == "model.authType" && foreign::AUTH_TYPES.contains(&word.as_str())
}

/// Translates `sandbox` as Claude's SDKs write it. An enabled sandbox is required unless the SDK makes it
/// optional.
fn sandbox(root: &mut Node) {
    if root.at("sandbox").and_then(Node::object).is_none() {
        return;
    }
    let Some(mut field) = root.remove("sandbox") else { return };
    let mut take = |key: &str| field.node.remove(key).map(|field| field.node);
    let flag = |node: Option<Node>| {
        node.and_then(|node| if let Value::Bool(flag) = node.value { Some(flag) } else { None })
    };
    let (enabled, must, unasked) =
        (flag(take("enabled")), flag(take("failIfUnavailable")), flag(take("autoAllowBashIfSandboxed")));
    let origin = field.origin.clone();
    let node = |value: Value| Node { origin: origin.clone(), value };
    let must = must.unwrap_or(true);
    if let Some(enabled) = enabled.filter(|_| root.at("tools.sandbox").is_none()) {
        let value = if enabled && !must { Value::Text("auto".to_owned()) } else { Value::Bool(enabled) };
        root.put("tools.sandbox", &origin, node(value));
    }
    if enabled == Some(true) && root.at("tools.sandboxUnasked").is_none() {
        root.put("tools.sandboxUnasked", &origin, node(Value::Bool(unasked.unwrap_or(true))));
    }
    // The remaining keys are unknown, and are reported as such.
    let left = field.node.object_mut().map(|object| std::mem::take(&mut object.0)).unwrap_or_default();
    if let Some(object) = root.object_mut() {
        object
            .0
            .extend(left.into_iter().map(|field| Field { key: format!("sandbox.{}", field.key), ..field }));
    }
}
