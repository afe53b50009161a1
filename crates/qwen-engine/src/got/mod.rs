//! A graph of thoughts: the model plans typed operations, and what does not depend on each other is thought at the same
//! time. Adaptively, a thought that is too much at once becomes a graph of its own.

mod answer;
mod execute;
mod operate;
mod plan;
mod planning;
mod prompts;
mod state;
mod work;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use state::GotState;

use crate::graph::{BuildError, END, Edge, Graph, GraphBuilder};
use crate::thinking::ThoughtRunner;

/// How a graph of thoughts grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GotOptions {
    /// How many thoughts a graph may have, nested ones included.
    pub max_nodes: usize,
    /// Whether a thought that is complex becomes a nested graph.
    pub adaptive: bool,
    /// How deep graphs nest below the first one.
    pub max_depth: usize,
    /// How many layers a nested graph has at most; scoring and keeping the best make no layer.
    pub max_layers: usize,
    /// How many thoughts a layer of a nested graph has at most.
    pub max_per_layer: usize,
}

impl Default for GotOptions {
    fn default() -> Self {
        Self { max_nodes: 100, adaptive: false, max_depth: 1, max_layers: 3, max_per_layer: 3 }
    }
}

/// Where a run begins.
pub(crate) const START: &str = "plan";

/// The ways of a run.
pub(crate) const EDGES: [Edge; 4] =
    [("plan", "execute"), ("plan", "answer"), ("execute", "answer"), ("answer", END)];

/// The graph of the agent.
pub(crate) fn graph(runner: &Arc<ThoughtRunner>) -> Result<Graph<GotState>, BuildError> {
    GraphBuilder::default()
        .node("plan", planning::Planning(runner.clone()))
        .node("execute", execute::Execute(runner.clone()))
        .node("answer", answer::Answer(runner.clone()))
        .edges(&EDGES)
        .build()
}
