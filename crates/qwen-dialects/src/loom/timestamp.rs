//! Moments in RFC 3339.

use qwen_events::Timestamp;

/// The moment in RFC 3339, in UTC, to the millisecond.
pub fn rfc3339(at: Timestamp) -> String {
    let (seconds, millis) = (at.0 / 1000, at.0 % 1000);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The year, month and day that are `days` after 1970-01-01. Years are counted from March, so that the leap
/// day is the last day of one and months have lengths that a straight line gives.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468; // from 0000-03-01
    const ERA: u64 = 146_097; // days in 400 years
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_rfc_3339() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_739_430_123_045, "2025-02-13T07:02:03.045Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Timestamp(millis)), expected);
        }
    }

    #[test]
    fn days_follow_each_other() {
        let mut last = civil(0);
        for days in 1..200_000 {
            let next = civil(days);
            let (year, month, day) = last;
            assert!(
                next == (year, month, day + 1)
                    || next == (year, month + 1, 1) && day >= 28
                    || next == (year + 1, 1, 1) && (month, day) == (12, 31),
                "{last:?} {next:?}"
            );
            last = next;
        }
    }
}
