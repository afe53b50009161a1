//! `qwen serve`: a hub in this process and the HTTP server as its only client. This module reads the flags
//! and connects the two; everything else is in `qwen-serve` and `qwen-kernel`.

mod stored;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Format;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};
use qwen_kernel::config::{HubConfig, Keys};
use qwen_kernel::front::{Front, LineWriter, QwenFront};
use qwen_kernel::store::{Appended, Events, FileEvents, Follower, Read, Taken};
use qwen_kernel::{EventStores, Hub, HubParts, Identity, Pool, Router};
use qwen_serve::{Listen, Listener, ServeError, ServeLimits, ServeOptions, ServeParts, TlsFiles, Tokens};
use rustix::fs::FlockOperation;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use self::stored::Logs;
use super::hub;
use crate::cli::ServeArgs;
use crate::runtime::exit;
use crate::settings::{self, Invocation};

/// The deadline of an approval if none is configured: in practice none.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// A server that is about to start.
pub struct PreparedServer {
    options: ServeOptions,
    tokens: Tokens,
    store: Rc<FileEvents>,
    router: Router,
    logs: Logs,
    front: Arc<dyn Front>,
    opens_browser: bool,
    /// Held until the server ends: one server per state directory.
    _lock: File,
}

/// Reads the flags and opens the server's directory.
pub fn prepare(args: &ServeArgs) -> Result<PreparedServer, ErrorInfo> {
    let invocation = Invocation::current().map_err(|error| {
        refuse(format!("The working directory cannot be used: {error}. Change to another one."))
    })?;
    let home = invocation.qwen_home().unwrap_or_else(|| invocation.cwd.join(".qwen"));
    let state = invocation.cwd.join(home).join("serve");
    let options = options(args, &invocation, state.clone())?;
    let given = invocation.var("QWEN_SERVER_TOKEN");
    let tokens = Tokens::load(&state, args.new_token, given).map_err(usage)?;
    let lock = lock(&state)?;
    let store = FileEvents::open(&state.join("events"), hub::EVENTS_LIMIT)
        .map_err(|error| refuse(format!("{} cannot be used: {error}.", state.display())))?;
    let logs = settings::store(&invocation)
        .ok_or_else(|| refuse("Sessions cannot be stored: neither QWEN_HOME nor HOME is set.".to_owned()))?;
    let front: Arc<dyn Front> = Arc::new(QwenFront::new(Format::StreamChunkJson));
    let router = router(args, &invocation, &front, &state, options.limits.sessions)?;
    Ok(PreparedServer {
        options,
        tokens,
        store: Rc::new(store),
        router,
        logs: Logs(logs),
        front,
        opens_browser: args.open,
        _lock: lock,
    })
}

fn options(args: &ServeArgs, invocation: &Invocation, state: PathBuf) -> Result<ServeOptions, ErrorInfo> {
    let mut workspaces = Vec::new();
    let own = std::slice::from_ref(&invocation.cwd);
    for workspace in if args.workspace.is_empty() { own } else { &args.workspace } {
        let path = invocation.cwd.join(workspace);
        let real = path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
            refuse(format!("--workspace {}: there is no such directory.", workspace.display()))
        })?;
        workspaces.push(real);
    }
    let certificate = args.tls_cert.as_ref().zip(args.tls_key.as_ref());
    let tls = certificate.map(|(certificate, key)| TlsFiles {
        certificate: invocation.cwd.join(certificate),
        key: invocation.cwd.join(key),
    });
    let sessions = usize::try_from(args.max_sessions).unwrap_or(usize::MAX);
    let options = ServeOptions {
        listen: Listen::parse(&args.listen).map_err(usage)?,
        workspaces,
        origins: args.allow_origin.clone(),
        allows_remote: args.allow_remote,
        is_insecure: args.insecure,
        tls,
        state,
        limits: ServeLimits { sessions, ..ServeLimits::default() },
    };
    options.check().map_err(usage)?;
    Ok(options)
}

/// The router of the server's sessions. Every open session may have a worker.
fn router(
    args: &ServeArgs,
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
    let deadline = args.approval_timeout.unwrap_or(NO_DEADLINE).as_secs_f64();
    worker_args.push(format!("--question-timeout={deadline}"));
    worker_args.extend(args.worker_args.iter().cloned());
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

/// Makes this process the only server of the directory.
fn lock(state: &Path) -> Result<File, ErrorInfo> {
    let path = state.join("lock");
    let failed = |error: io::Error| refuse(format!("{} cannot be used: {error}.", path.display()));
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(refuse(format!(
            "Another server uses {}. Stop it, or set another QWEN_HOME.",
            state.display()
        ))),
        Err(error) => Err(failed(error.into())),
    }
}

fn refuse(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "serve_not_started", message)
}

fn usage(error: ServeError) -> ErrorInfo {
    refuse(error.0)
}

/// Serves until a signal arrives, and returns the exit code.
pub async fn run(prepared: PreparedServer) -> u8 {
    LocalSet::new().run_until(serve(prepared)).await
}

async fn serve(prepared: PreparedServer) -> u8 {
    let PreparedServer { options, tokens, store, router, logs, front, opens_browser, _lock } = prepared;
    let started = async {
        let listener = Listener::bind(&options).await?;
        let signals =
            signals().map_err(|error| ServeError(format!("Signals cannot be handled: {error}.")))?;
        let parts = HubParts {
            router,
            events: Some(event_stores(store.clone())),
            session_logs: Some(hub::session_logs()),
            turn_ends: Some(hub::turn_ends(front)),
            log: None,
            worker_stderr: Some(Box::new(hub::pass_on)),
            write_now: None,
        };
        announce(&listener, &tokens, &options.state, opens_browser);
        let hub =
            Hub::start(parts).map_err(|error| ServeError(format!("The hub cannot be started: {error}.")))?;
        let stored = Box::new(logs);
        let parts = ServeParts { listener, hub, store, stored, tokens, options, signals };
        qwen_serve::serve(parts).await
    };
    match started.await {
        Ok(code) => code,
        Err(error) => {
            exit::report(&format!("qwen: {error}"));
            1
        }
    }
}

/// Reports the address. The token is shown if it is new or standard error is a terminal.
fn announce(listener: &Listener, tokens: &Tokens, state: &Path, opens_browser: bool) {
    let address = match &listener.address {
        Listen::Unix(path) => {
            return exit::report(&format!("qwen: serving on unix:{}", path.display()));
        }
        Listen::Tcp(address) => address,
    };
    let scheme = if listener.has_tls() { "https" } else { "http" };
    let link = format!("{scheme}://{address}/#token={}", tokens.full());
    if tokens.is_new || io::stderr().is_terminal() {
        exit::report(&format!("qwen: serving on {link}"));
    } else {
        let file = state.join("token");
        exit::report(&format!("qwen: serving on {scheme}://{address}/ with the token in {}", file.display()));
    }
    if opens_browser && let Err(error) = open_browser(&link, state) {
        exit::report(&format!("qwen: the browser cannot be opened: {error}. Open the link above."));
    }
}

/// Opens a private file that leads to the link: an argument would show the token to every user.
fn open_browser(link: &str, state: &Path) -> io::Result<()> {
    use std::io::Write;
    let page = state.join("open.html");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&page)?;
    write!(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={link}\">")?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let nothing = std::process::Stdio::null;
    std::process::Command::new(program)
        .arg(&page)
        .stdin(nothing())
        .stdout(nothing())
        .stderr(nothing())
        .spawn()?;
    Ok(())
}

/// Exit codes of the signals that arrive.
fn signals() -> io::Result<mpsc::UnboundedReceiver<u8>> {
    let (sender, signals) = mpsc::unbounded_channel();
    for (kind, code) in [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143)] {
        let mut arriving = signal(kind)?;
        let sender = sender.clone();
        tokio::task::spawn_local(async move {
            while arriving.recv().await.is_some() && sender.send(code).is_ok() {}
        });
    }
    Ok(signals)
}

/// Gives the hub the store that the server reads too.
fn event_stores(store: Rc<FileEvents>) -> EventStores {
    Box::new(move |_| Ok(Box::new(SharedEvents(store.clone()))))
}

/// The one store of the server's sessions.
struct SharedEvents(Rc<FileEvents>);

impl Events for SharedEvents {
    fn take(&self, session: &SessionId) -> io::Result<Taken> {
        self.0.take(session)
    }

    fn append(&self, id: &SessionId, epoch: u64, first: u64, lines: &[u8], open: Option<&str>) -> Appended {
        self.0.append(id, epoch, first, lines, open)
    }

    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Read {
        self.0.read(session, after, limit)
    }

    fn follow(&self, session: &SessionId, after: u64) -> Follower<'_> {
        self.0.follow(session, after)
    }

    fn last(&self, session: &SessionId) -> u64 {
        self.0.last(session)
    }

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        self.0.delete(session)
    }
}
