//! `$VAR` and `${VAR}` in the texts of MCP servers.

use qwen_tools::process::WITHHELD;

use super::super::World;
use super::super::file::{Layer, Node, Object, Value};

/// Puts the values of variables into the texts of all MCP servers. A workspace does not get the model's keys.
pub(super) fn expand(root: &mut Node, layer: Layer, world: &World, warnings: &mut Vec<String>) {
    let servers = root.object_mut().and_then(|root| root.get_mut("mcpServers"));
    for server in servers.and_then(Node::object_mut).into_iter().flat_map(|Object(fields)| fields) {
        texts(&mut server.node, &mut |text, origin| {
            let mut value = |name: &str, needed: bool| {
                if layer == Layer::Workspace && WITHHELD.contains(&name) {
                    warnings.push(format!(
                        "{origin}: ${name} is left out: a workspace does not get the model's keys"
                    ));
                    return Some(String::new());
                }
                let value = world.var(name).map(str::to_owned);
                if value.is_none() && needed {
                    warnings.push(format!("{origin}: the variable {name} is not set"));
                }
                value
            };
            expanded(text, &mut value)
        });
    }
}

fn texts(node: &mut Node, change: &mut impl FnMut(&str, &str) -> Option<String>) {
    let origin = node.origin.to_string();
    match &mut node.value {
        Value::Text(text) => {
            if let Some(changed) = change(text, &origin) {
                *text = changed;
            }
        }
        Value::List(list) => {
            for node in list {
                texts(node, change);
            }
        }
        Value::Object(Object(fields)) => {
            for field in fields {
                texts(&mut field.node, change);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text with variables in place of their names; none when it names none. `${VAR:-text}` gives a text for a variable
/// that is not set; otherwise the name of one that is not set stays.
fn expanded(text: &str, value: &mut impl FnMut(&str, bool) -> Option<String>) -> Option<String> {
    if !text.contains('$') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, default, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((inner, _)) => {
                let (name, default) =
                    inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
                (name, default, inner.len() + 2)
            }
            None => {
                let length = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
                (&after[..length], None, length)
            }
        };
        let is_variable =
            !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_name);
        let found = match default {
            _ if !is_variable => None,
            Some(default) => Some(value(name, false).unwrap_or_else(|| default.to_owned())),
            None => value(name, true),
        };
        match found {
            Some(found) => out.push_str(&found),
            None => out.push_str(&rest[at..at + 1 + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    Some(out)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_take_the_place_of_their_names() {
        for (text, expected) in [
            ("plain", None),
            ("$A", Some("1")),
            ("x${A}y$B!", Some("x1y22!")),
            ("${NONE}", Some("${NONE}")),
            ("${NONE:-other}", Some("other")),
            ("${A:-other}", Some("1")),
            ("$", Some("$")),
            ("$$A", Some("$1")),
            ("${A", Some("${A")),
            ("${}", Some("${}")),
            ("$1", Some("$1")),
            ("5 $ ä$A", Some("5 $ ä1")),
        ] {
            let mut value = |name: &str, _| match name {
                "A" => Some("1".to_owned()),
                "B" => Some("22".to_owned()),
                _ => None,
            };
            assert_eq!(expanded(text, &mut value).as_deref(), expected, "{text}");
        }
    }
}
