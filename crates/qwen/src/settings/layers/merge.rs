//! Merges two settings trees.

use super::super::file::{Node, Value};

/// Lists that are concatenated over all sources. For all other values the strongest source wins.
const ADDED: &[&str] = &[
    "permissions.allow",
    "permissions.ask",
    "permissions.deny",
    "tools.allowed",
    "tools.exclude",
    "tools.webFetch.allowPrivateHosts",
    "mcp.excluded",
    "security.trustedFolders",
    "security.workspaceVariables",
    "context.includeDirectories",
];

/// Merges `stronger` over `weaker`. Objects are merged key by key.
pub fn merge(weaker: &mut Node, stronger: Node) {
    join(weaker, stronger, "");
}

fn join(weaker: &mut Node, stronger: Node, path: &str) {
    let Node { origin, value } = stronger;
    match (&mut weaker.value, value) {
        (_, Value::Null) => {}
        (Value::Object(fields), Value::Object(more)) => {
            for field in more.0 {
                match fields.get_mut(&field.key) {
                    None => fields.0.push(field),
                    Some(known) => {
                        let path =
                            if path.is_empty() { field.key.clone() } else { format!("{path}.{}", field.key) };
                        // A server definition is replaced as a whole: a mix of two definitions would be a
                        // third server.
                        if path.starts_with("mcpServers.") {
                            *known = field.node;
                        } else {
                            join(known, field.node, &path);
                        }
                    }
                }
            }
        }
        (Value::List(items), Value::List(more)) if ADDED.contains(&path) || path.starts_with("hooks.") => {
            items.extend(more);
        }
        (_, value) => *weaker = Node { origin, value },
    }
}
