//! The way back from the export form: what an exported event is in the protocol form, for those who read
//! both.

use super::export::Exported;
use super::wire::{Body, Frame};

impl<'a> From<Exported<'a>> for Frame<'a> {
    fn from(exported: Exported<'a>) -> Self {
        let mut node_id = None;
        let body = match exported {
            Exported::RunStart { run_id, message, agent } => Body::RunStart { run_id, message, agent },
            Exported::TaskStart { node_id: id } => Body::NodeEnter { id },
            Exported::TaskEnd { node_id: id, result } => Body::NodeExit { id, result },
            Exported::Messages { chunk, metadata } => {
                Body::MessageChunk { content: chunk.content, id: metadata.loom_node }
            }
            Exported::Usage { prompt_tokens, completion_tokens, total_tokens } => {
                Body::Usage { prompt_tokens, completion_tokens, total_tokens }
            }
            Exported::Values(state) => Body::Values { state },
            Exported::Updates { node_id: id, state } => Body::Updates { id, state },
            Exported::Custom(value) => Body::Custom { value },
            Exported::Checkpoint(checkpoint) => Body::Checkpoint(checkpoint),
            Exported::TotExpand { candidates } => Body::TotExpand { candidates },
            Exported::TotEvaluate { chosen, scores } => Body::TotEvaluate { chosen, scores },
            Exported::TotBacktrack { reason, to_depth } => Body::TotBacktrack { reason, to_depth },
            Exported::GotPlan { node_count, edge_count, node_ids } => {
                Body::GotPlan { node_count, edge_count, node_ids }
            }
            Exported::GotNodeStart { node_id: id } => Body::GotNodeStart { id },
            Exported::GotNodeComplete { node_id: id, result_summary } => {
                Body::GotNodeComplete { id, result_summary }
            }
            Exported::GotNodeFailed { node_id: id, error } => Body::GotNodeFailed { id, error },
            Exported::GotExpand { node_id: id, nodes_added, edges_added } => {
                node_id = Some(id);
                Body::GotExpand { nodes_added, edges_added }
            }
            Exported::ToolCallChunk { call_id, name, arguments_delta } => {
                Body::ToolCallChunk { call_id, name, arguments_delta }
            }
            Exported::ToolCall(call) => Body::ToolCall(call),
            Exported::ToolStart { call_id, name } => Body::ToolStart { call_id, name },
            Exported::ToolOutput { call_id, name, content } => Body::ToolOutput { call_id, name, content },
            Exported::ToolEnd { call_id, name, result, is_error } => {
                Body::ToolEnd { call_id, name, result, is_error }
            }
            Exported::ToolApproval(call) => Body::ToolApproval(call),
        };
        Self { session_id: None, node_id, event_id: None, body }
    }
}
