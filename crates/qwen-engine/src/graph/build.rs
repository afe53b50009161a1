//! Builds and validates graphs.

use std::fmt;
use std::time::Duration;

use qwen_events::ErrorInfo;

use super::{Node, Retry, State};

/// A graph that can be run. Graphs have few nodes, so a linear scan is faster than a map.
pub struct Graph<S: State> {
    nodes: Vec<NodeEntry<S>>,
    edges: Vec<Edge>,
}

/// A node with its retry, timeout and error settings.
pub(super) struct NodeEntry<S: State> {
    pub name: &'static str,
    pub node: Box<dyn Node<S>>,
    pub retry: Option<Retry>,
    pub timeout: Option<Duration>,
    pub on_error: Option<OnError<S>>,
}

/// Converts an error into a state change.
type ErrorDelta<S> = dyn Fn(&ErrorInfo) -> <S as State>::Delta + Send + Sync;

/// The node that a run continues with when a node fails, and the state change for the error.
pub(super) struct OnError<S: State> {
    pub to: &'static str,
    pub delta: Box<ErrorDelta<S>>,
}

/// The name that edges use for the end of a run.
pub const END: &str = "end";

/// A possible transition, from one node to another or to the [`END`].
pub type Edge = (&'static str, &'static str);

/// Declares nodes and edges.
pub struct GraphBuilder<S: State> {
    graph: Graph<S>,
    /// Nodes that were configured before they were added.
    unknown_nodes: Vec<&'static str>,
}

/// Why a graph is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    Empty,
    /// Two nodes have the same name.
    Twice(&'static str),
    /// An edge names a node that does not exist.
    Unknown(&'static str),
    /// No edge leads to a node.
    Unreachable(&'static str),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the graph has no nodes"),
            Self::Twice(name) => write!(f, "two nodes are called '{name}'"),
            Self::Unknown(name) => write!(f, "an edge names the node '{name}', which is not in the graph"),
            Self::Unreachable(name) => write!(f, "no path leads from the start to the node '{name}'"),
        }
    }
}

impl std::error::Error for BuildError {}

impl<S: State> Default for GraphBuilder<S> {
    fn default() -> Self {
        Self { graph: Graph { nodes: Vec::new(), edges: Vec::new() }, unknown_nodes: Vec::new() }
    }
}

impl<S: State> GraphBuilder<S> {
    /// Adds a node; the first one added is where runs start.
    pub fn node(mut self, name: &'static str, node: impl Node<S> + 'static) -> Self {
        let node = Box::new(node);
        self.graph.nodes.push(NodeEntry { name, node, retry: None, timeout: None, on_error: None });
        self
    }

    /// Declares that a run may go from `from` to `to`.
    pub fn edge(mut self, from: &'static str, to: &'static str) -> Self {
        self.graph.edges.push((from, to));
        self
    }

    pub fn edges(mut self, edges: &[Edge]) -> Self {
        self.graph.edges.extend_from_slice(edges);
        self
    }

    /// Declares that a run may end after `from`.
    pub fn end(self, from: &'static str) -> Self {
        self.edge(from, END)
    }

    /// Retries a node when it fails with a transient error.
    pub fn retry(self, name: &'static str, retry: Retry) -> Self {
        self.configure_node(name, |placed| placed.retry = Some(retry))
    }

    /// Sets the timeout for each attempt of a node.
    pub fn timeout(self, name: &'static str, limit: Duration) -> Self {
        self.configure_node(name, |placed| placed.timeout = Some(limit))
    }

    /// Declares that a run continues with `to` when `name` fails permanently; `delta` records the error in
    /// the state. Limits and cancellation are not errors and still end the run.
    pub fn on_error(
        self,
        name: &'static str,
        to: &'static str,
        delta: impl Fn(&ErrorInfo) -> S::Delta + Send + Sync + 'static,
    ) -> Self {
        self.configure_node(name, |placed| placed.on_error = Some(OnError { to, delta: Box::new(delta) }))
    }

    fn configure_node(mut self, name: &'static str, change: impl FnOnce(&mut NodeEntry<S>)) -> Self {
        match self.graph.nodes.iter_mut().find(|placed| placed.name == name) {
            Some(placed) => change(placed),
            None => self.unknown_nodes.push(name),
        }
        self
    }

    /// Validates and returns the graph.
    pub fn build(self) -> Result<Graph<S>, BuildError> {
        let Self { graph, unknown_nodes } = self;
        let Some(start) = graph.nodes.first() else { return Err(BuildError::Empty) };
        for (i, placed) in graph.nodes.iter().enumerate() {
            if graph.nodes[..i].iter().any(|earlier| earlier.name == placed.name) {
                return Err(BuildError::Twice(placed.name));
            }
        }
        let known = |name: &str| name == END || graph.nodes.iter().any(|placed| placed.name == name);
        let named = graph.transitions().flat_map(|(from, to)| [from, to]);
        if let Some(name) = unknown_nodes.into_iter().chain(named).find(|name| !known(name)) {
            return Err(BuildError::Unknown(name));
        }
        let mut reached = vec![start.name];
        let mut next = 0;
        while next < reached.len() {
            let from = reached[next];
            next += 1;
            for (_, to) in graph.transitions().filter(|(a, _)| *a == from) {
                if !reached.contains(&to) {
                    reached.push(to);
                }
            }
        }
        if let Some(placed) = graph.nodes.iter().find(|placed| !reached.contains(&placed.name)) {
            return Err(BuildError::Unreachable(placed.name));
        }
        Ok(graph)
    }
}

impl<S: State> Graph<S> {
    /// The declared edges as a Mermaid flow chart; error transitions are dotted.
    pub fn mermaid(&self) -> String {
        let mut text = mermaid(self.start(), &self.edges);
        for placed in &self.nodes {
            if let Some(route) = &placed.on_error {
                text.extend(["    ", placed.name, " -. error .-> ", route.to, "\n"]);
            }
        }
        text
    }

    /// The node where runs start.
    pub(super) fn start(&self) -> &'static str {
        self.nodes.first().map_or(END, |placed| placed.name)
    }

    pub(super) fn find(&self, name: &str) -> Option<&NodeEntry<S>> {
        self.nodes.iter().find(|placed| placed.name == name)
    }

    /// The static name of a node, for a name that was read from outside.
    pub fn name(&self, name: &str) -> Option<&'static str> {
        self.find(name).map(|placed| placed.name)
    }

    /// True if a run may go from `from` to `to`.
    pub(super) fn allows(&self, from: &str, to: &str) -> bool {
        self.edges.iter().any(|(a, b)| *a == from && *b == to)
    }

    /// True if a run may end after `from`.
    pub(super) fn may_end(&self, from: &str) -> bool {
        self.allows(from, END)
    }

    /// All possible transitions.
    fn transitions(&self) -> impl Iterator<Item = Edge> + '_ {
        let routes = self.nodes.iter().filter_map(|placed| Some((placed.name, placed.on_error.as_ref()?.to)));
        self.edges.iter().copied().chain(routes)
    }
}

/// The edges as a Mermaid flow chart that begins at `start`.
pub fn mermaid(start: &str, edges: &[Edge]) -> String {
    let mut text = format!("flowchart TD\n    start([start]) --> {start}\n");
    for (from, to) in edges {
        let to = if *to == END { "stop([end])" } else { to };
        text.extend(["    ", from, " --> ", to, "\n"]);
    }
    text
}
