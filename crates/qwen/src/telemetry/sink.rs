//! Where spans go: a collector over HTTP, or a file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use qwen_http::{Client, ClientConfig, ProxyConfig, Request};
use qwen_model::Secret;
use rustix::fs::OFlags;

use super::otlp;

/// How much of a collector's answer is read.
const MAX_ANSWER: usize = 64 * 1024;

/// Where spans go.
#[derive(Debug)]
pub(crate) enum Target {
    /// A collector that speaks OTLP over HTTP.
    Collector {
        /// The whole address, `/v1/traces` included.
        url: String,
        /// Headers of every request; they may hold keys.
        headers: Vec<(String, Secret)>,
        /// For one attempt, from the connection to the end of the answer.
        timeout: Duration,
        /// The proxies to use.
        proxy: ProxyConfig,
    },
    /// A file that a line is added to for each batch.
    File(PathBuf),
}

/// Why spans could not be delivered.
#[derive(Debug)]
pub(super) struct Failure {
    pub why: String,
    /// Trying again may help, and not before so long.
    pub again: Option<Duration>,
}

/// A target, opened at the first delivery.
pub(super) enum Sink {
    Collector { target: Target, client: Client },
    File { path: PathBuf, file: Option<File> },
}

impl Sink {
    pub fn new(target: Target) -> Self {
        match target {
            Target::File(path) => Self::File { path, file: None },
            Target::Collector { timeout, ref proxy, .. } => {
                let config = ClientConfig {
                    connect_timeout: timeout,
                    proxy: proxy.clone(),
                    ..ClientConfig::default()
                };
                Self::Collector { client: Client::new(config), target }
            }
        }
    }

    /// Delivers a batch. A collector may take it and refuse some of its spans.
    pub async fn deliver(&mut self, body: &str) -> Result<Option<String>, Failure> {
        match self {
            Self::Collector { target: Target::Collector { url, headers, timeout, .. }, client } => {
                match tokio::time::timeout(*timeout, post(client, url, headers, body)).await {
                    Ok(posted) => posted,
                    Err(_) => {
                        let why =
                            format!("the collector gave no whole answer within {} ms", timeout.as_millis());
                        Err(Failure { why, again: Some(Duration::ZERO) })
                    }
                }
            }
            Self::Collector { .. } => Ok(None),
            Self::File { path, file } => write(path, file, body)
                .map(|()| None)
                .map_err(|error| Failure { why: format!("{}: {error}", path.display()), again: None }),
        }
    }
}

async fn post(
    client: &Client,
    url: &str,
    headers: &[(String, Secret)],
    body: &str,
) -> Result<Option<String>, Failure> {
    let mut request = Request::post(url, body.to_owned());
    let own =
        [("content-type", "application/json"), ("user-agent", concat!("qwen/", env!("CARGO_PKG_VERSION")))];
    let theirs = headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
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
            // It was taken; how the answer goes on changes nothing.
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

/// The words of a stranger, as far as they are shown.
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
        None => open_file(path)?,
    };
    let mut bytes = Vec::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    open.write_all(&bytes)?;
    *file = Some(open);
    Ok(())
}

/// Opens the file for whoever owns it alone. A pipe that nobody reads must not hold up the work, and standard output is
/// the protocol's, by whatever name.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let (ours, stdout) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(rustix::stdio::stdout()));
    if stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (ours.st_dev, ours.st_ino)) {
        return Err(io::Error::other("this is standard output, which carries nothing but the protocol"));
    }
    Ok(file)
}
