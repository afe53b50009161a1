//! The session's private directory for output that is too long to be shown.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

/// How many names are tried if names already exist.
const ATTEMPTS: u32 = 16;

/// How the directories begin that are held by a lock.
const LOCKED_PREFIX: &str = "session";

/// Most stale directories that one session removes, so that start-up stays fast.
const SWEEP: usize = 16;

/// A directory that only we can enter. It is made when the first file is, and names in it cannot be guessed.
#[derive(Debug)]
pub struct Scratch {
    parent: PathBuf,
    made: OnceLock<ScratchDirectory>,
    ours: bool,
}

#[derive(Debug)]
struct ScratchDirectory {
    path: PathBuf,
    /// Marks the directory as in use for other sessions. The lock is released when the process ends, however
    /// it ends.
    _lock: Option<File>,
}

impl Scratch {
    /// A new directory among the system's temporary ones; it goes away with this value. Those of one user lie
    /// together, so that a session can keep its commands from all the others.
    pub fn temporary() -> Self {
        Self { parent: std::env::temp_dir(), made: OnceLock::new(), ours: true }
    }

    /// The directory that holds those of other sessions too, once ours is made.
    pub fn shared(&self) -> Option<&Path> {
        self.path().filter(|_| self.ours)?.parent().filter(|parent| **parent != self.parent)
    }

    /// A directory that the caller made, keeps private and removes.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            parent: PathBuf::new(),
            made: OnceLock::from(ScratchDirectory { path: directory.into(), _lock: None }),
            ours: false,
        }
    }

    /// The directory, if there is one by now.
    pub fn path(&self) -> Option<&Path> {
        self.made.get().map(|made| &*made.path)
    }

    /// Makes a new file that did not exist before, for us alone.
    pub fn create(&self, stem: &str) -> io::Result<(PathBuf, File)> {
        let directory = self.directory()?;
        unused_name(stem, |name| {
            let path = directory.join(format!("{name}.txt"));
            let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
            Ok((path, file))
        })
    }

    /// A directory in it, made if need be.
    pub fn subdirectory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.directory()?.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(path),
        }
    }

    fn directory(&self) -> io::Result<&Path> {
        if let Some(made) = self.path() {
            return Ok(made);
        }
        // Making it fails where anything of that name exists, a link laid out beforehand included.
        let own = self.users_own();
        let made = match &own {
            Some(_) => unused_name(LOCKED_PREFIX, |name| {
                let path = self.users_own().ok_or(io::ErrorKind::NotFound)?.join(name);
                DirBuilder::new().mode(0o700).create(&path)?;
                // Until it is locked, another session may treat it as stale and remove it.
                let lock = lock_directory(&path).ok_or(io::ErrorKind::NotFound)?;
                Ok(ScratchDirectory { path, _lock: Some(lock) })
            })?,
            None => unused_name("qwen", |name| {
                let path = self.parent.join(name);
                DirBuilder::new().mode(0o700).create(&path)?;
                Ok(ScratchDirectory { path, _lock: None })
            })?,
        };
        let made = self.made.get_or_init(|| made);
        if let Some(shared) = own {
            sweep(&shared);
        }
        Ok(&made.path)
    }

    /// The user's directory for all sessions. `None` if another user owns the name, or others may enter.
    fn users_own(&self) -> Option<PathBuf> {
        let user = rustix::process::geteuid().as_raw();
        let path = self.parent.join(format!("qwen-of-{user}"));
        // The check below covers both a new and an existing directory.
        let _ = DirBuilder::new().mode(0o700).create(&path);
        let found = path.symlink_metadata().ok()?;
        (found.is_dir() && found.uid() == user && found.mode() & 0o777 == 0o700).then_some(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let (true, Some(path)) = (self.ours, self.path()) {
            // Nothing is lost when it stays: the system clears its temporary directory.
            let _ = std::fs::remove_dir_all(path);
            // The last session removes the shared directory.
            if let Some(shared) = self.shared() {
                let _ = std::fs::remove_dir(shared);
            }
        }
    }
}

/// Locks a directory. Returns `None` if another process holds it, or it is gone.
fn lock_directory(path: &Path) -> Option<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    directory.try_lock().ok()?;
    let (ours, found) = (directory.metadata().ok()?, path.symlink_metadata().ok()?);
    ((ours.dev(), ours.ino()) == (found.dev(), found.ino())).then_some(directory)
}

/// Removes the directories of killed sessions, which no process locks any more.
fn sweep(shared: &Path) {
    let Ok(entries) = std::fs::read_dir(shared) else { return };
    let sessions = entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(LOCKED_PREFIX.as_bytes()));
    let dead = sessions.filter_map(|entry| lock_directory(&entry.path()).map(|lock| (entry.path(), lock)));
    for (path, _lock) in dead.take(SWEEP) {
        // The system clears what we cannot remove.
        let _ = std::fs::remove_dir_all(path);
    }
}

fn unused_name<T>(stem: &str, make: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    let mut attempt = 1;
    loop {
        match make(&format!("{stem}-{:016x}", fastrand::u64(..))) {
            // The name exists, or another session has just removed the shared directory.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound)
                    && attempt < ATTEMPTS =>
            {
                attempt += 1;
            }
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_directory_of_all_sessions_is_used_only_if_it_is_ours_alone() {
        let place = tempfile::tempdir().unwrap();
        let scratch = || Scratch { parent: place.path().to_owned(), made: OnceLock::new(), ours: true };
        let first = scratch();
        first.create("a").unwrap();
        let shared = first.shared().unwrap().to_owned();
        assert!(shared.starts_with(place.path()) && first.path().unwrap().starts_with(&shared));
        std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
        let second = scratch();
        second.create("a").unwrap();
        assert_eq!((second.shared(), second.path().unwrap().parent()), (None, Some(place.path())));
        drop(first);
        assert!(!shared.exists(), "the last session removes it");
        symlink("/", &shared).unwrap();
        let third = scratch();
        third.create("a").unwrap();
        assert_eq!(third.shared(), None);
    }

    #[test]
    fn directories_of_killed_sessions_are_removed_and_those_of_running_ones_stay() {
        let place = tempfile::tempdir().unwrap();
        let scratch = || Scratch { parent: place.path().to_owned(), made: OnceLock::new(), ours: true };
        let living = scratch();
        let (kept, _) = living.create("a").unwrap();
        let shared = living.shared().unwrap().to_owned();
        // As a killed process leaves it: complete and unlocked.
        let left = shared.join("session-0123456789abcdef");
        std::fs::create_dir_all(left.join("tmp/deep")).unwrap();
        let foreign = shared.join("something-else");
        std::fs::create_dir(&foreign).unwrap();
        symlink(place.path(), shared.join("session-link")).unwrap();
        let later = scratch();
        let (also_kept, _) = later.create("a").unwrap();
        assert!(!left.exists(), "what nobody holds goes");
        assert!(kept.exists() && also_kept.exists() && foreign.exists());
    }

    #[test]
    fn files_are_ours_alone_and_go_with_the_session() {
        let scratch = Scratch::temporary();
        assert_eq!(scratch.path(), None);
        let (path, _) = scratch.create("shell").unwrap();
        let (other, _) = scratch.create("shell").unwrap();
        assert_ne!(path, other);
        let directory = scratch.path().unwrap().to_owned();
        assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(scratch);
        assert!(!directory.exists());
    }

    #[test]
    fn a_directory_of_the_caller_stays() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Scratch::at(directory.path());
        let (path, _) = scratch.create("shell").unwrap();
        drop(scratch);
        assert!(path.exists());
    }
}
