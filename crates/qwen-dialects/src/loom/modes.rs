//! The filter of `--stream-mode`.

use super::custom::{Custom, CustomValue};
use super::wire::Body;
use crate::dialect::StreamMode;

/// True if a stream restricted to `modes` (none is all) includes `body`.
pub(super) fn includes(modes: &[StreamMode], body: &Body<'_>) -> bool {
    let (name, family) = type_and_family(body);
    let by_type = if name == "custom" { StreamMode::Custom } else { StreamMode::Type(name) };
    all(modes) || family.is_none_or(|family| modes.contains(&family) || modes.contains(&by_type))
}

/// The same for the model's text, which is written without a body.
pub(super) fn wants_chunks(modes: &[StreamMode]) -> bool {
    all(modes) || modes.contains(&StreamMode::Messages) || modes.contains(&StreamMode::Type("message_chunk"))
}

fn all(modes: &[StreamMode]) -> bool {
    modes.is_empty() || modes.contains(&StreamMode::Debug)
}

/// The type of `body` and its family; no family for what no mode may hide, because without it a reader
/// could not distinguish failure from an empty answer.
fn type_and_family(body: &Body<'_>) -> (&'static str, Option<StreamMode>) {
    let name = type_of(body);
    let family = match body {
        Body::Values { .. } => StreamMode::Values,
        Body::Updates { .. } => StreamMode::Updates,
        Body::MessageChunk { .. } | Body::Usage { .. } => StreamMode::Messages,
        Body::Checkpoint(_) => StreamMode::Checkpoints,
        Body::ToolCallChunk { .. }
        | Body::ToolCall(_)
        | Body::ToolStart { .. }
        | Body::ToolOutput { .. }
        | Body::ToolEnd { .. }
        | Body::ToolApproval(_) => StreamMode::Tools,
        Body::RunStart { .. }
        | Body::NodeEnter { .. }
        | Body::NodeExit { .. }
        | Body::TotExpand { .. }
        | Body::TotEvaluate { .. }
        | Body::TotBacktrack { .. }
        | Body::GotPlan { .. }
        | Body::GotNodeStart { .. }
        | Body::GotNodeComplete { .. }
        | Body::GotNodeFailed { .. }
        | Body::GotExpand { .. } => StreamMode::Tasks,
        Body::Custom { value: CustomValue::Known(custom) } => match custom.as_ref() {
            Custom::Thought { .. } => StreamMode::Messages,
            Custom::Error(_) | Custom::RunEnd { .. } => return (name, None),
            _ => StreamMode::Custom,
        },
        Body::Custom { value: CustomValue::Other(_) } => StreamMode::Custom,
    };
    (name, Some(family))
}

fn type_of(body: &Body<'_>) -> &'static str {
    match body {
        Body::RunStart { .. } => "run_start",
        Body::NodeEnter { .. } => "node_enter",
        Body::NodeExit { .. } => "node_exit",
        Body::MessageChunk { .. } => "message_chunk",
        Body::Usage { .. } => "usage",
        Body::Values { .. } => "values",
        Body::Updates { .. } => "updates",
        Body::Custom { .. } => "custom",
        Body::Checkpoint(_) => "checkpoint",
        Body::TotExpand { .. } => "tot_expand",
        Body::TotEvaluate { .. } => "tot_evaluate",
        Body::TotBacktrack { .. } => "tot_backtrack",
        Body::GotPlan { .. } => "got_plan",
        Body::GotNodeStart { .. } => "got_node_start",
        Body::GotNodeComplete { .. } => "got_node_complete",
        Body::GotNodeFailed { .. } => "got_node_failed",
        Body::GotExpand { .. } => "got_expand",
        Body::ToolCallChunk { .. } => "tool_call_chunk",
        Body::ToolCall(_) => "tool_call",
        Body::ToolStart { .. } => "tool_start",
        Body::ToolOutput { .. } => "tool_output",
        Body::ToolEnd { .. } => "tool_end",
        Body::ToolApproval(_) => "tool_approval",
    }
}
