//! Responses: bodies, JSON, refusals.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The body of a response.
#[derive(Debug)]
pub enum ReplyBody {
    Whole(Bytes),
    /// Pieces until the sender is gone.
    Stream(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => pieces.poll_recv(context).map(|piece| Some(Ok(Frame::data(piece?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A response of this server.
pub type HttpReply = Response<ReplyBody>;

/// A request that is not carried out.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: StatusCode,
    /// A stable identifier for programs.
    pub code: &'static str,
    pub message: String,
    /// Seconds after which a retry may succeed.
    pub retry_after: Option<u32>,
    /// Further fields of the error object.
    pub fields: Vec<(&'static str, Value)>,
}

impl Refusal {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, fields: Vec::new() }
    }

    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}."))
    }

    /// A refusal that passes.
    pub fn busy(code: &'static str, message: impl Into<String>) -> Self {
        Self { retry_after: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message) }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// OpenAI's name for this kind of error.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            409 => "conflict_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The error object. It has the fields that OpenAI's clients read.
    pub fn body(&self) -> Value {
        let mut error =
            json!({"message": self.message, "type": self.kind(), "param": null, "code": self.code});
        for (name, value) in &self.fields {
            error[*name] = value.clone();
        }
        json!({"error": error})
    }

    pub fn into_reply(self) -> HttpReply {
        let mut reply = json_reply(self.status, &self.body());
        if let Some(seconds) = self.retry_after {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

/// A response with a JSON document.
pub fn json_reply(status: StatusCode, value: &Value) -> HttpReply {
    complete_reply(status, "application/json", value.to_string())
}

/// A response with a body that is known.
pub fn complete_reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> HttpReply {
    with_type(status, content_type, ReplyBody::Whole(body.into()))
}

/// A response without a body.
pub fn empty(status: StatusCode) -> HttpReply {
    let mut reply = Response::new(ReplyBody::Whole(Bytes::new()));
    *reply.status_mut() = status;
    reply
}

/// Returns a reply that streams `pieces` as server-sent events.
pub fn event_stream(pieces: mpsc::Receiver<Bytes>) -> HttpReply {
    let mut reply = with_type(StatusCode::OK, "text/event-stream", ReplyBody::Stream(pieces));
    // Proxies that buffer would hold events back.
    reply.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    reply
}

fn with_type(status: StatusCode, content_type: &'static str, body: ReplyBody) -> HttpReply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// Headers of every response: nothing is stored, framed, sniffed or sent elsewhere.
pub fn protect(reply: &mut HttpReply) {
    const HEADERS: [(&str, &str); 6] = [
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ];
    for (name, value) in HEADERS {
        reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    reply
        .headers_mut()
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
}
