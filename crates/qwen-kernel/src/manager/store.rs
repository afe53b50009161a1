//! Sessions outside of this machine's disk.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::AgentError;
use crate::router::SessionOptions;

/// Keeps sessions where the host wants them. A session is an append-only text of JSON lines. `append` has
/// returned before the result of a turn is delivered, so everything that the host saw is stored. Called on a
/// thread that may block.
pub trait SessionStore: Send + Sync {
    /// The whole text of a session; none if the store does not have it.
    fn load(&self, session_id: &str) -> io::Result<Option<Vec<u8>>>;

    /// Adds whole lines to the text of a session, which begins empty.
    fn append(&self, session_id: &str, lines: &[u8]) -> io::Result<()>;
}

/// The file in which workers with these options keep a session.
pub(super) fn session_file(options: &SessionOptions, id: &str) -> PathBuf {
    let variable = |name: &str| match options.env.get(name) {
        Some(value) => value.clone().map(Into::into),
        None => std::env::var_os(name),
    };
    let home = variable("QWEN_HOME")
        .map_or_else(|| Path::new(&variable("HOME").unwrap_or_default()).join(".qwen"), PathBuf::from);
    home.join("sessions").join(format!("{id}.jsonl"))
}

/// Copies one session between its file and a store.
pub(super) struct StoreMirror {
    store: Arc<dyn SessionStore>,
    id: String,
    file: PathBuf,
    /// The length of what the store has, in bytes.
    stored: u64,
}

impl StoreMirror {
    pub fn new(store: Arc<dyn SessionStore>, id: &str, options: &SessionOptions) -> Self {
        Self { store, id: id.to_owned(), file: session_file(options, id), stored: 0 }
    }

    /// Copies this session from now on, a fork of the one before.
    pub fn follow_fork(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.file.set_file_name(format!("{id}.jsonl"));
        self.stored = 0;
    }

    /// Writes the session's file from the store, unless the file exists.
    pub async fn restore(self) -> Result<Self, AgentError> {
        self.on_blocking_thread(|mirror| {
            let Some(text) = mirror.store.load(&mirror.id)? else { return Ok(()) };
            mirror.stored = text.len() as u64;
            if mirror.file.exists() {
                return Ok(());
            }
            if let Some(directory) = mirror.file.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            }
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&mirror.file)?;
            io::Write::write_all(&mut file, &text)
        })
        .await
    }

    /// Passes the new lines on. The worker has synced them before it wrote the terminal record.
    pub async fn flush(self) -> Result<Self, AgentError> {
        self.on_blocking_thread(|mirror| {
            let Ok(mut file) = fs::File::open(&mirror.file) else { return Ok(()) };
            file.seek(SeekFrom::Start(mirror.stored))?;
            let mut added = Vec::new();
            file.read_to_end(&mut added)?;
            let whole = added.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if whole > 0 {
                mirror.store.append(&mirror.id, &added[..whole])?;
                mirror.stored += whole as u64;
            }
            Ok(())
        })
        .await
    }

    async fn on_blocking_thread(
        mut self,
        work: impl FnOnce(&mut Self) -> io::Result<()> + Send + 'static,
    ) -> Result<Self, AgentError> {
        let done = tokio::task::spawn_blocking(move || work(&mut self).map(|()| self)).await;
        match done {
            Ok(result) => result.map_err(|error| AgentError::Store(error.to_string())),
            Err(_) => Err(AgentError::Store("the store panicked".to_owned())),
        }
    }
}
