//! What the calls of one session share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::background::BackgroundTasks;
use crate::ledger::ReadLedger;
use crate::memory::MemoryFiles;
use crate::shell_directory::ShellDirectory;
use crate::web::WebAccess;
use qwen_redact::Redactor;
use qwen_sandbox::SandboxSession;
use qwen_sandbox::Scratch;
use qwen_sandbox::process::{Environment, Guardians};

/// Called before a file tool changes a file, so that the change can be undone.
pub trait BeforeWrite: Send + Sync {
    /// The file at `path` is about to change.
    fn before_write(&self, path: &Path, before: Option<Before<'_>>);

    /// The file at `path` was written and holds `content` now.
    fn after_write(&self, path: &Path, content: &[u8]);
}

/// A file before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before<'a> {
    pub content: &'a [u8],
    /// The permission bits of the file.
    pub mode: u32,
}

/// Holds the optional listener for file changes.
#[derive(Default)]
pub struct WriteListener(RwLock<Option<Arc<dyn BeforeWrite>>>);

impl WriteListener {
    /// Replaces the listener, if there is one.
    pub fn set(&self, listener: Arc<dyn BeforeWrite>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    pub fn get(&self) -> Option<Arc<dyn BeforeWrite>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Totals of added and removed lines, updated by all tools that change files.
#[derive(Debug, Default)]
pub struct LinesChanged {
    added: AtomicU64,
    removed: AtomicU64,
}

impl LinesChanged {
    pub fn count(&self, added: u64, removed: u64) {
        self.added.fetch_add(added, Ordering::Relaxed);
        self.removed.fetch_add(removed, Ordering::Relaxed);
    }

    /// Returns the totals of added and removed lines.
    pub fn sums(&self) -> (u64, u64) {
        (self.added.load(Ordering::Relaxed), self.removed.load(Ordering::Relaxed))
    }
}

/// Returns true if a search that was permitted to start in the first directory may show the second path,
/// which it found. The approval of a search does not cover files that rules deny.
pub type MayShow = Arc<dyn Fn(&Path, &Path) -> bool + Send + Sync>;

/// What the calls of one session share: the parent of every [`CallContext`](crate::CallContext). Dropping it
/// ends the session's background commands.
pub struct SessionResources {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Directories that file tools may access besides the working directory.
    pub extra_roots: Arc<[PathBuf]>,
    /// The environment of every command.
    pub env: Arc<Environment>,
    /// The sandbox of every command.
    pub sandbox: SandboxSession,
    /// Idle guardian processes, reused between commands.
    pub guardians: Arc<Guardians>,
    /// Files with output that is too long for the model.
    pub scratch: Scratch,
    /// Most bytes of a command's output in a result for the model.
    pub output_limit: usize,
    /// Time limit of a command whose call sets none.
    pub shell_timeout: Duration,
    pub tasks: BackgroundTasks,
    /// The files that the model has seen.
    pub ledger: ReadLedger,
    /// Removes secrets from text for the model and from files.
    pub redactor: Arc<Redactor>,
    pub web: WebAccess,
    pub memory: MemoryFiles,
    /// Decides which files a search may show; `None` permits all.
    pub may_show: Option<MayShow>,
    pub before_write: WriteListener,
    pub lines: LinesChanged,
    pub shell_directory: ShellDirectory,
    /// Where git worktrees of sub-agents are created; `None` without a state directory.
    pub worktrees: Option<PathBuf>,
}

impl SessionResources {
    /// Default of `output_limit`.
    pub const OUTPUT_LIMIT: usize = 12_288;

    /// Most bytes in a result of a search, a web page, a sub-agent or a tool of an MCP server.
    pub const RESULT_LIMIT: usize = 30_000;

    /// Default of `shell_timeout`.
    pub const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

    /// Resources for work in `cwd`, without a sandbox and with a scratch directory created on demand.
    pub fn new(cwd: PathBuf, env: Arc<Environment>) -> Self {
        Self {
            cwd,
            extra_roots: Arc::default(),
            env,
            sandbox: SandboxSession::none(),
            guardians: Arc::default(),
            scratch: Scratch::temporary(),
            output_limit: Self::OUTPUT_LIMIT,
            shell_timeout: Self::SHELL_TIMEOUT,
            tasks: BackgroundTasks::default(),
            ledger: ReadLedger::default(),
            redactor: Arc::new(Redactor::default()),
            web: WebAccess::default(),
            memory: MemoryFiles::default(),
            may_show: None,
            before_write: WriteListener::default(),
            lines: LinesChanged::default(),
            shell_directory: ShellDirectory::default(),
            worktrees: None,
        }
    }

    /// Resources whose commands get this process's environment.
    pub fn with_own_environment(cwd: PathBuf) -> Self {
        Self::new(cwd, Arc::new(Environment::inherited()))
    }
}
