//! The tree, and the changes that nodes make to it.

use qwen_events::{ErrorInfo, Json};
use serde::{Deserialize, Serialize};

use super::TotOptions;
use crate::thinking::{Conclusion, SearchEnding, delta_to_json, state_to_json};
use qwen_engine::Stop;
use qwen_engine::graph::State;

/// A complete solution is accepted if its score is above this.
pub(super) const ACCEPTED: f64 = 0.5;
/// A score at which the search stops, because nothing better can follow.
pub(super) const CERTAIN: f64 = 0.999;

/// A tree of thoughts. Its root is the problem itself, at depth 0; it is not a thought.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TotState {
    pub problem: String,
    pub options: TotOptions,
    /// All thoughts, in the order in which they were proposed.
    pub thoughts: Vec<Thought>,
    /// The thoughts that the search continues from: the beam, or the current tip. Empty means the root.
    pub frontier: Vec<usize>,
    /// Candidates that are not scored yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<usize>,
    /// The thought that the search ended with.
    pub found: Option<usize>,
    pub backtracks: u64,
    #[serde(flatten)]
    pub ending: SearchEnding,
    /// The failure that ended the search.
    #[serde(skip)]
    pub failure: Option<ErrorInfo>,
}

/// A step of a solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Thought {
    /// The preceding thought; `None` means the root.
    pub parent: Option<usize>,
    pub depth: usize,
    pub text: String,
    /// The model marked it as completing the solution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// From 0 to 1.
    pub score: Option<f64>,
    pub standing: Standing,
}

/// The state of a thought in the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// The search may still continue from it.
    Open,
    /// The search continued from it.
    Kept,
    /// The search discarded it.
    Dropped,
}

/// State changes that nodes return.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delta {
    /// *expand*: new candidates.
    Proposed {
        thoughts: Vec<Thought>,
    },
    /// *evaluate*: the candidates' scores, and where the search continues.
    Valued {
        scores: Vec<f64>,
        /// The candidates that the search may still return to.
        open: Vec<usize>,
        frontier: Vec<usize>,
        found: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortfall: Option<String>,
    },
    /// *backtrack*: the thought to continue from.
    Backtracked {
        to: usize,
    },
    /// The search ends with the results so far.
    Halted {
        shortfall: String,
        #[serde(skip)]
        limit: Option<Stop>,
    },
    /// A failure ends the search with the results so far.
    Failed {
        shortfall: String,
        #[serde(skip)]
        failure: Option<ErrorInfo>,
    },
    Answered(Conclusion),
}

impl State for TotState {
    type Delta = Delta;

    fn apply(&mut self, delta: Delta) {
        match delta {
            Delta::Proposed { thoughts } => {
                let first = self.thoughts.len();
                self.pool = (first..first + thoughts.len()).collect();
                self.thoughts.extend(thoughts);
            }
            Delta::Valued { scores, open, frontier, found, shortfall } => {
                for (at, score) in std::mem::take(&mut self.pool).into_iter().zip(scores) {
                    let standing = if open.contains(&at) { Standing::Open } else { Standing::Dropped };
                    self.change(at, |thought| {
                        thought.score = Some(score);
                        thought.standing = standing;
                    });
                }
                self.go_to(frontier);
                self.found = found;
                self.ending.shortfall = shortfall;
            }
            Delta::Backtracked { to } => {
                self.backtracks += 1;
                self.go_to(vec![to]);
            }
            Delta::Halted { shortfall, limit } => {
                self.pool.clear();
                self.ending.shortfall = Some(shortfall);
                self.ending.limit = limit;
            }
            Delta::Failed { shortfall, failure } => {
                self.pool.clear();
                self.ending.shortfall = Some(shortfall);
                self.failure = failure;
            }
            Delta::Answered(conclusion) => self.ending.conclusion = Some(conclusion),
        }
    }

    fn to_json(&self) -> Json {
        state_to_json(self)
    }

    fn delta_to_json(delta: &Delta) -> Option<Json> {
        delta_to_json(delta)
    }
}

impl TotState {
    /// Describes a reference to a thought that does not exist.
    pub fn inconsistency(&self) -> Option<String> {
        let count = self.thoughts.len();
        let named = self.frontier.iter().chain(&self.pool).chain(&self.found);
        if let Some(at) = named.copied().find(|at| *at >= count) {
            return Some(format!("it continues from the thought {at}, and has {count} (from 0)"));
        }
        let mut thoughts = self.thoughts.iter().enumerate();
        let (at, parent) =
            thoughts.find_map(|(at, thought)| Some((at, thought.parent.filter(|parent| *parent >= at)?)))?;
        Some(format!("the thought {at} continues from the thought {parent}, which does not come before it"))
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Thought)) {
        if let Some(thought) = self.thoughts.get_mut(at) {
            change(thought);
        }
    }

    fn go_to(&mut self, frontier: Vec<usize>) {
        for at in &frontier {
            self.change(*at, |thought| thought.standing = Standing::Kept);
        }
        self.frontier = frontier;
    }

    /// The depth of a thought, or of the root.
    pub fn depth_of(&self, at: Option<usize>) -> usize {
        at.and_then(|at| self.thoughts.get(at)).map_or(0, |thought| thought.depth)
    }

    /// True if a thought has no next steps.
    pub fn is_leaf(&self, at: usize) -> bool {
        self.thoughts.get(at).is_none_or(|thought| thought.complete || thought.depth >= self.options.depth)
    }

    pub fn score(&self, at: usize) -> f64 {
        self.thoughts.get(at).and_then(|thought| thought.score).unwrap_or_default()
    }

    /// The steps from the root to a thought.
    pub fn path(&self, at: Option<usize>) -> Vec<&str> {
        let mut steps = Vec::new();
        let mut next = at.and_then(|at| self.thoughts.get(at));
        while let Some(thought) = next {
            steps.push(thought.text.as_str());
            // A parent precedes its children, which bounds the walk even for a corrupt log.
            next = thought
                .parent
                .and_then(|parent| self.thoughts.get(parent))
                .filter(|_| steps.len() <= thought.depth.max(1));
        }
        steps.reverse();
        steps
    }

    /// The best result: the found thought, or the deepest thought with the best score.
    pub fn best(&self) -> Option<usize> {
        let rank = |at: usize| (self.thoughts[at].depth, self.score(at));
        let valued = (0..self.thoughts.len()).filter(|at| self.thoughts[*at].score.is_some());
        let better = |a: usize, b: usize| if rank(b) > rank(a) { b } else { a };
        self.found.or_else(|| valued.reduce(better))
    }

    /// True if the found thought counts as a solution.
    pub fn is_solved(&self) -> bool {
        self.found.is_some_and(|at| self.is_leaf(at) && self.score(at) > ACCEPTED)
    }
}
