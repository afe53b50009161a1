//! Concurrent work that is dropped, with everything it owns, as soon as its handle is dropped. An aborted
//! tokio task is dropped only when the runtime next schedules it, and processes must not live that long.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::task::AbortHandle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that runs concurrently until it completes or this handle is dropped.
pub(super) struct AbortOnDrop {
    _work: Arc<Mutex<Option<Work>>>,
    task: AbortHandle,
}

impl AbortOnDrop {
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

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.task.abort();
    }
}
