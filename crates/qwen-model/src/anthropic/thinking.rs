//! The thinking that a request asks for, in the form that its model accepts.
//!
//! Models differ: older ones take a token budget, newer ones decide themselves and take an effort, and of those some
//! cannot stop thinking. A form that the model does not accept is an error of the server. The defaults are those of the
//! vendor's own CLI.

use qwen_events::{Reasoning, Sampling};

use crate::json::JsonWriter;
use crate::known_models::{KnownModel, ThinkingSupport};

/// The budget of models that need one, if the request sets none.
const DEFAULT_BUDGET: u64 = 31_999;

/// The token allowance for adaptive thinking of models whose longest answer is unknown.
const ADAPTIVE_TOKENS: u64 = 16_384;

/// The smallest thinking budget that the wire accepts.
const MIN_BUDGET: u64 = 1024;

/// The thinking configuration on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Omitted: the model uses its default.
    Unsaid,
    Disabled,
    /// The model decides; the tokens are added to the answer's limit.
    Adaptive(u64),
    Enabled(u64),
}

impl Thinking {
    /// The thinking of a request to a model.
    pub fn from_sampling(sampling: &Sampling, known: Option<&KnownModel>) -> Self {
        let asked = Self::asked(sampling);
        // The wire accepts neither of these together with thinking, so that a request with one of them does not
        // think by default.
        let samples = sampling.temperature.is_some() || sampling.top_p.is_some();
        match known.and_then(|model| model.thinking) {
            None => asked,
            Some(ThinkingSupport::Never) => Self::Unsaid,
            Some(ThinkingSupport::Budget) => match asked {
                Self::Unsaid if samples => Self::Unsaid,
                Self::Unsaid | Self::Adaptive(_) => {
                    Self::Enabled(effort_budget(sampling).unwrap_or(DEFAULT_BUDGET))
                }
                asked => asked,
            },
            Some(ThinkingSupport::Adaptive) => match asked {
                Self::Unsaid if samples => Self::Unsaid,
                Self::Disabled => Self::Disabled,
                Self::Enabled(tokens) | Self::Adaptive(tokens) => Self::Adaptive(tokens),
                Self::Unsaid => Self::Adaptive(ADAPTIVE_TOKENS),
            },
            Some(ThinkingSupport::Always) => Self::Adaptive(asked.tokens().max(ADAPTIVE_TOKENS)),
        }
    }

    /// The thinking that the request itself asks for.
    fn asked(sampling: &Sampling) -> Self {
        let budget = effort_budget(sampling);
        match sampling.reasoning {
            Some(Reasoning::Off) => Self::Disabled,
            Some(Reasoning::Adaptive) => Self::Adaptive(budget.unwrap_or(ADAPTIVE_TOKENS)),
            Some(Reasoning::Budget(tokens)) => Self::Enabled(tokens.max(MIN_BUDGET)),
            None => budget.map_or(Self::Unsaid, Self::Enabled),
        }
    }

    pub fn is_on(self) -> bool {
        matches!(self, Self::Adaptive(_) | Self::Enabled(_))
    }

    /// The tokens needed in addition to the answer.
    pub fn tokens(self) -> u64 {
        match self {
            Self::Unsaid | Self::Disabled => 0,
            Self::Adaptive(tokens) | Self::Enabled(tokens) => tokens,
        }
    }

    /// Lowers a budget to what fits below the limit of answer and thinking together.
    pub fn within(self, max_tokens: u64) -> Self {
        match self {
            Self::Enabled(budget) => Self::Enabled(budget.min(max_tokens.saturating_sub(1)).max(MIN_BUDGET)),
            other => other,
        }
    }

    /// Writes the keys `thinking` and `output_config`.
    pub fn write(self, w: &mut JsonWriter, sampling: &Sampling) {
        self.write_kind(w, sampling);
        self.write_output_config(w, sampling);
    }

    fn write_kind(self, w: &mut JsonWriter, sampling: &Sampling) {
        let word = match self {
            Self::Unsaid => return,
            Self::Disabled => "disabled",
            Self::Adaptive(_) => "adaptive",
            Self::Enabled(_) => "enabled",
        };
        w.key("thinking").object(|w| {
            w.key("type").string(word);
            if let Self::Enabled(budget) = self {
                w.key("budget_tokens").number(budget);
            }
            if let Some(thoughts) = sampling.thoughts.filter(|_| self.is_on()) {
                w.key("display").string(thoughts.name());
            }
        });
    }

    /// The effort of adaptive thinking, and the token budget of the whole turn.
    fn write_output_config(self, w: &mut JsonWriter, sampling: &Sampling) {
        let effort = sampling.effort.as_deref().filter(|_| matches!(self, Self::Adaptive(_)));
        if effort.is_none() && sampling.task_budget.is_none() {
            return;
        }
        w.key("output_config").object(|w| {
            if let Some(effort) = effort {
                w.key("effort").string(effort);
            }
            if let Some(total) = sampling.task_budget {
                w.key("task_budget").object(|w| {
                    w.key("type").string("tokens");
                    w.key("total").number(total);
                });
            }
        });
    }
}

/// The token budget of the request's effort; none for an effort that disables thinking.
fn effort_budget(sampling: &Sampling) -> Option<u64> {
    match sampling.effort.as_deref()? {
        "low" => Some(2048),
        "medium" => Some(8192),
        "high" => Some(16_384),
        "xhigh" | "max" => Some(32_768),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_models::find_known_model;

    #[test]
    fn each_claude_model_gets_the_thinking_that_it_accepts() {
        use Thinking::{Adaptive, Disabled, Enabled, Unsaid};
        let (off, adaptive, budget) =
            (Some(Reasoning::Off), Some(Reasoning::Adaptive), Some(Reasoning::Budget(5000)));
        for (model, reasoning, expected) in [
            ("claude-3-5-haiku-20241022", None, Unsaid),
            ("claude-3-5-haiku-20241022", budget, Unsaid),
            ("claude-sonnet-4-5", None, Enabled(31_999)),
            ("claude-sonnet-4-5", adaptive, Enabled(31_999)),
            ("claude-sonnet-4-5", budget, Enabled(5000)),
            ("claude-sonnet-4-5", off, Disabled),
            ("claude-opus-4-6", None, Adaptive(16_384)),
            ("claude-opus-4-6", budget, Adaptive(5000)),
            ("claude-opus-4-6", off, Disabled),
            ("claude-opus-5-5", None, Adaptive(16_384)),
            ("claude-opus-5-5", off, Adaptive(16_384)),
            ("qwen3-coder", None, Unsaid),
            ("qwen3-coder", budget, Enabled(5000)),
        ] {
            let sampling = Sampling { reasoning, ..Sampling::default() };
            assert_eq!(
                Thinking::from_sampling(&sampling, find_known_model(model).as_ref()),
                expected,
                "{model} {reasoning:?}"
            );
        }
    }

    #[test]
    fn a_temperature_turns_thinking_off_only_where_it_is_a_default() {
        let with = |model: &str, reasoning| {
            let sampling = Sampling { temperature: Some(0.2), reasoning, ..Sampling::default() };
            Thinking::from_sampling(&sampling, find_known_model(model).as_ref())
        };
        assert_eq!(with("claude-sonnet-4-5", None), Thinking::Unsaid);
        assert_eq!(with("claude-opus-4-6", None), Thinking::Unsaid);
        assert!(with("claude-opus-4-6", Some(Reasoning::Adaptive)).is_on());
        assert!(with("claude-opus-5-5", None).is_on());
    }
}
