//! `qwen hub`: the kernel over standard input and output. This module reads the flags and the configuration
//! and copies bytes; everything else is in `qwen-kernel`.

mod endpoint;
#[cfg(feature = "fleet")]
mod front;
mod log;
#[cfg(feature = "fleet")]
pub mod node;
mod record;
#[cfg(feature = "fleet")]
mod record_store;
mod turn_ends;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Format;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};
use qwen_kernel::config::{HubConfig, Keys, session_log_directory};
use qwen_kernel::front::{ClaudeFront, Front, LineWriter, QwenFront};
use qwen_kernel::store::FileEvents;
use qwen_kernel::{
    EventStores, Hub, HubParts, Identity, Pool, PoolLimits, Router, SessionLogs, WorkerStderr, WriteNow,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet};

use self::endpoint::Source;
use self::log::LogWriter;
use self::record::MessageRecording;
pub(super) use self::turn_ends::turn_ends;
use crate::cli::HubArgs;
use crate::io::input::{InputLine, Lines, StdinReader};
use crate::io::output::Output;
use crate::runtime::exit;
use crate::settings::{self, Invocation};
use crate::telemetry::{HubTelemetry, MetricsExporter, Tracing};

/// The size limit of a session's stored numbered lines, in bytes.
pub(super) const EVENTS_LIMIT: u64 = 64 * 1024 * 1024;

/// How long metrics that are not sent yet may delay the end of the process.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(1500);

/// A hub that is about to start.
pub struct Prepared {
    args: HubArgs,
    config: HubConfig,
    router: Router,
    keys: Rc<RefCell<Keys>>,
    state: PathBuf,
    front: Arc<dyn Front>,
    telemetry: Option<HubTelemetry>,
    /// The directory of the workspaces that a node creates.
    #[cfg(feature = "fleet")]
    workspaces: PathBuf,
    /// The name of this hub, and the bus that it shares sessions over.
    #[cfg(feature = "fleet")]
    bus: Option<(String, qwen_fleet::BusOptions)>,
}

/// Reads the flags and the configuration.
pub fn prepare(args: &HubArgs) -> Result<Prepared, ErrorInfo> {
    if args.log_format.is_some() {
        exit::log_json();
    }
    let mut invocation = Invocation::current().map_err(|error| {
        ErrorInfo::new(
            ErrorKind::Input,
            "no_working_directory",
            format!("the working directory cannot be used: {error}"),
        )
    })?;
    let config = configuration(args)?;
    report_unknown(&config);
    let front = front(args)?;
    let home = invocation.qwen_home().unwrap_or_else(|| invocation.cwd.join(".qwen"));
    let state = match &args.state_dir {
        Some(state) => invocation.cwd.join(state),
        None => home.join("hub"),
    };
    let binary = worker_binary(&config)?;
    let worker_args = worker_args(&*front, &config);
    let inherited = invocation.vars().map(|(name, _)| name.to_owned()).collect();
    let model = flag_value(&worker_args, &["--model", "-m"]).unwrap_or("qwen").into();
    let session = default_session(&worker_args);
    let keys = Rc::new(RefCell::new(Keys::new(&config, binary, worker_args, state.clone(), inherited)));
    let own = [&args.record_dir, &args.config].into_iter().flatten().cloned();
    let socket = args.metrics.as_deref().and_then(|address| address.strip_prefix("unix:")).map(PathBuf::from);
    keys.borrow_mut().hide(own.chain(socket).map(|path| invocation.cwd.join(path)));
    #[cfg(feature = "fleet")]
    let bus = bus_options(args, &config, &invocation)?.map(|options| (hub_id(&state), options));
    #[cfg(feature = "fleet")]
    let has_workers = bus.is_none() || args.local;
    #[cfg(not(feature = "fleet"))]
    let has_workers = true;
    if !config.tenants.is_empty() && has_workers {
        keys.borrow_mut().check_isolation()?;
    }
    let default_key = keys.borrow_mut().default_key()?;
    let limits = limits(&config, &*front);
    let pool = Pool::new(limits, default_key, fastrand::u64(..));
    let identity = Identity {
        id: hub_id(&state),
        incarnation: format!("{:016x}", fastrand::u64(..)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let writer = LineWriter::new(&*front, model, env!("CARGO_PKG_VERSION"));
    let mut router = Router::new(front.clone(), writer, Box::new(keys.clone()), pool, identity, session);
    if args.stand_for_worker {
        router.represent_worker();
    }
    let telemetry = settings::telemetry_of_hub(&args.telemetry, &mut invocation).unwrap_or_else(|error| {
        // The workers report what is wrong with their settings; the hub needs them only for this.
        exit::report(&format!("qwen: the hub exports no telemetry: {error}"));
        None
    });
    if let Some(telemetry) = &telemetry {
        router.trace(telemetry.tracing.hub_turns());
    }
    Ok(Prepared {
        args: args.clone(),
        config,
        router,
        keys,
        state,
        front,
        telemetry,
        #[cfg(feature = "fleet")]
        workspaces: workspaces_directory(&invocation.cwd.join(home)),
        #[cfg(feature = "fleet")]
        bus,
    })
}

/// The bus that the hub is to use, if any.
#[cfg(feature = "fleet")]
fn bus_options(
    args: &HubArgs,
    config: &HubConfig,
    invocation: &Invocation,
) -> Result<Option<qwen_fleet::BusOptions>, ErrorInfo> {
    let options = super::bus::options(&args.bus, &config.bus, invocation)?;
    let refuse = |code, message: &str| Err(ErrorInfo::new(ErrorKind::Usage, code, message));
    if options.is_some() && args.stand_for_worker {
        return refuse("bad_flag", "a hub that represents one worker cannot use a bus");
    }
    if options.is_some() && !args.local && !args.worker_args.is_empty() {
        let message = "a hub on a bus without --local has no workers; give their flags to `qwen node`";
        return refuse("bad_flag", message);
    }
    if options.is_none() && args.local {
        return refuse("bad_flag", "--local is for a hub on a bus; name one with --bus");
    }
    if options.is_some() && args.dialect != "qwen" {
        return refuse("bad_flag", "a hub on a bus speaks the dialect qwen; leave out --dialect");
    }
    Ok(options)
}

/// The directory of the workspaces that a node creates. Files below a directory `.qwen` are protected against their
/// own sessions, so it is next to that.
#[cfg(feature = "fleet")]
fn workspaces_directory(home: &Path) -> PathBuf {
    let protected =
        home.ancestors().filter(|path| path.file_name().is_some_and(|name| name == ".qwen")).last();
    match protected.and_then(Path::parent) {
        Some(parent) => parent.join("qwen-workspaces"),
        None => home.join("workspaces"),
    }
}

/// A name of the hub that its successors with the same state directory have too.
fn hub_id(state: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    format!("hub-{:016x}", hasher.finish())
}

/// The program that workers are started with.
fn worker_binary(config: &HubConfig) -> Result<PathBuf, ErrorInfo> {
    match &config.binary_path {
        Some(binary) => Ok(binary.clone()),
        None => std::env::current_exe().map_err(|error| {
            ErrorInfo::new(ErrorKind::Internal, "no_binary", format!("this program cannot be found: {error}"))
        }),
    }
}

/// The configuration file, overridden by the flags.
fn configuration(args: &HubArgs) -> Result<HubConfig, ErrorInfo> {
    let refuse = |error: qwen_kernel::config::ConfigError| {
        ErrorInfo::new(ErrorKind::Settings, "invalid_hub_config", error.to_string())
    };
    let mut config = match &args.config {
        Some(path) => HubConfig::load(path).map_err(refuse)?,
        None => HubConfig::default(),
    };
    let pool = &mut config.worker_pool;
    pool.min_workers =
        args.min_workers.unwrap_or_else(|| pool.min_workers.min(args.max_workers.unwrap_or(usize::MAX)));
    pool.max_workers = args.max_workers.unwrap_or(pool.max_workers);
    pool.max_sessions_per_worker = args.max_sessions_per_worker.unwrap_or(pool.max_sessions_per_worker);
    for (flag, seconds, place) in [
        ("--idle-timeout", args.idle_timeout, &mut pool.idle_timeout),
        ("--health-check-interval", args.health_check_interval, &mut pool.health_check_interval),
    ] {
        if let Some(seconds) = seconds {
            *place = Duration::try_from_secs_f64(seconds).map_err(|_| {
                ErrorInfo::new(
                    ErrorKind::Usage,
                    "bad_flag",
                    format!("{flag}: {seconds} is not a number of seconds"),
                )
            })?;
        }
    }
    if let Some(binary) = &args.binary_path {
        config.binary_path = Some(binary.clone());
    }
    config.worker_args.extend(args.telemetry.to_args());
    config.worker_args.extend(args.worker_args.iter().cloned());
    config.check().map_err(refuse)?;
    Ok(config)
}

fn front(args: &HubArgs) -> Result<Arc<dyn Front>, ErrorInfo> {
    // A client that was written for one worker names the format among the worker's flags.
    let named = flag_value(&args.worker_args, &["--output-format", "-o"]);
    let named = named.or_else(|| flag_value(&args.worker_args, &["--input-format"]));
    let format = match named.unwrap_or(&args.output_format) {
        "stream-json" => Format::StreamJson,
        "stream-chunk-json" => Format::StreamChunkJson,
        other => {
            let message = format!("--output-format {other}: a hub writes stream-json or stream-chunk-json");
            return Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message));
        }
    };
    match args.dialect.as_str() {
        "qwen" => Ok(Arc::new(QwenFront::new(format))),
        "claude" => Ok(Arc::new(ClaudeFront)),
        other => {
            let message = format!("--dialect {other}: a hub supports qwen or claude");
            Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message))
        }
    }
}

fn limits(config: &HubConfig, front: &dyn Front) -> PoolLimits {
    let mut limits = config.worker_pool.clone();
    if !front.adopts_sessions() {
        // A worker that needs its session at startup cannot be started before the session is known.
        limits.min_workers = 0;
    }
    limits
}

/// The flags of every worker. Wire flags that the caller passes explicitly, as clients written for a single
/// worker do, are not repeated.
fn worker_args(front: &dyn Front, config: &HubConfig) -> Vec<String> {
    let given = |flag: &String| config.worker_args.iter().any(|arg| arg.split('=').next() == Some(flag));
    let mut args = Vec::new();
    for pair in front.worker_flags().chunks(2) {
        if !pair.first().is_some_and(given) {
            args.extend_from_slice(pair);
        }
    }
    args.extend(config.worker_args.iter().cloned());
    args
}

/// The value of a flag, by any of its names.
fn flag_value<'a>(args: &'a [String], names: &[&str]) -> Option<&'a str> {
    let apart = args.iter().zip(args.iter().skip(1)).find(|(flag, _)| names.contains(&flag.as_str()));
    let joined = || args.iter().find_map(|arg| arg.split_once('=').filter(|(flag, _)| names.contains(flag)));
    apart.map(|(_, value)| value.as_str()).or_else(|| joined().map(|(_, value)| value))
}

/// The session of lines that name none: the one that the worker's flags name, or a new one.
fn default_session(args: &[String]) -> SessionId {
    let forks = args.iter().any(|arg| arg == "--fork-session");
    let resumed = flag_value(args, &["--resume", "-r"]).filter(|_| !forks);
    let named = flag_value(args, &["--session-id"]).or(resumed);
    named
        .and_then(|id| SessionId::parse(id).ok())
        .unwrap_or_else(|| SessionId::from_random(fastrand::u128(..)))
}

/// `qwen hub --status`: queries the hub that serves its state at `--metrics`.
pub fn status(args: &HubArgs) -> Result<String, ErrorInfo> {
    let refuse = |kind, message: String| ErrorInfo::new(kind, "no_hub", message);
    #[cfg(feature = "fleet")]
    if args.metrics.is_none()
        && let Some(text) = front::status_of_bus(args)?
    {
        return Ok(text);
    }
    let address = args.metrics.as_deref().ok_or_else(|| {
        refuse(
            ErrorKind::Usage,
            "--status needs --metrics ADDR, the address that the hub was started with, or --bus URL"
                .to_owned(),
        )
    })?;
    endpoint::status(address)
        .map_err(|error| refuse(ErrorKind::Network, format!("the hub at {address} cannot be asked: {error}")))
}

/// Serves until standard input ends or a signal arrives, and returns the exit code.
pub async fn run(prepared: Prepared) -> u8 {
    LocalSet::new().run_until(serve(prepared)).await
}

async fn serve(prepared: Prepared) -> u8 {
    let opened = (Output::stdout(), StdinReader::stdin(), Signals::listen());
    let (output, input, signals) = match opened {
        (Ok(output), Ok(input), Ok(signals)) => (Rc::new(output), input, signals),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            exit::report(&format!("qwen: standard input and output cannot be used: {error}"));
            return 1;
        }
    };
    #[cfg(feature = "fleet")]
    if prepared.bus.is_some() && !prepared.args.local {
        return front::serve(prepared, output, input, signals).await;
    }
    let limit = prepared.config.max_event_bytes.unwrap_or(EVENTS_LIMIT);
    let events = event_stores(prepared.state.join("events"), limit);
    let mut router = prepared.router;
    let recording = match open_recording(&prepared.args) {
        Ok(recording) => recording,
        Err(error) => return end_with(&*prepared.front, error),
    };
    if let Some(recording) = &recording {
        router.record(recording.recorder());
    }
    let log = match prepared.args.log_format.is_some().then(LogWriter::start).transpose() {
        Ok(log) => log.map(Rc::new),
        Err(error) => {
            return end_before_start(&*prepared.front, format!("--log-format: {error}"));
        }
    };
    let mut parts = hub_parts(router, prepared.front.clone(), events, output.clone());
    #[cfg(feature = "fleet")]
    let shared = share(prepared.bus.as_ref(), &prepared.config, recording.as_ref(), &mut parts).await;
    #[cfg(feature = "fleet")]
    let bus_metrics = match shared {
        Ok(metrics) => metrics,
        Err(error) => return end_with(&*prepared.front, error),
    };
    #[cfg(not(feature = "fleet"))]
    let bus_metrics = String::new;
    parts.log = log.clone().map(|log| Box::new(move |record: &_| log.write(record)) as Box<dyn Fn(&_)>);
    parts.worker_stderr = log.is_none().then(|| Box::new(pass_on) as WorkerStderr);
    let hub = match Hub::start(parts) {
        Ok(hub) => hub,
        Err(error) => {
            return end_before_start(&*prepared.front, format!("the hub cannot be started: {error}"));
        }
    };
    if let Some(address) = &prepared.args.metrics
        && let Err(error) = endpoint::offer(Source::of_hub(hub.clone(), bus_metrics), address).await
    {
        hub.kill_all();
        return end_before_start(&*prepared.front, format!("--metrics {address}: {error}"));
    }
    let telemetry = prepared.telemetry.map(|telemetry| RunningTelemetry::start(telemetry, &hub));
    tokio::task::spawn_local(read(hub.clone(), Lines::new(input)));
    let reload =
        Reload { args: prepared.args, config: prepared.config, front: prepared.front, keys: prepared.keys };
    tokio::task::spawn_local(handle_signals(hub.clone(), signals, reload));
    let is_finished = relay_output(&hub, &output).await;
    if let Some(recording) = recording.filter(|_| is_finished) {
        recording.finish();
    }
    hub.kill_all();
    if let Some(telemetry) = telemetry {
        telemetry.finish().await;
    }
    if let Some(log) = log {
        log.finish();
    }
    hub.exit_code().unwrap_or(0)
}

/// Shares the sessions of a hub over its bus, if it has one. Returns the metrics of the bus.
#[cfg(feature = "fleet")]
async fn share(
    bus: Option<&(String, qwen_fleet::BusOptions)>,
    config: &HubConfig,
    recording: Option<&MessageRecording>,
    parts: &mut HubParts,
) -> Result<Box<dyn Fn() -> String>, ErrorInfo> {
    let Some((name, options)) = bus else { return Ok(Box::new(String::new)) };
    if !config.tenants.is_empty() {
        let message = "a hub with workers serves one account of a bus; leave out `tenants`, or run `qwen node` and a hub without --local";
        return Err(ErrorInfo::new(ErrorKind::Usage, "tenants_on_bus", message));
    }
    let (connection, sessions) = super::bus::open(options, super::bus::identity(name)).await?;
    let process = connection.identity.to_string();
    parts.shared = Some(record_store::record_stores(sessions, recording, &process, ""));
    Ok(Box::new(move || connection.metrics.prometheus()))
}

/// The components of a hub over standard input and output, without logging.
fn hub_parts(router: Router, front: Arc<dyn Front>, events: EventStores, output: Rc<Output>) -> HubParts {
    HubParts {
        router,
        events: Some(events),
        session_logs: Some(session_logs()),
        shared: None,
        turn_ends: Some(turn_ends(front)),
        log: None,
        worker_stderr: None,
        write_now: Some(write_now(output)),
    }
}

/// Opens the recording that `--record-dir` names.
fn open_recording(args: &HubArgs) -> Result<Option<MessageRecording>, ErrorInfo> {
    let Some(directory) = &args.record_dir else { return Ok(None) };
    MessageRecording::open(directory).map(Some).map_err(|error| {
        let message = format!("--record-dir {}: {error}", directory.display());
        ErrorInfo::new(ErrorKind::Internal, "hub_not_started", message)
    })
}

/// Writes the hub's output until the hub ends or no reader is left. Returns true in the first case.
async fn relay_output(hub: &Hub, output: &Output) -> bool {
    loop {
        let next = tokio::select! {
            next = hub.next_output() => next,
            () = output.reader_gone() => return false,
        };
        let Some(bytes) = next else { return true };
        if output.write_all(&bytes).await.is_err() {
            return false;
        }
    }
}

/// Writes what the reader of standard output accepts at once.
fn write_now(output: Rc<Output>) -> WriteNow {
    Box::new(move |bytes| output.try_write(bytes).unwrap_or(0))
}

/// Reports why the hub cannot serve, to the client and to people. Returns the exit code.
fn end_before_start(front: &dyn Front, message: String) -> u8 {
    end_with(front, ErrorInfo::new(ErrorKind::Internal, "hub_not_started", message))
}

/// Reports an error to the client and to people. Returns the exit code.
fn end_with(front: &dyn Front, error: ErrorInfo) -> u8 {
    exit::report(&format!("qwen: {error}"));
    let writer = LineWriter::new(front, "none".into(), env!("CARGO_PKG_VERSION"));
    let line = writer.fatal(&SessionId::from_random(fastrand::u128(..)), error);
    // A client that is gone needs no reason.
    let _ = std::io::stdout().write_all(&line);
    1
}

/// The telemetry of a hub that runs.
struct RunningTelemetry {
    tracing: Arc<Tracing>,
    metrics: Option<MetricsTask>,
}

impl RunningTelemetry {
    fn start(telemetry: HubTelemetry, hub: &Hub) -> Self {
        let metrics = telemetry.metrics.map(|exporter| export_metrics(hub.clone(), exporter));
        Self { tracing: telemetry.tracing, metrics }
    }

    /// Exports what is left.
    async fn finish(self) {
        if let Some(MetricsTask { stop, task }) = self.metrics {
            stop.notify_one();
            // A collector that does not answer must not hold up the end.
            let _ = tokio::time::timeout(SHUTDOWN_LIMIT, task).await;
        }
        self.tracing.close().await;
    }
}

/// The task that exports metrics.
struct MetricsTask {
    stop: Rc<Notify>,
    task: JoinHandle<()>,
}

/// Exports the hub's metrics periodically, and once more when it ends.
fn export_metrics(hub: Hub, mut exporter: MetricsExporter) -> MetricsTask {
    let stop = Rc::new(Notify::new());
    let stopped = stop.clone();
    let task = tokio::task::spawn_local(async move {
        loop {
            let last = tokio::select! {
                () = stopped.notified() => true,
                () = tokio::time::sleep(exporter.interval) => false,
            };
            let metrics = hub.inspect(Router::collect_metrics);
            exporter.export(&metrics).await;
            if last {
                return;
            }
        }
    });
    MetricsTask { stop, task }
}

/// Workers write their logs below the state directory that their environment names.
pub(super) fn session_logs() -> SessionLogs {
    let variables = Invocation::current().map(|invocation| {
        let all = invocation.vars().map(|(name, value)| (name.to_owned(), value.into()));
        all.collect::<HashMap<String, OsString>>()
    });
    let variables = variables.unwrap_or_default();
    Box::new(move |key| session_log_directory(key, |name| variables.get(name).cloned()))
}

/// Numbered lines are kept in a directory of each tenant.
fn event_stores(directory: PathBuf, limit: u64) -> EventStores {
    Box::new(move |tenant| {
        let place =
            if tenant.is_empty() { directory.clone() } else { directory.join("tenants").join(tenant) };
        Ok(Box::new(FileEvents::open(&place, limit)?))
    })
}

/// Passes a line of a worker's standard error on, unless no one reads ours: the hub must not wait for that.
pub(super) fn pass_on(text: &str) {
    let stderr = std::io::stderr();
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0) {
        exit::report(text);
    }
}

async fn read(hub: Hub, mut lines: Lines) {
    loop {
        match lines.next().await {
            Ok(Some(InputLine::Whole(line))) => hub.client_line(&line),
            Ok(Some(InputLine::TooLong)) => hub.client_line_too_long(),
            Ok(None) | Err(_) => return hub.client_eof(),
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

fn report_unknown(config: &HubConfig) {
    for key in &config.unknown {
        exit::report(&format!("qwen: the hub's configuration has the unknown key `{key}`, which is ignored"));
    }
}

/// Reads the configuration again.
struct Reload {
    args: HubArgs,
    config: HubConfig,
    front: Arc<dyn Front>,
    keys: Rc<RefCell<Keys>>,
}

impl Reload {
    /// Applies what can change; a configuration that cannot be used changes nothing.
    fn reload(&mut self, hub: &Hub) -> Result<(), ErrorInfo> {
        let next = configuration(&self.args)?;
        report_unknown(&next);
        if self.config.max_event_bytes != next.max_event_bytes {
            exit::report("qwen: `events` changes only with the next start of the hub");
        }
        let binary = worker_binary(&next)?;
        if !binary.is_file() {
            let message = format!("`binary_path`: there is no program {}", binary.display());
            return Err(ErrorInfo::new(ErrorKind::Settings, "invalid_hub_config", message));
        }
        let mut keys = self.keys.borrow_mut();
        keys.reload(&next, binary, worker_args(&*self.front, &next));
        match keys.default_key() {
            Ok(key) => {
                drop(keys);
                hub.reconfigure(limits(&next, &*self.front), key);
                self.config = HubConfig { max_event_bytes: self.config.max_event_bytes, ..next };
                Ok(())
            }
            Err(error) => {
                let former = &self.config;
                keys.reload(former, worker_binary(former)?, worker_args(&*self.front, former));
                Err(error)
            }
        }
    }
}

/// SIGTERM and SIGINT drain, a second one ends at once; SIGHUP reloads the configuration.
async fn handle_signals(hub: Hub, mut signals: Signals, mut reload: Reload) {
    loop {
        tokio::select! {
            _ = signals.interrupt.recv() => hub.drain(130),
            _ = signals.terminate.recv() => hub.drain(143),
            _ = signals.hangup.recv() => if let Err(error) = reload.reload(&hub) {
                exit::report(&format!("qwen: {error}; the former configuration stays"));
            }
        }
    }
}
