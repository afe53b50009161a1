//! Heartbeats: in answer to a request, and periodically if the host requests it.

use std::sync::Arc;
use std::time::Duration;

use qwen_engine::{Emitter, SessionOverrides};
use qwen_events::{Body, Heartbeat, SessionId};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::host::ControlHost;

/// The bounds of the interval, in milliseconds.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// Sends heartbeats periodically until it is stopped or dropped.
#[derive(Default)]
pub(super) struct HeartbeatTimer(Option<JoinHandle<()>>);

/// One heartbeat; `in_turn` adds the state of the turn.
pub(super) fn heartbeat(overrides: &SessionOverrides, session_id: SessionId, in_turn: bool) -> Body {
    let activity = in_turn.then(|| overrides.in_flight().activity());
    Body::Heartbeat(Box::new(Heartbeat { session_id, activity }))
}

impl HeartbeatTimer {
    /// Sends a heartbeat every `milliseconds` from now on. 0 stops the timer; none leaves it as it is.
    pub fn set_interval(
        &mut self,
        milliseconds: Option<u64>,
        emit: &Emitter,
        host: &Arc<ControlHost>,
        overrides: &Arc<SessionOverrides>,
    ) {
        let Some(milliseconds) = milliseconds else { return };
        self.stop();
        if milliseconds == 0 {
            return;
        }
        let interval = Duration::from_millis(milliseconds.clamp(*INTERVAL_MS.start(), *INTERVAL_MS.end()));
        let (emit, host, overrides) = (emit.clone(), host.clone(), overrides.clone());
        self.0 = Some(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first tick is immediate, and the request itself has already been answered.
            ticks.tick().await;
            loop {
                ticks.tick().await;
                emit.emit(heartbeat(&overrides, host.session(), overrides.in_flight().is_in_turn())).await;
            }
        }));
    }

    pub fn stop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Drop for HeartbeatTimer {
    fn drop(&mut self) {
        self.stop();
    }
}
