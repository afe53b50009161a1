//! Polling for an answer that comes at once.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Notify;

use super::Hub;

/// How long the hub polls for a worker's answer before it sleeps. A worker answers a control request within
/// this time, and waking a sleeping process on an idle processor takes about as long.
const POLL_TIME: Duration = Duration::from_micros(60);

/// After it has passed a line to a worker the hub polls for a moment, so that an immediate answer needs no
/// wake-up.
#[derive(Default)]
pub(super) struct AnswerPolling {
    requested: Notify,
    until: Cell<Duration>,
}

impl AnswerPolling {
    /// A worker has received a line and may answer soon.
    pub fn start(&self, now: Duration) {
        self.until.set(now + POLL_TIME);
        self.requested.notify_one();
    }

    /// A worker has written something.
    pub fn stop(&self) {
        self.until.set(Duration::ZERO);
    }
}

impl Hub {
    /// Polls whenever it is requested.
    pub(super) async fn run_polling(self) {
        let polling = &self.0.polling;
        while self.0.exit.get().is_none() {
            polling.requested.notified().await;
            while self.now() < polling.until.get() {
                // The worker may wait for this processor.
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        }
    }
}
