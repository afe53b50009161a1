//! Bytes for the client.

use std::cell::Cell;

use tokio::sync::Notify;

use super::Hub;

/// Writes to the client what it can without waiting, and returns the number of bytes that were accepted.
pub type WriteNow = Box<dyn Fn(&[u8]) -> usize>;

/// How output reaches the client.
pub(super) struct ClientOutput {
    /// Writes at once, which spares a line the way through the scheduler; without it, [`Hub::next_output`]
    /// returns all output.
    pub write_now: Option<WriteNow>,
    /// Signalled when there is output for [`Hub::next_output`].
    pub ready: Notify,
    /// True while bytes that [`Hub::next_output`] returned may not be written yet: later ones must wait.
    pub in_progress: Cell<bool>,
}

impl ClientOutput {
    pub fn new(write_now: Option<WriteNow>) -> Self {
        Self { write_now, ready: Notify::new(), in_progress: Cell::new(false) }
    }
}

impl Hub {
    /// The next bytes for the client; none when all work is finished. The bytes of the last call must be
    /// written before the next one.
    pub async fn next_output(&self) -> Option<Vec<u8>> {
        let output = &self.0.output;
        output.in_progress.set(false);
        loop {
            let bytes = self.0.router.borrow_mut().take_output();
            if !bytes.is_empty() {
                self.0.room.notify_waiters();
                output.in_progress.set(true);
                // Lines that waited for room follow.
                self.apply();
                return Some(bytes);
            }
            if self.0.exit.get().is_some() {
                return None;
            }
            output.ready.notified().await;
        }
    }

    /// Passes pending output on: at once if the client accepts it, otherwise through [`Hub::next_output`]. Returns
    /// true if there is room for output that waited for it.
    pub(super) fn flush_output(&self) -> bool {
        let output = &self.0.output;
        let mut router = self.0.router.borrow_mut();
        if let Some(write_now) = output.write_now.as_ref().filter(|_| !output.in_progress.get()) {
            let pending = router.output();
            if !pending.is_empty() {
                let written = write_now(pending);
                router.output_written(written);
                self.0.room.notify_waiters();
            }
        }
        if !router.output().is_empty() || self.0.exit.get().is_some() {
            output.ready.notify_one();
        }
        router.has_actions()
    }
}
