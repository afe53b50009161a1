//! A small typed state graph of named nodes. Each node maps the state to a change and the next transition.
//!
//! A node never changes the state itself; it returns a delta, and the state's reducer applies it. So the
//! state after every step is known, and can be shown and stored.
//!
//! The node runs of one graph never overlap. Concurrent work stays inside its node ([`fan_out`]), and a node
//! can be a nested graph ([`SubGraph`]).

mod attempt;
mod build;
mod concurrent;
mod effects;
mod nested;
mod run;

use futures_util::future::BoxFuture;
use qwen_events::Json;

pub use attempt::Retry;
pub use attempt::within;
pub use build::{BuildError, END, Edge, Graph, GraphBuilder, mermaid};
pub use concurrent::fan_out;
pub use effects::Effects;
pub use nested::SubGraph;
pub use run::{NodeCounter, RunContext, RunOutcome};

use crate::Stop;

/// The state of a graph run.
pub trait State: Send + Sync {
    /// A state change.
    type Delta: Send;

    fn apply(&mut self, delta: Self::Delta);

    /// The state for readers.
    fn to_json(&self) -> Json;

    /// True if the state has work that must be completed even though the run is ending: then the run ends
    /// after that.
    fn has_open_work(&self) -> bool {
        false
    }

    /// A change in the form the session log stores; `None` if the state can be derived from the logged
    /// events.
    fn delta_to_json(_: &Self::Delta) -> Option<Json> {
        None
    }
}

pub trait Node<S: State>: Send + Sync {
    /// Runs the node once.
    fn run<'a>(&'a self, state: &'a S, cx: &'a RunContext) -> BoxFuture<'a, Step<S::Delta>>;
}

/// The result of a node run. The delta is applied regardless of the transition: a message that was cut off is
/// still part of the conversation. Only an attempt that is retried leaves nothing behind.
pub struct Step<D> {
    pub delta: D,
    pub next: Next,
}

/// The transition from a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Continue with another node.
    Goto(&'static str),
    /// The run is done.
    End,
    /// The run ends early.
    Stop(Stop),
}
