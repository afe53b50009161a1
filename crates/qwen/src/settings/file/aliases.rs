//! Keys under which other programs of this kind keep the same things.

use super::node::{Node, Value};

/// A key of another program, and ours.
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
    ("allowMCPServers", "mcp.allowed"),
    ("excludeMCPServers", "mcp.excluded"),
    ("fallbackModel", "model.fallbackModels"),
];

/// Puts what stands under another program's key where ours is. A key of ours that is there too wins.
pub(super) fn translate(root: &mut Node) {
    // `"model": "name"` is how the older ones of them say it.
    if let Some(node) = root.at("model").filter(|node| matches!(node.value, Value::Text(_))).cloned() {
        let origin = node.origin.clone();
        root.put("model", &origin, Node::empty(origin.clone()));
        root.put("model.name", &origin, node);
    }
    for (theirs, ours) in ALIASES {
        let Some(mut field) = root.remove(theirs) else { continue };
        if root.at(ours).is_some() {
            continue;
        }
        if *ours == "model.fallbackModels" && matches!(field.node.value, Value::Text(_)) {
            let origin = field.node.origin.clone();
            field.node = Node { origin, value: Value::List(vec![field.node]) };
        }
        root.put(ours, &field.origin, field.node);
    }
    if root.at("security.auth").and_then(Node::object).is_some_and(|auth| auth.0.is_empty()) {
        root.remove("security.auth");
    }
}
