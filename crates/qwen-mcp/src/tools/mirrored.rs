//! Arguments of a tool that its server wants to have as HTTP headers, too (`x-mcp-header` in the schema).

use http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::request::header_value;

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
/// Keywords whose values are data and not schemas.
const DATA: &[&str] = &["default", "const", "enum", "examples"];
/// The largest integer that every reader of JSON represents exactly.
const SAFE_INTEGER: u64 = (1 << 53) - 1;

/// One argument, and the header that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirrored {
    header: HeaderName,
    /// The names of the properties that lead to it.
    path: Vec<String>,
}

/// The arguments that a schema asks to repeat in headers, or why it asks wrongly.
pub(crate) fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, &'static str> {
    let mut found = Vec::new();
    collect(schema, Some(&mut Vec::new()), &mut found)?;
    Ok(found)
}

/// Collects the annotations below a schema. `path` is none where a value has no fixed place in the arguments.
fn collect(
    schema: &Value,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<Mirrored>,
) -> Result<(), &'static str> {
    let Some(keywords) = schema.as_object() else { return Ok(()) };
    if let Some(name) = keywords.get(ANNOTATION) {
        let header = name.as_str().filter(|name| !name.is_empty());
        let header = header.and_then(|name| HeaderName::try_from(format!("{PREFIX}{name}")).ok());
        let header = header.ok_or("an `x-mcp-header` of its schema is not the name of a header")?;
        if found.iter().any(|other| other.header == header) {
            return Err("two arguments of its schema have the same `x-mcp-header`");
        }
        if !is_primitive(keywords.get("type")) {
            return Err("only strings, integers and booleans can have an `x-mcp-header`");
        }
        match path.as_deref() {
            Some(path) if !path.is_empty() => found.push(Mirrored { header, path: path.clone() }),
            _ => return Err("an `x-mcp-header` of its schema has no fixed place in the arguments"),
        }
    }
    for (keyword, value) in keywords {
        match (keyword.as_str(), value, path.as_deref_mut()) {
            (keyword, ..) if keyword == ANNOTATION || DATA.contains(&keyword) => {}
            ("properties", Value::Object(properties), Some(path)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, Some(path), found)?;
                    path.pop();
                }
            }
            (_, Value::Array(schemas), _) => {
                for schema in schemas {
                    collect(schema, None, found)?;
                }
            }
            ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", value, _) => {
                for schema in value.as_object().into_iter().flat_map(|map| map.values()) {
                    collect(schema, None, found)?;
                }
            }
            (_, value, _) => collect(value, None, found)?,
        }
    }
    Ok(())
}

fn is_primitive(kind: Option<&Value>) -> bool {
    let named = |kind: &Value, extra: &str| {
        kind.as_str().is_some_and(|kind| ["string", "integer", "boolean", extra].contains(&kind))
    };
    match kind {
        Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(|kind| named(kind, "null")),
        Some(kind) => named(kind, "string"),
        None => false,
    }
}

/// The headers of a call with these arguments.
pub(crate) fn headers(mirrored: &[Mirrored], arguments: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if mirrored.is_empty() {
        return headers;
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return headers };
    for one in mirrored {
        let value = one.path.iter().try_fold(&arguments, |value, name| value.get(name));
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Number(number)) if is_safe(number) => number.to_string(),
            _ => continue,
        };
        if let Some(value) = header_value(&text) {
            headers.insert(one.header.clone(), value);
        }
    }
    headers
}

fn is_safe(number: &serde_json::Number) -> bool {
    number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs))
        .is_some_and(|size| size <= SAFE_INTEGER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotated_arguments_are_repeated_wherever_they_have_a_fixed_place() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"row": {"type": "integer", "x-mcp-header": "Row"}}},
            "dry": {"type": ["boolean", "null"], "x-mcp-header": "Dry"},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": 1}},
        }});
        let mirrored = mirrored(&schema).unwrap();
        let shown = |arguments: Value| {
            let headers = headers(&mirrored, &arguments.to_string());
            let mut all: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!(
            shown(json!({"region": "ü", "where": {"row": -7}, "dry": true})),
            "mcp-param-dry=true mcp-param-region==?base64?w7w=?= mcp-param-row=-7"
        );
        assert_eq!(shown(json!({"region": null, "where": 1})), "");
        assert_eq!(shown(json!({"where": {"row": 9_007_199_254_740_992_u64}})), "");
    }

    #[test]
    fn a_wrong_annotation_makes_the_definition_wrong() {
        let name = |name: Value| json!({"properties": {"a": {"type": "string", "x-mcp-header": name}}});
        for schema in [
            name(json!("")),
            name(json!("a b")),
            name(json!("a\r\nb")),
            name(json!(1)),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"x-mcp-header": "A"}}}),
            json!({"type": "string", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
            json!({"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
        ] {
            assert!(mirrored(&schema).is_err(), "{schema}");
        }
    }
}
