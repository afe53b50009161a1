//! Tokens spent.

use std::sync::Arc;

/// Tokens of one model call, or the sum over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read by the model, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens written by the model, thoughts included.
    pub completion_tokens: u64,
    /// Of the prompt tokens, those served from the provider's cache.
    pub cached_tokens: u64,
    /// Of the prompt tokens, those newly written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Of the completion tokens, those spent on thinking.
    pub thought_tokens: u64,
    /// The provider reported none and these are our own estimate.
    pub estimated: bool,
}

impl Usage {
    /// Prompt and completion together.
    pub fn total(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Adds another call's tokens; a sum with one estimate in it is an estimate.
    pub fn add(&mut self, other: &Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.thought_tokens = self.thought_tokens.saturating_add(other.thought_tokens);
        self.estimated |= other.estimated;
    }
}

/// What one model spent within a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUsage {
    /// The model's name.
    pub model: Arc<str>,
    /// Calls made to it.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their price in US dollars, when prices are known.
    pub cost_usd: f64,
}
