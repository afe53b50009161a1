//! Records which file contents the model has seen in a session, so that later changes by others are not
//! overwritten.

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest content that is stored to describe later changes, in bytes.
const LONGEST_CONTENT: usize = 256 << 10;
/// Most content that is stored for all files of a session, in bytes.
const MOST_CONTENT: usize = 8 << 20;

/// The files that the model has seen, by their real path.
#[derive(Debug, Default)]
pub struct ReadLedger {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    files: HashMap<PathBuf, Record>,
    /// Bytes of all stored contents.
    stored: usize,
}

#[derive(Debug, Clone)]
struct Record {
    stamp: Stamp,
    hash: u64,
    /// The content, unless it is too long.
    content: Option<Arc<[u8]>>,
    /// True if the model has read the file or written all of it, false if it only edited a part.
    was_read: bool,
    /// The agent's command that changed the file since.
    changed_by: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// How a file relates to what the model has seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// The model has neither read nor written it.
    Unseen,
    /// Unchanged since the model read or wrote it.
    Fresh,
    /// Unchanged since the model edited a part of it without reading it.
    Edited,
    /// Changed since the model saw it.
    Stale {
        /// The content that the model saw, unless it was too long to store.
        seen: Option<Arc<[u8]>>,
        /// The agent's own command that changed it, if it was one.
        changed_by: Option<Arc<str>>,
    },
}

/// The files that had already changed when a command started, so that the change is not attributed to it.
#[derive(Debug, Default)]
pub struct ChangedBefore(Vec<PathBuf>);

impl ReadLedger {
    /// Records that the model has read or written this content.
    pub fn note(&self, path: &Path, metadata: &Metadata, content: &[u8]) {
        self.insert(path, metadata, content, true);
    }

    /// Records the content of a file after the model replaced a part of it. It counts as read only if it
    /// was read before.
    pub(crate) fn note_edit(&self, path: &Path, metadata: &Metadata, content: &[u8]) {
        let was_read = self.lock().files.get(path).is_some_and(|record| record.was_read);
        self.insert(path, metadata, content, was_read);
    }

    fn insert(&self, path: &Path, metadata: &Metadata, content: &[u8], was_read: bool) {
        let mut records = self.lock();
        let freed = records.files.remove(path).and_then(|old| old.content).map_or(0, |old| old.len());
        records.stored -= freed;
        let fits = content.len() <= LONGEST_CONTENT && records.stored + content.len() <= MOST_CONTENT;
        let stored = fits.then(|| Arc::from(content));
        records.stored += if fits { content.len() } else { 0 };
        let record = Record {
            stamp: Stamp::from_metadata(metadata),
            hash: hash(content),
            content: stored,
            was_read,
            changed_by: None,
        };
        records.files.insert(path.to_owned(), record);
    }

    /// Compares a file with the recorded content. A file that was touched or rewritten with the same content
    /// is fresh.
    pub fn freshness(&self, path: &Path, metadata: &Metadata, content: &[u8]) -> Freshness {
        let Some(record) = self.lock().files.get(path).cloned() else { return Freshness::Unseen };
        if record.stamp == Stamp::from_metadata(metadata) || record.hash == hash(content) {
            return if record.was_read { Freshness::Fresh } else { Freshness::Edited };
        }
        Freshness::Stale { seen: record.content, changed_by: record.changed_by }
    }

    /// Returns the files that differ from what the model saw, before a command starts.
    pub(crate) fn list_changed(&self) -> ChangedBefore {
        let records = self.lock();
        let changed = records.files.iter().filter(|(path, record)| record.differs_from(path));
        ChangedBefore(changed.map(|(path, _)| path.clone()).collect())
    }

    /// Attributes the files that changed since `before` to `command`.
    pub(crate) fn attribute_changes(&self, before: &ChangedBefore, command: &str) {
        let mut name: Option<Arc<str>> = None;
        for (path, record) in &mut self.lock().files {
            if record.differs_from(path) && !before.0.contains(path) {
                record.changed_by = Some(name.get_or_insert_with(|| command.into()).clone());
            }
        }
    }

    /// Clears all records, for a new conversation.
    pub fn clear(&self) {
        *self.lock() = Records::default();
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// True if the file's stamp is no longer the recorded one.
    fn differs_from(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|metadata| Stamp::from_metadata(&metadata) != self.stamp)
    }
}

impl Stamp {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    hasher.finish()
}
