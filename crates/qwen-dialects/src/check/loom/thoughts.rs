//! The steps of a tree or graph of thoughts.

use super::super::bounded::Open;
use super::super::report::Report;
use crate::loom::wire::Body;

/// The state of the search.
#[derive(Default)]
pub(super) struct Thoughts {
    /// The number of candidates in the last expansion.
    candidates: Option<usize>,
    /// True if the first node that the run entered is `evaluate`: the run continues from a checkpoint.
    continues_at_evaluation: bool,
    /// The number of node runs so far.
    nodes: u64,
    /// The thoughts that have started, by how far they are.
    thoughts: Open<Progress>,
}

#[derive(Clone, Copy, PartialEq)]
struct Progress {
    is_over: bool,
    /// The node run in which it started or ended.
    node: u64,
}

impl Thoughts {
    /// Records that a node was entered.
    pub(super) fn enter(&mut self, node: &str) {
        self.continues_at_evaluation |= self.nodes == 0 && node == "evaluate";
        self.nodes += 1;
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
                    None if !self.continues_at_evaluation => {
                        report.error("thoughts", "a `tot_evaluate` without a `tot_expand` before it");
                    }
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
                // Thoughts stay inside their node run. One that a crash cut off, or whose end was lost with
                // it, starts again in another node run when the run is resumed.
                if self.thoughts.get(id).is_some_and(|known| known.node == self.nodes) {
                    report.error("thoughts", format!("the thought {id:?} starts twice"));
                }
                self.thoughts.insert(id, Progress { is_over: false, node: self.nodes });
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
        if self.thoughts.get(id).is_some_and(|known| known.is_over) {
            report.error("thoughts", format!("the thought {id:?} ends twice"));
        }
        self.thoughts.insert(id, Progress { is_over: true, node: self.nodes });
    }
}
