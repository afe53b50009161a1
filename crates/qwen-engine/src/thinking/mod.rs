//! What trees and graphs of thoughts share: model calls that are no messages, votes, prompts, and the node that writes
//! the reply.

mod answer;
mod prompt;
mod retry;
mod runner;
mod summary;
mod values;

pub(crate) use answer::{Answering, answer};
pub(crate) use prompt::Prompt;
pub(crate) use runner::{ThoughtFailure, ThoughtRequest, ThoughtRunner};
pub(crate) use summary::summary;
pub(crate) use values::{NEUTRAL, mean, read_values};

use std::time::Duration;

use crate::got::GotOptions;
use crate::tot::TotOptions;

/// How the agents that think in trees and graphs do it.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinkingOptions {
    /// Trees of thoughts.
    pub tot: TotOptions,
    /// Graphs of thoughts.
    pub got: GotOptions,
    /// How many model calls of one run may be under way at the same time.
    pub parallel: usize,
    /// How long one thought may take, each time it is tried.
    pub timeout: Option<Duration>,
    /// How often a thought is tried again after a failure that may pass.
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
