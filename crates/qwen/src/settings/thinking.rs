//! How trees and graphs of thoughts grow, from flags.

use qwen_engine::{Search, ThinkingOptions};
use qwen_events::ErrorInfo;

use super::bad_flag;
use crate::cli::Thinking;

pub(super) fn resolve(flags: &Thinking) -> Result<ThinkingOptions, ErrorInfo> {
    let mut options = ThinkingOptions::default();
    if let Some(word) = flags.tot_search.as_deref() {
        options.tot.search = match word {
            "bfs" => Search::Bfs,
            "dfs" => Search::Dfs,
            other => return Err(bad_flag(format!("--tot-search '{other}': the searches are bfs and dfs"))),
        };
    }
    let set = |field: &mut usize, value: Option<usize>| {
        if let Some(value) = value {
            *field = value;
        }
    };
    set(&mut options.tot.breadth, flags.tot_breadth);
    set(&mut options.tot.proposals, flags.tot_proposals);
    set(&mut options.tot.depth, flags.tot_depth);
    set(&mut options.tot.samples, flags.tot_samples);
    set(&mut options.got.max_nodes, flags.got_max_nodes);
    set(&mut options.parallel, flags.parallel);
    if let Some(threshold) = flags.tot_threshold {
        if !(0.0..=1.0).contains(&threshold) {
            return Err(bad_flag(format!("--tot-threshold {threshold}: give a value from 0 to 1")));
        }
        options.tot.threshold = threshold;
    }
    options.got.adaptive = flags.adaptive;
    Ok(options)
}
