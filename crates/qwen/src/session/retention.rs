//! Decides which stored sessions exceed the limits on age, number and size.

use qwen_engine::log::{Store, Summary};
use qwen_events::{SessionId, Timestamp};

use crate::runtime::clock;
use crate::settings::{Config, SessionStart};

const DAY_MS: u64 = 86_400_000;
const MIB: u64 = 1024 * 1024;

/// The limits of stored sessions; none means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Days without activity after which a session is deleted.
    pub days: Option<u64>,
    pub count: Option<usize>,
    /// The size of all sessions together, in MiB.
    pub mib: Option<u64>,
}

impl Retention {
    pub fn is_unlimited(self) -> bool {
        self == Self::default()
    }

    /// The sessions that exceed a limit. `sessions` has the latest first.
    pub fn expired(self, sessions: Vec<Summary>, now: Timestamp) -> Vec<SessionId> {
        let (mut kept, mut bytes) = (0, 0_u64);
        let mut expired = Vec::new();
        for session in sessions {
            let days = now.0.saturating_sub(session.last_activity.0) / DAY_MS;
            bytes = bytes.saturating_add(session.bytes);
            let too_old = self.days.is_some_and(|most| days >= most);
            let too_many = self.count.is_some_and(|most| kept >= most);
            let too_large = self.mib.is_some_and(|most| bytes > most.saturating_mul(MIB));
            if too_old || too_many || too_large {
                expired.push(session.header.session_id);
            } else {
                kept += 1;
            }
        }
        expired
    }
}

/// Deletes the sessions that exceed the limits of the settings, except the one that this run continues.
pub fn apply(config: &Config) {
    let limits = &config.settings.sessions;
    let retention = Retention { days: limits.max_age_days, count: limits.max_count, mib: limits.max_size_mb };
    let Some(store) = config.session.store.as_ref().filter(|_| config.session.record) else { return };
    if retention.is_unlimited() {
        return;
    }
    delete_expired(store, retention, config);
}

fn delete_expired(store: &Store, retention: Retention, config: &Config) {
    let Ok(sessions) = store.list(None) else { return };
    let continued = match &config.session.start {
        SessionStart::Forked { from, .. } => Some(from),
        SessionStart::New | SessionStart::Named | SessionStart::Resumed { .. } => None,
    };
    for id in retention.expired(sessions, clock::now()) {
        if id != config.session.id && Some(&id) != continued {
            // A session in use by another process cannot be deleted and stays.
            let _ = store.delete(&id);
        }
    }
}
