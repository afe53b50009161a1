//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use qwen_events::Timestamp;

/// Returns the time in milliseconds since the Unix epoch.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
