//! Token usage.

use std::sync::Arc;

/// Tokens of one model call, or the sum over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read by the model, including cached ones.
    pub prompt_tokens: u64,
    /// Tokens written by the model, including thinking.
    pub completion_tokens: u64,
    /// Of the prompt tokens, those served from the provider's cache.
    pub cached_tokens: u64,
    /// Of the prompt tokens, those newly written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Of the completion tokens, those spent on thinking.
    pub thought_tokens: u64,
    /// True if the provider reported no usage and the numbers are estimates.
    pub estimated: bool,
}

impl Usage {
    /// Prompt and completion tokens.
    pub fn total(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds another call's tokens; a sum that includes an estimate is an estimate.
    pub fn add(&mut self, other: &Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.thought_tokens = self.thought_tokens.saturating_add(other.thought_tokens);
        self.estimated |= other.estimated;
    }
}

/// What the runs of one sub-agent spent within a turn, without the sub-agents that it started.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentUsage {
    /// The name of its definition, such as `explore`.
    pub agent: Arc<str>,
    /// How often it was started.
    pub runs: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub usage: Usage,
    /// The price of its model calls in US dollars, if prices are known.
    pub cost_usd: f64,
}

impl AgentUsage {
    /// Adds what further runs of the same sub-agent spent.
    pub fn add(&mut self, more: &Self) {
        self.runs += more.runs;
        self.model_calls += more.model_calls;
        self.tool_calls += more.tool_calls;
        self.usage.add(&more.usage);
        self.cost_usd += more.cost_usd;
    }
}

/// The usage of one model within a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUsage {
    pub model: Arc<str>,
    /// The number of calls to the model.
    pub calls: u64,
    /// The tokens of these calls.
    pub usage: Usage,
    /// The price of these calls in US dollars, if prices are known.
    pub cost_usd: f64,
}
