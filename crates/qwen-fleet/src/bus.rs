//! The connection to the bus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, RequestErrorKind, ServerAddr, ServerError,
};
use bytes::Bytes;
use futures_util::StreamExt;
use qwen_events::SessionId;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::heartbeat::Timing;
use crate::metrics::BusMetrics;
use crate::subjects::{Names, is_bus_name};

/// How long to wait for a connection, and for the greeting of a server.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How long to wait for the answer to one request; callers that must know ask again.
const REQUEST_LIMIT: Duration = Duration::from_secs(2);
/// A process that answers none of so many pings is dead.
const PINGS: u32 = 3;
/// How long to wait before a process without a connection is asked again.
const RECONNECTING: Duration = Duration::from_millis(150);
/// For how long a process that was found dead is not asked again.
const DEAD_FOR: Duration = Duration::from_secs(5);

/// One run of a process on the bus. It is written as NAME/INCARNATION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusIdentity {
    /// A name that a restart may have again.
    pub name: String,
    /// Differs in every run.
    pub incarnation: String,
    /// Where the files of its sessions are; none if they may continue anywhere.
    pub workspace: Option<String>,
}

impl fmt::Display for BusIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.name, self.incarnation)
    }
}

/// How to reach the bus and what to allow.
#[derive(Debug, Clone, Default)]
pub struct BusOptions {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`; several are separated by commas.
    pub url: String,
    /// A file with a NATS credentials document, an NKey seed or `USER:PASSWORD`.
    pub credentials: Option<PathBuf>,
    /// True to send plain text to addresses that are not loopback.
    pub is_insecure: bool,
    pub tls: TlsOptions,
    /// What the names of streams and subjects begin with; may be empty.
    pub prefix: String,
    /// The number of shards that the streams must have, if it was configured.
    pub shards: Option<u32>,
    pub timing: Timing,
    /// How long after an append further lines of a session are collected.
    pub coalesce: Duration,
    /// Nodes delete sessions that are idle for longer.
    pub log_retention: Duration,
    /// For how long an append may wait for the bus.
    pub commit_timeout: Duration,
}

/// How to prove identities with TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// True to refuse a server without TLS.
    pub is_required: bool,
    /// A PEM file with the certificates that may sign the server's.
    pub ca: Option<PathBuf>,
    /// The PEM files with the certificate of this process and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BusError {
    /// A short name of the cause.
    pub code: &'static str,
    message: String,
}

impl BusError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// True if the bus may answer the same request later.
    pub(crate) fn is_passing(&self) -> bool {
        self.code == "bus_unavailable"
    }
}

impl From<BusError> for std::io::Error {
    fn from(error: BusError) -> Self {
        Self::other(error)
    }
}

/// What is known of a connection from its events.
#[derive(Default)]
struct Link {
    is_lost: bool,
    /// When the connection was restored last.
    reconnected: Option<Instant>,
    /// What the server forbade last.
    forbidden: Option<String>,
}

/// A connection of this process to the bus.
pub struct Bus {
    pub(crate) client: Client,
    /// The name of this process on the bus.
    pub identity: BusIdentity,
    pub(crate) names: Names,
    pub(crate) timing: Timing,
    /// The number of shards that the streams must have.
    pub(crate) shards: Option<u32>,
    pub(crate) coalesce: Duration,
    pub(crate) log_retention: Duration,
    pub(crate) commit_timeout: Duration,
    pub metrics: BusMetrics,
    link: Arc<Mutex<Link>>,
    /// The processes that were found dead, and when.
    dead: RefCell<HashMap<String, Instant>>,
    /// Where the files of sessions are that were placed elsewhere than this process in general.
    places: RefCell<HashMap<SessionId, String>>,
}

impl Bus {
    /// Connects, and refuses servers that do not give the guarantees.
    pub async fn connect(options: &BusOptions, identity: BusIdentity) -> Result<Self, BusError> {
        if !is_bus_name(&identity.name) {
            let message = format!(
                "The name {:?} cannot be used on the bus. Use 1 to 64 letters, digits, `_` and `-`.",
                identity.name
            );
            return Err(BusError::new("invalid_bus_name", message));
        }
        if !options.prefix.is_empty() && !is_bus_name(&options.prefix) {
            let message = format!(
                "The prefix {:?} cannot be used on the bus. Use 1 to 64 letters, digits, `_` and `-`.",
                options.prefix
            );
            return Err(BusError::new("invalid_bus_name", message));
        }
        let timing = options.timing;
        if timing.interval.is_zero() || timing.dead_after < timing.interval * 2 {
            let message = format!(
                "A node would be dead after {:?} with a heartbeat every {:?}. Use a dead_after of at least two heartbeat intervals.",
                timing.dead_after, timing.interval
            );
            return Err(BusError::new("invalid_bus_options", message));
        }
        let addresses = addresses(options)?;
        let link = Arc::<Mutex<Link>>::default();
        let noted = link.clone();
        let settings = with_tls(settings(options)?, &options.tls)?
            .event_callback(move |event| {
                note_event(&noted, &event);
                std::future::ready(())
            })
            .name(identity.to_string())
            .connection_timeout(CONNECT_LIMIT)
            .request_timeout(Some(REQUEST_LIMIT))
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(|attempts| Duration::from_millis((25 << attempts.min(5)).min(1000)));
        let client = match settings.connect(addresses.clone()).await {
            Ok(client) => client,
            Err(error) => return Err(explain(&error, &options.url, &addresses).await),
        };
        let version = client.server_info().version;
        if !is_supported(&version) {
            let message = format!(
                "The bus server at {} is nats-server {version}, which lacks fixes that no session may be lost without. Use 2.12.12 or later, 2.14.3 or later, or 2.15.",
                options.url
            );
            return Err(BusError::new("bus_version", message));
        }
        Ok(Self {
            client,
            identity,
            names: Names::new(&options.prefix),
            timing,
            shards: options.shards,
            coalesce: options.coalesce,
            log_retention: options.log_retention,
            metrics: BusMetrics::default(),
            commit_timeout: options.commit_timeout,
            link,
            dead: RefCell::default(),
            places: RefCell::default(),
        })
    }

    /// The version of the server that this process is connected to.
    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// The number of servers of the bus that this connection has learned of.
    pub fn servers(&self) -> usize {
        self.client.server_info().connect_urls.len().max(1)
    }

    /// Asks the leader of a stream and waits for its answer.
    pub async fn round_trip(&self) -> Result<(), BusError> {
        self.ask(&format!("STREAM.INFO.{}", self.names.turn_stream()), &Value::Null).await.map(drop)
    }

    /// Answers pings until the returned task is dropped or the connection ends.
    pub async fn answer_pings(&self) -> Result<(), BusError> {
        let subject = self.names.node_subject(&self.identity.name, &self.identity.incarnation, "ping");
        let lost = |error: &dyn fmt::Display| BusError::new("bus_unavailable", format!("{error}"));
        let mut pings = self.client.subscribe(subject).await.map_err(|error| lost(&error))?;
        self.client.flush().await.map_err(|error| lost(&error))?;
        let client = self.client.clone();
        tokio::task::spawn_local(async move {
            while let Some(ping) = pings.next().await {
                if let Some(reply) = ping.reply {
                    // Whoever asked asks again.
                    let _ = client.publish(reply, Bytes::new()).await;
                }
            }
        });
        Ok(())
    }

    /// Finds out whether a process is alive. A process is dead if its connection is closed, or if it answers
    /// nothing for a second and a half.
    pub async fn is_alive(&self, owner: &str) -> Result<bool, BusError> {
        let Some((name, incarnation)) = owner.split_once('/') else { return Ok(false) };
        if self.dead.borrow().get(owner).is_some_and(|since| since.elapsed() < DEAD_FOR) {
            return Ok(false);
        }
        let subject = self.names.node_subject(name, incarnation, "ping");
        let mut asked = 0;
        // After a pause of the whole bus, every process connects again at its own time.
        while asked < PINGS || self.is_newly_reconnected() {
            asked += 1;
            let ping = async_nats::Request::new().timeout(Some(self.timing.ping_limit(PINGS)));
            let Err(error) = self.client.send_request(subject.clone(), ping).await else { return Ok(true) };
            match error.kind() {
                RequestErrorKind::InvalidSubject => return Ok(false),
                // A process whose bus server was killed is without a connection for a moment.
                RequestErrorKind::NoResponders => tokio::time::sleep(RECONNECTING).await,
                RequestErrorKind::TimedOut if self.is_connected() => {}
                _ => return Err(BusError::new("bus_unavailable", "The bus cannot be reached.")),
            }
        }
        self.dead.borrow_mut().insert(owner.to_owned(), Instant::now());
        Ok(false)
    }

    /// Notes where the files of a session are.
    pub(crate) fn note_place(&self, session: &SessionId, place: String) {
        self.places.borrow_mut().insert(session.clone(), place);
    }

    /// Returns where the files of a session are that this process takes. `recorded` is what its log has.
    pub(crate) fn place_of(&self, session: &SessionId, recorded: Option<&String>) -> Option<String> {
        let noted = self.places.borrow().get(session).cloned();
        noted.or_else(|| self.identity.workspace.clone()).or_else(|| recorded.cloned())
    }

    /// True while there is a connection to a server.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// True for a while after a lost connection was restored.
    fn is_newly_reconnected(&self) -> bool {
        let reconnected = self.link.lock().ok().and_then(|link| link.reconnected);
        reconnected.is_some_and(|at| at.elapsed() < self.timing.dead_after)
    }

    /// Describes why a request got no answer.
    fn explain_silence(&self, verb: &str, error: &async_nats::RequestError) -> BusError {
        let forbidden = self.link.lock().ok().and_then(|link| link.forbidden.clone());
        match forbidden {
            Some(what) => BusError::new(
                "bus_permissions",
                format!(
                    "The user of the bus has not the permissions that sessions need: {what}. Allow its account's user to publish and subscribe to `{}.>`, `$JS.API.>` and `_INBOX.>`.",
                    self.names.root()
                ),
            ),
            None => BusError::new("bus_unavailable", format!("The bus did not answer {verb}: {error}")),
        }
    }

    /// Sends a request to the servers' stream interface.
    pub(crate) async fn ask(&self, verb: &str, body: &Value) -> Result<Value, BusError> {
        let subject = format!("$JS.API.{verb}");
        let request = async_nats::Request::new().payload(Bytes::from(body.to_string()));
        match self.client.send_request(subject, request).await {
            Ok(reply) => serde_json::from_slice(&reply.payload).map_err(|error| {
                BusError::new("bus_answer", format!("The bus answered {verb} with: {error}"))
            }),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(BusError::new(
                "bus_without_jetstream",
                "The bus does not offer JetStream to this account. Start its servers with a `jetstream` section and enable it for the account.",
            )),
            Err(error) => Err(self.explain_silence(verb, &error)),
        }
    }
}

/// Notes an event of the connection. What the server forbids is one, since it does not answer the request itself.
fn note_event(link: &Mutex<Link>, event: &Event) {
    let Ok(mut link) = link.lock() else { return };
    match event {
        Event::Disconnected => link.is_lost = true,
        Event::Connected if std::mem::take(&mut link.is_lost) => link.reconnected = Some(Instant::now()),
        Event::ServerError(ServerError::Other(text))
            if text.to_lowercase().contains("permissions violation") =>
        {
            link.forbidden = Some(text.trim_matches('\'').to_owned());
        }
        _ => {}
    }
}

/// Reads the addresses, and refuses plain text to other machines.
fn addresses(options: &BusOptions) -> Result<Vec<ServerAddr>, BusError> {
    let mut addresses = Vec::new();
    for text in options.url.split(',').map(str::trim) {
        if text.contains('@') {
            let message = "The address of the bus contains credentials. Put them into a file and name it with --bus-credentials.";
            return Err(BusError::new("bus_credentials", message));
        }
        let address: ServerAddr = text.parse().map_err(|error| {
            let message = format!(
                "{text:?} is not the address of a bus: {error}. Use nats://HOST:PORT or tls://HOST:PORT."
            );
            BusError::new("invalid_bus_url", message)
        })?;
        let is_loopback = address.host() == "localhost"
            || address.host().trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let is_plain = !address.tls_required() && !options.tls.is_required;
        if is_plain && !is_loopback && !options.is_insecure {
            let message = format!(
                "{text} would send sessions and credentials as plain text to another machine. Use tls://, or --insecure-bus on a network that you trust."
            );
            return Err(BusError::new("insecure_bus", message));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn settings(options: &BusOptions) -> Result<ConnectOptions, BusError> {
    let Some(path) = &options.credentials else { return Ok(ConnectOptions::new()) };
    let unusable = |why: String| {
        BusError::new(
            "bus_credentials",
            format!("The credentials of the bus cannot be read from {}: {why}", path.display()),
        )
    };
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| unusable(error.to_string()))?;
    if text.contains("BEGIN NATS USER JWT") {
        return ConnectOptions::with_credentials(&text)
            .map_err(|_| unusable("it is not a complete credentials document".to_owned()));
    }
    let line = text.trim();
    if line.starts_with("SU") && !line.contains(':') {
        return Ok(ConnectOptions::with_nkey(line.to_owned()));
    }
    match line.split_once(':') {
        Some((user, password)) if !line.contains('\n') => {
            Ok(ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned()))
        }
        _ => Err(unusable("it is neither a credentials document, an NKey seed nor USER:PASSWORD".to_owned())),
    }
}

/// Adds the files and demands of TLS.
fn with_tls(mut settings: ConnectOptions, tls: &TlsOptions) -> Result<ConnectOptions, BusError> {
    let named = tls.identity.iter().flat_map(|(certificate, key)| [certificate, key]).chain(&tls.ca);
    for path in named {
        if let Err(error) = std::fs::File::open(path) {
            let message = format!(
                "The file {} for TLS to the bus cannot be read: {error}. Correct its name.",
                path.display()
            );
            return Err(BusError::new("bus_tls", message));
        }
    }
    settings = settings.require_tls(tls.is_required);
    if let Some(ca) = &tls.ca {
        settings = settings.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &tls.identity {
        settings = settings.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(settings)
}

/// Describes why a connection failed.
async fn explain(error: &async_nats::ConnectError, url: &str, addresses: &[ServerAddr]) -> BusError {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            return BusError::new(
                "bus_credentials",
                format!(
                    "The bus at {url} refuses these credentials. Check the file that --bus-credentials names."
                ),
            );
        }
        ConnectErrorKind::Tls => {
            return BusError::new("bus_tls", format!("The bus at {url} cannot be reached over TLS: {error}"));
        }
        _ => {}
    }
    for address in addresses {
        let host = address.host().trim_matches(['[', ']']).to_owned();
        let greeting = async {
            let mut socket = TcpStream::connect((host.as_str(), address.port())).await?;
            let mut start = [0; 5];
            socket.read_exact(&mut start).await?;
            Ok::<_, std::io::Error>(start)
        };
        match tokio::time::timeout(CONNECT_LIMIT, greeting).await {
            Ok(Ok(start)) if start == *b"INFO " => {}
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                return BusError::new(
                    "bus_unavailable",
                    format!("No bus listens at {url}: {error}. Start nats-server there, or correct --bus."),
                );
            }
            Ok(Ok(_) | Err(_)) | Err(_) => {
                return BusError::new(
                    "not_a_bus",
                    format!(
                        "What listens at {url} is not a NATS server: it does not greet as one. Correct --bus."
                    ),
                );
            }
        }
    }
    BusError::new("bus_unavailable", format!("The bus at {url} cannot be used: {error}"))
}

/// Returns true for server versions that are known to keep what they acknowledge.
pub fn is_supported(version: &str) -> bool {
    let numbers = version.split('-').next().unwrap_or_default();
    let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor)), Some(Some(patch))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    match (major, minor) {
        (2, 12) => patch >= 12,
        (2, 14) => patch >= 3,
        (2, minor) => minor >= 15,
        _ => false,
    }
}
