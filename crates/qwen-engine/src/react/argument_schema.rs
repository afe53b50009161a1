//! Validates the arguments of host and MCP tools against the schema declared with the tool.

use qwen_events::{ToolCall, ToolSpec};
use qwen_schema::Schema;
use serde_json::Value;

/// Describes the errors in the arguments of `call`, for the model. Unsupported schema keywords are ignored.
pub(super) fn check(call: &ToolCall, spec: &ToolSpec) -> Result<(), String> {
    let Ok((schema, _)) = Schema::parse_supported(spec.parameters.as_str()) else { return Ok(()) };
    let arguments: Value = serde_json::from_str(call.arguments.as_str())
        .map_err(|error| format!("{}: the arguments are not JSON: {error}", call.name))?;
    let problems = schema.problems(&arguments, "the argument object");
    if problems.is_empty() { Ok(()) } else { Err(format!("{}: {}", call.name, problems.join("; "))) }
}

/// The schema constraints of `specs` that are not enforced, one sentence per tool, reported at the start of
/// the turn that declares them.
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
