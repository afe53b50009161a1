//! Which agent works, and how it thinks.

use std::sync::Arc;

use qwen_engine::{AGENTS, GotOptions, Search, ThinkingOptions, TotOptions};
use qwen_events::ErrorInfo;

use super::bad_flag;
use crate::cli::{Run, ThinkingFlags, TotSearch};

/// The agent.
pub(super) fn agent(run: &Run) -> Result<Arc<str>, ErrorInfo> {
    let name = run.agent.as_deref().unwrap_or("react");
    if AGENTS.contains(&name) {
        return Ok(name.into());
    }
    Err(bad_flag(format!("--agent '{name}': the agents are {}", AGENTS.join(", "))))
}

/// How it thinks.
pub(super) fn options(flags: &ThinkingFlags) -> Result<ThinkingOptions, ErrorInfo> {
    let usual = ThinkingOptions::default();
    let number =
        |flag: Option<u32>, usual: usize| flag.map_or(usual, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let threshold = flags.tot_threshold.unwrap_or(usual.tot.threshold);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(bad_flag(format!("--tot-threshold {threshold}: a value is from 0 to 1")));
    }
    Ok(ThinkingOptions {
        tot: TotOptions {
            search: match flags.tot_search {
                Some(TotSearch::Dfs) => Search::Dfs,
                Some(TotSearch::Bfs) | None => Search::Bfs,
            },
            breadth: number(flags.tot_breadth, usual.tot.breadth),
            proposals: number(flags.tot_proposals, usual.tot.proposals),
            depth: number(flags.tot_depth, usual.tot.depth),
            samples: number(flags.tot_samples, usual.tot.samples),
            threshold,
            ..usual.tot
        },
        got: GotOptions {
            max_nodes: number(flags.got_max_nodes, usual.got.max_nodes),
            adaptive: flags.adaptive,
            max_depth: number(flags.got_depth, usual.got.max_depth),
            ..usual.got
        },
        parallel: number(flags.parallel, usual.parallel),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn resolved(flags: &str) -> Result<ThinkingOptions, ErrorInfo> {
        let cli = Cli::parse_from(std::iter::once("qwen").chain(flags.split_whitespace()));
        options(&cli.run.thinking)
    }

    #[test]
    fn flags_change_what_they_name_and_nothing_else() {
        assert_eq!(resolved(""), Ok(ThinkingOptions::default()));
        let changed =
            resolved("--tot-search dfs --tot-samples 0 --got-max-nodes 7 --adaptive --parallel 2").unwrap();
        let tot = TotOptions { search: Search::Dfs, samples: 0, ..TotOptions::default() };
        let got = GotOptions { max_nodes: 7, adaptive: true, ..GotOptions::default() };
        assert_eq!(changed, ThinkingOptions { tot, got, parallel: 2 });
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for flags in ["--tot-threshold 1.5", "--tot-threshold NaN"] {
            assert!(resolved(flags).unwrap_err().message.contains("from 0 to 1"), "{flags}");
        }
        for flags in
            ["--tot-breadth 0", "--tot-proposals 0", "--tot-depth 0", "--got-max-nodes 0", "--parallel 0"]
        {
            assert!(Cli::try_parse_from(["qwen"].into_iter().chain(flags.split(' '))).is_err(), "{flags}");
        }
    }

    #[test]
    fn an_agent_that_is_not_there_is_refused_with_those_that_are() {
        let agent = |name: &str| agent(&Cli::parse_from(["qwen", "--agent", name]).run);
        assert_eq!(agent("got").as_deref(), Ok("got"));
        assert!(agent("magic").unwrap_err().message.contains("react, tot, got"));
    }
}
