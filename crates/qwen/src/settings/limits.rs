//! Resolves the limits of a run.

use std::time::Duration;

use qwen_engine::{Limits, Price, Prices};
use qwen_events::{ErrorInfo, ErrorKind};

use super::file;

pub(super) fn resolve(limits: &file::Limits, prices: Prices) -> Limits {
    Limits {
        session_turns: count(limits.max_session_turns),
        turns: count(limits.max_turns),
        tool_calls: count(limits.max_tool_calls),
        wall_time: limits.max_wall_time,
        tokens: limits.max_tokens_total,
        cost_usd: limits.max_budget_usd.filter(|dollars| *dollars >= 0.0),
        prices,
        steps: None,
    }
}

/// The prices of models.
pub(super) fn prices(model: &file::Model) -> Prices {
    Prices::new(model.prices.iter().map(|(name, price)| {
        let (input, output) = (price.input, price.output);
        (name.clone(), Price { input, output, cache_read: price.cache_read, cache_write: price.cache_write })
    }))
}

/// Refuses a cost limit that cannot be enforced because the model has no price.
pub(super) fn refuse_unpriced(limits: &Limits, model: &str) -> Result<(), ErrorInfo> {
    let Some(limit) = limits.cost_usd.filter(|_| limits.prices.find(model).is_none()) else { return Ok(()) };
    let message = format!(
        "the limit of {limit} US dollars (--max-budget-usd) cannot be enforced: the price of the model '{model}' is not \
         known; state it in the setting model.prices"
    );
    Err(ErrorInfo::new(ErrorKind::Settings, "unknown_price", message).with_param("max_budget_usd"))
}

/// A negative count means no limit, as in similar programs.
fn count(value: Option<i64>) -> Option<u64> {
    value.and_then(|n| u64::try_from(n).ok())
}

/// Parses seconds, or a number with `ms`, `s`, `m` or `h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.trim().char_indices().find(|(_, c)| c.is_ascii_alphabetic()) {
        Some((at, _)) => text.trim().split_at(at),
        None => (text.trim(), "s"),
    };
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        for (text, seconds) in
            [("90", 90.0), ("90s", 90.0), ("1.5", 1.5), ("5m", 300.0), ("1h", 3600.0), ("250ms", 0.25)]
        {
            assert_eq!(duration(text).expect(text).as_secs_f64(), seconds, "{text}");
        }
        for text in ["", "m", "-1", "5 parsecs", "1e400", "NaN"] {
            assert!(duration(text).is_none(), "{text}");
        }
    }
}
