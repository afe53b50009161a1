//! Rate limits in the headers of a response.

mod reset;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::http::HeaderMap;
use qwen_events::{RateLimit, RateLimitStatus};

pub(crate) use reset::reset_after;

/// The prefix of the headers with which Anthropic's server reports the use of a subscription.
const UNIFIED: &str = "anthropic-ratelimit-unified-";

/// The most recently reported limits.
#[derive(Default)]
pub(crate) struct LastLimit(Mutex<Option<RateLimit>>);

impl LastLimit {
    /// The limits to report for this response: none unless the server reports limits that differ from the
    /// last ones. The utilization grows with every call and alone is not reported.
    pub(crate) fn changed_limits(
        &self,
        status: u16,
        headers: &HeaderMap,
        retry_after: Option<Duration>,
        now: SystemTime,
    ) -> Option<RateLimit> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reported = match (read(headers), &*last) {
            (Some(reported), _) => reported,
            (None, _) if status == 429 => RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at: retry_after.and_then(|wait| seconds(now.checked_add(wait)?)),
                ..RateLimit::default()
            },
            // A server that rejected calls accepts them again.
            (None, Some(last))
                if last.status == RateLimitStatus::Rejected && (200..300).contains(&status) =>
            {
                RateLimit::default()
            }
            (None, _) => return None,
        };
        let known = last.as_ref().is_some_and(|last| {
            let last = RateLimit { utilization: reported.utilization, ..last.clone() };
            last == reported
        });
        *last = Some(reported.clone());
        (!known).then_some(reported)
    }
}

fn read(headers: &HeaderMap) -> Option<RateLimit> {
    let text = |name: &str| {
        let value = headers.get(format!("{UNIFIED}{name}").as_str())?;
        value.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    };
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let status = RateLimitStatus::parse(text("status")?)?;
    let kind = text("representative-claim");
    let window = match kind {
        Some(kind) if kind.starts_with("seven_day") => Some("7d-utilization"),
        Some("five_hour") => Some("5h-utilization"),
        _ => None,
    };
    let utilization = window.and_then(text).and_then(|share| share.parse::<f64>().ok());
    Some(RateLimit {
        status,
        resets_at: number("reset"),
        kind: kind.map(Arc::from),
        utilization: utilization.filter(|share| share.is_finite()),
        overage: text("overage-status").and_then(RateLimitStatus::parse),
        overage_resets_at: number("overage-reset"),
        overage_disabled_reason: text("overage-disabled-reason").map(Arc::from),
    })
}

fn seconds(moment: SystemTime) -> Option<u64> {
    moment.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(named: &[(&'static str, &str)]) -> HeaderMap {
        named.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    const WARNED: [(&str, &str); 4] = [
        ("anthropic-ratelimit-unified-status", "allowed_warning"),
        ("anthropic-ratelimit-unified-reset", "1800000000"),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ("anthropic-ratelimit-unified-5h-utilization", "0.83"),
    ];

    #[test]
    fn rate_limits_are_reported_when_they_change_and_not_when_usage_grows() {
        let last = LastLimit::default();
        let report = |status, named: &[(&'static str, &str)]| {
            last.changed_limits(status, &headers(named), None, SystemTime::UNIX_EPOCH)
        };
        assert_eq!(report(200, &[]), None);
        let warned = report(200, &WARNED).unwrap();
        assert_eq!((warned.status, warned.resets_at), (RateLimitStatus::AllowedWarning, Some(1_800_000_000)));
        assert_eq!((warned.kind.as_deref(), warned.utilization), (Some("five_hour"), Some(0.83)));
        assert_eq!(report(200, &WARNED), None);
        let mut more = WARNED;
        more[3].1 = "0.9";
        assert_eq!(report(200, &more), None);
        more[0].1 = "rejected";
        assert_eq!(report(429, &more).map(|reported| reported.status), Some(RateLimitStatus::Rejected));
        assert_eq!(report(500, &[]), None);
        more[0].1 = "a word that nobody knows";
        assert_eq!(report(200, &more).map(|reported| reported.status), Some(RateLimitStatus::Allowed));
    }

    #[test]
    fn a_refusal_without_such_headers_says_when_to_come_back_and_a_success_that_it_is_over() {
        let last = LastLimit::default();
        let report = |status| {
            last.changed_limits(
                status,
                &HeaderMap::new(),
                Some(Duration::from_secs(7)),
                SystemTime::UNIX_EPOCH,
            )
        };
        let refused = report(429).unwrap();
        assert_eq!((refused.status, refused.resets_at), (RateLimitStatus::Rejected, Some(7)));
        assert_eq!((report(429), report(503)), (None, None));
        assert_eq!(report(200), Some(RateLimit::default()));
        assert_eq!(report(200), None);
    }
}
