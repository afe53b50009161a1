//! Shared parts of the `tot` and `got` agents: model calls outside the conversation, votes, prompts, and the
//! node that writes the reply.

mod answer;
mod ending;
mod prompt;
mod retry;
mod runner;
mod summary;
mod values;

pub(crate) use answer::{Answering, answer};
pub(crate) use ending::{Conclusion, SearchEnding, delta_to_json, state_to_json};
pub(crate) use prompt::Prompt;
pub(crate) use runner::{ThoughtFailure, ThoughtRequest, ThoughtRunner};
pub(crate) use summary::summary;
pub(crate) use values::{NEUTRAL, mean, read_values};

use std::time::Duration;

use crate::got::GotOptions;
use crate::tot::TotOptions;

/// Options of the `tot` and `got` agents.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinkingOptions {
    pub tot: TotOptions,
    pub got: GotOptions,
    /// The maximum number of concurrent model calls of one run.
    pub parallel: usize,
    /// The timeout of a thought, per attempt.
    pub timeout: Option<Duration>,
    /// How often a thought is retried after a transient failure.
    pub retries: usize,
}

impl Default for ThinkingOptions {
    fn default() -> Self {
        Self {
            tot: TotOptions::default(),
            got: GotOptions::default(),
            parallel: 10,
            timeout: Some(Duration::from_secs(600)),
            retries: 1,
        }
    }
}
