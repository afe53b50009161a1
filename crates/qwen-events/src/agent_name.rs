//! The agents that process turns.

/// An agent by name: the graph that processes turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentName {
    /// Reason and act: one conversation, one model call after another.
    #[default]
    React,
    /// A search in a tree of thoughts.
    Tot,
    /// A graph of thoughts.
    Got,
    /// A graph of thoughts whose nodes may become nested graphs.
    Agot,
}

impl AgentName {
    pub const ALL: [Self; 4] = [Self::React, Self::Tot, Self::Got, Self::Agot];

    /// The name in flags, settings, session logs and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::React => "react",
            Self::Tot => "tot",
            Self::Got => "got",
            Self::Agot => "agot",
        }
    }

    /// Finds the agent called `name`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}
