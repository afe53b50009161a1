//! The MCP servers of a client, in the form of our settings.

use serde_json::{Map, Value, json};

use qwen_dialects::acp::rpc::{RpcError, list, optional_text, text};

/// Converts `mcpServers`. They belong to the user and need no trust.
pub fn convert(servers: &[Value]) -> Result<Map<String, Value>, RpcError> {
    let mut converted = Map::new();
    for (at, server) in servers.iter().enumerate() {
        let (name, config) = one(server)
            .map_err(|error| RpcError { message: format!("mcpServers[{at}]: {}", error.message), ..error })?;
        if servers[..at].iter().any(|other| other.get("name") == server.get("name")) {
            return Err(RpcError::params(format!("mcpServers[{at}]: there are two servers named {name}")));
        }
        converted.insert(free_name(name, &converted), config);
    }
    Ok(converted)
}

fn one(server: &Value) -> Result<(String, Value), RpcError> {
    if !server.is_object() {
        return Err(RpcError::params("a server must be an object"));
    }
    let name = server_name(text(server, "name")?)?;
    let config = match optional_text(server, "type")? {
        None | Some("stdio") => {
            let args: Vec<&str> = list(server, "args", false)?
                .iter()
                .map(|arg| arg.as_str().ok_or_else(|| RpcError::params("`args` must be strings")))
                .collect::<Result<_, _>>()?;
            json!({"command": text(server, "command")?, "args": args, "env": pairs(server, "env")?})
        }
        Some(kind @ ("http" | "sse")) => {
            json!({"type": kind, "url": text(server, "url")?, "headers": pairs(server, "headers")?})
        }
        Some(other) => {
            let message = format!("there is no transport {other:?}; it must be stdio, http or sse");
            return Err(RpcError::params(message));
        }
    };
    qwen_mcp::parse_server(&name, &config).map_err(|error| RpcError::params(error.to_string()))?;
    Ok((name, config))
}

/// The name in the form that tool names allow.
fn server_name(name: &str) -> Result<String, RpcError> {
    let mut allowed = String::new();
    for character in name.trim().chars() {
        let is_allowed = character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
        let character = if is_allowed { character } else { '-' };
        if !(character == '_' && allowed.ends_with('_')) {
            allowed.push(character);
        }
    }
    let allowed = allowed.trim_end_matches('_').chars().take(64).collect::<String>();
    if allowed.is_empty() { Err(RpcError::params("`name` is empty")) } else { Ok(allowed) }
}

/// The name, with a number if another server has it: two names can differ only in characters that are replaced.
fn free_name(name: String, taken: &Map<String, Value>) -> String {
    let mut numbered = (2..).map(|number| format!("{name}-{number}"));
    if !taken.contains_key(&name) {
        return name;
    }
    numbered.find(|name| !taken.contains_key(name)).unwrap_or_default()
}

/// A list of names and values.
fn pairs(server: &Value, field: &str) -> Result<Map<String, Value>, RpcError> {
    let pairs = list(server, field, false)?.iter();
    pairs
        .map(|pair| Ok((text(pair, "name")?.to_owned(), Value::from(text(pair, "value")?))))
        .collect::<Result<_, RpcError>>()
        .map_err(|error| RpcError { message: format!("`{field}`: {}", error.message), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_the_form_of_our_settings() {
        let servers = json!([
            {"name": "my server", "command": "node", "args": ["x"], "env": [{"name": "A", "value": "1"}]},
            {"type": "http", "name": "web", "url": "https://a.b/mcp", "headers": [{"name": "K", "value": "v"}]},
        ]);
        let converted = convert(servers.as_array().unwrap()).unwrap();
        let expected = json!({"command": "node", "args": ["x"], "env": {"A": "1"}});
        assert_eq!(converted["my-server"], expected);
        assert_eq!(converted["web"]["headers"], json!({"K": "v"}));
    }

    #[test]
    fn names_that_differ_only_in_replaced_characters_stay_different() {
        let server = |name: &str| json!({"name": name, "command": "x", "args": [], "env": []});
        let converted = convert(&[server("a b"), server("a-b"), server("你好"), server("世界")]).unwrap();
        let names: Vec<&str> = converted.keys().map(String::as_str).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(names.contains(&"a-b") && names.contains(&"a-b-2"), "{names:?}");
        let error = convert(&[server("a"), server("a")]).unwrap_err();
        assert!(error.message.contains("two servers named a"), "{error:?}");
    }

    #[test]
    fn a_bad_server_is_named() {
        for (server, words) in [
            (json!(1), "must be an object"),
            (json!({"command": "x"}), "`name` is missing"),
            (json!({"name": "a"}), "`command` is missing"),
            (json!({"name": "", "command": "x"}), "empty"),
            (json!({"name": "a", "command": "x", "args": [1]}), "strings"),
            (json!({"name": "a", "command": "x", "env": [{"name": "A"}]}), "`env`: `value` is missing"),
            (json!({"name": "a", "type": "carrier-pigeon"}), "transport"),
        ] {
            let error = convert(&[server]).unwrap_err();
            assert!(error.message.contains(words) && error.message.starts_with("mcpServers[0]"), "{error:?}");
        }
    }
}
