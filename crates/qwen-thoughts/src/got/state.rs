//! The graph, and the changes that nodes make to it.

use std::collections::HashSet;
use std::sync::Arc;

use qwen_events::Json;
use serde::{Deserialize, Serialize};

use super::GotOptions;
use super::plan::{self, Op, Planned};
use crate::thinking::{Conclusion, SearchEnding, delta_to_json, state_to_json};
use qwen_engine::Stop;
use qwen_engine::graph::State;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GotState {
    pub problem: String,
    pub options: GotOptions,
    /// All thoughts: those of the plan, followed by those of nested graphs.
    pub thoughts: Vec<Thought>,
    #[serde(flatten)]
    pub ending: SearchEnding,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Thought {
    pub id: String,
    pub op: Op,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruction: String,
    /// How many attempts it makes, or how many results it keeps.
    pub count: usize,
    /// The thoughts that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<usize>,
    /// The thought whose nested graph contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    pub standing: Standing,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ThoughtResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A result of a thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThoughtResult {
    pub text: Arc<str>,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The state of a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// It waits for its inputs.
    Waiting,
    Running,
    /// It was expanded into a nested graph, which is running.
    Expanded,
    Done,
    Failed,
    /// A thought that it depends on failed.
    Skipped,
}

/// State changes that nodes return.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delta {
    /// *plan*: the planned thoughts.
    Planned {
        thoughts: Vec<Thought>,
    },
    /// *execute*: the thoughts in their final state.
    Executed {
        thoughts: Vec<Thought>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortfall: Option<String>,
        #[serde(skip)]
        limit: Option<Stop>,
    },
    Answered(Conclusion),
}

impl State for GotState {
    type Delta = Delta;

    fn apply(&mut self, delta: Delta) {
        match delta {
            Delta::Planned { thoughts } => self.thoughts = thoughts,
            Delta::Executed { thoughts, shortfall, limit } => {
                self.thoughts = thoughts;
                self.ending.shortfall = shortfall;
                self.ending.limit = limit;
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

impl Thought {
    /// Converts a planned thought; its plan is appended after `offset` others, in the nested graph of
    /// `parent`.
    pub fn from_plan(planned: Planned, offset: usize, parent: Option<(usize, &str)>) -> Self {
        let id = match parent {
            Some((_, name)) => format!("{name}/{}", planned.id),
            None => planned.id,
        };
        Self {
            id,
            op: planned.op,
            instruction: planned.instruction,
            count: planned.count,
            inputs: planned.inputs.into_iter().map(|input| input + offset).collect(),
            parent: parent.map(|(at, _)| at),
            standing: Standing::Waiting,
            results: Vec::new(),
            error: None,
        }
    }

    /// Its best result: the first one, unless another has a better score.
    pub fn best(&self) -> Option<&ThoughtResult> {
        self.results.iter().reduce(|a, b| if b.score > a.score { b } else { a })
    }
}

impl GotState {
    /// Describes a reference to a thought that does not exist.
    pub fn inconsistency(&self) -> Option<String> {
        let count = self.thoughts.len();
        for (at, thought) in self.thoughts.iter().enumerate() {
            let missing = |input: &&usize| **input >= count || **input == at;
            if let Some(input) = thought.inputs.iter().find(missing) {
                return Some(format!(
                    "'{}' needs the thought {input}, and there are {count} (from 0)",
                    thought.id
                ));
            }
            if thought.parent.is_some_and(|parent| parent >= at) {
                return Some(format!(
                    "'{}' is in the nested graph of a thought that does not come before it",
                    thought.id
                ));
            }
        }
        let has_cycle = plan::order(&self.thoughts, |thought| &thought.inputs).is_none();
        has_cycle.then(|| "some of its thoughts depend on each other in a cycle".to_owned())
    }

    /// The thoughts of the outermost graph that no other thought depends on: they hold the result.
    fn results(&self) -> impl Iterator<Item = &Thought> {
        let used: HashSet<usize> =
            self.thoughts.iter().flat_map(|thought| thought.inputs.iter().copied()).collect();
        let thoughts = self.thoughts.iter().enumerate();
        thoughts
            .filter(move |(at, thought)| thought.parent.is_none() && !used.contains(at))
            .map(|(_, thought)| thought)
    }

    /// The input of the reply: the results, or the closest available ones.
    pub fn findings(&self) -> Vec<&Thought> {
        let done = |thought: &&Thought| thought.standing == Standing::Done && !thought.results.is_empty();
        let results: Vec<&Thought> = self.results().filter(done).collect();
        if !results.is_empty() {
            return results;
        }
        self.thoughts.iter().rfind(done).into_iter().collect()
    }
}
