//! How trees and graphs of thoughts grow.

use qwen_engine::{Search, ThinkingOptions};
use qwen_events::ErrorInfo;

use super::bad_flag;
use super::file::Agent;

pub(super) fn resolve(agent: &Agent) -> Result<ThinkingOptions, ErrorInfo> {
    let mut options = ThinkingOptions::default();
    if let Some(word) = agent.tot.search.as_deref() {
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
    set(&mut options.tot.breadth, agent.tot.breadth);
    set(&mut options.tot.proposals, agent.tot.proposals);
    set(&mut options.tot.depth, agent.tot.depth);
    set(&mut options.tot.samples, agent.tot.samples);
    set(&mut options.got.max_nodes, agent.got.max_nodes);
    set(&mut options.parallel, agent.parallel);
    if let Some(threshold) = agent.tot.threshold {
        if !(0.0..=1.0).contains(&threshold) {
            return Err(bad_flag(format!("--tot-threshold {threshold}: give a value from 0 to 1")));
        }
        options.tot.threshold = threshold;
    }
    options.got.adaptive = agent.adaptive.unwrap_or_default();
    Ok(options)
}
