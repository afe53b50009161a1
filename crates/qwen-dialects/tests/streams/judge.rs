//! Whether a line is one that its dialect knows: by its wire type and by its schema.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use qwen_dialects::{Dialect, claude, claude_lite, loom, schemas};
use serde_json::Value;

static VALIDATORS: LazyLock<HashMap<&'static str, Validator>> = LazyLock::new(|| {
    schemas()
        .into_iter()
        .map(|(name, schema)| (name, jsonschema::validator_for(schema.as_value()).expect(name)))
        .collect()
});

/// What the wire type of `dialect` makes of `line`, written again; says why if it does not take it.
pub fn through_wire_type(dialect: Dialect, line: &Value) -> Result<Value, String> {
    let text = line.to_string();
    let again = match dialect {
        Dialect::Claude => serde_json::from_str::<claude::wire::Line<'_>>(&text).map(|line| written(&line)),
        Dialect::ClaudeLite => {
            serde_json::from_str::<claude_lite::Line<'_>>(&text).map(|line| written(&line))
        }
        Dialect::Loom => serde_json::from_str::<loom::wire::Line<'_>>(&text).map(|line| written(&line)),
        Dialect::LoomExport => {
            serde_json::from_str::<loom::export::Line<'_>>(&text).map(|line| written(&line))
        }
        Dialect::Qwen | Dialect::Core | Dialect::Acp => unreachable!("judged elsewhere"),
    };
    again.map_err(|error| format!("{error}: {text}"))
}

fn written(line: &impl serde::Serialize) -> Value {
    serde_json::to_value(line).expect("wire types are JSON")
}

/// Says what the schema of `dialect` has against `line`.
pub fn against_schema(dialect: Dialect, line: &Value) -> Result<(), String> {
    let validator = &VALIDATORS[format!("{}-stream", dialect.name()).as_str()];
    validator.validate(line).map_err(|error| format!("{error}: {line}"))
}
