//! Work beside the caller's that is gone, with all that it holds, the moment its tether is dropped: a task that is merely
//! aborted is dropped whenever its runtime gets to it, and processes must not wait for that.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::task::AbortHandle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that goes on by itself, until it is done or this is dropped.
pub(super) struct Tethered {
    _work: Arc<Mutex<Option<Work>>>,
    task: AbortHandle,
}

impl Tethered {
    /// Starts the work.
    pub(super) fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let work: Arc<Mutex<Option<Work>>> = Arc::new(Mutex::new(Some(Box::pin(work))));
        let held = Arc::downgrade(&work);
        let task = tokio::spawn(poll_fn(move |cx| {
            let Some(work) = held.upgrade() else { return Poll::Ready(()) };
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(future) = work.as_mut() else { return Poll::Ready(()) };
            let polled = future.as_mut().poll(cx);
            if polled.is_ready() {
                *work = None;
            }
            polled
        }));
        Self { _work: work, task: task.abort_handle() }
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        self.task.abort();
    }
}
