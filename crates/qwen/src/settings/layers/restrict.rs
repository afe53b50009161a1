//! Restricts a project's settings: even in a trusted folder they cannot raise permissions, redirect the model
//! or read its keys.

use qwen_permissions::Mode;

use super::super::file::{Layer, Node, Object, Value};

/// Keys that a workspace cannot set.
const FORBIDDEN: &[&str] = &[
    "model.authType",
    "model.baseUrl",
    "model.apiKey",
    "model.apiKeyEnv",
    "model.headers",
    "model.proxy",
    "model.insecure",
    "model.prices",
    "apiKeyHelper",
    "output.dialect",
    "output.format",
    "telemetry",
    "terminal",
    "acp",
    "security",
    "sessions",
    "tools.sandboxNetwork",
    "tools.sandboxUnasked",
    "tools.webFetch.allowPrivateHosts",
    "tools.network",
    "context.includeDirectories",
];

/// Variables that a workspace cannot set: they determine where the model, its keys and our own files are, or
/// make a program that only reads files start another one.
pub(super) fn is_protected(variable: &str) -> bool {
    let variable = variable.to_ascii_uppercase();
    let prefixes = ["OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_", "CLAUDE_", "OTEL_", "LD_", "DYLD_"];
    prefixes.iter().any(|prefix| variable.starts_with(prefix))
        || variable.ends_with("_PROXY")
        || redirects_lookers(&variable)
        || ["HOME", "PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TRACEPARENT", "TRACESTATE"]
            .contains(&variable.as_str())
}

/// True if a variable names programs, or files that name programs, for commands that run without asking.
fn redirects_lookers(variable: &str) -> bool {
    let names_author = variable.starts_with("GIT_AUTHOR_") || variable.starts_with("GIT_COMMITTER_");
    let prefixes = ["GIT_", "XDG_", "LESS", "BASH"];
    (prefixes.iter().any(|prefix| variable.starts_with(prefix)) && !names_author)
        || variable.ends_with("PAGER")
        || ["ENV", "SHELLOPTS", "RIPGREP_CONFIG_PATH", "GCONV_PATH", "LOCPATH"].contains(&variable)
}

/// Removes from a workspace's settings the keys that it cannot set, given the settings below them, and adds a
/// warning for each.
pub(super) fn restrict(root: &mut Node, beneath: &Node, warnings: &mut Vec<String>) {
    let mut refuse = |origin: &dyn std::fmt::Display, key: &str, why: &str| {
        warnings.push(format!("{origin}: \"{key}\" is ignored: {why}"));
    };
    for path in FORBIDDEN {
        if let Some(field) = root.remove(path) {
            refuse(&field.origin, path, "a workspace cannot set it; put it into your own settings");
        }
    }
    let mode = root.at("permissions.defaultMode").and_then(|node| match &node.value {
        Value::Text(word) => Mode::parse(word),
        _ => None,
    });
    if matches!(mode, Some(Mode::AutoEdit | Mode::Yolo))
        && let Some(field) = root.remove("permissions.defaultMode")
    {
        refuse(&field.origin, "permissions.defaultMode", "a workspace cannot raise its own permissions");
    }
    let are_hooks_off = beneath.at("disableAllHooks").is_some_and(|node| node.value == Value::Bool(true));
    if are_hooks_off && let Some(field) = root.remove("disableAllHooks") {
        refuse(&field.origin, "disableAllHooks", "your own settings disable hooks");
    }
    let plays_itself = root.at("model.name").is_some_and(|node| match &node.value {
        Value::Text(name) => qwen_model::parse_model_spec(name).is_some(),
        _ => false,
    });
    if plays_itself && let Some(field) = root.remove("model.name") {
        refuse(&field.origin, "model.name", "a workspace can select a model, but not define one");
    }
    let lowered = root.at("tools.sandbox").is_some_and(|node| node.value != Value::Bool(true));
    if lowered && let Some(field) = root.remove("tools.sandbox") {
        refuse(&field.origin, "tools.sandbox", "a workspace can require a sandbox, but not disable it");
    }
    let servers = root.object_mut().and_then(|root| root.get_mut("mcpServers"));
    if let Some(Object(fields)) = servers.and_then(Node::object_mut) {
        // The user's rules for a server must not apply to another server with the same name.
        let yours = |name: &str| {
            let known = beneath.object().and_then(|root| root.get("mcpServers")).and_then(Node::object);
            known
                .and_then(|servers| servers.get(name))
                .is_some_and(|server| server.origin.source.layer != Layer::Workspace)
        };
        fields.retain(|server| {
            let taken = yours(&server.key);
            if taken {
                let key = format!("mcpServers.{}", server.key);
                refuse(&server.origin, &key, "you have a server of this name in your own settings");
            }
            !taken
        });
        for server in fields {
            for key in ["trust", "sandbox", "network", "writableDirectories"] {
                if let Some(field) = server.node.remove(key) {
                    let key = format!("mcpServers.{}.{key}", server.key);
                    refuse(&field.origin, &key, "a workspace cannot raise its own permissions");
                }
            }
        }
    }
    let variables = root.object_mut().and_then(|root| root.get_mut("env"));
    if let Some(Object(fields)) = variables.and_then(Node::object_mut) {
        fields.retain(|field| {
            let protected = is_protected(&field.key);
            if protected {
                refuse(&field.origin, &format!("env.{}", field.key), "a workspace cannot set this variable");
            }
            !protected
        });
    }
}
