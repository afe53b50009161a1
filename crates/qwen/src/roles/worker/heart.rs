//! Signs of life: at once when they are asked for, and by themselves when that is asked for.

use std::sync::Arc;
use std::time::Duration;

use qwen_engine::SessionOverrides;
use qwen_events::{Body, Heartbeat, SessionId};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::serve::Worker;

/// The shortest and the longest pause between signs of life, in milliseconds: more often says nothing new, and more
/// seldom is as good as never.
const PAUSES: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// A heart that beats until it is dropped.
pub(super) struct Heart(JoinHandle<()>);

impl Drop for Heart {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A sign of life of a worker that is, or is not, in a turn.
pub(super) fn beat(overrides: &SessionOverrides, session_id: SessionId, in_turn: bool) -> Body {
    let activity = in_turn.then(|| overrides.in_flight().activity());
    Body::Heartbeat(Box::new(Heartbeat { session_id, activity }))
}

impl Worker {
    /// Beats by itself every so many milliseconds from now on; 0 ends that, and nothing changes nothing.
    pub(super) fn beat_every(&mut self, milliseconds: Option<u64>) {
        let Some(milliseconds) = milliseconds else { return };
        self.heart = None;
        if milliseconds == 0 {
            return;
        }
        let pause = Duration::from_millis(milliseconds.clamp(*PAUSES.start(), *PAUSES.end()));
        let (emit, host, overrides) =
            (self.emit.clone(), self.host.clone(), Arc::clone(&self.parts.overrides));
        self.heart = Some(Heart(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(pause);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first tick comes at once, and the request was answered at once already.
            ticks.tick().await;
            loop {
                ticks.tick().await;
                emit.emit(beat(&overrides, host.session(), overrides.in_flight().is_in_turn())).await;
            }
        })));
    }
}
