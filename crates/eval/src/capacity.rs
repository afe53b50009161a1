//! Tasks that have nothing but a size: what an adaptive graph grows to.

use qwen_events::Thinking;

/// The sizes to try, and how many thoughts a graph needs for each where a solver can hold 8 at once and
/// splits in three.
pub const SIZES: [(u64, u64); 6] = [(8, 1), (24, 4), (25, 7), (72, 13), (73, 16), (216, 40)];

/// A task as a prompt.
pub fn prompt(size: u64) -> String {
    format!("Solve a task of size {size}")
}

/// True if a reply claims that the whole task is solved.
pub fn solves(size: u64, reply: &str) -> bool {
    reply.trim() == format!("solved {size}")
}

/// How many thoughts a graph had in the end.
pub fn thoughts(steps: &[Thinking]) -> u64 {
    let added = steps.iter().map(|step| match step {
        Thinking::GotPlan { node_ids, .. } => node_ids.len() as u64,
        Thinking::GotExpand { nodes_added, .. } => *nodes_added,
        _ => 0,
    });
    added.sum()
}
