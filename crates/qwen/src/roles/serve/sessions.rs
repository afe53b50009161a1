//! The hub and the stores behind a server's sessions.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Format;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};
#[cfg(feature = "fleet")]
use qwen_fleet::{Nodes, Relay, RelayParts};
use qwen_kernel::config::{HubConfig, Keys};
use qwen_kernel::front::{Front, LineWriter, QwenFront};
use qwen_kernel::store::FileEvents;
use qwen_kernel::{EventStores, Hub, HubParts, Identity, Pool, Router};
use qwen_serve::{ServeError, ServeOptions, SessionParts};
use rustix::fs::FlockOperation;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::super::hub;
#[cfg(feature = "fleet")]
use super::shared::{SharedHub, SharedLogs, SharedWorkers};
use super::stored::Logs;
use crate::settings::{self, Invocation};

/// The deadline of an approval if none is configured: in practice none.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the workers of a server are started with.
pub struct WorkerFlags<'a> {
    /// How long a permission request may stay open.
    pub approval_timeout: Option<Duration>,
    /// The user's flags for workers.
    pub further: &'a [String],
}

/// Sessions that are about to start.
pub struct PreparedSessions {
    pub options: ServeOptions,
    store: Rc<FileEvents>,
    router: Router,
    logs: Logs,
    front: Arc<dyn Front>,
    /// Held until the server ends: one server per state directory.
    lock: File,
    #[cfg(feature = "fleet")]
    bus: Option<ServerBus>,
}

/// The bus of a server.
#[cfg(feature = "fleet")]
pub struct ServerBus {
    pub options: qwen_fleet::BusOptions,
    /// True to run the sessions on workers of this process.
    pub is_local: bool,
}

impl PreparedSessions {
    /// Opens the stores in the server's directory.
    pub fn open(
        options: ServeOptions,
        invocation: &Invocation,
        flags: &WorkerFlags<'_>,
        lock: File,
    ) -> Result<Self, ErrorInfo> {
        let store = FileEvents::open(&options.state.join("events"), hub::EVENTS_LIMIT)
            .map_err(|error| refuse(format!("{} cannot be used: {error}.", options.state.display())))?;
        let logs = settings::store(invocation).ok_or_else(|| {
            refuse("Sessions cannot be stored: neither QWEN_HOME nor HOME is set.".to_owned())
        })?;
        let front: Arc<dyn Front> = Arc::new(QwenFront::new(Format::StreamChunkJson));
        let router = router(flags, invocation, &front, &options.state, options.limits.sessions)?;
        Ok(Self {
            options,
            store: Rc::new(store),
            router,
            logs: Logs(logs),
            front,
            lock,
            #[cfg(feature = "fleet")]
            bus: None,
        })
    }

    /// Shares the sessions over a bus.
    #[cfg(feature = "fleet")]
    pub fn share(&mut self, bus: ServerBus) {
        self.bus = Some(bus);
    }

    /// Starts the hub. The file keeps other servers out of the directory while it is open.
    pub async fn start(self) -> Result<(SessionParts, File), ServeError> {
        #[cfg(feature = "fleet")]
        if let Some(bus) = self.bus {
            return Self { bus: None, ..self }.start_shared(bus).await;
        }
        let signals = signals()?;
        let Self { options, store, router, logs, front, lock, .. } = self;
        let parts = HubParts {
            router,
            events: Some(event_stores(store.clone())),
            session_logs: Some(hub::session_logs()),
            shared: None,
            turn_ends: Some(hub::turn_ends(front)),
            log: None,
            worker_stderr: Some(Box::new(hub::pass_on)),
            write_now: None,
        };
        let hub =
            Hub::start(parts).map_err(|error| ServeError(format!("The hub cannot be started: {error}.")))?;
        Ok((SessionParts { hub: Rc::new(hub), store, stored: Box::new(logs), options, signals }, lock))
    }

    /// Starts a hub on a bus, with workers or without.
    #[cfg(feature = "fleet")]
    async fn start_shared(self, bus: ServerBus) -> Result<(SessionParts, File), ServeError> {
        let signals = signals()?;
        let Self { options, store, router, front, lock, .. } = self;
        let failed = |error: ErrorInfo| ServeError(error.to_string());
        let name = "qwen-serve";
        let opened = super::super::bus::open(&bus.options, super::super::bus::identity(name)).await;
        let (connection, sessions) = opened.map_err(failed)?;
        let nodes = Nodes::follow(&connection).await.map_err(|error| ServeError(error.to_string()))?;
        let workers = if bus.is_local {
            let parts = HubParts {
                router,
                events: Some(event_stores(store.clone())),
                session_logs: Some(hub::session_logs()),
                shared: Some(sessions.clone()),
                turn_ends: Some(hub::turn_ends(front)),
                log: None,
                worker_stderr: Some(Box::new(hub::pass_on)),
                write_now: None,
            };
            let hub = Hub::start(parts);
            SharedWorkers::Local(
                hub.map_err(|error| ServeError(format!("The hub cannot be started: {error}.")))?,
            )
        } else {
            let parts = RelayParts {
                bus: connection,
                sessions: sessions.clone(),
                front: front.clone(),
                writer: LineWriter::new(&*front, "qwen".into(), env!("CARGO_PKG_VERSION")),
                default_session: SessionId::from_random(fastrand::u128(..)),
                turn_ends: hub::turn_ends(front),
                scratch: options.state.join("scratch"),
                tenant: None,
                has_handshake: true,
                recorder: None,
            };
            let relay = Relay::start(parts).await;
            SharedWorkers::Nodes(relay.map_err(|error| ServeError(error.to_string()))?)
        };
        let hub = Rc::new(SharedHub::new(workers, nodes, sessions, store.clone()));
        let stored = Box::new(SharedLogs(bus.options));
        Ok((SessionParts { hub, store, stored, options, signals }, lock))
    }
}

/// The environment and the directory that the server was started with.
pub fn invocation() -> Result<Invocation, ErrorInfo> {
    Invocation::current().map_err(|error| {
        refuse(format!("The working directory cannot be used: {error}. Change to another one."))
    })
}

/// The directory in which servers keep their state.
pub fn state_directory(invocation: &Invocation) -> PathBuf {
    let home = invocation.qwen_home().unwrap_or_else(|| invocation.cwd.join(".qwen"));
    invocation.cwd.join(home).join("serve")
}

/// The real paths of the workspaces; the working directory if none are given.
pub fn workspaces(given: &[PathBuf], invocation: &Invocation) -> Result<Vec<PathBuf>, ErrorInfo> {
    let own = std::slice::from_ref(&invocation.cwd);
    let find = |workspace: &PathBuf| {
        let real = invocation.cwd.join(workspace).canonicalize().ok().filter(|path| path.is_dir());
        real.ok_or_else(|| {
            refuse(format!("--workspace {}: there is no such directory.", workspace.display()))
        })
    };
    if given.is_empty() { own } else { given }.iter().map(find).collect()
}

/// The router of the server's sessions. Every open session may have a worker.
fn router(
    flags: &WorkerFlags<'_>,
    invocation: &Invocation,
    front: &Arc<dyn Front>,
    state: &Path,
    sessions: usize,
) -> Result<Router, ErrorInfo> {
    let mut config = HubConfig::default();
    config.worker_pool.max_workers = sessions;
    config.worker_pool.max_queue = sessions;
    config.worker_pool.max_queue_per_tenant = sessions;
    config.check().map_err(|error| refuse(error.to_string()))?;
    let binary =
        std::env::current_exe().map_err(|error| refuse(format!("This program cannot be found: {error}.")))?;
    let mut worker_args = front.worker_flags();
    let deadline = flags.approval_timeout.unwrap_or(NO_DEADLINE).as_secs_f64();
    worker_args.push(format!("--question-timeout={deadline}"));
    worker_args.extend(flags.further.iter().cloned());
    let inherited = invocation
        .vars()
        .map(|(name, _)| name.to_owned())
        // Commands of sessions must not drive the server.
        .filter(|name| name != "QWEN_SERVER_TOKEN")
        .collect();
    let keys = Keys::new(&config, binary, worker_args, state.to_owned(), inherited);
    let keys = Rc::new(RefCell::new(keys));
    let default_key = keys.borrow_mut().default_key()?;
    let pool = Pool::new(config.worker_pool, default_key, fastrand::u64(..));
    let writer = LineWriter::new(&**front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let session = SessionId::from_random(fastrand::u128(..));
    let identity = Identity { version: env!("CARGO_PKG_VERSION").to_owned(), ..Identity::default() };
    Ok(Router::new(front.clone(), writer, Box::new(keys), pool, identity, session))
}

/// Makes this process the only server of the directory. None if another one uses it.
pub fn lock(state: &Path) -> Result<Option<File>, ErrorInfo> {
    let path = state.join("lock");
    let failed = |error: io::Error| refuse(format!("{} cannot be used: {error}.", path.display()));
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

pub fn refuse(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "serve_not_started", message)
}

pub fn usage(error: ServeError) -> ErrorInfo {
    refuse(error.0)
}

/// Exit codes of the signals that arrive.
fn signals() -> Result<mpsc::UnboundedReceiver<u8>, ServeError> {
    let (sender, signals) = mpsc::unbounded_channel();
    for (kind, code) in [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143)] {
        let failed = |error| ServeError(format!("Signals cannot be handled: {error}."));
        let mut arriving = signal(kind).map_err(failed)?;
        let sender = sender.clone();
        tokio::task::spawn_local(async move {
            while arriving.recv().await.is_some() && sender.send(code).is_ok() {}
        });
    }
    Ok(signals)
}

/// Gives the hub the store that the server reads too.
fn event_stores(store: Rc<FileEvents>) -> EventStores {
    Box::new(move |_| Ok(Box::new(store.clone())))
}
