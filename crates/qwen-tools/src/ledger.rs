//! Records which file contents the model has seen in a session, so that later changes by others are not
//! overwritten.

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The files that the model has seen, by their real path.
#[derive(Debug, Default)]
pub struct ReadLedger {
    seen: Mutex<HashMap<PathBuf, Seen>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    stamp: Stamp,
    hash: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Unseen,
    /// Unchanged since the model saw it.
    Fresh,
    /// Changed since the model saw it.
    Stale,
}

impl ReadLedger {
    /// Records that the model has read or written this content.
    pub fn note(&self, path: &Path, metadata: &Metadata, content: &[u8]) {
        let seen = Seen { stamp: Stamp::of(metadata), hash: hash(content) };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), seen);
    }

    /// Compares a file with the recorded content. A file that was touched or rewritten with the same content
    /// is fresh.
    pub fn freshness(&self, path: &Path, metadata: &Metadata, content: &[u8]) -> Freshness {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        match seen {
            None => Freshness::Unseen,
            Some(seen) if seen.stamp == Stamp::of(metadata) || seen.hash == hash(content) => Freshness::Fresh,
            Some(_) => Freshness::Stale,
        }
    }

    /// Clears all records, for a new conversation.
    pub fn clear(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
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
