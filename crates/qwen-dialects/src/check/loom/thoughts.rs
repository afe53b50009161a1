//! The steps of a tree or graph of thoughts.

use super::super::bounded::Open;
use super::super::report::Report;
use crate::loom::wire::Body;

/// The state of the search.
#[derive(Default)]
pub(super) struct Thoughts {
    /// The number of candidates in the last expansion.
    candidates: Option<usize>,
    /// True once the run entered the node `expand`.
    is_expanded: bool,
    /// The started thoughts, and whether they have ended.
    thoughts: Open<Progress>,
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Started,
    Over,
}

impl Thoughts {
    /// Records that a node was entered.
    pub(super) fn enter(&mut self, node: &str) {
        self.is_expanded |= node == "expand";
    }

    pub(super) fn step(&mut self, step: &Body<'_>, report: &mut Report) {
        match step {
            Body::TotExpand { candidates } => self.candidates = Some(candidates.len()),
            Body::TotEvaluate { chosen, scores } => {
                if usize::try_from(*chosen).is_ok_and(|chosen| chosen >= scores.len()) {
                    let message = format!("candidate {chosen} is chosen out of {}", scores.len());
                    report.error("thoughts", message);
                }
                // After a crash a step is run again: several evaluations may follow one expansion.
                match self.candidates {
                    None if self.is_expanded => {
                        report.error("thoughts", "a `tot_evaluate` without a `tot_expand` before it");
                    }
                    // A run that continues from a checkpoint may start with the evaluation.
                    None => {}
                    Some(candidates) if candidates != scores.len() => {
                        let message = format!("{} scores for {candidates} candidates", scores.len());
                        report.error("thoughts", message);
                    }
                    Some(_) => {}
                }
            }
            Body::GotPlan { node_count, node_ids, .. } => {
                if *node_count != node_ids.len() as u64 {
                    let message =
                        format!("`node_count` is {node_count}, but there are {} ids", node_ids.len());
                    report.error("thoughts", message);
                }
                for (n, id) in node_ids.iter().enumerate().filter(|(n, id)| node_ids[..*n].contains(id)) {
                    report.error("thoughts", format!("the plan names {id:?} again as thought {n}"));
                }
            }
            Body::GotNodeStart { id } => {
                // A thought that a crash cut off starts again when the run is resumed.
                self.thoughts.insert(id, Progress::Started);
            }
            Body::GotNodeComplete { id, .. } => {
                if !self.thoughts.contains(id) {
                    report
                        .error("thoughts", format!("the thought {id:?} is complete without having started"));
                }
                self.end(id, report);
            }
            // A thought that cannot start fails without a start event.
            Body::GotNodeFailed { id, .. } => self.end(id, report),
            _ => {}
        }
    }

    fn end(&mut self, id: &str, report: &mut Report) {
        if self.thoughts.get(id) == Some(&Progress::Over) {
            report.error("thoughts", format!("the thought {id:?} ends twice"));
        }
        self.thoughts.insert(id, Progress::Over);
    }
}
