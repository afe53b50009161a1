//! Things that stand where a protected name is missing while commands run, so that a mount can hold the name.
//!
//! A mount needs something to sit on. An empty directory (or file, where it has to be one) is made when the first
//! command starts and removed when the last one has ended; other processes see it meanwhile. It carries the sticky bit
//! as our mark, so that one that a killed process left behind is known and removed next time, and every process that
//! relies on it holds a shared lock, so that nobody removes it under another's commands.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::policy::{Placeholder, Protected};
use super::watch::Guarded;

/// The sticky bit, which means nothing on what only one user writes.
const MARK: u32 = 0o1000;
const DIRECTORY: u32 = 0o755;
const FILE: u32 = 0o644;
/// How often a name that comes and goes is tried.
const ATTEMPTS: u32 = 4;

/// Placeholders that we rely on. Dropping removes those that nobody else relies on.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    standing: Vec<Standing>,
}

#[derive(Debug)]
struct Standing {
    path: PathBuf,
    /// Open, and locked together with everyone else who relies on it.
    lock: File,
}

impl Placeholders {
    /// Puts one wherever a protected name is missing in a directory that is there.
    pub(super) fn put(guarded: &[Guarded]) -> Self {
        let mut standing = Vec::new();
        for Guarded { root, names } in guarded {
            for Protected { name, placeholder } in names {
                let path = root.join(name);
                let in_directory = path.parent().is_some_and(|parent| {
                    fs::symlink_metadata(parent).is_ok_and(|parent| parent.is_dir())
                });
                if in_directory && *placeholder != Placeholder::None {
                    // Where we cannot make it, neither can the command, which has no more rights.
                    standing.extend(stand(&path, *placeholder).ok().flatten());
                }
            }
        }
        Self { standing }
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for Standing { path, lock } in &self.standing {
            if lock.try_lock().is_ok() && is_at(path, lock) {
                leave(path);
            }
        }
    }
}

/// Makes a placeholder, or joins one that is there. None when the name is really there.
fn stand(path: &Path, placeholder: Placeholder) -> io::Result<Option<Standing>> {
    for _ in 0..ATTEMPTS {
        match fs::symlink_metadata(path) {
            Ok(meta) if !is_placeholder(path, &meta) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, placeholder)?,
            Err(error) => return Err(error),
        }
        // What disappears between two steps was removed by someone who relied on it until now.
        let Ok(lock) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path) else { continue };
        if lock.try_lock_shared().is_ok() && is_at(path, &lock) {
            return Ok(Some(Standing { path: path.to_owned(), lock }));
        }
    }
    Ok(None)
}

fn make(path: &Path, placeholder: Placeholder) -> io::Result<()> {
    let made = match placeholder {
        Placeholder::Directory => DirBuilder::new().mode(DIRECTORY).create(path),
        Placeholder::File => OpenOptions::new().write(true).create_new(true).mode(FILE).open(path).map(drop),
        Placeholder::None => return Ok(()),
    };
    match made {
        Ok(()) => {
            let mode = if placeholder == Placeholder::Directory { DIRECTORY } else { FILE };
            fs::set_permissions(path, Permissions::from_mode(mode | MARK))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_placeholder(path: &Path, meta: &fs::Metadata) -> bool {
    let mode = meta.mode() & 0o7777;
    if meta.is_dir() {
        mode == DIRECTORY | MARK && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    } else {
        meta.is_file() && mode == FILE | MARK && meta.size() == 0
    }
}

fn is_at(path: &Path, file: &File) -> bool {
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
        _ => false,
    }
}

/// Removes a placeholder, or takes the mark off what somebody outside has filled meanwhile.
fn leave(path: &Path) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    if is_placeholder(path, &meta) {
        // An empty directory that stays does no harm and is removed next time.
        let _ = if meta.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
    } else if meta.mode() & MARK != 0 && !meta.is_symlink() {
        let _ = fs::set_permissions(path, Permissions::from_mode(meta.mode() & 0o777));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(root: &Path) -> Vec<Guarded> {
        vec![Guarded { root: root.to_owned(), names: Protected::usual() }]
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn they_are_gone_when_the_last_user_is() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (Placeholders::put(&guarded(root.path())), Placeholders::put(&guarded(root.path())));
        assert_eq!(names(root.path()), [".mcp.json", ".qwen"]);
        drop(one);
        assert_eq!(names(root.path()), [".mcp.json", ".qwen"]);
        drop(two);
        assert_eq!(names(root.path()), Vec::<String>::new());
    }

    #[test]
    fn what_is_really_there_stays() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git/hooks")).unwrap();
        fs::create_dir(root.path().join(".qwen")).unwrap();
        fs::write(root.path().join(".mcp.json"), "").unwrap();
        let put = Placeholders::put(&guarded(root.path()));
        assert!(root.path().join(".git/config").is_file());
        drop(put);
        assert_eq!(names(root.path()), [".git", ".mcp.json", ".qwen"]);
        assert_eq!(names(&root.path().join(".git")), ["hooks"]);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next() {
        let root = tempfile::tempdir().unwrap();
        // The locks go, as they do with a process; the placeholders stay.
        std::mem::take(&mut Placeholders::put(&guarded(root.path())).standing).clear();
        assert_eq!(names(root.path()), [".mcp.json", ".qwen"]);
        drop(Placeholders::put(&guarded(root.path())));
        assert_eq!(names(root.path()), Vec::<String>::new());
    }

    #[test]
    fn what_someone_outside_puts_into_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let put = Placeholders::put(&guarded(root.path()));
        let settings = root.path().join(".qwen/settings.json");
        fs::write(&settings, "{}").unwrap();
        drop(put);
        assert!(settings.exists());
        assert_eq!(fs::metadata(root.path().join(".qwen")).unwrap().mode() & 0o7777, DIRECTORY);
    }
}
