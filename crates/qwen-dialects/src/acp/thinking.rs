//! The structure of trees and graphs of thoughts, for clients that draw them.

use qwen_events::Thinking;
use serde_json::{Value, json};

use super::sizes::beginning;

/// The maximum size of a thought, and the maximum number of thoughts in one update.
const MAX_THOUGHT: usize = 4096;
const MAX_THOUGHTS: usize = 64;

/// The structure of a step, for clients that draw it.
pub(super) fn thinking(step: &Thinking) -> Value {
    match step {
        Thinking::TotExpand { candidates } => {
            let shown = candidates.iter().take(MAX_THOUGHTS);
            let candidates: Vec<_> = shown.map(|text| beginning(text, MAX_THOUGHT)).collect();
            json!({"type": "tot_expand", "candidates": candidates})
        }
        Thinking::TotEvaluate { chosen, scores } => {
            json!({"type": "tot_evaluate", "chosen": chosen, "scores": scores})
        }
        Thinking::TotBacktrack { reason, to_depth } => {
            json!({"type": "tot_backtrack", "reason": beginning(reason, MAX_THOUGHT), "toDepth": to_depth})
        }
        Thinking::GotPlan { node_ids, edge_count } => {
            let shown = node_ids.iter().take(MAX_THOUGHTS);
            let nodes: Vec<_> = shown.map(|id| beginning(id, MAX_THOUGHT)).collect();
            json!({"type": "got_plan", "nodes": nodes, "edgeCount": edge_count})
        }
        Thinking::GotNodeStart { id } => json!({"type": "got_node_start", "id": &**id}),
        Thinking::GotNodeComplete { id, result_summary } => {
            json!({"type": "got_node_complete", "id": &**id, "summary": beginning(result_summary, MAX_THOUGHT)})
        }
        Thinking::GotNodeFailed { id, error } => {
            json!({"type": "got_node_failed", "id": &**id, "error": beginning(error, MAX_THOUGHT)})
        }
        Thinking::GotExpand { id, nodes_added, edges_added } => {
            json!({"type": "got_expand", "id": &**id, "nodesAdded": nodes_added, "edgesAdded": edges_added})
        }
    }
}
