//! One attempt over HTTP: sends the request and reads the response under the separate time-outs.

mod form;
mod reading;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use qwen_events::{ErrorInfo, ErrorKind, Timeout, TraceContext};

use crate::config::Timeouts;
use crate::estimate;
use crate::failure::{self, Failure};
use crate::rate_limit::LastLimit;
use crate::request::{Piece, Request};
use crate::retry::{Attempt, Backend};
use crate::secret::Secret;
use form::{ContentType, Form};
use qwen_http::sse;
use qwen_http::{self as http, Client};
use reading::{Clock, Read, Reading};

/// The longest accepted answer of a server that does not stream.
const MAX_WHOLE: usize = sse::MAX_EVENT;

/// A provider's wire format.
pub(crate) trait Wire: Send + Sync + 'static {
    type Decoder: Decoder;

    /// The request's body.
    fn body(&self, request: &Request, model: &str) -> Vec<u8>;

    /// The decoder of the answer; `prompt_tokens` is an estimate.
    fn decoder(&self, model: &Arc<str>, prompt_tokens: u64) -> Self::Decoder;
}

/// The progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No token has arrived.
    Silent,
    /// Tokens have arrived.
    Streaming,
    /// The stop reason has arrived; usage may follow.
    Finished,
    /// All pieces were emitted.
    Done,
}

/// Decodes a wire's events into pieces.
pub(crate) trait Decoder: Send {
    fn event(&mut self, event: sse::SseEvent<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// A complete answer as one JSON text, from a server that does not stream.
    fn read_document(&mut self, json: &str, out: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// Emits the rest when the stream ends after [`Progress::Finished`].
    fn close(&mut self, out: &mut VecDeque<Piece>);

    fn progress(&self) -> Progress;
}

/// A server with a given wire format.
pub(crate) struct HttpBackend<W> {
    pub wire: W,
    pub client: Client,
    pub url: Arc<str>,
    pub headers: HeaderMap,
    pub timeouts: Timeouts,
    /// The most recently reported rate limits.
    pub limit: LastLimit,
    /// Texts that no error may show.
    pub secrets: Vec<Secret>,
}

impl<W> HttpBackend<W> {
    /// Redacts every secret in a text.
    fn redact(&self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text).into_owned();
        self.secrets.iter().fold(text, |text, secret| secret.redact(&text))
    }
}

pub(crate) struct Prepared {
    model: Arc<str>,
    body: Bytes,
    prompt_tokens: u64,
    trace: Option<TraceContext>,
}

impl<W: Wire> Backend for HttpBackend<W> {
    type Call = Prepared;
    type Attempt = HttpAttempt<W>;

    fn prepare(&self, request: &Request, model: &Arc<str>) -> Prepared {
        Prepared {
            model: Arc::clone(model),
            body: self.wire.body(request, model).into(),
            prompt_tokens: estimate::prompt_tokens(request),
            trace: request.trace.clone(),
        }
    }

    fn attempt(self: &Arc<Self>, call: &Prepared) -> HttpAttempt<W> {
        HttpAttempt {
            decoder: self.wire.decoder(&call.model, call.prompt_tokens),
            backend: Arc::clone(self),
            model: Arc::clone(&call.model),
            stage: Stage::Sending(call.body.clone()),
            trace: call.trace.clone(),
            out: VecDeque::new(),
            failed: None,
        }
    }
}

pub(crate) struct HttpAttempt<W: Wire> {
    backend: Arc<HttpBackend<W>>,
    model: Arc<str>,
    decoder: W::Decoder,
    trace: Option<TraceContext>,
    stage: Stage,
    out: VecDeque<Piece>,
    /// Reported after all pieces before it.
    failed: Option<Failure>,
}

enum Stage {
    Sending(Bytes),
    Reading(Box<Reading>),
    Done,
}

impl<W: Wire> Attempt for HttpAttempt<W> {
    async fn next(&mut self) -> Result<Option<Piece>, Failure> {
        loop {
            if let Some(piece) = self.out.pop_front() {
                return Ok(Some(piece));
            }
            if let Some(failure) = self.failed.take() {
                return Err(self.redacted(failure));
            }
            let outcome = match &mut self.stage {
                Stage::Done => return Ok(None),
                Stage::Sending(body) => {
                    let body = std::mem::take(body);
                    self.begin(body).await
                }
                Stage::Reading(reading) => {
                    let read = reading.read().await;
                    self.process_read(read)
                }
            };
            if let Err(failure) = outcome {
                self.stage = Stage::Done;
                self.failed = Some(failure);
            }
        }
    }
}

impl<W: Wire> HttpAttempt<W> {
    async fn begin(&mut self, body: Bytes) -> Result<(), Failure> {
        let timeouts = &self.backend.timeouts;
        let mut headers = self.backend.headers.clone();
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        if let Some(trace) = &self.trace {
            add_trace_headers(&mut headers, trace);
        }
        let request = http::HttpRequest {
            headers,
            head_timeout: Some(timeouts.first_token),
            ..http::HttpRequest::post(Arc::clone(&self.backend.url), body)
        };
        let response = self.backend.client.send(request).await.map_err(|e| failure::unanswered(&e))?;
        let clock = Clock::new(response.sent_at, timeouts);
        self.note_rate_limit(response.status.as_u16(), &response.headers);
        let form = Form::Unknown { start: Vec::new(), content_type: ContentType::read(&response.headers) };
        let mut reading = Reading { body: response.body, form, clock };
        if !response.status.is_success() {
            // Redacted before it is truncated: half a key is a leak too.
            let body = match compression(&response.headers) {
                Some(coding) => format!("(a body compressed as `{coding}`, which was not asked for)"),
                None => self.backend.redact(&reading.error_body().await),
            };
            return Err(failure::refused(
                response.status.as_u16(),
                &response.headers,
                body.as_bytes(),
                &self.model,
            ));
        }
        if let Some(coding) = compression(&response.headers) {
            return Err(compressed(&coding, &self.model));
        }
        self.stage = Stage::Reading(Box::new(reading));
        Ok(())
    }

    fn note_rate_limit(&mut self, status: u16, headers: &HeaderMap) {
        let now = SystemTime::now();
        let changed =
            self.backend.limit.changed_limits(status, headers, failure::retry_after(headers, now), now);
        self.out.extend(changed.map(|limit| Piece::RateLimit(Box::new(limit))));
    }

    /// Processes the result of a read: more bytes, the end, or a failure.
    fn process_read(&mut self, read: Read) -> Result<(), Failure> {
        match read {
            Read::Bytes(bytes) => self.feed(&bytes),
            // The answer is complete: at most the usage is missing.
            _ if self.decoder.progress() == Progress::Finished => {
                self.finish();
                Ok(())
            }
            Read::End => self.end(),
            Read::Broken(error) => {
                let has_output = self.decoder.progress() != Progress::Silent;
                Err(failure::network(
                    "stream_broken",
                    connection_lost_message(&self.model, Some(&error), has_output),
                ))
            }
            Read::TimedOut(which, limit) => Err(timed_out(which, limit, &self.model)),
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
        let form = &mut reading.form;
        if let Form::Unknown { start, content_type } = form {
            start.extend_from_slice(bytes);
            let Some(known) = Form::recognise(start, *content_type) else { return Ok(()) };
            *form = known;
            return self.decode_events();
        }
        match form {
            Form::Events(reader) => reader.push(bytes),
            Form::Whole(text) | Form::Foreign(text) => text.extend_from_slice(bytes),
            Form::Unknown { .. } => {}
        }
        self.decode_events()
    }

    /// Decodes all complete events.
    fn decode_events(&mut self) -> Result<(), Failure> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
        match &mut reading.form {
            Form::Events(reader) => {
                while let Some(event) = reader.next_event().map_err(unreadable)? {
                    self.decoder.event(event, &mut self.out)?;
                    if self.decoder.progress() == Progress::Done {
                        self.release();
                        return Ok(());
                    }
                }
                reading.clock.note(self.decoder.progress());
                Ok(())
            }
            Form::Whole(text) if text.len() > MAX_WHOLE => {
                let message =
                    format!("the server of the model `{}` sent more than {MAX_WHOLE} bytes", self.model);
                Err(failure::not_an_answer("answer_too_large", message))
            }
            Form::Foreign(text) if text.len() >= 1024 => {
                Err(foreign(&self.backend.redact(text), &self.model))
            }
            _ => Ok(()),
        }
    }

    /// Handles the end of the stream.
    fn end(&mut self) -> Result<(), Failure> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
        match &mut reading.form {
            Form::Events(reader) => {
                reader.end();
                // An unreadable event here was cut off; reporting that is more useful than a complaint
                // about half an event.
                while let Ok(Some(event)) = reader.next_event() {
                    let cut_off = self.decoder.event(event, &mut self.out).err();
                    if let Some(failure) = cut_off.filter(|failure| failure.error.code != "invalid_chunk") {
                        return Err(failure);
                    }
                }
            }
            Form::Whole(text) => {
                let text = std::str::from_utf8(text).map_err(|_| unreadable(sse::SseError::InvalidUtf8))?;
                self.decoder.read_document(text, &mut self.out)?;
            }
            Form::Foreign(text) => return Err(foreign(&self.backend.redact(text), &self.model)),
            Form::Unknown { start, .. } if start.trim_ascii().is_empty() => {}
            Form::Unknown { start, .. } => return Err(foreign(&self.backend.redact(start), &self.model)),
        }
        match self.decoder.progress() {
            Progress::Done | Progress::Finished => {
                self.finish();
                Ok(())
            }
            Progress::Streaming => {
                Err(failure::network("stream_broken", connection_lost_message(&self.model, None, true)))
            }
            Progress::Silent => Err(empty_stream(&self.model)),
        }
    }

    /// Emits the rest.
    fn finish(&mut self) {
        if self.decoder.progress() == Progress::Finished {
            self.decoder.close(&mut self.out);
        }
        self.stage = Stage::Done;
    }

    /// Handles the end mark: the rest is irrelevant, and the connection can be reused.
    fn release(&mut self) {
        if let Stage::Reading(reading) = std::mem::replace(&mut self.stage, Stage::Done) {
            reading.body.release();
        }
    }

    fn redacted(&self, mut failure: Failure) -> Failure {
        failure.error.message = self.backend.redact(failure.error.message.as_bytes()).into();
        failure
    }
}

/// Adds the trace headers. Values that no header can hold are omitted: tracing must not fail a call.
fn add_trace_headers(headers: &mut HeaderMap, trace: &TraceContext) {
    let texts = [("traceparent", Some(&trace.traceparent)), ("tracestate", trace.tracestate.as_ref())];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
}

/// The content encoding of a body, although none was requested.
fn compression(headers: &HeaderMap) -> Option<String> {
    let coding =
        String::from_utf8_lossy(headers.get(CONTENT_ENCODING)?.as_bytes()).trim().to_ascii_lowercase();
    (!coding.is_empty() && coding != "identity").then_some(coding)
}

fn compressed(coding: &str, model: &str) -> Failure {
    failure::not_an_answer(
        "compressed_answer",
        format!(
            "the server of the model `{model}` sent its answer compressed (`content-encoding: {coding}`) although that was not asked for; switch compression off in the server or in the proxy before it"
        ),
    )
}

/// The failure of a stream that ended without content.
pub(crate) fn empty_stream(model: &str) -> Failure {
    failure::network("empty_stream", format!("the model `{model}` answered with an empty stream"))
}

fn connection_lost_message(model: &str, error: Option<&http::Error>, has_output: bool) -> String {
    let when = if has_output { "before its answer was complete" } else { "before its first token" };
    match error {
        Some(error) => {
            format!(
                "the stream of the model `{model}` was interrupted {when}: {}",
                failure::with_causes(error)
            )
        }
        None => format!("the stream of the model `{model}` ended {when}"),
    }
}

fn timed_out(which: Timeout, limit: Duration, model: &str) -> Failure {
    let limit = limit.as_secs_f64();
    let (code, message) = if which == Timeout::FirstToken {
        let message = format!(
            "the model `{model}` gave no first token within {limit} s (time-out `first token`, setting model.firstTokenTimeout)"
        );
        ("first_token_timeout", message)
    } else {
        let message = format!(
            "the stream of the model `{model}` stalled for {limit} s (time-out `stream stall`, setting model.stallTimeout)"
        );
        ("stall_timeout", message)
    };
    let error = ErrorInfo::new(ErrorKind::Timeout(which), code, message);
    ErrorInfo { retryable: true, ..error }.into()
}

fn unreadable(error: sse::SseError) -> Failure {
    let code = match error {
        sse::SseError::TooLarge(_) => "event_too_large",
        sse::SseError::InvalidUtf8 => "invalid_utf8",
    };
    failure::not_an_answer(code, format!("the model's stream cannot be read: {error}"))
}

fn foreign(text: &str, model: &str) -> Failure {
    let quoted = failure::quote(text.as_bytes());
    failure::not_an_answer(
        "not_an_event_stream",
        format!(
            "the server of the model `{model}` sent no event stream but: {quoted}; check the model's base URL"
        ),
    )
}
