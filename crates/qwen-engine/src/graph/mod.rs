//! A small typed state graph: named nodes, each a step from the state to a change of it and the way on.
//!
//! A node never changes the state itself; it returns a delta, and the state's own reducer applies it. So the state
//! after every step is known, can be shown and can be kept.
//!
//! The node runs of one graph never overlap. Work that can be done at the same time stays inside its node
//! ([`fan_out`]), and a node can be a graph of its own ([`SubGraph`]).

mod attempt;
mod build;
mod effects;
mod fan;
mod run;
mod sub;

use futures_util::future::BoxFuture;
use qwen_events::Json;

pub use attempt::Retry;
pub(crate) use attempt::within;
pub use build::{BuildError, END, Edge, Graph, GraphBuilder, mermaid};
pub use effects::Effects;
pub use fan::fan_out;
pub use run::{NodeCounter, RunContext, RunOutcome};
pub use sub::SubGraph;

use crate::Stop;

/// What a graph works on.
pub trait State: Send + Sync {
    /// A change.
    type Delta: Send;

    /// Applies a change.
    fn apply(&mut self, delta: Self::Delta);

    /// The state for readers.
    fn to_json(&self) -> Json;

    /// Whether something was begun that must be brought to its end though the run is ending: then it ends behind that.
    fn has_open_work(&self) -> bool {
        false
    }

    /// A change as the session log keeps it; none where the log's own events tell the state.
    fn kept(_: &Self::Delta) -> Option<Json> {
        None
    }
}

/// One node of a graph.
pub trait Node<S: State>: Send + Sync {
    /// Runs the node once.
    fn run<'a>(&'a self, state: &'a S, cx: &'a RunContext) -> BoxFuture<'a, Step<S::Delta>>;
}

/// What a node run comes to. The delta counts whatever the way on is: a message cut off half-way is still part of
/// the conversation. Only an attempt that is made again leaves nothing behind.
pub struct Step<D> {
    /// The change.
    pub delta: D,
    /// The way on.
    pub next: Next,
}

/// The way on from a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// To another node.
    Goto(&'static str),
    /// The run is done.
    End,
    /// The run ends early.
    Stop(Stop),
}
