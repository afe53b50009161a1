//! OpenTelemetry traces: one more reader of the events.
//!
//! A turn is a span. Its children are the calls of the model and of the tools; the spans of a sub-agent are
//! below the call that started it. Message content is recorded only if the user enables it, and tracing never
//! delays the work. Without telemetry none of this is created.

mod chat;
mod content;
mod context;
mod exporter;
mod hub;
mod otlp;
mod sink;
mod span;
mod spans;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_engine::{HooksRun, Tracer};
use qwen_events::{CallId, ErrorInfo, Event, TraceContext};
use qwen_model::Model;
use qwen_redact::Redactor;

pub(crate) use self::chat::Server;
use self::chat::Traced;
use self::context::SpanContext;
use self::exporter::Exporter;
pub(crate) use self::hub::{HubTelemetry, MetricsExporter};
pub(crate) use self::sink::{Collector, Target};
use self::span::{Kind, Span};
use self::spans::Open;
use crate::runtime::exit;

pub(crate) struct TracingConfig {
    /// Where spans are sent.
    pub target: Target,
    /// The resource attributes of the process.
    pub resource: Vec<(String, String)>,
    /// The parent of all turns.
    pub parent: Option<TraceContext>,
    /// Also record message content.
    pub content: bool,
}

pub struct Tracing {
    open: Mutex<Open>,
    exporter: Arc<Exporter>,
    parent: Option<SpanContext>,
    content: bool,
    redactor: Arc<Redactor>,
    /// True once a malformed context was reported.
    reported: AtomicBool,
}

impl Tracing {
    pub(crate) fn new(wanted: TracingConfig, redactor: Arc<Redactor>) -> Self {
        let TracingConfig { target, resource, parent, content } = wanted;
        let resource = resource.into_iter().map(|(key, value)| (key, redactor.redact(&value).into_owned()));
        let mut tracing = Self {
            open: Mutex::default(),
            exporter: Arc::new(Exporter::new(target, resource.collect())),
            parent: None,
            content,
            redactor,
            reported: AtomicBool::new(false),
        };
        tracing.parent = parent.and_then(|parent| tracing.read(&parent, "TRACEPARENT"));
        tracing
    }

    /// Wraps `model` so that each of its calls has a span.
    pub(crate) fn watch(self: &Arc<Self>, model: Arc<dyn Model>, server: Server) -> Arc<dyn Model> {
        Arc::new(Traced::new(model, self.clone(), server))
    }

    /// Ends the open spans and sends the waiting ones within a time limit. Called at the end of the process.
    pub async fn close(&self) {
        let left = self.lock().abandon();
        self.finish(left);
        self.exporter.close().await;
    }

    /// Starts a span below a call, else below the turn, else below the parent that the host gave.
    fn begin(&self, below: Option<&CallId>, name: String, kind: Kind) -> Span {
        let open = self.lock();
        let mut span = Span::begin(open.context(below).or(self.parent.as_ref()), name, kind);
        open.sign(&mut span);
        span
    }

    fn finish(&self, over: impl IntoIterator<Item = Span>) {
        for span in over {
            self.exporter.take(span);
        }
    }

    /// True if message content is recorded.
    fn shows_content(&self) -> bool {
        self.content
    }

    fn redacted(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// Records an error. Its message may quote message content, so it is recorded only if content is.
    fn fail(&self, span: &mut Span, error: &ErrorInfo) {
        let cause = match error.status {
            _ if self.content => self.redacted(&error.message),
            Some(status) => format!("{} (HTTP {status})", error.code),
            None => error.code.to_owned(),
        };
        span.fail(error.code, &cause);
    }

    /// Parses a context from another program. A malformed one does not stop the work: it is reported once and
    /// ignored.
    fn read(&self, context: &TraceContext, from: &str) -> Option<SpanContext> {
        let parsed = SpanContext::parse(context);
        if parsed.is_none() && !self.reported.swap(true, Ordering::Relaxed) {
            let shown: String = context.traceparent.chars().take(80).collect();
            exit::report(&format!("qwen: telemetry: the {from} {shown:?} is malformed and ignored"));
        }
        parsed
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracer for Tracing {
    fn turn_begins(&self, host: Option<&TraceContext>) {
        let above = host.and_then(|context| self.read(context, "traceparent of a request"));
        let left = self.lock().turn_begins(above.as_ref().or(self.parent.as_ref()));
        self.finish(left);
    }

    fn event(&self, event: &Event) {
        let over = self.lock().event(event, self);
        self.finish(over);
    }

    fn context_of(&self, call: &CallId) -> Option<TraceContext> {
        self.lock().context(Some(call)).map(SpanContext::trace_context)
    }

    fn hooks_begin(&self, event: &'static str, about: Option<&CallId>) -> HooksRun {
        let mut span = self.begin(about, format!("hook {event}"), Kind::Internal);
        span.set("qwen.hook.event", event);
        let context = span.context.trace_context();
        HooksRun { context, until: Box::new(Hooks { span: Some(span), exporter: self.exporter.clone() }) }
    }
}

/// Hooks that are running.
struct Hooks {
    span: Option<Span>,
    exporter: Arc<Exporter>,
}

impl Drop for Hooks {
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            self.exporter.take(span);
        }
    }
}
