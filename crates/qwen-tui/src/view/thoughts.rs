//! A search through thoughts, drawn as a tree while it runs.

use qwen_events::Thinking;

use super::Marks;
use crate::markdown::Rendered;
use crate::text::{Style, StyledLine, clean_line};

/// The drawn part of the search.
#[derive(Debug, Default)]
pub struct ThoughtTree {
    /// The depth of the thoughts that are proposed next.
    depth: usize,
}

impl ThoughtTree {
    /// The lines of the next step.
    pub fn lines(&mut self, step: &Thinking, marks: Marks) -> Vec<Rendered> {
        let depth = self.depth;
        let at = |depth: usize, text: String| {
            let text = format!("{}{text}", marks.trunk.repeat(depth));
            Rendered::logical(StyledLine::styled(text, Style::DIM))
        };
        match step {
            Thinking::TotExpand { candidates } => {
                let last = candidates.len().saturating_sub(1);
                let branch = |(n, text): (usize, &std::sync::Arc<str>)| {
                    let sign = if n == last { marks.last_branch } else { marks.branch };
                    at(depth, format!("{sign}{}", clean_line(text)))
                };
                candidates.iter().enumerate().map(branch).collect()
            }
            Thinking::TotEvaluate { chosen, scores } => {
                let shown: Vec<String> = scores.iter().map(|score| format!("{score:.2}")).collect();
                self.depth += 1;
                let count = scores.len();
                vec![at(
                    depth,
                    format!("{} thought {} of {count}: {}", marks.done, chosen + 1, shown.join(" ")),
                )]
            }
            Thinking::TotBacktrack { reason, to_depth } => {
                self.depth = usize::try_from(*to_depth).unwrap_or_default().min(self.depth);
                let text = format!("{} back to depth {to_depth}: {}", marks.failure, clean_line(reason));
                vec![at(self.depth, text)]
            }
            Thinking::GotPlan { node_ids, edge_count } => {
                self.depth = 1;
                vec![at(0, format!("{} plan: {} thoughts, {edge_count} edges", marks.call, node_ids.len()))]
            }
            Thinking::GotNodeStart { id } => vec![at(0, format!("{}{}", marks.branch, clean_line(id)))],
            Thinking::GotNodeComplete { id, result_summary } => {
                let text = format!("{} {}: {}", marks.done, clean_line(id), clean_line(result_summary));
                vec![at(1, text)]
            }
            Thinking::GotNodeFailed { id, error } => {
                vec![at(1, format!("{} {}: {}", marks.failure, clean_line(id), clean_line(error)))]
            }
            Thinking::GotExpand { id, nodes_added, .. } => {
                vec![at(1, format!("{} {}: {nodes_added} further thoughts", marks.current, clean_line(id)))]
            }
        }
    }
}
