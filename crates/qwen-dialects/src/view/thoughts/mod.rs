//! A growing tree or graph of thoughts, built from the stream.
//!
//! A state contains the complete graph. Before the first one, or in a dialect without states, the steps
//! supply as much as they can: which thoughts exist, their status, and by their names which is nested in
//! which.

mod draw;
mod layout;
mod svg;

use std::collections::HashMap;

use qwen_events::{Body, Event};
use serde::Deserialize;

use super::event::Step;

/// The maximum number of tracked thoughts; a stream may claim any number.
const MOST: usize = 20_000;

/// A tree or graph of thoughts.
#[derive(Debug, Clone, Default)]
pub struct ThoughtGraph {
    thoughts: Vec<Thought>,
    names: HashMap<String, usize>,
    /// Candidates without scores.
    pool: Vec<usize>,
    /// The thought that the next candidates continue, as far as the steps show.
    tip: Option<usize>,
    /// The number of thoughts that are not tracked.
    beyond: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Thought {
    /// Empty if it has none.
    name: String,
    /// The thought's description or result.
    text: String,
    score: Option<f64>,
    standing: ThoughtStatus,
    /// The thoughts that it builds on.
    inputs: Vec<usize>,
    /// The thought whose nested graph contains it.
    parent: Option<usize>,
}

/// The status of a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ThoughtStatus {
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    Skipped,
    /// The search continued from it.
    Kept,
    Dropped,
    /// The result of the search.
    Found,
}

impl ThoughtStatus {
    fn parse(status: &str) -> Self {
        match status {
            "running" | "expanded" => Self::Running,
            "done" => Self::Done,
            "failed" => Self::Failed,
            "skipped" => Self::Skipped,
            "kept" => Self::Kept,
            "dropped" => Self::Dropped,
            _ => Self::Waiting,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Kept => "kept",
            Self::Dropped => "dropped",
            Self::Found => "found",
        }
    }
}

/// The relevant part of a thinking agent's state; other fields are ignored.
#[derive(Deserialize)]
struct StateForm {
    thoughts: Vec<ThoughtForm>,
    #[serde(default)]
    found: Option<usize>,
    #[serde(default)]
    frontier: Vec<usize>,
}

#[derive(Deserialize)]
struct ThoughtForm {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    op: Option<String>,
    #[serde(default)]
    instruction: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    standing: String,
    #[serde(default)]
    inputs: Vec<usize>,
    #[serde(default)]
    parent: Option<usize>,
    #[serde(default)]
    results: Vec<MadeForm>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct MadeForm {
    text: String,
    #[serde(default)]
    score: Option<f64>,
}

impl ThoughtGraph {
    /// Processes an event of the main agent; returns whether it concerned thoughts.
    pub fn observe(&mut self, event: &Event) -> bool {
        if event.scope.parent.is_some() {
            return false;
        }
        match &event.body {
            Body::TurnStart(_) => {
                *self = Self::default();
                false
            }
            Body::Thinking(step) => {
                self.step(&Step::from(&**step));
                true
            }
            Body::State(state) => self.state(state.as_str()),
            _ => false,
        }
    }

    /// True if there are no thoughts.
    pub fn is_empty(&self) -> bool {
        self.thoughts.is_empty()
    }

    /// Processes a state; returns whether it is a state of thoughts.
    pub(super) fn state(&mut self, json: &str) -> bool {
        let Ok(form) = serde_json::from_str::<StateForm>(json) else { return false };
        if form.thoughts.is_empty() {
            return false;
        }
        let beyond = form.thoughts.len().saturating_sub(MOST);
        let mut thoughts: Vec<Thought> = form.thoughts.into_iter().take(MOST).map(Thought::from).collect();
        let count = thoughts.len();
        for (at, thought) in thoughts.iter_mut().enumerate() {
            // In an invalid stream, inputs may be missing thoughts; those are dropped.
            thought.inputs.retain(|input| *input < count && *input != at);
            thought.parent = thought.parent.filter(|parent| *parent < at);
        }
        if let Some(found) = form.found.and_then(|found| thoughts.get_mut(found)) {
            found.standing = ThoughtStatus::Found;
        }
        let names = thoughts.iter().enumerate().filter(|(_, thought)| !thought.name.is_empty());
        let names = names.map(|(at, thought)| (thought.name.clone(), at)).collect();
        *self = Self { thoughts, names, pool: Vec::new(), tip: form.frontier.first().copied(), beyond };
        true
    }

    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Expand(candidates) => {
                let inputs: Vec<usize> =
                    self.tip.filter(|tip| *tip < self.thoughts.len()).into_iter().collect();
                let new = |text: &String| Thought {
                    text: text.clone(),
                    inputs: inputs.clone(),
                    ..Thought::default()
                };
                let added: Vec<Thought> = candidates.iter().map(new).collect();
                self.pool = added.into_iter().filter_map(|thought| self.add(thought)).collect();
            }
            Step::Evaluate { chosen, scores } => {
                let pool = std::mem::take(&mut self.pool);
                for (&at, score) in pool.iter().zip(scores) {
                    self.thoughts[at].score = Some(*score);
                    self.thoughts[at].standing = ThoughtStatus::Dropped;
                }
                let best = usize::try_from(*chosen).ok().and_then(|chosen| pool.get(chosen).copied());
                if let Some(best) = best {
                    self.thoughts[best].standing = ThoughtStatus::Kept;
                    self.tip = Some(best);
                }
            }
            Step::Backtrack { to_depth, .. } => {
                let mut tip = self.tip;
                while self.depth(tip) as u64 > *to_depth {
                    tip = tip.and_then(|at| self.thoughts[at].inputs.first().copied());
                }
                self.tip = tip;
            }
            Step::Plan { ids, .. } => {
                *self = Self::default();
                for id in ids {
                    self.find_or_add(id);
                }
            }
            Step::Start(id) => self.set_status(id, ThoughtStatus::Running, None),
            Step::Done(id, summary) => self.set_status(id, ThoughtStatus::Done, Some(summary)),
            Step::Failed(id, error) => {
                let skipped = error.starts_with("skipped:");
                self.set_status(
                    id,
                    if skipped { ThoughtStatus::Skipped } else { ThoughtStatus::Failed },
                    Some(error),
                );
            }
            Step::Grow(id, _) => self.set_status(id, ThoughtStatus::Running, None),
        }
    }

    fn set_status(&mut self, id: &str, standing: ThoughtStatus, text: Option<&str>) {
        let Some(at) = self.find_or_add(id) else { return };
        let thought = &mut self.thoughts[at];
        thought.standing = standing;
        if let Some(text) = text {
            thought.score = bracketed(text).or(thought.score);
            text.clone_into(&mut thought.text);
        }
    }

    /// Returns the thought with this name, added if it is new; the name shows whether it is nested in another one.
    fn find_or_add(&mut self, id: &str) -> Option<usize> {
        if let Some(at) = self.names.get(id) {
            return Some(*at);
        }
        let parent = id.rsplit_once('/').and_then(|(parent, _)| self.names.get(parent).copied());
        let at = self.add(Thought { name: id.to_owned(), parent, ..Thought::default() })?;
        self.names.insert(id.to_owned(), at);
        Some(at)
    }

    fn add(&mut self, thought: Thought) -> Option<usize> {
        if self.thoughts.len() >= MOST {
            self.beyond += 1;
            return None;
        }
        self.thoughts.push(thought);
        Some(self.thoughts.len() - 1)
    }

    /// The number of thoughts between a thought and the root.
    fn depth(&self, at: Option<usize>) -> usize {
        let mut depth = 0;
        let mut next = at;
        while let Some(thought) = next.and_then(|at| self.thoughts.get(at)) {
            depth += 1;
            next = thought.inputs.first().copied().filter(|_| depth <= self.thoughts.len());
        }
        depth
    }
}

impl From<ThoughtForm> for Thought {
    fn from(form: ThoughtForm) -> Self {
        let standing = ThoughtStatus::parse(&form.standing);
        let Some(name) = form.id else {
            // A thought of a tree continues its parent.
            let inputs = form.parent.into_iter().collect();
            return Self { text: form.text, score: form.score, standing, inputs, ..Self::default() };
        };
        let best = form.results.into_iter().reduce(|a, b| if b.score > a.score { b } else { a });
        let (made, score) = best.map_or((None, None), |best| (Some(best.text), best.score));
        let wish = if form.instruction.is_empty() { form.op.unwrap_or_default() } else { form.instruction };
        let text = form.error.or(made).unwrap_or(wish);
        Self { name, text, score, standing, inputs: form.inputs, parent: form.parent }
    }
}

/// The score in a summary like `text [0.90] (best of 3)`.
fn bracketed(text: &str) -> Option<f64> {
    let (_, rest) = text.rsplit_once('[')?;
    rest.split_once(']')?.0.parse().ok().filter(|score| (0.0..=1.0).contains(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_tells_all_and_steps_tell_what_they_can() {
        let mut graph = ThoughtGraph::default();
        assert!(graph.state(r#"{"thoughts":[{"parent":null,"depth":1,"text":"a","score":0.5,"standing":"kept"},
            {"parent":0,"depth":2,"text":"b","score":0.9,"standing":"kept"},{"parent":7,"text":"c","standing":"open"}],"found":1}"#));
        let steps: Vec<_> =
            graph.thoughts.iter().map(|t| (t.text.as_str(), t.inputs.as_slice(), t.standing)).collect();
        assert_eq!(
            steps,
            [
                ("a", &[][..], ThoughtStatus::Kept),
                ("b", &[0], ThoughtStatus::Found),
                ("c", &[], ThoughtStatus::Waiting)
            ]
        );
        graph.step(&Step::Plan { ids: vec!["r".into()], edges: 0 });
        graph.step(&Step::Start("r".into()));
        graph.step(&Step::Grow("r".into(), 1));
        graph.step(&Step::Start("r/x".into()));
        graph.step(&Step::Done("r/x".into(), "ten [0.25]".into()));
        graph.step(&Step::Failed("r".into(), "skipped: it needs 'r/x'".into()));
        let steps: Vec<_> =
            graph.thoughts.iter().map(|t| (t.name.as_str(), t.parent, t.score, t.standing)).collect();
        assert_eq!(
            steps,
            [("r", None, None, ThoughtStatus::Skipped), ("r/x", Some(0), Some(0.25), ThoughtStatus::Done)]
        );
    }

    #[test]
    fn candidates_hang_on_the_best_before_them_and_a_backtrack_goes_up() {
        let mut graph = ThoughtGraph::default();
        let expand = |names: &[&str]| Step::Expand(names.iter().map(|name| (*name).to_owned()).collect());
        graph.step(&expand(&["a", "b"]));
        graph.step(&Step::Evaluate { chosen: 1, scores: vec![0.1, 0.9] });
        graph.step(&expand(&["c"]));
        graph.step(&Step::Evaluate { chosen: 0, scores: vec![0.0] });
        graph.step(&Step::Backtrack { reason: "no".into(), to_depth: 0 });
        graph.step(&expand(&["d"]));
        let inputs: Vec<_> = graph.thoughts.iter().map(|thought| thought.inputs.as_slice()).collect();
        assert_eq!(inputs, [&[][..], &[], &[1], &[]]);
    }

    #[test]
    fn a_state_without_thoughts_changes_nothing() {
        let mut graph = ThoughtGraph::default();
        for state in ["{}", "[]", r#"{"messages":[]}"#, r#"{"thoughts":[]}"#, r#"{"thoughts":[7]}"#] {
            assert!(!graph.state(state), "{state}");
        }
        assert!(graph.is_empty());
    }
}
