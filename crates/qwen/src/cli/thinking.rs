//! Flags for trees and graphs of thoughts.

use clap::Args;

/// The size and search of trees and graphs of thoughts.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Trees and graphs of thoughts")]
pub struct ThinkingArgs {
    /// How a tree is searched: bfs or dfs
    #[arg(long, value_name = "SEARCH")]
    pub tot_search: Option<String>,

    /// How many thoughts of a level are kept
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub tot_breadth: Option<i64>,

    /// How many next steps are proposed for each thought
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub tot_proposals: Option<i64>,

    /// How many steps a solution has at most
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub tot_depth: Option<i64>,

    /// How many votes value each candidate
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub tot_samples: Option<i64>,

    /// Below this value, from 0 to 1, a branch is not followed
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true, value_parser = number)]
    pub tot_threshold: Option<f64>,

    /// How many thoughts a tree may have
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub tot_max_thoughts: Option<i64>,

    /// How many thoughts a graph may have
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub got_max_nodes: Option<i64>,

    /// Expand complex thoughts into nested graphs
    #[arg(long)]
    pub adaptive: bool,

    /// How deep such graphs nest below the first one
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub got_depth: Option<i64>,

    /// How many layers a nested graph has at most
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub got_layers: Option<i64>,

    /// How many thoughts a layer of a nested graph has at most
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub got_width: Option<i64>,

    /// How many thoughts may run at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub parallel: Option<i64>,

    /// Limit the time of each attempt at a thought: seconds, or '90s', '5m'
    #[arg(long, value_name = "TIME")]
    pub thought_timeout: Option<String>,

    /// How often a thought is retried after a transient failure
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub thought_retries: Option<i64>,
}

/// A number other than NaN and infinity.
fn number(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .ok_or_else(|| "it is not a number".to_owned())
}
