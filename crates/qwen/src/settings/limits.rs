//! The limits of a run.

use std::time::Duration;

use qwen_engine::Limits;
use qwen_events::ErrorInfo;

use super::bad_flag;
use crate::cli::Run;

pub(super) fn resolve(run: &Run) -> Result<Limits, ErrorInfo> {
    Ok(Limits {
        session_turns: count(run.max_session_turns),
        turns: count(run.max_turns),
        tool_calls: count(run.max_tool_calls),
        wall_time: run.max_wall_time.as_deref().map(wall_time).transpose()?,
        tokens: run.max_tokens_total,
    })
}

/// A negative count means no limit, which is how other programs of this kind spell it.
fn count(value: Option<i64>) -> Option<u64> {
    value.and_then(|n| u64::try_from(n).ok())
}

fn wall_time(text: &str) -> Result<Duration, ErrorInfo> {
    duration(text).ok_or_else(|| {
        bad_flag(format!("--max-wall-time '{text}': give seconds, or a time like 90s, 5m or 1h"))
    })
}

/// Seconds, or a number with `ms`, `s`, `m` or `h`.
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
