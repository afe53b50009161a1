//! When a server's limits are reset, by the headers of a refusal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::http::HeaderMap;
use qwen_events::{RateLimit, RateLimitStatus};

/// The limits that providers report: the header with what remains, and the one with the reset. The first form is
/// OpenAI's, which many servers share, the last one Anthropic's.
const LIMITS: &[(&str, &str)] = &[
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Numbers above this are milliseconds since 1970.
const FIRST_MILLISECONDS: u64 = 100_000_000_000;
/// Numbers above this are seconds since 1970, below it seconds from now.
const FIRST_SECONDS: u64 = 100_000_000;

/// The time until all exhausted limits are reset; none if the headers do not state it.
pub(crate) fn reset_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(RateLimit { status: RateLimitStatus::Rejected, resets_at: Some(at), .. }) =
        super::read(headers)
    {
        return Some(wait_until(at, now));
    }
    let is_exhausted = |(remaining, _): &&(&str, &str)| {
        text(remaining).and_then(|left| left.parse::<f64>().ok()).is_some_and(|left| left <= 0.0)
    };
    let exhausted = LIMITS.iter().filter(is_exhausted);
    exhausted.filter_map(|(_, reset)| parse_reset(text(reset)?, now)).max()
}

/// Parses a reset: a number of seconds or a moment, `1m30.5s`, or a date.
fn parse_reset(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(whole) = text.parse::<u64>() {
        return Some(match whole {
            n if n > FIRST_MILLISECONDS => wait_until(n.div_ceil(1000), now),
            n if n > FIRST_SECONDS => wait_until(n, now),
            n => Duration::from_secs(n),
        });
    }
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    seconds().or_else(|| parse_units(text)).or_else(|| parse_date(text).map(|at| wait_until(at, now)))
}

fn wait_until(at: u64, now: SystemTime) -> Duration {
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(at));
    at.and_then(|at| at.duration_since(now).ok()).unwrap_or(Duration::ZERO)
}

/// Parses a duration such as `6m0s`, `1h2m` or `20ms`.
fn parse_units(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

/// Parses a date in UTC such as `2026-01-27T12:00:00Z` to seconds since 1970. Fractions are ignored.
fn parse_date(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?.split_once('T')?;
    let time = time.split('.').next().unwrap_or(time);
    let numbers = |text: &str, separator| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(separator).map(|part| part.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some((days - DAYS_BEFORE_1970) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1 March of year 0 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(named: &[(&'static str, &str)]) -> Option<u64> {
        let headers =
            named.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        reset_after(&headers, UNIX_EPOCH + Duration::from_secs(1_800_000_000)).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_refusal_is_over_when_all_exhausted_limits_are_reset() {
        let openai = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "1m30s"),
            ("x-ratelimit-remaining-tokens", "500"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        assert_eq!(after(&openai), Some(90));
        let anthropic = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2027-01-15T08:00:07Z"),
        ];
        assert_eq!(after(&anthropic), Some(7));
        let unified = [
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-reset", "1800000030"),
        ];
        assert_eq!(after(&unified), Some(30));
        assert_eq!(after(&[("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "12")]), None);
    }

    #[test]
    fn resets_are_understood_in_all_their_forms() {
        for (text, seconds) in [
            ("12", Some(12)),
            ("12.5", Some(12)),
            ("1800000005", Some(5)),
            ("1800000005000", Some(5)),
            ("1h2m", Some(3720)),
            ("20ms", Some(0)),
            ("2027-01-15T08:00:09.123Z", Some(9)),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(
                after(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", text)]),
                seconds,
                "{text}"
            );
        }
    }
}
