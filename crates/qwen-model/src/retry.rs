//! Retries: which failures are retried, how long to wait, and which model takes over.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use qwen_events::ErrorInfo;

use crate::failure::Failure;
use crate::request::{Model, ModelError, Piece, Pieces, Request};

/// The longest delay between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The longest delay that a server can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The shortest wait for the reset of a limit. Shorter ones count as retries, so that they end.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// A service that is called in separate attempts.
pub(crate) trait Backend: Send + Sync + 'static {
    /// A prepared request, so that every attempt sends the same bytes.
    type Call: Send + Sync;
    type Attempt: Attempt;

    fn prepare(&self, request: &Request, model: &Arc<str>) -> Self::Call;

    fn attempt(self: &Arc<Self>, call: &Self::Call) -> Self::Attempt;
}

/// One attempt. It ends with [`Piece::Finish`] or a failure.
pub(crate) trait Attempt: Send {
    fn next(&mut self) -> impl Future<Output = Result<Option<Piece>, Failure>> + Send;
}

/// The retry budget.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Further attempts after the first.
    pub max_retries: u32,
    /// The first delay; it doubles with every attempt.
    pub base: Duration,
    /// The longest time that one call waits for the reset of limits, in total.
    pub max_wait: Duration,
    /// Fallback models, in order.
    pub fallback_models: Arc<[Arc<str>]>,
}

/// Adds retries to a backend, which makes it a [`Model`].
pub(crate) struct Retrying<B> {
    backend: Arc<B>,
    name: Arc<str>,
    policy: Policy,
}

impl<B: Backend> Retrying<B> {
    pub fn new(backend: B, name: Arc<str>, policy: Policy) -> Self {
        Self { backend: Arc::new(backend), name, policy }
    }
}

impl<B: Backend> Model for Retrying<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, request: Request) -> Pieces {
        let model = request.model.clone().unwrap_or_else(|| Arc::clone(&self.name));
        let run = Run {
            backend: Arc::clone(&self.backend),
            policy: self.policy.clone(),
            fallbacks_used: 0,
            attempts: 0,
            waited: Duration::ZERO,
            request,
            model,
            call: None,
            stage: Stage::Begin,
            pending_start: None,
            has_output: false,
        };
        Box::pin(stream::unfold(Box::new(run), |mut run| async move {
            let piece = run.next().await?;
            Some((piece, run))
        }))
    }
}

/// One call with all its attempts.
struct Run<B: Backend> {
    backend: Arc<B>,
    policy: Policy,
    fallbacks_used: usize,
    /// Attempts at the current model.
    attempts: u32,
    /// How long the call has waited for the reset of limits.
    waited: Duration,
    request: Request,
    model: Arc<str>,
    call: Option<B::Call>,
    stage: Stage<B::Attempt>,
    /// The start of the current attempt, held back until its first token: an attempt that fails earlier
    /// leaves no trace.
    pending_start: Option<Piece>,
    /// True once a token was emitted; from then on a failure is final.
    has_output: bool,
}

enum Stage<A> {
    Begin,
    Trying(Box<A>),
    /// The first token waits behind the start.
    Held(Piece, Box<A>),
    Waiting(Duration),
    Done,
}

impl<B: Backend> Run<B> {
    async fn next(&mut self) -> Option<Result<Piece, ModelError>> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Done => return None,
                Stage::Waiting(pause) => {
                    tokio::time::sleep(pause).await;
                    self.stage = Stage::Begin;
                }
                Stage::Begin => {
                    let call = match self.call.take() {
                        Some(call) => call,
                        None => self.backend.prepare(&self.request, &self.model),
                    };
                    self.stage = Stage::Trying(Box::new(self.backend.attempt(&call)));
                    self.call = Some(call);
                    self.attempts += 1;
                }
                Stage::Held(piece, attempt) => {
                    self.record_emitted(&piece, attempt);
                    return Some(Ok(piece));
                }
                Stage::Trying(mut attempt) => match attempt.next().await {
                    Ok(Some(start @ Piece::Start { .. })) => {
                        self.pending_start = Some(start);
                        self.stage = Stage::Trying(attempt);
                    }
                    // Neither is part of the answer: a failure after them may be retried.
                    Ok(Some(aside @ (Piece::RateLimit(_) | Piece::Usage(_)))) => {
                        self.stage = Stage::Trying(attempt);
                        return Some(Ok(aside));
                    }
                    Ok(Some(piece)) => {
                        if let Some(start) = self.pending_start.take() {
                            self.stage = Stage::Held(piece, attempt);
                            return Some(Ok(start));
                        }
                        self.record_emitted(&piece, attempt);
                        return Some(Ok(piece));
                    }
                    Ok(None) => return None,
                    Err(failure) => return Some(self.failed(failure)),
                },
            }
        }
    }

    /// Records that `piece` is emitted.
    fn record_emitted(&mut self, piece: &Piece, attempt: Box<B::Attempt>) {
        self.has_output = true;
        if !matches!(piece, Piece::Finish(_)) {
            self.stage = Stage::Trying(attempt);
        }
    }

    /// Decides how to continue after a failed attempt.
    fn failed(&mut self, failure: Failure) -> Result<Piece, ModelError> {
        let Failure { error, retry_after } = failure;
        self.pending_start = None;
        if self.has_output {
            return Err(ModelError(error));
        }
        let further = self.policy.fallback_models.iter().enumerate().skip(self.fallbacks_used);
        let fallback =
            further.filter(|(_, to)| **to != self.model).map(|(at, to)| (at, Arc::clone(to))).next();
        let hopeless_here = matches!(error.code, "model_not_found" | "overloaded");
        let is_limit = matches!(error.status, Some(429 | 529)) && error.retryable;
        if let Some(pause) = retry_after
            .filter(|pause| is_limit && *pause >= SHORTEST_WAIT && !(hopeless_here && fallback.is_some()))
        {
            return self.wait_for_reset(error, pause, fallback.is_some());
        }
        let may_retry = error.retryable && self.attempts <= self.policy.max_retries;
        if may_retry && !(hopeless_here && fallback.is_some()) {
            let pause = retry_after.map_or_else(|| self.backoff(), |asked| asked.min(MAX_RETRY_AFTER));
            self.stage = Stage::Waiting(pause);
            let delay_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            return Ok(Piece::Retry {
                attempt: self.attempts,
                max_retries: self.policy.max_retries,
                delay_ms,
                error,
            });
        }
        match fallback {
            Some((at, to)) if error.retryable || hopeless_here => {
                let from = std::mem::replace(&mut self.model, Arc::clone(&to));
                self.fallbacks_used = at + 1;
                self.attempts = 0;
                self.call = None;
                self.stage = Stage::Begin;
                Ok(Piece::Fallback { from, to, error })
            }
            _ => Err(ModelError(self.final_words(error))),
        }
    }

    /// Waits until a limit is reset, without counting a retry. A reset beyond the longest wait is an error at
    /// once.
    fn wait_for_reset(
        &mut self,
        error: ErrorInfo,
        pause: Duration,
        has_fallback: bool,
    ) -> Result<Piece, ModelError> {
        let total = self.waited.saturating_add(pause);
        if total > self.policy.max_wait && !has_fallback {
            let message = format!(
                "{} (the limit is reset in {} s, and the setting model.maxWait allows to wait {} s)",
                error.message,
                pause.as_secs(),
                self.policy.max_wait.saturating_sub(self.waited).as_secs()
            );
            return Err(ModelError(ErrorInfo { message: message.into(), ..error }));
        }
        self.waited = total;
        self.attempts = self.attempts.saturating_sub(1);
        self.stage = Stage::Waiting(pause);
        Ok(Piece::Waiting { error, delay_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX) })
    }

    /// The delay before the next attempt: doubling, with jitter so that many workers do not retry at the
    /// same time.
    fn backoff(&self) -> Duration {
        let doubled = self.policy.base.saturating_mul(1_u32 << self.attempts.saturating_sub(1).min(16));
        doubled.min(MAX_BACKOFF).mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    fn final_words(&self, error: ErrorInfo) -> ErrorInfo {
        if self.attempts < 2 {
            return error;
        }
        let message = format!("{} (given up after {} attempts)", error.message, self.attempts);
        ErrorInfo { message: message.into(), ..error }
    }
}
