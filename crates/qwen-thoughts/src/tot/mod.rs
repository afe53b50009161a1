//! Tree of thoughts: propose steps, score them, continue from the best, backtrack from dead ends.

mod answer;
mod backtrack;
mod evaluate;
mod expand;
mod prompts;
mod state;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use qwen_events::ErrorInfo;
pub(crate) use state::TotState;

use state::Delta;

use crate::thinking::ThoughtRunner;
use qwen_engine::graph::{BuildError, END, Edge, Graph, GraphBuilder};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// Level by level; the best of each level are kept.
    Bfs,
    /// The best child first; backtracks to the nearest untried one when a branch fails.
    Dfs,
}

/// Options of the tree search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TotOptions {
    pub search: Search,
    /// With `Bfs`: how many thoughts of a level are kept.
    pub breadth: usize,
    /// How many next steps are proposed for each thought.
    pub proposals: usize,
    /// The maximum number of steps in a solution.
    pub depth: usize,
    /// How many votes score each candidate.
    pub samples: usize,
    /// With `Dfs`: branches with a score below this value, from 0 to 1, are not followed.
    pub threshold: f64,
    /// The maximum number of thoughts in a tree.
    pub max_thoughts: usize,
}

impl Default for TotOptions {
    fn default() -> Self {
        Self {
            search: Search::Bfs,
            breadth: 5,
            proposals: 8,
            depth: 3,
            samples: 3,
            threshold: 0.3,
            max_thoughts: 10_000,
        }
    }
}

/// The node where a run starts.
pub(crate) const START: &str = "expand";

pub(crate) const EDGES: [Edge; 9] = [
    ("expand", "evaluate"),
    ("expand", "backtrack"),
    ("expand", "answer"),
    ("evaluate", "expand"),
    ("evaluate", "backtrack"),
    ("evaluate", "answer"),
    ("backtrack", "expand"),
    ("backtrack", "answer"),
    ("answer", END),
];

pub(crate) fn graph(runner: &Arc<ThoughtRunner>) -> Result<Graph<TotState>, BuildError> {
    GraphBuilder::default()
        .node("expand", expand::Expand(runner.clone()))
        .node("evaluate", evaluate::Evaluate(runner.clone()))
        .node("backtrack", backtrack::Backtrack)
        .node("answer", answer::Answer(runner.clone()))
        .edges(&EDGES)
        .on_error("evaluate", "answer", failed)
        .build()
}

/// Earlier results are still worth an answer, even if the search cannot continue.
fn failed(error: &ErrorInfo) -> Delta {
    let shortfall = format!("The search could not continue: {}", error.message);
    Delta::Failed { shortfall, failure: Some(error.clone()) }
}
