//! Files as they were before the agent changed them, so that a turn can be undone.
//!
//! Before a file tool changes a file for the first time in a turn, what is in it is copied to `<session id>.files/`
//! beside the log, and the log says so before the change is made. What commands do to files is not known here.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use qwen_tools::{Before, BeforeWrite};

use super::recorder::{Log, WeakLog};

/// How much is kept for one session.
const LIMIT: u64 = 256 << 20;

/// A file before the agent changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBackup {
    /// Where it is.
    pub path: PathBuf,
    /// What it was.
    pub was: FileBefore,
}

/// What a file was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBefore {
    /// It did not exist.
    Absent,
    /// Its content is kept.
    Kept {
        /// The name of the copy.
        name: String,
        /// Its size, to tell a copy that is not whole.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// It could not be kept.
    Lost,
}

/// Keeps files before they change.
pub(crate) struct FileBackups {
    /// Held by the session: tools that outlive it must not keep its log from others.
    log: WeakLog,
    /// Where copies go.
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The files that changed in this turn already.
    changed: HashSet<PathBuf>,
    /// How much is kept; none before that was counted.
    bytes: Option<u64>,
}

impl FileBackups {
    pub fn new(log: &Log, directory: PathBuf) -> Self {
        Self { log: log.downgrade(), directory, state: Mutex::default() }
    }

    /// A turn starts: what changes from here on is changed for the first time again.
    pub fn turn_starts(&self) {
        self.lock().changed.clear();
    }

    fn keep(&self, state: &mut State, before: Before<'_>) -> io::Result<FileBefore> {
        let bytes = before.content.len() as u64;
        let held = match state.bytes {
            Some(held) => held,
            None => size(&self.directory),
        };
        if held + bytes > LIMIT {
            return Ok(FileBefore::Lost);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let name = format!("{:016x}", fastrand::u64(..));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(self.directory.join(&name))?;
        file.write_all(before.content)?;
        state.bytes = Some(held + bytes);
        Ok(FileBefore::Kept { name, bytes, mode: before.mode })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BeforeWrite for FileBackups {
    fn before_write(&self, path: &Path, before: Option<Before<'_>>) {
        let mut state = self.lock();
        let Some(log) = self.log.upgrade().filter(Log::is_written) else { return };
        if !state.changed.insert(path.to_owned()) {
            return;
        }
        let was = match before {
            // Such a name does not fit into the log.
            _ if path.to_str().is_none() => FileBefore::Lost,
            None => FileBefore::Absent,
            // The change is what was asked for; that it cannot be undone is told when somebody wants to.
            Some(before) => self.keep(&mut state, before).unwrap_or(FileBefore::Lost),
        };
        log.note_file(&FileBackup { path: path.to_owned(), was });
    }
}

/// How much a directory of copies holds.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// Gives a fork its own names for what its parent keeps.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in entries {
        let entry = entry?;
        let new = to.join(entry.file_name());
        if fs::hard_link(entry.path(), &new).is_err() {
            fs::copy(entry.path(), &new)?;
        }
    }
    Ok(())
}
