//! Prices of models.

use std::sync::Arc;

use qwen_events::Usage;
use qwen_model::{KnownPrice, find_known_model};

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// The price of input tokens.
    pub input: f64,
    /// The price of output tokens.
    pub output: f64,
    /// Tokens read from the provider's cache; `None` means the price of `input`.
    pub cache_read: Option<f64>,
    /// Tokens newly written to the provider's cache; `None` means the price of `input`.
    pub cache_write: Option<f64>,
}

/// Prices by model. A name applies to all models whose names start with it, and `*` to all models without
/// another match: servers add dates and versions to the names of their models.
#[derive(Debug, Clone, Default)]
pub struct Prices(Arc<[(Box<str>, Price)]>);

impl Prices {
    pub fn new(prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self(prices.into_iter().map(|(name, price)| (name.into(), price)).collect())
    }

    /// The price of a model, if known: from these prices, or else from the list of common models.
    pub fn find(&self, model: &str) -> Option<Price> {
        let fitting = self.0.iter().filter(|(name, _)| &**name == "*" || model.starts_with(&**name));
        let closest = fitting.max_by_key(|(name, _)| if &**name == "*" { 0 } else { name.len() + 1 });
        closest.map(|(_, price)| *price).or_else(|| listed_price(model))
    }

    /// The cost of a call in US dollars; 0 if the price is unknown.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> f64 {
        let Some(price) = self.find(model) else { return 0.0 };
        let (read, written) = (usage.cached_tokens, usage.cache_write_tokens);
        let plain = usage.prompt_tokens.saturating_sub(read).saturating_sub(written);
        let parts = [
            (plain, price.input),
            (read, price.cache_read.unwrap_or(price.input)),
            (written, price.cache_write.unwrap_or(price.input)),
            (usage.completion_tokens, price.output),
        ];
        parts.into_iter().map(|(tokens, price)| millions(tokens) * price).sum()
    }
}

fn listed_price(model: &str) -> Option<Price> {
    let KnownPrice { input, output, cache_read, cache_write } = find_known_model(model)?.price?;
    Some(Price { input, output, cache_read, cache_write })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no call has so many tokens that a double could not count them"
)]
fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_a_model_begins_with_says_its_price() {
        let price = |input| Price { input, ..Price::default() };
        let prices = Prices::new([
            ("*".to_owned(), price(1.0)),
            ("qwen".to_owned(), price(2.0)),
            ("qwen3-coder".to_owned(), price(3.0)),
        ]);
        for (model, input) in
            [("gpt", 1.0), ("qwen-max", 2.0), ("qwen3-coder-2025", 3.0), ("qwen3-coder", 3.0)]
        {
            assert_eq!(prices.find(model).map(|price| price.input), Some(input), "{model}");
        }
        assert_eq!(Prices::default().find("qwen"), None);
        let listed = Prices::default().find("claude-sonnet-4-5").map(|price| (price.input, price.output));
        assert_eq!(listed, Some((3.0, 15.0)));
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { input: 10.0, output: 100.0, cache_read: Some(1.0), cache_write: Some(20.0) };
        let prices = Prices::new([("m".to_owned(), price)]);
        let usage = Usage {
            prompt_tokens: 1_000_000,
            cached_tokens: 500_000,
            cache_write_tokens: 100_000,
            completion_tokens: 10_000,
            ..Usage::default()
        };
        assert!((prices.cost("m", &usage) - (4.0 + 0.5 + 2.0 + 1.0)).abs() < 1e-9);
    }
}
