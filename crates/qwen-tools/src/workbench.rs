//! What the calls of one session share.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::background::BackgroundTasks;
use crate::ledger::ReadLedger;
use crate::memory::MemoryFiles;
use crate::web::WebAccess;
use qwen_redact::Redactor;
use qwen_sandbox::SandboxSession;
use qwen_sandbox::Scratch;
use qwen_sandbox::process::{Environment, Guardians};

/// Is told before a file tool changes a file, so that the change can be undone.
pub trait BeforeWrite: Send + Sync {
    /// The file at `path` is about to change.
    fn before_write(&self, path: &Path, before: Option<Before<'_>>);

    /// The file at `path` was written and holds `content` now.
    fn after_write(&self, path: &Path, content: &[u8]);
}

/// A file before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before<'a> {
    /// What is in it.
    pub content: &'a [u8],
    /// Its permission bits.
    pub mode: u32,
}

/// The one who wants to know before a file tool changes a file, if there is one.
#[derive(Default)]
pub struct WriteListener(RwLock<Option<Arc<dyn BeforeWrite>>>);

impl WriteListener {
    /// Tells `listener` from here on, and nobody else.
    pub fn set(&self, listener: Arc<dyn BeforeWrite>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Whom to tell.
    pub fn get(&self) -> Option<Arc<dyn BeforeWrite>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How many lines were added and removed, counted up by whoever changes files.
#[derive(Debug, Default)]
pub struct LinesChanged {
    added: AtomicU64,
    removed: AtomicU64,
}

impl LinesChanged {
    /// Counts a change.
    pub fn count(&self, added: u64, removed: u64) {
        self.added.fetch_add(added, Ordering::Relaxed);
        self.removed.fetch_add(removed, Ordering::Relaxed);
    }

    /// The lines that were added, and those that were removed.
    pub fn sums(&self) -> (u64, u64) {
        (self.added.load(Ordering::Relaxed), self.removed.load(Ordering::Relaxed))
    }
}

/// Says whether a file may be read that a search came upon: whoever allowed the search did not see its name.
pub type MayRead = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// What the calls of one session share. Dropping it ends the commands that it runs in the background.
pub struct Workbench {
    /// The environment of every command.
    pub env: Arc<Environment>,
    /// What every command is fenced in by.
    pub sandbox: SandboxSession,
    /// What watches over commands, between two of them.
    pub guardians: Arc<Guardians>,
    /// Where output that is too long for the model is kept.
    pub scratch: Scratch,
    /// How many characters of output a model is given.
    pub output_limit: usize,
    /// How long a command may take when its call does not say.
    pub shell_timeout: Duration,
    /// Commands that run in the background, and sub-agents.
    pub tasks: BackgroundTasks,
    /// The files that the model has seen.
    pub ledger: ReadLedger,
    /// What keeps secrets from the model and from the disk.
    pub redactor: Arc<Redactor>,
    /// What of the web may be seen.
    pub web: WebAccess,
    /// Where facts are remembered over sessions.
    pub memory: MemoryFiles,
    /// Which files searches may show lines of; all where nobody says.
    pub may_read: Option<MayRead>,
    /// Who wants to know before a file tool changes a file.
    pub before_write: WriteListener,
    /// How many lines file tools have changed.
    pub lines: LinesChanged,
}

impl Workbench {
    /// The longest output that a model is given, in characters, unless told otherwise.
    pub const OUTPUT_LIMIT: usize = 30_000;

    /// How long a command may take, unless told otherwise.
    pub const SHELL_TIMEOUT: Duration = Duration::from_secs(120);

    /// A workbench with our own environment, no sandbox, and a scratch directory made at need.
    pub fn new() -> Self {
        Self {
            env: Arc::new(Environment::inherited()),
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
            may_read: None,
            before_write: WriteListener::default(),
            lines: LinesChanged::default(),
        }
    }
}

impl Default for Workbench {
    fn default() -> Self {
        Self::new()
    }
}
