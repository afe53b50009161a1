//! Exports spans: they wait in a bounded queue and are sent in batches, concurrently with the work and
//! without delaying it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::otlp;
use super::sink::{Failure, Sink, Target};
use super::span::Span;
use crate::runtime::exit;

/// The maximum number of waiting spans and their memory; further spans are dropped and counted.
const MAX_WAITING: usize = 2048;
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of spans in a batch and their total size, because collectors refuse larger requests.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 1024 * 1024;

/// How long spans wait for a batch to fill.
const GATHERING: Duration = Duration::from_secs(1);

/// The number of retries of a batch, the first pause, and the longest pause that a collector can request.
const RETRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// How long unsent spans may delay the end of the process.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(1500);

/// Sends spans. Its task starts with the first span.
pub(super) struct Exporter {
    waiting: Mutex<Waiting>,
    news: Notify,
    resource: Vec<(String, String)>,
    /// True once a problem was reported; further ones are not.
    is_loss_reported: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Span>,
    bytes: usize,
    /// The number of spans that were dropped because the queue was full.
    dropped: u64,
    /// The number of spans being sent.
    leaving: usize,
    closing: bool,
    /// Opened by the sending task.
    target: Option<Target>,
    task: Option<JoinHandle<()>>,
}

impl Exporter {
    pub fn new(target: Target, resource: Vec<(String, String)>) -> Self {
        let waiting = Mutex::new(Waiting { target: Some(target), ..Waiting::default() });
        Self { waiting, news: Notify::new(), resource, is_loss_reported: AtomicBool::new(false) }
    }

    /// Queues a finished span. A span of an unsampled trace is discarded.
    pub fn take(self: &Arc<Self>, span: Span) {
        if !span.context.sampled {
            return;
        }
        let span = span.finish();
        let mut waiting = self.lock();
        let weight = span.weight();
        if waiting.spans.len() >= MAX_WAITING || waiting.bytes + weight > MAX_WAITING_BYTES {
            waiting.dropped += 1;
            return;
        }
        waiting.bytes += weight;
        waiting.spans.push_back(span);
        if let (Some(target), Ok(runtime)) = (waiting.target.take(), Handle::try_current()) {
            waiting.task = Some(runtime.spawn(Arc::clone(self).run(Sink::new(target))));
        }
        if waiting.spans.len() == 1 || waiting.is_due() {
            self.news.notify_one();
        }
    }

    /// Sends the waiting spans within [`SHUTDOWN_LIMIT`], and nothing after that.
    pub async fn close(&self) {
        let task = {
            let mut waiting = self.lock();
            waiting.closing = true;
            waiting.task.take()
        };
        self.news.notify_one();
        if let Some(mut task) = task
            && tokio::time::timeout(SHUTDOWN_LIMIT, &mut task).await.is_err()
        {
            task.abort();
            let lost = {
                let waiting = self.lock();
                u64::try_from(waiting.spans.len() + waiting.leaving)
                    .unwrap_or(u64::MAX)
                    .saturating_add(waiting.dropped)
            };
            let limit = SHUTDOWN_LIMIT.as_millis();
            self.report_problem(&format!(
                "{lost} spans could not be exported within {limit} ms after the end and are lost"
            ));
        }
        let dropped = self.lock().dropped;
        if dropped > 0 {
            self.report_problem(&format!(
                "{dropped} spans were dropped: they were recorded faster than they could be sent"
            ));
        }
    }

    /// Reports a problem to the user, once.
    pub fn report_problem(&self, text: &str) {
        if !self.is_loss_reported.swap(true, Ordering::Relaxed) {
            exit::report(&format!("qwen: telemetry: {text}"));
        }
    }

    async fn run(self: Arc<Self>, mut sink: Sink) {
        while self.gather().await {
            while let Some(batch) = self.next_batch() {
                self.deliver(&mut sink, batch).await;
            }
        }
    }

    /// Waits until there is something to send. Returns false once nothing more will follow.
    async fn gather(&self) -> bool {
        loop {
            let (empty, closing) = {
                let waiting = self.lock();
                (waiting.spans.is_empty(), waiting.closing)
            };
            match (empty, closing) {
                (true, true) => return false,
                (true, false) => self.news.notified().await,
                (false, _) => break,
            }
        }
        let deadline = Instant::now() + GATHERING;
        while !self.lock().is_due() {
            if tokio::time::timeout_at(deadline, self.news.notified()).await.is_err() {
                break;
            }
        }
        true
    }

    fn next_batch(&self) -> Option<Vec<Span>> {
        let mut waiting = self.lock();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(span) = waiting.spans.pop_front() else { break };
            bytes += span.weight();
            batch.push(span);
        }
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        waiting.leaving = batch.len();
        (!batch.is_empty()).then_some(batch)
    }

    async fn deliver(&self, sink: &mut Sink, batch: Vec<Span>) {
        let (count, body) = (batch.len(), otlp::request(&self.resource, &batch));
        drop(batch);
        let mut attempt = 0;
        loop {
            match sink.deliver(&body).await {
                Ok(None) => return,
                Ok(Some(refused)) => return self.report_problem(&refused),
                Err(Failure { again: Some(at_least), .. }) if attempt < RETRIES && !self.lock().closing => {
                    let pause = (RETRY_PAUSE * 2_u32.pow(attempt)).max(at_least.min(MAX_RETRY_PAUSE));
                    attempt += 1;
                    self.pause(pause).await;
                }
                Err(Failure { why, .. }) => {
                    return self.report_problem(&format!(
                        "{why}; {count} spans are lost, and the session continues"
                    ));
                }
            }
        }
    }

    /// Waits for this time, or until the exporter closes.
    async fn pause(&self, time: Duration) {
        let deadline = Instant::now() + time;
        while !self.lock().closing && tokio::time::timeout_at(deadline, self.news.notified()).await.is_ok() {}
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// True if the batch should be sent now.
    fn is_due(&self) -> bool {
        self.closing || self.spans.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}
