//! Reads a body under the current time-out.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use qwen_events::Timeout;
use tokio::time::{Instant, Sleep};

use super::Progress;
use super::form::Form;
use crate::config::Timeouts;
use crate::failure::MAX_ERROR_BODY;
use qwen_http::{self as http, ResponseBody};

/// The time limit of the rest (usage, end mark) after the stop reason. The answer is complete by then.
const EPILOGUE: Duration = Duration::from_secs(5);

/// A body while it is read.
pub(super) struct Reading {
    pub body: ResponseBody,
    pub form: Form,
    pub clock: Clock,
}

/// The result of a read.
pub(super) enum Read {
    Bytes(Bytes),
    End,
    Broken(http::Error),
    TimedOut(Timeout, Duration),
}

impl Reading {
    pub async fn read(&mut self) -> Read {
        poll_fn(|cx| match self.body.poll_data(cx) {
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(Read::Bytes(bytes)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Read::Broken(error)),
            Poll::Ready(None) => Poll::Ready(Read::End),
            Poll::Pending => self.clock.poll(cx),
        })
        .await
    }

    /// The body of an error response, limited in time and size.
    pub async fn error_body(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let reading = async {
            while let Read::Bytes(bytes) = self.read().await {
                text.extend_from_slice(&bytes);
                if text.len() > MAX_ERROR_BODY {
                    break;
                }
            }
        };
        // Without the rest the status is still worth reporting.
        let _ = tokio::time::timeout(EPILOGUE, reading).await;
        text.truncate(MAX_ERROR_BODY);
        text
    }
}

/// The current time-out. The timer is only reset when it expires, not with every chunk.
pub(super) struct Clock {
    timer: Pin<Box<Sleep>>,
    since: Instant,
    limit: Duration,
    stall: Duration,
    progress: Progress,
}

impl Clock {
    pub fn new(sent_at: Instant, timeouts: &Timeouts) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep_until(sent_at + timeouts.first_token)),
            since: sent_at,
            limit: timeouts.first_token,
            stall: timeouts.stall,
            progress: Progress::Silent,
        }
    }

    /// Records that bytes arrived and the answer is now at `progress`. Bytes before the first token do not
    /// count: a server that only sends keep-alives has not begun to answer.
    pub fn note(&mut self, progress: Progress) {
        let finished_before = self.progress == Progress::Finished;
        self.progress = progress;
        match progress {
            Progress::Silent | Progress::Done => return,
            Progress::Streaming => self.limit = self.stall,
            Progress::Finished if finished_before => return,
            Progress::Finished => self.limit = self.stall.min(EPILOGUE),
        }
        self.since = Instant::now();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let due = self.since + self.limit;
        // The limit may be shorter than the timer's setting.
        if due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                let which =
                    if self.progress == Progress::Silent { Timeout::FirstToken } else { Timeout::Stall };
                return Poll::Ready(Read::TimedOut(which, self.limit));
            }
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
