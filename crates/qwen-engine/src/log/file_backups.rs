//! Backups of files before the agent changes them, so that a turn can be undone.
//!
//! Before a file tool changes a file for the first time in a turn, the content is copied to
//! `<session id>.files/` next to the log, and the log records it before the change is made. Changes made by
//! commands are not tracked.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use qwen_tools::{Before, BeforeWrite};
use serde::{Deserialize, Serialize};

use super::recorder::{Log, WeakLog};

/// The maximum total size of one session's backups, in bytes.
const LIMIT: u64 = 256 << 20;

/// The state of a file before the agent changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBackup {
    pub path: PathBuf,
    pub was: FileBefore,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBefore {
    Absent,
    /// Its content was copied.
    Kept {
        /// The name of the copy.
        name: String,
        /// Its size, to detect an incomplete copy.
        bytes: u64,
        mode: u32,
    },
    /// It could not be backed up.
    Lost,
}

/// Backs up files before they change.
pub(crate) struct FileBackups {
    /// Weak, because tools that outlive the session must not keep its log locked.
    log: WeakLog,
    /// The directory of the copies.
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Files already changed in this turn.
    changed: HashSet<PathBuf>,
    /// The total size of the copies in bytes; `None` until it is first computed.
    bytes: Option<u64>,
}

impl FileBackups {
    pub fn new(log: &Log, directory: PathBuf) -> Self {
        Self { log: log.downgrade(), directory, state: Mutex::default() }
    }

    /// Starts a turn: the next change of each file counts as its first again.
    pub fn turn_starts(&self) {
        self.lock().changed.clear();
    }

    fn store_backup(&self, state: &mut State, before: Before<'_>) -> io::Result<FileBefore> {
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
            // The log cannot represent such a name.
            _ if path.to_str().is_none() => FileBefore::Lost,
            None => FileBefore::Absent,
            // The requested change proceeds; a rewind reports that it cannot be undone.
            Some(before) => self.store_backup(&mut state, before).unwrap_or(FileBefore::Lost),
        };
        log.note_file(&FileBackup { path: path.to_owned(), was });
    }

    fn after_write(&self, path: &Path, content: &[u8]) {
        if self.log.upgrade().is_some_and(|log| log.is_written()) {
            note_written(&self.directory, path, content);
        }
    }
}

/// The file next to the copies that records what file tools wrote last, one JSON line per write.
const WRITTEN: &str = "written.jsonl";

/// What a file tool wrote last to a file, to detect later edits by others.
#[derive(Serialize, Deserialize)]
struct WrittenLine {
    path: PathBuf,
    fingerprint: String,
}

/// Records that `path` now holds `content`. Without this record the file counts as edited and is never
/// overwritten.
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
pub(crate) fn read_fingerprints(directory: &Path) -> HashMap<PathBuf, String> {
    let text = fs::read_to_string(directory.join(WRITTEN)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<WrittenLine>(line).ok());
    lines.map(|line| (line.path, line.fingerprint)).collect()
}

/// FNV-1a and the length. It detects accidental changes, not forgery.
pub(crate) fn fingerprint(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", content.len())
}

/// The total size of a directory of copies, in bytes.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// Hard-links or copies the parent's backups into the directory of a fork.
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
