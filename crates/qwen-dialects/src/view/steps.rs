//! Renders steps of a tree or graph of thoughts as small trees.

use std::sync::Arc;

use qwen_events::Thinking;

use super::event::Step;
use super::paint::{Style, harmless};

/// The state of a search.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Candidates without scores.
    candidates: Vec<String>,
}

/// The maximum number of candidates that are stored and shown.
const CANDIDATES: usize = 64;

impl Steps {
    /// The lines of a step.
    pub(super) fn step(&mut self, step: &Step) -> Vec<(Style, String)> {
        match step {
            Step::Expand(candidates) => {
                let before = self.unscored();
                self.candidates = candidates.iter().take(CANDIDATES).cloned().collect();
                before
            }
            Step::Evaluate { chosen, scores } => self.scored(*chosen, scores),
            Step::Backtrack { reason, to_depth } => {
                vec![(Style::Yellow, format!("  ↩ back to depth {to_depth}: {reason}"))]
            }
            Step::Plan { ids, edges } => {
                let mut lines = vec![(Style::Cyan, format!("  ◇ {} thoughts, {edges} edges", ids.len()))];
                let shown = &ids[..ids.len().min(CANDIDATES)];
                lines.extend(
                    tree(shown.len()).zip(shown).map(|(branch, id)| (Style::Dim, format!("{branch} {id}"))),
                );
                lines
            }
            Step::Start(id) => vec![(Style::Dim, format!("  ○ {id}"))],
            Step::Done(id, summary) => vec![(Style::Plain, format!("  ● {id}: {summary}"))],
            Step::Failed(id, error) => vec![(Style::Red, format!("  ✗ {id}: {error}"))],
            Step::Grow(id, added) => vec![(Style::Cyan, format!("  ✚ {id}: {added} thoughts added"))],
        }
    }

    /// The candidates that never got scores.
    pub(super) fn unscored(&mut self) -> Vec<(Style, String)> {
        let candidates = std::mem::take(&mut self.candidates);
        tree(candidates.len())
            .zip(&candidates)
            .map(|(branch, candidate)| (Style::Plain, format!("{branch} {candidate}")))
            .collect()
    }

    fn scored(&mut self, chosen: u64, scores: &[f64]) -> Vec<(Style, String)> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.resize(scores.len().min(CANDIDATES), "?".to_owned());
        tree(candidates.len())
            .zip(candidates.iter().zip(scores))
            .zip(0..)
            .map(|((branch, (candidate, score)), index)| {
                let (look, mark) = if index == chosen { (Style::Green, " ◀") } else { (Style::Plain, "") };
                (look, format!("{branch} {score:.2}  {candidate}{mark}"))
            })
            .collect()
    }
}

/// The branches of a tree with this number of leaves.
fn tree(leaves: usize) -> impl Iterator<Item = &'static str> {
    (1..=leaves).map(move |leaf| if leaf == leaves { "  └─" } else { "  ├─" })
}

/// The lines of a step, for a sequential transcript.
pub fn step_lines(step: &Thinking) -> Vec<String> {
    let lines = match step {
        // Candidates without scores are not informative; their scores arrive with the next step.
        Thinking::TotEvaluate { chosen, scores } => {
            vec![(Style::Plain, format!("  scores {}; the best is candidate {chosen}", rounded(scores)))]
        }
        Thinking::TotExpand { candidates } => {
            let shown = &candidates[..candidates.len().min(CANDIDATES)];
            let branch =
                |(branch, candidate): (&str, &Arc<str>)| (Style::Plain, format!("{branch} {candidate}"));
            tree(shown.len()).zip(shown).map(branch).collect()
        }
        step => Steps::default().step(&Step::from(step)),
    };
    lines.into_iter().map(|(_, line)| harmless(&line).replace(['\n', '\t'], " ")).collect()
}

fn rounded(scores: &[f64]) -> String {
    let shown: Vec<String> = scores.iter().take(CANDIDATES).map(|score| format!("{score:.2}")).collect();
    shown.join(", ")
}
