//! The steps of a tree or graph of thoughts.

use super::super::bounded::Names;
use super::super::report::Report;
use crate::loom::wire::Body;

/// What is known of the search.
#[derive(Default)]
pub(super) struct Thoughts {
    /// How many candidates the last expansion gave.
    candidates: Option<usize>,
    started: Names,
}

impl Thoughts {
    pub(super) fn step(&mut self, step: &Body<'_>, report: &mut Report) {
        match step {
            Body::TotExpand { candidates } => self.candidates = Some(candidates.len()),
            Body::TotEvaluate { chosen, scores } => {
                if usize::try_from(*chosen).is_ok_and(|chosen| chosen >= scores.len()) {
                    let message = format!("candidate {chosen} is chosen out of {}", scores.len());
                    report.error("thoughts", message);
                }
                if let Some(candidates) = self.candidates.filter(|candidates| *candidates != scores.len()) {
                    let message = format!("{} scores for {candidates} candidates", scores.len());
                    report.error("thoughts", message);
                }
            }
            Body::GotPlan { node_count, node_ids, .. } if *node_count != node_ids.len() as u64 => {
                let message = format!("`node_count` is {node_count}, but there are {} ids", node_ids.len());
                report.error("thoughts", message);
            }
            Body::GotNodeStart { id } => {
                self.started.insert(id);
            }
            Body::GotNodeComplete { id, .. } if !self.started.contains(id) => {
                report.error("thoughts", format!("the thought {id:?} is complete without having started"));
            }
            _ => {}
        }
    }
}
