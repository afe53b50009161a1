//! One attempt over HTTP: send, see what comes back, read it under the separate time-outs.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::CONTENT_TYPE;
use bytes::Bytes;
use qwen_events::{ErrorInfo, ErrorKind, Timeout};
use tokio::time::{Instant, Sleep};

use crate::config::Timeouts;
use crate::failure::{self, Failure, MAX_ERROR_BODY};
use crate::http::{self, Body, Client};
use crate::request::{Piece, Request};
use crate::retry::{Attempt, Backend};
use crate::secret::Secret;
use crate::sse;

/// A whole answer that is longer than this is none.
const MAX_WHOLE: usize = sse::MAX_EVENT;

/// How long the rest (usage, end mark) may take once the model has said why it stopped. The answer is whole by then.
const EPILOGUE: Duration = Duration::from_secs(5);

/// What a provider's wire looks like.
pub(crate) trait Wire: Send + Sync + 'static {
    type Decoder: Decoder;

    /// The request's body.
    fn body(&self, request: &Request, model: &str) -> Vec<u8>;

    /// What reads the answer; `prompt_tokens` is our estimate.
    fn decoder(&self, model: &Arc<str>, prompt_tokens: u64) -> Self::Decoder;
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing yet.
    Silent,
    /// Tokens have come.
    Speaking,
    /// The model has said why it stopped; usage may follow.
    Finished,
    /// All was given.
    Done,
}

/// Turns a wire's events into pieces.
pub(crate) trait Decoder: Send {
    fn event(&mut self, event: sse::Event<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// A whole answer in one JSON text, from a server that does not stream.
    fn whole(&mut self, json: &str, out: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// Gives what is left when nothing more comes in after [`Progress::Finished`].
    fn close(&mut self, out: &mut VecDeque<Piece>);

    fn progress(&self) -> Progress;
}

/// A server that speaks a wire.
pub(crate) struct HttpBackend<W> {
    pub wire: W,
    pub client: Client,
    pub url: Arc<str>,
    pub headers: HeaderMap,
    pub timeouts: Timeouts,
    /// What no error may show.
    pub secrets: Vec<Secret>,
}

/// A request made ready.
pub(crate) struct Prepared {
    model: Arc<str>,
    body: Bytes,
    prompt_tokens: u64,
}

impl<W: Wire> Backend for HttpBackend<W> {
    type Call = Prepared;
    type Attempt = HttpAttempt<W>;

    fn prepare(&self, request: &Request, model: &Arc<str>) -> Prepared {
        Prepared {
            model: Arc::clone(model),
            body: self.wire.body(request, model).into(),
            prompt_tokens: crate::estimate::prompt_tokens(request),
        }
    }

    fn attempt(self: &Arc<Self>, call: &Prepared) -> HttpAttempt<W> {
        HttpAttempt {
            decoder: self.wire.decoder(&call.model, call.prompt_tokens),
            backend: Arc::clone(self),
            model: Arc::clone(&call.model),
            stage: Stage::Sending(call.body.clone()),
            out: VecDeque::new(),
            failed: None,
        }
    }
}

/// One attempt.
pub(crate) struct HttpAttempt<W: Wire> {
    backend: Arc<HttpBackend<W>>,
    model: Arc<str>,
    decoder: W::Decoder,
    stage: Stage,
    out: VecDeque<Piece>,
    /// Given once all pieces before it are.
    failed: Option<Failure>,
}

enum Stage {
    Sending(Bytes),
    Reading(Box<Reading>),
    Done,
}

struct Reading {
    body: Body,
    form: Form,
    clock: Clock,
}

/// What the body turns out to be.
enum Form {
    /// Not known yet.
    Unknown {
        start: Vec<u8>,
        content_type: ContentType,
    },
    Events(sse::Reader),
    /// One JSON text.
    Whole(Vec<u8>),
    /// Neither; some of it is read to be quoted.
    Foreign(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentType {
    EventStream,
    Json,
    Other,
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
                    self.take_in(read)
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
        let request = http::Request {
            headers: self.backend.headers.clone(),
            head_timeout: Some(timeouts.first_token),
            ..http::Request::post(Arc::clone(&self.backend.url), body)
        };
        let response = self.backend.client.send(request).await.map_err(|e| failure::unanswered(&e))?;
        let clock = Clock::new(response.sent_at, timeouts);
        let form = Form::Unknown { start: Vec::new(), content_type: ContentType::of(&response.headers) };
        let mut reading = Reading { body: response.body, form, clock };
        if !response.status.is_success() {
            let body = reading.error_body().await;
            return Err(failure::refused(response.status.as_u16(), &response.headers, &body, &self.model));
        }
        self.stage = Stage::Reading(Box::new(reading));
        Ok(())
    }

    /// Takes in what was read: more bytes, the end, or a failure.
    fn take_in(&mut self, read: Read) -> Result<(), Failure> {
        match read {
            Read::Bytes(bytes) => self.feed(&bytes),
            // The answer is whole: what is missing is at most the usage.
            _ if self.decoder.progress() == Progress::Finished => {
                self.finish();
                Ok(())
            }
            Read::End => self.end(),
            Read::Broken(error) if self.decoder.progress() == Progress::Silent => {
                Err(failure::network("stream_broken", broken(&self.model, Some(&error), false)))
            }
            Read::Broken(error) => {
                Err(failure::network("stream_broken", broken(&self.model, Some(&error), true)))
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

    /// Decodes what is complete.
    fn decode_events(&mut self) -> Result<(), Failure> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
        match &mut reading.form {
            Form::Events(reader) => {
                while let Some(event) = reader.next_event().map_err(unreadable)? {
                    self.decoder.event(event, &mut self.out)?;
                    if self.decoder.progress() == Progress::Done {
                        self.finish();
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
            Form::Foreign(text) if text.len() >= 1024 => Err(foreign(text, &self.model)),
            _ => Ok(()),
        }
    }

    /// The server has nothing more to say.
    fn end(&mut self) -> Result<(), Failure> {
        let Stage::Reading(reading) = &mut self.stage else { return Ok(()) };
        match &mut reading.form {
            Form::Events(reader) => {
                reader.end();
                // What cannot be read here was cut off; saying that is more use than complaining about half an event.
                while let Ok(Some(event)) = reader.next_event() {
                    let cut_off = self.decoder.event(event, &mut self.out).err();
                    if let Some(failure) = cut_off.filter(|failure| failure.error.code != "invalid_chunk") {
                        return Err(failure);
                    }
                }
            }
            Form::Whole(text) => {
                let text = std::str::from_utf8(text).map_err(|_| unreadable(sse::Error::InvalidUtf8))?;
                self.decoder.whole(text, &mut self.out)?;
            }
            Form::Foreign(text) => return Err(foreign(text, &self.model)),
            Form::Unknown { start, .. } if start.trim_ascii().is_empty() => {}
            Form::Unknown { start, .. } => return Err(foreign(start, &self.model)),
        }
        match self.decoder.progress() {
            Progress::Done | Progress::Finished => {
                self.finish();
                Ok(())
            }
            Progress::Speaking => Err(failure::network("stream_broken", broken(&self.model, None, true))),
            Progress::Silent => Err(empty_stream(&self.model)),
        }
    }

    /// Gives the rest and lets the connection go, to be used again.
    fn finish(&mut self) {
        if self.decoder.progress() == Progress::Finished {
            self.decoder.close(&mut self.out);
        }
        if let Stage::Reading(reading) = std::mem::replace(&mut self.stage, Stage::Done) {
            reading.body.release();
        }
    }

    fn redacted(&self, mut failure: Failure) -> Failure {
        for secret in &self.backend.secrets {
            if failure.error.message.contains(secret.expose()) {
                failure.error.message = secret.redact(&failure.error.message).into();
            }
        }
        failure
    }
}

/// A stream that said nothing and ended.
pub(crate) fn empty_stream(model: &str) -> Failure {
    failure::network("empty_stream", format!("the model `{model}` answered with an empty stream"))
}

fn broken(model: &str, error: Option<&http::Error>, spoke: bool) -> String {
    let when = if spoke { "before its answer was whole" } else { "before its first token" };
    match error {
        Some(error) => {
            format!("the stream of the model `{model}` broke {when}: {}", failure::with_causes(error))
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
            "the stream of the model `{model}` stood still for {limit} s (time-out `stream stall`, setting model.stallTimeout)"
        );
        ("stall_timeout", message)
    };
    let error = ErrorInfo::new(ErrorKind::Timeout(which), code, message);
    ErrorInfo { retryable: true, ..error }.into()
}

fn unreadable(error: sse::Error) -> Failure {
    let code = match error {
        sse::Error::TooLarge(_) => "event_too_large",
        sse::Error::InvalidUtf8 => "invalid_utf8",
    };
    failure::not_an_answer(code, format!("the model's stream cannot be read: {error}"))
}

fn foreign(text: &[u8], model: &str) -> Failure {
    let quoted = failure::quote(text);
    failure::not_an_answer(
        "not_an_event_stream",
        format!(
            "the server of the model `{model}` sent no event stream but: {quoted}; check the model's base URL"
        ),
    )
}

impl ContentType {
    fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream" => Self::EventStream,
            "application/json" => Self::Json,
            _ => Self::Other,
        }
    }
}

/// How lines of an event stream begin.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

impl Form {
    /// Tells a body by how it begins, since servers and proxies put wrong labels on things; none while it is too short.
    fn recognise(start: &mut Vec<u8>, content_type: ContentType) -> Option<Self> {
        let text = start.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(start).trim_ascii_start();
        let is_json = matches!(text.first()?, b'{' | b'[');
        // A page, whatever it is labelled: read as events it would be an empty stream, and be asked for again.
        let is_page = text.starts_with(b"<");
        let is_events = FIELDS.iter().any(|field| text.starts_with(field));
        let is_cut = FIELDS.iter().any(|field| field.starts_with(text));
        if !is_events && is_cut && content_type == ContentType::Other {
            return None;
        }
        let start = std::mem::take(start);
        Some(if is_json {
            Self::Whole(start)
        } else if is_events || (content_type == ContentType::EventStream && !is_page) {
            let mut reader = sse::Reader::default();
            reader.push(&start);
            Self::Events(reader)
        } else if content_type == ContentType::Json && !is_page {
            Self::Whole(start)
        } else {
            Self::Foreign(start)
        })
    }
}

/// What came of waiting for more.
enum Read {
    Bytes(Bytes),
    End,
    Broken(http::Error),
    TimedOut(Timeout, Duration),
}

impl Reading {
    async fn read(&mut self) -> Read {
        poll_fn(|cx| match self.body.poll_data(cx) {
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(Read::Bytes(bytes)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Read::Broken(error)),
            Poll::Ready(None) => Poll::Ready(Read::End),
            Poll::Pending => self.clock.poll(cx),
        })
        .await
    }

    /// What the server says about an error, as far as it says it soon and briefly.
    async fn error_body(&mut self) -> Vec<u8> {
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

/// The time-out in force. The timer is only moved when it runs out, not with every chunk.
struct Clock {
    timer: Pin<Box<Sleep>>,
    since: Instant,
    limit: Duration,
    stall: Duration,
    progress: Progress,
}

impl Clock {
    fn new(sent_at: Instant, timeouts: &Timeouts) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep_until(sent_at + timeouts.first_token)),
            since: sent_at,
            limit: timeouts.first_token,
            stall: timeouts.stall,
            progress: Progress::Silent,
        }
    }

    /// Bytes came in and the answer is now at `progress`. Until the first token they do not count: a server that only
    /// says that it lives has not begun to answer.
    fn note(&mut self, progress: Progress) {
        let finished_before = self.progress == Progress::Finished;
        self.progress = progress;
        match progress {
            Progress::Silent | Progress::Done => return,
            Progress::Speaking => self.limit = self.stall,
            Progress::Finished if finished_before => return,
            Progress::Finished => self.limit = self.stall.min(EPILOGUE),
        }
        self.since = Instant::now();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let due = self.since + self.limit;
        // The limit may have become shorter than what the timer was set to.
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
