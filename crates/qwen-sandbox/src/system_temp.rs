//! The session's own `/tmp`: a private directory is mounted there, so that programs which write to `/tmp` by
//! name work without touching anybody's files. What is in the real one stays visible, read-only, each entry
//! as its own mount.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Where programs expect a directory for temporary files.
pub(crate) const SYSTEM_TEMP: &str = "/tmp";
/// Most entries of the real directory that are visible, the newest first. Each costs a mount.
const ENTRIES: usize = 128;

/// A private directory for `/tmp`, and what of the real one is visible in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemTemp {
    pub directory: PathBuf,
    pub is_writable: bool,
    /// Names in the real directory that are mounted read-only.
    pub visible: Vec<OsString>,
}

/// The names that we made in a session's directory as mount points.
#[derive(Debug, Default)]
pub(crate) struct MountPoints(Mutex<HashSet<OsString>>);

impl MountPoints {
    /// Brings the private directory up to date: every visible entry of the real directory has a mount point
    /// in it. Entries that hold one of `needed` come first. A name that a command made itself is left to it.
    pub(crate) fn refresh(&self, directory: &Path, needed: &[&Path]) -> Vec<OsString> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let real = Path::new(SYSTEM_TEMP);
        let mut entries: Vec<(bool, SystemTime, OsString, bool)> = fs::read_dir(real)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
                let is_needed = needed.iter().any(|path| path.starts_with(entry.path()));
                let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                (meta.is_dir() || meta.is_file())
                    .then(|| (is_needed, changed, entry.file_name(), meta.is_dir()))
            })
            .collect();
        entries.sort_unstable_by_key(|(is_needed, changed, ..)| Reverse((*is_needed, *changed)));
        entries.truncate(ENTRIES);
        made.retain(|name| {
            let is_there = entries.iter().any(|(_, _, known, _)| known == name);
            if !is_there {
                let path = directory.join(name);
                // A mount point is empty; anything else is not ours.
                let _ = fs::remove_dir(&path).or_else(|_| match fs::symlink_metadata(&path) {
                    Ok(meta) if meta.is_file() && meta.len() == 0 => fs::remove_file(&path),
                    _ => Ok(()),
                });
            }
            is_there
        });
        let mut visible = Vec::with_capacity(entries.len());
        for (_, _, name, is_directory) in entries {
            if made.contains(&name) || make(&directory.join(&name), is_directory) {
                made.insert(name.clone());
                visible.push(name);
            }
        }
        visible
    }
}

/// Makes a mount point where nothing is.
fn make(path: &Path, is_directory: bool) -> bool {
    if is_directory {
        fs::create_dir(path).is_ok()
    } else {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).is_ok()
    }
}

/// Makes the private directory what `/tmp` is to programs: everyone may write, no one removes what others
/// made.
pub(crate) fn open_to_all(directory: &Path) -> std::io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o1777))
}
