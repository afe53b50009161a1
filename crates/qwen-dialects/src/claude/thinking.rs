//! Describes steps of a tree or graph of thoughts in one sentence each.

use qwen_events::Thinking;

/// The step as a sentence.
pub(crate) fn sentence(step: &Thinking) -> String {
    match step {
        Thinking::TotExpand { candidates } => {
            format!("Proposed {} candidates: {}", candidates.len(), candidates.join(" | "))
        }
        Thinking::TotEvaluate { chosen, scores } => {
            let scores: Vec<_> = scores.iter().map(|score| format!("{score:.2}")).collect();
            format!("Scored the candidates ({}); candidate {chosen} is the best", scores.join(", "))
        }
        Thinking::TotBacktrack { reason, to_depth } => format!("Went back to depth {to_depth}: {reason}"),
        Thinking::GotPlan { node_ids, edge_count } => {
            format!("Planned {} thoughts and {edge_count} edges: {}", node_ids.len(), node_ids.join(", "))
        }
        Thinking::GotNodeStart { id } => format!("Started thought {id}"),
        Thinking::GotNodeComplete { id, result_summary } => {
            format!("Finished thought {id}: {result_summary}")
        }
        Thinking::GotNodeFailed { id, error } => format!("Thought {id} failed: {error}"),
        Thinking::GotExpand { id, nodes_added, edges_added } => {
            format!("Thought {id} opened a graph of {nodes_added} thoughts and {edges_added} edges")
        }
    }
}
