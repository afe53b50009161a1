//! Destinations of spans: a collector over HTTP, or a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use qwen_http::{Client, ClientConfig, HttpRequest, ProxyConfig};
use qwen_model::Secret;

use super::otlp;
use crate::io::append_file;

/// The most bytes that are read of a collector's response.
const MAX_ANSWER: usize = 64 * 1024;

/// The configured destination of spans.
#[derive(Debug)]
pub(crate) enum Target {
    /// A collector for OTLP over HTTP.
    Collector(Collector),
    /// A file to which each batch is appended as a line.
    File(PathBuf),
}

/// A collector and its connection settings.
#[derive(Debug)]
pub(crate) struct Collector {
    /// The complete address, including `/v1/traces`.
    pub url: String,
    /// Headers of every request; they may hold keys.
    pub headers: Vec<(String, Secret)>,
    /// For one attempt, from the connection to the end of the response.
    pub timeout: Duration,
    pub proxy: ProxyConfig,
}

/// Why spans could not be delivered.
#[derive(Debug)]
pub(super) struct Failure {
    pub why: String,
    /// The minimum pause before a retry; none if a retry cannot help.
    pub again: Option<Duration>,
}

/// A target, opened at the first delivery.
pub(super) enum Sink {
    Collector { collector: Collector, client: Client },
    File { path: PathBuf, file: Option<File> },
}

impl Sink {
    pub fn new(target: Target) -> Self {
        match target {
            Target::File(path) => Self::File { path, file: None },
            Target::Collector(collector) => {
                let config = ClientConfig {
                    connect_timeout: collector.timeout,
                    proxy: collector.proxy.clone(),
                    ..ClientConfig::default()
                };
                Self::Collector { client: Client::new(config), collector }
            }
        }
    }

    /// Delivers a batch. A collector may accept it and refuse some of its spans; the message about those is
    /// returned.
    pub async fn deliver(&mut self, body: &str) -> Result<Option<String>, Failure> {
        match self {
            Self::Collector { collector, client } => {
                let timeout = collector.timeout;
                tokio::time::timeout(timeout, post(client, collector, body)).await.unwrap_or_else(|_| {
                    let why =
                        format!("the collector sent no complete response within {} ms", timeout.as_millis());
                    Err(Failure { why, again: Some(Duration::ZERO) })
                })
            }
            Self::File { path, file } => write(path, file, body)
                .map(|()| None)
                .map_err(|error| Failure { why: format!("{}: {error}", path.display()), again: None }),
        }
    }
}

async fn post(client: &Client, collector: &Collector, body: &str) -> Result<Option<String>, Failure> {
    let mut request = HttpRequest::post(&*collector.url, body.to_owned());
    let own =
        [("content-type", "application/json"), ("user-agent", concat!("qwen/", env!("CARGO_PKG_VERSION")))];
    let theirs = collector.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
    for (name, value) in own.into_iter().chain(theirs) {
        let (Ok(known), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            let why =
                format!("the header '{}' of OTEL_EXPORTER_OTLP_HEADERS cannot be sent", name.escape_debug());
            return Err(Failure { why, again: None });
        };
        value.set_sensitive(true);
        request.headers.insert(known, value);
    }
    let broken = |error: qwen_http::Error| Failure { why: causes(&error), again: Some(Duration::ZERO) };
    let mut response = client.send(request).await.map_err(broken)?;
    let status = response.status.as_u16();
    let after =
        response.headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let mut answer = Vec::new();
    while answer.len() < MAX_ANSWER {
        match response.body.data().await {
            Some(Ok(bytes)) => answer.extend_from_slice(&bytes),
            // The batch was accepted; the rest of the response does not matter.
            Some(Err(_)) | None => break,
        }
    }
    match status {
        200..=299 => Ok(otlp::refused(&answer)
            .map(|(count, why)| format!("the collector refused {count} spans: {}", shortened(&why)))),
        429 | 502..=504 => {
            let again = Some(Duration::from_secs(after.unwrap_or_default()));
            Err(Failure { why: format!("the collector answered with HTTP {status}"), again })
        }
        _ => Err(Failure { why: format!("the collector answered with HTTP {status}"), again: None }),
    }
}

/// Shortens the text of a collector for display.
fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn write(path: &Path, file: &mut Option<File>, line: &str) -> io::Result<()> {
    let mut open = match file.take() {
        Some(open) => open,
        None => append_file::open(path)?,
    };
    let mut bytes = Vec::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    open.write_all(&bytes)?;
    *file = Some(open);
    Ok(())
}
