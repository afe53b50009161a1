//! The flags of the agents that think in trees and graphs.

use clap::{Args, ValueEnum, value_parser};

/// How a tree is searched.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotSearch {
    /// Level by level, keeping the best of each
    Bfs,
    /// The best first, going back where a branch fails
    Dfs,
}

/// The flags of the agents that think in trees and graphs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Thinking")]
pub struct ThinkingFlags {
    /// How a tree of thoughts is searched
    #[arg(long, value_enum, value_name = "WAY")]
    pub tot_search: Option<TotSearch>,

    /// How many thoughts of each level are kept (5)
    #[arg(long, value_name = "B", value_parser = value_parser!(u32).range(1..=10_000))]
    pub tot_breadth: Option<u32>,

    /// How many next steps are proposed for each thought (8)
    #[arg(long, value_name = "K", value_parser = value_parser!(u32).range(1..=10_000))]
    pub tot_proposals: Option<u32>,

    /// How many steps a solution has at most (3)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub tot_depth: Option<u32>,

    /// How many votes value each thought (3)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(0..=100))]
    pub tot_samples: Option<u32>,

    /// Thoughts of a lower value, from 0 to 1, are not followed depth-first (0.3)
    #[arg(long, value_name = "VALUE")]
    pub tot_threshold: Option<f64>,

    /// How many thoughts a graph may have (100)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    pub got_max_nodes: Option<u32>,

    /// How deep graphs nest, with --adaptive (1)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(0..=100))]
    pub got_depth: Option<u32>,

    /// Let a thought that is too much at once become a graph of its own
    #[arg(long)]
    pub adaptive: bool,

    /// How many model calls of one run may be under way at the same time (10)
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub parallel: Option<u32>,
}
