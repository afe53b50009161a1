//! Files as they were before the agent changed them, so that a turn can be undone.
//!
//! Before a file tool changes a file for the first time in a turn, what is in it is copied to `<session id>.files/`
//! beside the log, and the log says so before the change is made. What commands do to files is not known here.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use qwen_tools::{Before, BeforeWrite};
use serde::{Deserialize, Serialize};

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

    fn after_write(&self, path: &Path, content: &[u8]) {
        if self.log.upgrade().is_some_and(|log| log.is_written()) {
            note_written(&self.directory, path, content);
        }
    }
}

/// The file beside the copies that says what file tools wrote last, a JSON line for each write.
const WRITTEN: &str = "written.jsonl";

/// What file tools wrote last to a file, so that a later edit by somebody else is recognised.
#[derive(Serialize, Deserialize)]
struct WrittenLine {
    path: PathBuf,
    fingerprint: String,
}

/// Records that `path` holds `content` now. Without that record the file counts as edited, and is never overwritten.
pub(crate) fn note_written(directory: &Path, path: &Path, content: &[u8]) {
    let line = WrittenLine { path: path.to_owned(), fingerprint: fingerprint(content) };
    let Ok(mut line) = serde_json::to_vec(&line) else { return };
    line.push(b'\n');
    let written = DirBuilder::new().recursive(true).mode(0o700).create(directory).and_then(|()| {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).open(directory.join(WRITTEN))
    });
    let _ = written.and_then(|mut file| file.write_all(&line));
}

/// The fingerprints of what file tools wrote last, by path.
pub(crate) fn written(directory: &Path) -> HashMap<PathBuf, String> {
    let text = fs::read_to_string(directory.join(WRITTEN)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<WrittenLine>(line).ok());
    lines.map(|line| (line.path, line.fingerprint)).collect()
}

/// Tells contents apart: FNV-1a and the length. It protects against accidents, not against forgery.
pub(crate) fn fingerprint(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", content.len())
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
