//! What a hub exports: a span of every turn that passes through it, and its metrics.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qwen_events::TraceContext;
use qwen_kernel::{Metric, MetricData, TracedPrompt, TurnSpan, TurnTracer, WorkerId};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::context::SpanContext;
use super::exporter::Exporter;
use super::sink::{Sink, Target};
use super::span::{Kind, Span};
use super::{Tracing, otlp};
use crate::runtime::exit;

/// The telemetry of a hub.
pub(crate) struct HubTelemetry {
    pub tracing: Arc<Tracing>,
    /// None if metrics are disabled.
    pub metrics: Option<MetricsExporter>,
}

/// The parts of a prompt that may contain the client's trace context.
#[derive(Deserialize)]
struct Traced<'a> {
    #[serde(flatten, borrow)]
    top: Context<'a>,
    metadata: Option<Json>,
    options: Option<Json>,
}

#[derive(Deserialize)]
struct Context<'a> {
    traceparent: Option<&'a str>,
    tracestate: Option<&'a str>,
}

impl Tracing {
    /// Makes a span of every turn that passes through a hub, below the client's span.
    pub(crate) fn hub_turns(self: &Arc<Self>) -> TurnTracer {
        let tracing = self.clone();
        Box::new(move |prompt: &TracedPrompt<'_>| {
            let above =
                context(prompt.line).and_then(|context| tracing.read(&context, "traceparent of a request"));
            let mut span = Span::begin(
                above.as_ref().or(tracing.parent.as_ref()),
                "hub turn".to_owned(),
                Kind::Internal,
            );
            span.set("session.id", prompt.session_id.as_str());
            span.set("gen_ai.conversation.id", prompt.session_id.as_str());
            if let Some(prompt_id) = prompt.prompt_id {
                span.set("qwen.prompt_id", prompt_id);
            }
            if !prompt.tenant.is_empty() {
                span.set("qwen.tenant", prompt.tenant);
            }
            let traceparent = SpanContext::trace_context(&span.context).traceparent.to_string();
            let turn = HubTurn { span: Some(span), exporter: tracing.exporter.clone(), status: None };
            (traceparent, Box::new(turn) as Box<dyn TurnSpan>)
        })
    }
}

/// The trace context of a prompt: at its top level, or else in `metadata` or `options`.
fn context(line: &[u8]) -> Option<TraceContext> {
    let traced: Traced<'_> = serde_json::from_slice(line).ok()?;
    if let Some(traceparent) = traced.top.traceparent {
        let tracestate = traced.top.tracestate.map(Arc::from);
        return Some(TraceContext { traceparent: traceparent.into(), tracestate });
    }
    let inner = [traced.metadata, traced.options];
    inner.into_iter().flatten().find_map(|object| {
        let text = |key: &str| object[key].as_str().map(Arc::<str>::from);
        Some(TraceContext { traceparent: text("traceparent")?, tracestate: text("tracestate") })
    })
}

/// The span of one turn.
struct HubTurn {
    span: Option<Span>,
    exporter: Arc<Exporter>,
    status: Option<String>,
}

impl std::fmt::Debug for HubTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubTurn").field("status", &self.status).finish_non_exhaustive()
    }
}

impl TurnSpan for HubTurn {
    fn dispatched(&mut self, worker: WorkerId) {
        if let Some(span) = &mut self.span {
            span.mark("dispatched", vec![("qwen.worker", worker.to_string().as_str().into())]);
        }
    }

    fn ended(&mut self, status: &str) {
        self.status = Some(status.to_owned());
    }
}

impl Drop for HubTurn {
    fn drop(&mut self) {
        let Some(mut span) = self.span.take() else { return };
        // A turn that no worker ended was ended by the hub.
        let status = self.status.take().unwrap_or_else(|| "interrupted".to_owned());
        span.set("qwen.status", status.as_str());
        if status != "done" {
            span.fail(&status, &status);
        }
        self.exporter.take(span);
    }
}

pub(crate) struct MetricsExporter {
    sink: Sink,
    resource: Vec<(String, String)>,
    /// The time between two exports.
    pub interval: Duration,
    started: u64,
    reported: bool,
}

impl MetricsExporter {
    pub fn new(target: Target, resource: Vec<(String, String)>, interval: Duration) -> Self {
        Self { sink: Sink::new(target), resource, interval, started: nanoseconds(), reported: false }
    }

    /// Sends the current values. A failure is reported once, and the next export is tried all the same.
    pub async fn export(&mut self, metrics: &[Metric]) {
        let body = request(&self.resource, metrics, self.started, nanoseconds());
        let failure = match self.sink.deliver(&body).await {
            Ok(None) => return,
            Ok(Some(refused)) => refused,
            Err(failure) => failure.why,
        };
        if !std::mem::replace(&mut self.reported, true) {
            exit::report(&format!("qwen: telemetry: metrics: {failure}"));
        }
    }
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The body of a request to `/v1/metrics`. In OTLP's JSON, 64-bit numbers are strings.
fn request(resource: &[(String, String)], metrics: &[Metric], started: u64, now: u64) -> String {
    let times = json!({"startTimeUnixNano": started.to_string(), "timeUnixNano": now.to_string()});
    let points = |values: &[(Option<(&'static str, String)>, u64)]| -> Vec<Json> {
        let point = |(label, value): &(Option<(&'static str, String)>, u64)| {
            let mut point = times.clone();
            point["asInt"] = value.to_string().into();
            point["attributes"] =
                label.iter().map(|(key, text)| json!({"key": key, "value": {"stringValue": text}})).collect();
            point
        };
        values.iter().map(point).collect()
    };
    let metrics: Vec<Json> = metrics
        .iter()
        .map(|Metric { name, help, data }| {
            let (kind, data) = match data {
                MetricData::Counter(values) => (
                    "sum",
                    json!({"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points(values)}),
                ),
                MetricData::Gauge(values) => ("gauge", json!({"dataPoints": points(values)})),
                MetricData::Histogram(histogram) => {
                    let (mut bounds, mut counts, mut below) = (Vec::new(), Vec::new(), 0);
                    for (bound, count) in histogram.cumulative() {
                        bounds.push(bound);
                        counts.push((count - below).to_string());
                        below = count;
                    }
                    counts.push((histogram.count() - below).to_string());
                    let mut point = times.clone();
                    point["count"] = histogram.count().to_string().into();
                    point["sum"] = histogram.sum().as_secs_f64().into();
                    point["bucketCounts"] = json!(counts);
                    point["explicitBounds"] = json!(bounds);
                    ("histogram", json!({"aggregationTemporality": 2, "dataPoints": [point]}))
                }
            };
            json!({"name": name, "description": help, kind: data})
        })
        .collect();
    let scope = json!({"name": "qwen", "version": env!("CARGO_PKG_VERSION")});
    let resource = json!({"attributes": otlp::resource(resource)});
    json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]})
        .to_string()
}
