//! Declaring a graph, and refusing one that cannot work.

use std::fmt;

use super::{Node, State};

/// A graph that can be run. Nodes are few, so a scan beats a map.
pub struct Graph<S: State> {
    pub(super) nodes: Vec<(&'static str, Box<dyn Node<S>>)>,
    pub(super) start: &'static str,
    edges: Vec<(&'static str, &'static str)>,
}

/// The name that edges use for the end of a run.
const END: &str = "end";

/// Declares nodes and edges.
pub struct GraphBuilder<S: State> {
    nodes: Vec<(&'static str, Box<dyn Node<S>>)>,
    edges: Vec<(&'static str, &'static str)>,
}

/// Why a graph cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// There are no nodes.
    Empty,
    /// Two nodes have one name.
    Twice(&'static str),
    /// An edge names a node that is not there.
    Unknown(&'static str),
    /// No way leads to a node.
    Unreachable(&'static str),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the graph has no nodes"),
            Self::Twice(name) => write!(f, "two nodes are called '{name}'"),
            Self::Unknown(name) => write!(f, "an edge names the node '{name}', which is not in the graph"),
            Self::Unreachable(name) => write!(f, "no way leads from the start to the node '{name}'"),
        }
    }
}

impl std::error::Error for BuildError {}

impl<S: State> Default for GraphBuilder<S> {
    fn default() -> Self {
        Self { nodes: Vec::new(), edges: Vec::new() }
    }
}

impl<S: State> GraphBuilder<S> {
    /// Adds a node; the first one added is where runs start.
    pub fn node(mut self, name: &'static str, node: impl Node<S> + 'static) -> Self {
        self.nodes.push((name, Box::new(node)));
        self
    }

    /// Declares that a run may go from `from` to `to`.
    pub fn edge(mut self, from: &'static str, to: &'static str) -> Self {
        self.edges.push((from, to));
        self
    }

    /// Declares that a run may end after `from`.
    pub fn end(self, from: &'static str) -> Self {
        self.edge(from, END)
    }

    /// The graph, or why it cannot work.
    pub fn build(self) -> Result<Graph<S>, BuildError> {
        let Some((start, _)) = self.nodes.first() else { return Err(BuildError::Empty) };
        let start = *start;
        for (i, (name, _)) in self.nodes.iter().enumerate() {
            if self.nodes[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(BuildError::Twice(name));
            }
        }
        let known = |name: &str| name == END || self.nodes.iter().any(|(n, _)| *n == name);
        if let Some(name) = self.edges.iter().flat_map(|(a, b)| [*a, *b]).find(|n| !known(n)) {
            return Err(BuildError::Unknown(name));
        }
        let mut reached = vec![start];
        let mut next = 0;
        while next < reached.len() {
            let from = reached[next];
            next += 1;
            for (_, to) in self.edges.iter().filter(|(a, _)| *a == from) {
                if !reached.contains(to) {
                    reached.push(to);
                }
            }
        }
        if let Some((name, _)) = self.nodes.iter().find(|(n, _)| !reached.contains(n)) {
            return Err(BuildError::Unreachable(name));
        }
        Ok(Graph { nodes: self.nodes, start, edges: self.edges })
    }
}

impl<S: State> Graph<S> {
    /// The declared edges as a Mermaid flow chart.
    pub fn mermaid(&self) -> String {
        let mut text = format!("flowchart TD\n    start([start]) --> {}\n", self.start);
        for (from, to) in &self.edges {
            let line = if *to == END {
                format!("    {from} --> stop([end])\n")
            } else {
                format!("    {from} --> {to}\n")
            };
            text.push_str(&line);
        }
        text
    }

    /// Whether a run may go from `from` to `to`.
    pub(super) fn allows(&self, from: &str, to: &str) -> bool {
        self.edges.iter().any(|(a, b)| *a == from && *b == to)
    }

    /// Whether a run may end after `from`.
    pub(super) fn may_end(&self, from: &str) -> bool {
        self.allows(from, END)
    }
}
