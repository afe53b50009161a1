//! Holding the arguments of host and MCP tools to the schema that came with the tool.

use qwen_events::{ToolCall, ToolSpec};
use qwen_schema::Schema;
use serde_json::Value;

/// What is wrong with the arguments of `call`, in words for the model. What the schema says beyond the supported keywords is
/// not held against a call.
pub(super) fn check(call: &ToolCall, spec: &ToolSpec) -> Result<(), String> {
    let Ok((schema, _)) = Schema::parse_supported(spec.parameters.as_str()) else { return Ok(()) };
    let arguments: Value = serde_json::from_str(call.arguments.as_str())
        .map_err(|error| format!("{}: the arguments are not JSON: {error}", call.name))?;
    let problems = schema.problems(&arguments, "the arguments");
    if problems.is_empty() { Ok(()) } else { Err(format!("{}: {}", call.name, problems.join("; "))) }
}

/// What calls of `specs` are not held to, one sentence per tool, for the start of the turn that declares them.
pub(crate) fn warnings(specs: &[ToolSpec]) -> Vec<String> {
    let unenforced = |spec: &ToolSpec| {
        let problem = match Schema::parse_supported(spec.parameters.as_str()) {
            Ok((_, unsupported)) => unsupported.first()?.to_string(),
            Err(error) => error.to_string(),
        };
        Some(format!(
            "The arguments of the tool `{}` are checked only in part, because of its schema: {problem}.",
            spec.name
        ))
    };
    specs.iter().filter_map(unenforced).collect()
}
