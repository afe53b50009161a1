//! One tree out of two.

use super::super::file::{Node, Value};

/// Lists to which every source adds. Of all other values the strongest source's counts.
const ADDED: &[&str] = &[
    "permissions.allow",
    "permissions.ask",
    "permissions.deny",
    "tools.allowed",
    "tools.exclude",
    "tools.webFetch.allowPrivateHosts",
    "mcp.excluded",
    "security.trustedFolders",
    "context.includeDirectories",
];

/// Puts `stronger` on top of `weaker`. Objects are joined key by key.
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
                        // A server is one thing: half of one and half of another would be a third.
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
