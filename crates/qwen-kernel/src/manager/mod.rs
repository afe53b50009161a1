//! The Rust SDK: sessions as values.
//!
//! An [`AgentManager`] runs a kernel on a dedicated thread; sessions communicate with it through channels.
//! Every session has its own bounded buffer: a reader that stops reading pauses only its own worker.

mod session;
mod thread;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub use session::{Session, TurnResult, TurnStream};

use self::thread::Command;
use crate::control_plane::ControlPlane;
use crate::router::SessionOptions;
use crate::worker_pool::PoolLimits;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No program to start workers with.
    #[error("there is no qwen program: give `binary_path`, set QWEN_BIN, or put qwen on PATH")]
    NoBinary,
    /// The kernel could not be started.
    #[error("the kernel cannot be started: {0}")]
    Start(String),
    /// The hub refused a request.
    #[error("{message} ({code})")]
    Refused {
        /// A stable error code.
        code: String,
        message: String,
    },
    /// The kernel has ended.
    #[error("the kernel has ended")]
    Ended,
}

#[derive(Clone, Default)]
pub struct AgentOptions {
    /// The worker program; if absent, `QWEN_BIN`, then `qwen` on PATH.
    pub binary_path: Option<PathBuf>,
    /// Flags of every worker, such as `--model NAME`.
    pub worker_args: Vec<String>,
    pub worker_pool: PoolLimits,
    /// The settings of every session.
    pub settings_profile: Option<Value>,
    /// The directory of the kernel's files; if absent, one below the temporary directory.
    pub state_dir: Option<PathBuf>,
    /// Permissions, hooks and tools.
    pub control: ControlPlane,
}

/// Runs many sessions on a pool of workers.
///
/// ```no_run
/// # async fn example() -> Result<(), qwen_kernel::AgentError> {
/// use qwen_kernel::{AgentManager, AgentOptions, SessionOptions};
///
/// let options = AgentOptions { worker_args: vec!["--model".into(), "demo".into()], ..AgentOptions::default() };
/// let manager = AgentManager::start(options)?;
/// let result = manager.run("Say hello").await?;
/// println!("{}", result.text);
/// manager.close().await;
/// # Ok(())
/// # }
/// ```
pub struct AgentManager {
    commands: mpsc::UnboundedSender<Command>,
    control: Arc<ControlPlane>,
}

impl AgentManager {
    /// Starts the kernel.
    pub fn start(options: AgentOptions) -> Result<Self, AgentError> {
        let control = Arc::new(options.control.clone());
        let commands = thread::start(options)?;
        Ok(Self { commands, control })
    }

    pub async fn create_session(&self, options: SessionOptions) -> Result<Session, AgentError> {
        self.open("_new", options).await
    }

    /// Resumes a session by its id.
    pub async fn resume_session(&self, id: &str, options: SessionOptions) -> Result<Session, AgentError> {
        self.open(id, options).await
    }

    /// Creates a session with the conversation of another one, which remains unchanged.
    pub async fn fork_session(&self, id: &str, mut options: SessionOptions) -> Result<Session, AgentError> {
        options.fork_from = Some(id.to_owned());
        self.open("_new", options).await
    }

    async fn open(&self, id: &str, options: SessionOptions) -> Result<Session, AgentError> {
        let id = match id {
            "_new" => qwen_events::SessionId::from_random(fastrand::u128(..)).to_string(),
            id => id.to_owned(),
        };
        let (reply, opened) = oneshot::channel();
        let open = Command::Open { id: id.clone(), options: Box::new(options), reply };
        self.commands.send(open).map_err(|_| AgentError::Ended)?;
        let lines = opened.await.map_err(|_| AgentError::Ended)??;
        let session = Session::new(id, self.commands.clone(), lines, self.control.clone());
        session.initialize()?;
        Ok(session)
    }

    /// Runs one task in a new session.
    pub async fn run(&self, task: &str) -> Result<TurnResult, AgentError> {
        let mut session = self.create_session(SessionOptions::default()).await?;
        let result = session.run(task).await;
        session.close().await?;
        result
    }

    pub async fn status(&self) -> Result<Value, AgentError> {
        let (reply, answered) = oneshot::channel();
        self.commands.send(Command::Status { reply }).map_err(|_| AgentError::Ended)?;
        answered.await.map_err(|_| AgentError::Ended)
    }

    /// Ends every session and every worker.
    pub async fn close(self) {
        let (reply, ended) = oneshot::channel();
        if self.commands.send(Command::Close { reply }).is_ok() {
            // The kernel may already have ended.
            let _ = ended.await;
        }
    }
}
