//! The Rust SDK: sessions as values.
//!
//! An [`AgentManager`] runs a kernel on a dedicated thread; sessions communicate with it through channels.
//! Every session has its own bounded buffer: a reader that stops reading pauses only its own worker.

mod binary;
mod messages;
mod options;
mod session;
mod store;
mod thread;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

pub use messages::{
    AgentMessage, MessageKind, MessageToolCall, PermissionDenial, SubagentUsage, TurnError, TurnResult,
    TurnUsage,
};
pub use options::{SessionAgent, SessionLimits, TurnOptions};
pub use session::Session;
pub use store::SessionStore;
pub use turn::TurnStream;

use self::store::StoreMirror;
use self::thread::Command;
use crate::control_plane::ControlPlane;
use crate::router::SessionOptions;
use crate::worker_pool::PoolLimits;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No program to start workers with.
    #[error(
        "there is no qwen program (looked at {looked}); install qwen, put it on PATH, or name it with QWEN_BIN or `binary_path`"
    )]
    NoBinary {
        /// The places that were looked at.
        looked: String,
    },
    /// The kernel could not be started.
    #[error("the kernel cannot be started: {0}")]
    Start(String),
    /// The kernel or the worker refused a request or a prompt.
    #[error("{message} ({code})")]
    Refused {
        /// A stable error code.
        code: String,
        message: String,
    },
    /// No answer came in time.
    #[error("{what} was not answered within {} s", limit.as_secs_f64())]
    Timeout {
        /// The request that was not answered.
        what: String,
        limit: Duration,
    },
    /// There is no structured output, or it does not fit the type.
    #[error("there is no structured output: {0}")]
    StructuredOutput(String),
    /// The host's session store failed.
    #[error("the session store failed: {0}")]
    Store(String),
    /// The kernel has ended.
    #[error("the kernel has ended")]
    Ended,
}

impl AgentError {
    /// The error of an answer or of an error line.
    fn refused(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self::Refused { code: text(&error["code"]), message: text(&error["message"]) }
    }
}

/// Each time-out is named in the error that it causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimeouts {
    /// Until a new session is ready.
    pub start: Duration,
    /// Until a request is answered.
    pub request: Duration,
    /// The longest that `close` waits before the worker is killed.
    pub close: Duration,
}

impl Default for SessionTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            request: Duration::from_secs(60),
            close: Duration::from_secs(10),
        }
    }
}

/// Receives structured log records, each with an `event`.
pub type Logger = Arc<dyn Fn(&Value) + Send + Sync>;

/// Receives what workers write to standard error, line by line.
pub type StderrCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// What all sessions of a manager share.
#[derive(Clone, Default)]
pub struct AgentOptions {
    /// The worker program; if absent, `QWEN_BIN`, then `qwen` beside the running program, then `qwen` on
    /// PATH.
    pub binary_path: Option<PathBuf>,
    /// Flags of every worker.
    pub worker_args: Vec<String>,
    pub worker_pool: PoolLimits,
    /// The settings of every session. They take the place of all settings files.
    pub settings_profile: Option<Value>,
    /// Settings files that count: `user`, `project`, `local`. None by default.
    pub setting_sources: Vec<String>,
    /// Text in pieces as the model writes it, and not message by message.
    pub include_partial_messages: bool,
    /// The directory of the kernel's files; if absent, one below the temporary directory.
    pub state_dir: Option<PathBuf>,
    /// Permissions, hooks and tools.
    pub control: ControlPlane,
    /// The options of every session; those of `create_session` are applied on top.
    pub session: SessionOptions,
    /// Keeps sessions besides the local disk.
    pub session_store: Option<Arc<dyn SessionStore>>,
    pub timeouts: SessionTimeouts,
    pub logger: Option<Logger>,
    pub stderr: Option<StderrCallback>,
}

/// Runs many sessions on a pool of workers.
///
/// ```
/// use qwen_kernel::{AgentManager, AgentOptions, SessionOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), qwen_kernel::AgentError> {
/// # let binary = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug/qwen");
/// # if !binary.exists() { return Ok(()); }
/// # let home = std::env::temp_dir().join(format!("qwen-doc-{}", std::process::id()));
/// # let qwen_home = [("QWEN_HOME".to_owned(), Some(home.display().to_string()))].into();
/// let options = AgentOptions {
///     session: SessionOptions::default().model("demo"),
/// #   binary_path: Some(binary),
///     ..AgentOptions::default()
/// };
/// # let options = AgentOptions { session: SessionOptions { env: qwen_home, ..options.session }, ..options };
/// let manager = AgentManager::start(options)?;
/// let mut session = manager.create_session(SessionOptions::default()).await?;
/// let mut stream = session.stream("What files are here?")?;
/// while let Some(message) = stream.next().await? {
///     for call in message.tool_calls() {
///         println!("uses {}", call.name);
///     }
/// }
/// drop(stream);
/// assert_eq!(session.run("And now?").await?.status, "done");
/// session.close().await?;
/// manager.close().await;
/// # let _ = std::fs::remove_dir_all(home);
/// # Ok(())
/// # }
/// ```
///
/// Dropping a manager ends its sessions and workers without waiting.
pub struct AgentManager {
    commands: mpsc::UnboundedSender<Command>,
    options: AgentOptions,
}

impl AgentManager {
    /// Starts the kernel. Workers are started when sessions need them.
    pub fn start(options: AgentOptions) -> Result<Self, AgentError> {
        let commands = thread::start(options.clone())?;
        Ok(Self { commands, options })
    }

    pub async fn create_session(&self, options: SessionOptions) -> Result<Session, AgentError> {
        let id = new_session_id();
        self.open(id, options.merge_over(&self.options.session)).await
    }

    /// Resumes a session by its id. An unknown id is an error.
    pub async fn resume_session(&self, id: &str, options: SessionOptions) -> Result<Session, AgentError> {
        let options = options.merge_over(&self.options.session);
        self.require(id, &options).await?;
        self.open(id.to_owned(), options).await
    }

    /// Creates a session with the conversation of another one, which remains unchanged. An unknown id is an
    /// error.
    pub async fn fork_session(&self, id: &str, options: SessionOptions) -> Result<Session, AgentError> {
        let mut options = options.merge_over(&self.options.session);
        self.require(id, &options).await?;
        options.fork_from = Some(id.to_owned());
        self.open(new_session_id(), options).await
    }

    /// Checks that a session exists, in the store of the host or on disk.
    async fn require(&self, id: &str, options: &SessionOptions) -> Result<(), AgentError> {
        let is_id = qwen_events::SessionId::parse(id).is_ok();
        if is_id && let Some(store) = self.mirror(id, options) {
            store.restore().await?;
        }
        if is_id && store::session_file(options, id).exists() {
            return Ok(());
        }
        let message = format!("there is no session '{id}'");
        Err(AgentError::Refused { code: "unknown_session".to_owned(), message })
    }

    fn mirror(&self, id: &str, options: &SessionOptions) -> Option<StoreMirror> {
        let store = self.options.session_store.clone()?;
        Some(StoreMirror::new(store, id, options))
    }

    async fn open(&self, id: String, options: SessionOptions) -> Result<Session, AgentError> {
        let store = match self.mirror(&id, &options) {
            Some(store) => Some(store.restore().await?),
            None => None,
        };
        let fields = self.initialize(&options);
        let (reply, opened) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        let open = Command::Open {
            id: id.clone(),
            options: Box::new(options),
            control: Arc::new(self.options.control.clone()),
            runtime,
            reply,
        };
        self.commands.send(open).map_err(|_| AgentError::Ended)?;
        let lines = opened.await.map_err(|_| AgentError::Ended)??;
        let session = Session::new(id, self.commands.clone(), lines, self.options.timeouts, store);
        if let Some(fields) = fields {
            session.initialize(fields).await?;
        }
        Ok(session)
    }

    /// The fields of `initialize`. Without any there is no request, so that a session needs no worker before
    /// its first task.
    fn initialize(&self, options: &SessionOptions) -> Option<Value> {
        let control = &self.options.control;
        if control.hooks.is_empty() && control.servers.is_empty() && options.initialize.is_empty() {
            return None;
        }
        let mut fields = control.initialize();
        fields["protocol_version"] = json!(qwen_dialects::qwen::PROTOCOL_VERSION);
        for (key, value) in &options.initialize {
            fields[key] = value.clone();
        }
        Some(fields)
    }

    /// Runs one task in a new session.
    pub async fn run(&self, task: &str) -> Result<TurnResult, AgentError> {
        let mut session = self.create_session(SessionOptions::default()).await?;
        let result = session.run(task).await;
        session.close().await?;
        result
    }

    /// The state of the workers, queues and sessions.
    pub async fn status(&self) -> Result<Value, AgentError> {
        let (reply, answered) = oneshot::channel();
        self.commands.send(Command::Status { reply }).map_err(|_| AgentError::Ended)?;
        answered.await.map_err(|_| AgentError::Ended)
    }

    /// Ends every session and every worker.
    pub async fn close(self) {
        let (reply, ended) = oneshot::channel();
        if self.commands.send(Command::Close { reply: Some(reply) }).is_ok() {
            // The kernel may already have ended.
            let _ = ended.await;
        }
    }
}

impl Drop for AgentManager {
    fn drop(&mut self) {
        // After `close` the kernel has ended.
        let _ = self.commands.send(Command::Close { reply: None });
    }
}

fn new_session_id() -> String {
    qwen_events::SessionId::from_random(fastrand::u128(..)).to_string()
}
