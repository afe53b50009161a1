//! Traces model calls: each is a span, and each request carries its trace context to the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::Stream;
use qwen_events::{ErrorInfo, Finish, Usage};
use qwen_model::{Model, ModelConfig, ModelError, Piece, Pieces, Provider, Request};

use super::Tracing;
use super::content::Message;
use super::span::{Kind, Span, Value};

/// A model whose calls are traced.
pub(super) struct Traced {
    model: Arc<dyn Model>,
    tracing: Arc<Tracing>,
    server: Server,
}

/// The model's server in span attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    /// `gen_ai.provider.name`
    pub provider: &'static str,
    /// The host name; none if the model is not on a server.
    pub address: Option<Arc<str>>,
    pub port: Option<u16>,
}

impl Server {
    /// The server that a model's configuration names.
    pub fn from_config(config: Option<&ModelConfig>) -> Self {
        let Some(config) = config else { return Self { provider: "none", ..Self::default() } };
        let provider = match config.provider {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Demo => "qwen.demo",
            Provider::Script(_) => "qwen.script",
            Provider::Replay(_) => "qwen.replay",
            Provider::Oracle(_) => "qwen.oracle",
        };
        let (address, port) = config.base_url.as_deref().map(host_and_port).unwrap_or_default();
        Self { provider, address, port }
    }
}

/// The host and the port of an address, without user name and password.
fn host_and_port(url: &str) -> (Option<Arc<str>>, Option<u16>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (None, None) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (authority, if scheme == "https" { Some(443) } else { Some(80) }),
    };
    let host = host.trim_matches(['[', ']']);
    ((!host.is_empty()).then(|| host.into()), port)
}

impl Traced {
    pub fn new(model: Arc<dyn Model>, tracing: Arc<Tracing>, server: Server) -> Self {
        Self { model, tracing, server }
    }
}

impl Model for Traced {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, mut request: Request) -> Pieces {
        let name = request.model.clone().unwrap_or_else(|| self.model.name().into());
        let mut span = self.tracing.begin(request.caller.as_ref(), format!("chat {name}"), Kind::Client);
        span.set("gen_ai.operation.name", "chat");
        span.set("gen_ai.provider.name", self.server.provider);
        span.set("gen_ai.request.model", &*name);
        if let Some(address) = &self.server.address {
            span.set("server.address", &**address);
        }
        if let Some(port) = self.server.port {
            span.set("server.port", u64::from(port));
        }
        let sampling = &request.sampling;
        let numbers =
            [("gen_ai.request.temperature", sampling.temperature), ("gen_ai.request.top_p", sampling.top_p)];
        for (key, number) in numbers {
            if let Some(number) = number {
                span.set(key, number);
            }
        }
        if let Some(most) = sampling.max_tokens {
            span.set("gen_ai.request.max_tokens", most);
        }
        request.trace = Some(span.context.trace_context());
        let tracing = self.tracing.clone();
        let call = Call {
            span: Some(span),
            started: Instant::now(),
            has_output: false,
            text: String::new(),
            usage: None,
            tracing,
        };
        Box::pin(Watched { pieces: self.model.call(request), call })
    }
}

/// A call and its span.
struct Watched {
    pieces: Pieces,
    call: Call,
}

struct Call {
    /// None once the call has ended.
    span: Option<Span>,
    started: Instant,
    /// True once a token has arrived.
    has_output: bool,
    /// The text of the answer, if content is recorded.
    text: String,
    /// The usage that the server reported; the last report counts.
    usage: Option<Usage>,
    tracing: Arc<Tracing>,
}

impl Stream for Watched {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = self.pieces.as_mut().poll_next(cx);
        match &piece {
            Poll::Ready(Some(Ok(piece))) => self.call.record_piece(piece),
            Poll::Ready(Some(Err(error))) => self.call.failed(&error.0),
            Poll::Ready(None) => self.call.end(),
            Poll::Pending => {}
        }
        piece
    }
}

impl Call {
    fn record_piece(&mut self, piece: &Piece) {
        let Some(span) = &mut self.span else { return };
        match piece {
            Piece::Start { model } => span.set("gen_ai.response.model", &**model),
            Piece::Text(_) | Piece::Thought(_) | Piece::Call { .. } => {
                if !self.has_output {
                    self.has_output = true;
                    span.set("gen_ai.response.time_to_first_chunk", self.started.elapsed().as_secs_f64());
                }
                if let (Piece::Text(text), true) = (piece, self.tracing.shows_content()) {
                    self.text.push_str(text);
                }
            }
            Piece::Usage(usage) => self.usage = Some(*usage),
            Piece::Retry { attempt, error, .. } => {
                let attempt = ("qwen.retry.attempt", u64::from(*attempt).into());
                span.mark("retry", vec![attempt, ("error.type", error.code.into())]);
            }
            Piece::Waiting { error, delay_ms } => {
                let delay = ("qwen.wait.delay_ms", (*delay_ms).into());
                span.mark("waiting", vec![delay, ("error.type", error.code.into())]);
            }
            Piece::Fallback { to, error, .. } => {
                let to = ("gen_ai.request.model", (&**to).into());
                span.mark("model_fallback", vec![to, ("error.type", error.code.into())]);
            }
            Piece::Finish(finish) => {
                span.set("gen_ai.response.finish_reasons", finish_reasons(*finish));
                self.end();
            }
            Piece::CallFields { .. } | Piece::Paused | Piece::ThoughtSignature(_) | Piece::RateLimit(_) => {}
        }
    }

    fn failed(&mut self, error: &ErrorInfo) {
        if let Some(span) = &mut self.span {
            self.tracing.fail(span, error);
        }
        self.end();
    }

    fn end(&mut self) {
        if let Some(mut span) = self.span.take() {
            if let Some(usage) = &self.usage {
                record_usage(&mut span, usage);
            }
            if !self.text.is_empty() {
                let text = self.tracing.redacted(&self.text);
                span.set("gen_ai.output.messages", Message::from_text("assistant", &text));
            }
            self.tracing.finish([span]);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(span) = &mut self.span {
            span.fail("cancelled", "cancelled");
            self.end();
        }
    }
}

/// Records the usage in the span.
pub(super) fn record_usage(span: &mut Span, usage: &Usage) {
    span.set("gen_ai.usage.input_tokens", usage.prompt_tokens);
    span.set("gen_ai.usage.output_tokens", usage.completion_tokens);
    for (key, count) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
        ("gen_ai.usage.reasoning.output_tokens", usage.thought_tokens),
    ] {
        if count > 0 {
            span.set(key, count);
        }
    }
}

pub(super) fn finish_reasons(finish: Finish) -> Value {
    Value::Texts(vec![finish.openai().into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_host_and_port_alone() {
        for (url, host, port) in [
            ("http://127.0.0.1:8000/v1", Some("127.0.0.1"), Some(8000)),
            ("https://user:word@models.example/v1?key=x", Some("models.example"), Some(443)),
            ("http://[::1]:9/v1", Some("::1"), Some(9)),
            ("http://[::1]", Some("::1"), Some(80)),
            ("nonsense", None, None),
            ("http://", None, Some(80)),
        ] {
            let (address, found) = host_and_port(url);
            assert_eq!((address.as_deref(), found), (host, port), "{url}");
        }
    }
}
