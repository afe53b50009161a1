//! Resolves the search parameters of trees and graphs of thoughts.

use std::ops::RangeInclusive;

use qwen_events::{ErrorInfo, ErrorKind};

use qwen_thoughts::{Search, ThinkingOptions};

use super::bad_flag;
use super::file::{Agent, Sourced};

pub(super) fn resolve(agent: &Agent) -> Result<ThinkingOptions, ErrorInfo> {
    let mut options = ThinkingOptions::default();
    if let Some(word) = agent.tot.search.as_deref() {
        options.tot.search = match word {
            "bfs" => Search::Bfs,
            "dfs" => Search::Dfs,
            other => return Err(bad_flag(format!("--tot-search '{other}': the searches are bfs and dfs"))),
        };
    }
    let (tot, got) = (&mut options.tot, &mut options.got);
    size(&mut tot.breadth, "agent.tot.breadth", agent.tot.breadth.as_ref(), 1..=10_000)?;
    size(&mut tot.proposals, "agent.tot.proposals", agent.tot.proposals.as_ref(), 1..=10_000)?;
    size(&mut tot.depth, "agent.tot.depth", agent.tot.depth.as_ref(), 1..=10_000)?;
    size(&mut tot.samples, "agent.tot.samples", agent.tot.samples.as_ref(), 1..=1_000)?;
    size(&mut tot.max_thoughts, "agent.tot.maxThoughts", agent.tot.max_thoughts.as_ref(), 1..=1_000_000)?;
    size(&mut got.max_nodes, "agent.got.maxNodes", agent.got.max_nodes.as_ref(), 1..=1_000_000)?;
    // None below the first is still one.
    size(&mut got.max_depth, "agent.got.maxDepth", agent.got.max_depth.as_ref(), 0..=32)?;
    size(&mut got.max_layers, "agent.got.maxLayers", agent.got.max_layers.as_ref(), 1..=1_000)?;
    size(&mut got.max_per_layer, "agent.got.maxPerLayer", agent.got.max_per_layer.as_ref(), 1..=1_000)?;
    got.adaptive = agent.adaptive.unwrap_or_default();
    size(&mut options.parallel, "agent.parallel", agent.parallel.as_ref(), 1..=10_000)?;
    size(&mut options.retries, "agent.thoughtRetries", agent.thought_retries.as_ref(), 0..=100)?;
    options.timeout = agent.thought_timeout.or(options.timeout);
    if let Some(Sourced { value, origin }) = &agent.tot.threshold {
        if !(0.0..=1.0).contains(value) {
            return Err(refused("agent.tot.threshold", value, origin, "from 0 to 1"));
        }
        options.tot.threshold = *value;
    }
    Ok(options)
}

/// Sets a size if it is given and in range.
fn size(
    field: &mut usize,
    key: &str,
    given: Option<&Sourced<i64>>,
    bounds: RangeInclusive<usize>,
) -> Result<(), ErrorInfo> {
    let Some(Sourced { value, origin }) = given else { return Ok(()) };
    *field = usize::try_from(*value).ok().filter(|size| bounds.contains(size)).ok_or_else(|| {
        refused(key, value, origin, &format!("a whole number from {} to {}", bounds.start(), bounds.end()))
    })?;
    Ok(())
}

/// The error for a refused value, naming its origin: a flag or a file.
fn refused(key: &str, value: impl std::fmt::Display, origin: &str, wanted: &str) -> ErrorInfo {
    // The value of a flag like `--settings` has line numbers, as a file does.
    if origin.starts_with("--") && !origin.contains(':') {
        return bad_flag(format!("{origin} {value}: give {wanted}"));
    }
    let message = format!("{origin}: {key} is {value}; it must be {wanted}");
    ErrorInfo::new(ErrorKind::Settings, "invalid_settings", message)
}
