//! Resolves tracing from our settings and from OpenTelemetry's environment variables.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use qwen_events::{ErrorInfo, TraceContext};
use qwen_model::Secret;
use qwen_redact::Redactor;

use super::file::{self, Layer};
use super::layers::Layered;
use super::{Invocation, model};
use crate::cli::{Run, TelemetryFlags};
use crate::runtime::exit;
use crate::telemetry::{Collector, HubTelemetry, MetricsExporter, Target, Tracing, TracingConfig};

/// The default address of a collector.
pub(super) const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// The default timeout of one attempt to export spans.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The variables with the headers of every export; the more specific one comes last.
pub const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// The default time between two exports of metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);

/// What is exported.
#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// The prefix of the program's variables.
    fn variables(self) -> &'static str {
        match self {
            Self::Traces => "OTEL_EXPORTER_OTLP_TRACES_",
            Self::Metrics => "OTEL_EXPORTER_OTLP_METRICS_",
        }
    }

    /// Its path below a collector's address.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// The telemetry of a hub with these flags; none unless it is enabled.
pub fn of_hub(
    flags: &TelemetryFlags,
    invocation: &mut Invocation,
) -> Result<Option<HubTelemetry>, ErrorInfo> {
    let run = Run { telemetry: flags.clone(), ..Run::default() };
    let layered = Layered::load(&run, invocation)?;
    let settings = layered.settings()?;
    let redactor = super::redactor(&settings, invocation);
    let mut warnings = Vec::new();
    let tracing = resolve(&settings.telemetry, &layered, invocation, &redactor, &mut warnings);
    let metrics = (invocation.var("OTEL_METRICS_EXPORTER") != Some("none")).then(|| {
        let settings = &settings.telemetry;
        let target = target(Signal::Metrics, settings, &layered, invocation, &mut Vec::new());
        let interval =
            invocation.var("OTEL_METRIC_EXPORT_INTERVAL").and_then(|text| text.trim().parse().ok());
        let interval = interval.filter(|ms| *ms > 0).map_or(METRICS_INTERVAL, Duration::from_millis);
        MetricsExporter::new(target, resource(invocation), interval)
    });
    for warning in warnings {
        exit::report(&format!("qwen: {warning}"));
    }
    Ok(tracing.map(|tracing| HubTelemetry { tracing, metrics }))
}

/// Builds the tracing; none unless it is enabled.
pub(super) fn resolve(
    settings: &file::Telemetry,
    layered: &Layered,
    invocation: &Invocation,
    redactor: &Arc<Redactor>,
    warnings: &mut Vec<String>,
) -> Option<Arc<Tracing>> {
    let disabled = invocation.var("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let unwanted = invocation.var("OTEL_TRACES_EXPORTER") == Some("none");
    if settings.enabled != Some(true) || disabled || unwanted {
        return None;
    }
    if let Some(target) = settings.target.as_deref().filter(|target| *target != "local") {
        warnings.push(format!(
            "telemetry.target: '{target}' is not supported; traces go to the configured endpoint"
        ));
    }
    let target = target(Signal::Traces, settings, layered, invocation, warnings);
    let parent = invocation.var("TRACEPARENT").map(|traceparent| TraceContext {
        traceparent: traceparent.into(),
        tracestate: invocation.var("TRACESTATE").map(Arc::from),
    });
    let content = settings.log_prompts.unwrap_or_default();
    let wanted = TracingConfig { target, resource: resource(invocation), parent, content };
    Some(Arc::new(Tracing::new(wanted, redactor.clone())))
}

fn target(
    signal: Signal,
    settings: &file::Telemetry,
    layered: &Layered,
    invocation: &Invocation,
    warnings: &mut Vec<String>,
) -> Target {
    match settings.outfile.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => Target::File(invocation.absolute(path).unwrap_or_else(|| path.into())),
        None => Target::Collector(collector(signal, settings, layered, invocation, warnings)),
    }
}

fn collector(
    signal: Signal,
    settings: &file::Telemetry,
    layered: &Layered,
    invocation: &Invocation,
    warnings: &mut Vec<String>,
) -> Collector {
    let particular = |name: &str| {
        let [own, all] = [signal.variables(), "OTEL_EXPORTER_OTLP_"].map(|prefix| format!("{prefix}{name}"));
        invocation.var(&own).or_else(|| invocation.var(&all))
    };
    let protocol = settings.otlp_protocol.as_deref().or_else(|| particular("PROTOCOL"));
    if protocol == Some("grpc") {
        warnings.push(
            "telemetry: only OTLP over HTTP is supported, not gRPC; use the collector's HTTP port, usually 4318".to_owned(),
        );
    }
    // A value that was given with this run takes precedence; otherwise the more specific variable does.
    let given = layered.root.at("telemetry.otlpEndpoint");
    let given = given.is_some_and(|node| matches!(node.origin.source.layer, Layer::Flag | Layer::Given));
    let url = match invocation.var(&format!("{}ENDPOINT", signal.variables())).filter(|_| !given) {
        Some(url) => url.to_owned(),
        None => address_of(signal, settings.otlp_endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT)),
    };
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (name, value) in HEADERS.into_iter().filter_map(|name| invocation.var(name)).flat_map(pairs) {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        headers.push((name, Secret::new(value)));
    }
    let timeout = particular("TIMEOUT").and_then(|text| text.trim().parse().ok()).filter(|ms| *ms > 0);
    let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
    Collector { url, headers, timeout, proxy: model::proxy(invocation) }
}

/// The path at which a collector accepts a signal.
fn address_of(signal: Signal, endpoint: &str) -> String {
    let endpoint = endpoint.trim().trim_end_matches('/');
    let endpoint = endpoint.strip_suffix(Signal::Traces.path()).unwrap_or(endpoint);
    format!("{endpoint}{}", signal.path())
}

/// The resource attributes of the process.
fn resource(invocation: &Invocation) -> Vec<(String, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let own = [
        ("service.name", "qwen"),
        ("service.version", version),
        ("telemetry.sdk.name", "qwen"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", version),
    ];
    let mut resource: Vec<(String, String)> =
        own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let given = invocation.var("OTEL_RESOURCE_ATTRIBUTES").map(pairs).unwrap_or_default();
    let name = invocation.var("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name.to_owned()));
    for (key, value) in given.into_iter().chain(name) {
        resource.retain(|(known, _)| *known != key);
        resource.push((key, value));
    }
    resource
}

/// The header values of the environment, both decoded and as written, so that they are redacted.
pub(super) fn secrets(invocation: &Invocation) -> Vec<String> {
    let mut secrets = Vec::new();
    for text in HEADERS.into_iter().filter_map(|name| invocation.var(name)) {
        secrets.extend(text.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim().to_owned())));
        for (_, value) in pairs(text) {
            // `Bearer KEY`: the key alone is a secret too.
            secrets.extend(value.split_whitespace().last().map(str::to_owned));
            secrets.push(value);
        }
    }
    secrets
}

/// Parses `key=value,key=value` with `%XX` escapes. Entries that are not pairs are skipped.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let key = key.trim();
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_endpoint_is_the_collectors_or_that_of_its_traces() {
        for (given, expected) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/base", "https://c/base/v1/traces"),
            ("https://c/v1/traces", "https://c/v1/traces"),
        ] {
            assert_eq!(address_of(Signal::Traces, given), expected);
        }
    }

    #[test]
    fn pairs_are_read_as_opentelemetry_writes_them() {
        let read = pairs(" a = b%20c ,x=1=2,broken,=v,y=%zz%,z=");
        let expected = [("a", "b c"), ("x", "1=2"), ("y", "%zz%"), ("z", "")];
        assert_eq!(read, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_service_can_be_named_by_whoever_starts_it() {
        let named = |vars: &[(&str, &str)]| {
            let resource = resource(&Invocation::from_variables(vars));
            let names: Vec<&str> = resource
                .iter()
                .filter(|(key, _)| key == "service.name")
                .map(|(_, value)| value.as_str())
                .collect();
            names.join(" ")
        };
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=test");
        assert_eq!(named(&[]), "qwen");
        assert_eq!(named(&[attributes]), "a");
        assert_eq!(named(&[attributes, ("OTEL_SERVICE_NAME", "b")]), "b");
    }

    proptest! {
        #[test]
        fn any_text_is_pairs_or_nothing(text in "\\PC*|[a-z=,%0-9]*") {
            for (key, _) in pairs(&text) {
                prop_assert!(!key.is_empty());
            }
        }
    }
}
