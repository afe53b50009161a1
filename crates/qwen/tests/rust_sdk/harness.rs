//! A manager in a clean place with a scripted model.

use std::path::{Path, PathBuf};

use mock_model::{MockModel, Reply, WAIT_LIMIT};
use qwen_kernel::{
    AgentManager, AgentMessage, AgentOptions, PoolLimits, Session, SessionOptions, SessionTimeouts,
    TurnStream,
};

/// A call that needs permission in the default mode.
pub const TOUCH: &str = r#"{"command":"touch done"}"#;

/// Everything a manager needs to run against a scripted model, in places of its own.
pub struct Harness {
    pub mock: MockModel,
    pub home: tempfile::TempDir,
}

impl Harness {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { mock: MockModel::with(replies), home: tempfile::tempdir().unwrap() }
    }

    pub fn options(&self) -> AgentOptions {
        AgentOptions {
            binary_path: Some(env!("CARGO_BIN_EXE_qwen").into()),
            worker_args: vec!["--model".to_owned(), "mock".to_owned()],
            // A busy machine makes everything slow, and no test is about these time-outs.
            worker_pool: PoolLimits {
                min_workers: 0,
                start_timeout: WAIT_LIMIT,
                heartbeat_timeout: WAIT_LIMIT,
                ..PoolLimits::default()
            },
            timeouts: SessionTimeouts { start: WAIT_LIMIT, request: WAIT_LIMIT, close: WAIT_LIMIT },
            state_dir: Some(self.home.path().join("state")),
            session: self.session(),
            ..AgentOptions::default()
        }
    }

    pub fn session(&self) -> SessionOptions {
        let text = |path: &Path| Some(path.display().to_string());
        SessionOptions {
            cwd: text(self.home.path()),
            env: [
                ("HOME", text(self.home.path())),
                ("QWEN_HOME", text(&self.qwen_home())),
                ("OPENAI_BASE_URL", Some(self.mock.base_url())),
                ("OPENAI_API_KEY", Some("test-key".to_owned())),
            ]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
            ..SessionOptions::default()
        }
    }

    pub fn qwen_home(&self) -> PathBuf {
        self.home.path().join(".qwen")
    }

    /// What every worker of this harness has in its environment.
    pub fn mark(&self) -> String {
        format!("QWEN_HOME={}", self.qwen_home().display())
    }

    pub fn start(&self) -> AgentManager {
        AgentManager::start(self.options()).unwrap()
    }

    /// A manager and a session with these options on top of the harness's.
    pub async fn open(&self, options: SessionOptions) -> (AgentManager, Session) {
        let manager = self.start();
        let session = manager.create_session(options).await.unwrap();
        (manager, session)
    }

    pub fn touched(&self) -> bool {
        self.home.path().join("done").exists()
    }

    /// The texts of a request to the model.
    pub fn said(&self, request: usize) -> Vec<String> {
        self.mock.requests()[request].messages().iter().map(|m| m["content"].to_string()).collect()
    }
}

/// Runs a test to its end.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(4 * WAIT_LIMIT, work).await.unwrap() })
}

/// The messages of a turn.
pub async fn all(mut stream: TurnStream<'_>) -> Vec<AgentMessage> {
    let mut messages = Vec::new();
    while let Some(message) = stream.next().await.unwrap() {
        messages.push(message);
    }
    messages
}
