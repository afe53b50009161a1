//! A tree of thoughts: propose steps, value them, go on from the best, go back where none is left.

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

use crate::graph::{BuildError, END, Edge, Graph, GraphBuilder};
use crate::thinking::ThoughtRunner;

/// How a tree is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// Level by level; of each level the best are kept.
    Bfs,
    /// The best child first, and back to the nearest untried one when a branch fails.
    Dfs,
}

/// How a tree of thoughts grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TotOptions {
    /// How it is searched.
    pub search: Search,
    /// How many thoughts of a level are kept, level by level.
    pub breadth: usize,
    /// How many next steps are proposed for each.
    pub proposals: usize,
    /// How many steps a solution has at most.
    pub depth: usize,
    /// How many votes value each candidate.
    pub samples: usize,
    /// Below this value, from 0 to 1, a branch is not followed, the best child first.
    pub threshold: f64,
    /// How many thoughts a tree may have.
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

/// Where a run begins.
pub(crate) const START: &str = "expand";

/// The ways of a run.
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

/// The graph of the agent.
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

/// What was found before is worth an answer, even when the search cannot go on.
fn failed(error: &ErrorInfo) -> Delta {
    let shortfall = format!("The search could not go on: {}", error.message);
    Delta::Failed { shortfall, failure: Some(error.clone()) }
}
