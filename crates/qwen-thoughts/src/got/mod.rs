//! Graph of thoughts: the model plans typed operations, and independent ones run concurrently. In adaptive
//! mode, a thought that is too complex is expanded into a nested graph.

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

use crate::thinking::ThoughtRunner;
use qwen_engine::graph::{BuildError, END, Edge, Graph, GraphBuilder};

/// Options of the graph of thoughts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GotOptions {
    /// The maximum number of thoughts in a graph, including nested ones.
    pub max_nodes: usize,
    /// True if a complex thought is expanded into a nested graph.
    pub adaptive: bool,
    /// The maximum nesting depth below the outermost graph.
    pub max_depth: usize,
    /// The maximum number of layers in a nested graph; scoring and keeping the best do not count as layers.
    pub max_layers: usize,
    /// The maximum number of thoughts per layer of a nested graph.
    pub max_per_layer: usize,
}

impl Default for GotOptions {
    fn default() -> Self {
        Self { max_nodes: 100, adaptive: false, max_depth: 1, max_layers: 3, max_per_layer: 3 }
    }
}

/// The node where a run starts.
pub(crate) const START: &str = "plan";

pub(crate) const EDGES: [Edge; 4] =
    [("plan", "execute"), ("plan", "answer"), ("execute", "answer"), ("answer", END)];

pub(crate) fn graph(runner: &Arc<ThoughtRunner>) -> Result<Graph<GotState>, BuildError> {
    GraphBuilder::default()
        .node("plan", planning::Planning(runner.clone()))
        .node("execute", execute::Execute(runner.clone()))
        .node("answer", answer::Answer(runner.clone()))
        .edges(&EDGES)
        .build()
}
