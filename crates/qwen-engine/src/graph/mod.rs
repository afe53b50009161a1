//! A small typed state graph: named nodes, each a step from the state to a change of it and the way on.
//!
//! A node never changes the state itself; it returns a delta, and the state's own reducer applies it. So the state
//! after every step is known, can be shown and can be kept.

mod build;
mod run;

use futures_util::future::BoxFuture;
use qwen_events::Json;

pub use build::{BuildError, Graph, GraphBuilder};
pub use run::{Cx, NodeCounter, Ran};

use crate::Stop;

/// What a graph works on.
pub trait State: Send + Sync {
    /// A change.
    type Delta: Send;

    /// Applies a change.
    fn apply(&mut self, delta: Self::Delta);

    /// The state for readers.
    fn to_json(&self) -> Json;
}

/// One node of a graph.
pub trait Node<S: State>: Send + Sync {
    /// Runs the node once.
    fn run<'a>(&'a self, state: &'a S, cx: &'a Cx) -> BoxFuture<'a, Step<S::Delta>>;
}

/// What a node run comes to. The delta counts whatever the way on is: a message cut off half-way is still part of
/// the conversation.
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
