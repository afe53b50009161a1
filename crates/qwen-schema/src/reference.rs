//! What a `$ref` points to: the root, a JSON pointer below it, or an `$anchor`.

use serde_json::Value;

/// The schema that `reference` names within `root`.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    // The root may call itself by its own `$id`.
    let own_id = root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
    let fragment = match own_id.and_then(|id| reference.strip_prefix(id)) {
        Some("") => return Some(root),
        Some(rest) if rest.starts_with('#') => &rest[1..],
        _ => reference.strip_prefix('#')?,
    };
    let fragment = percent_decoded(fragment)?;
    let target = if fragment.is_empty() || fragment.starts_with('/') {
        root.pointer(&fragment)
    } else {
        anchor(root, &fragment, 0)
    };
    target.filter(|schema| schema.is_object() || schema.is_boolean())
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Looks for a schema with this `$anchor`. Values that only look like schemas (`const`, `enum`) are passed
/// over.
fn anchor<'a>(schema: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    if depth > crate::MAX_DEPTH {
        return None;
    }
    match schema {
        Value::Object(keywords) => {
            if keywords.get("$anchor").and_then(Value::as_str) == Some(name) {
                return Some(schema);
            }
            let inner =
                keywords.iter().filter(|(key, _)| !matches!(key.as_str(), "const" | "enum" | "default"));
            inner.into_iter().find_map(|(_, value)| anchor(value, name, depth + 1))
        }
        Value::Array(items) => items.iter().find_map(|item| anchor(item, name, depth + 1)),
        _ => None,
    }
}
