//! Placeholders for missing protected names while commands run, so that a mount can protect the name.
//!
//! A mount needs an existing target. An empty directory (or a file where required) is created when the first
//! command starts and removed when the last one has ended; other processes see it in between. It is moved
//! aside instead of deleted, because the mount moves with it: deleting a mount point makes the kernel wait
//! for all processors, which takes longer than most commands.
//!
//! If we are killed, a process that waits for that removes them. They carry the sticky bit as our mark, so
//! that one that stayed all the same is known and removed next time, and every process that relies on it
//! holds a shared lock, so that no process removes it while commands of another rely on it.

use std::ffi::{CString, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, RawDir, RenameFlags, SeekFrom, renameat_with, seek};

use crate::policy::{Placeholder, ProtectedName, SandboxPolicy};
use crate::process::cleaner::{Cleaner, Lifeline, Removable};
use crate::protection::watch::ProtectedRoot;

/// The sticky bit, which means nothing on what only one user writes.
const MARK: u32 = 0o1000;
const DIRECTORY: u32 = 0o755;
const FILE: u32 = 0o644;
/// How often a name that is created and removed concurrently is retried.
const ATTEMPTS: u32 = 4;

/// A session's placeholders.
pub(crate) struct Placeholders {
    /// Candidates for the directory of removed placeholders; empty once one was chosen.
    candidates: Vec<PathBuf>,
    aside: Option<ParkingDirectory>,
    standing: Vec<ActivePlaceholder>,
    waiting: Vec<(OsString, ActivePlaceholder)>,
    lifeline: Option<Arc<Lifeline>>,
    /// Removes them if we are killed. Last, because it is ended when nothing is left to remove.
    cleaner: Option<Cleaner>,
}

#[derive(Debug)]
struct ActivePlaceholder {
    /// Its path.
    path: PathBuf,
    /// Open, and locked together with everyone else who relies on it.
    lock: File,
    /// Its device and number.
    identity: (u64, u64),
}

impl ActivePlaceholder {
    /// The metadata of its path, if the placeholder is still there.
    fn at_its_path(&self) -> Option<fs::Metadata> {
        fs::symlink_metadata(&self.path).ok().filter(|meta| identity(meta) == self.identity)
    }

    /// True if it is still empty and unmodified, judged by the metadata at its path.
    fn is_empty(&self, meta: &fs::Metadata) -> bool {
        is_marked(meta) && (!meta.is_dir() || holds_nothing(&self.lock))
    }
}

impl Drop for ActivePlaceholder {
    /// Releases the lock explicitly: a child that was forked but has not called `exec` yet shares the open
    /// file, so that closing ours alone would leave the lock in place.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

/// True if an open directory has no entries.
fn holds_nothing(directory: &File) -> bool {
    let mut room = [MaybeUninit::uninit(); 512];
    if seek(directory, SeekFrom::Start(0)).is_err() {
        return false;
    }
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(entry) = entries.next() {
        if !entry.is_ok_and(|entry| [c".", c".."].contains(&entry.file_name())) {
            return false;
        }
    }
    true
}

/// A directory of ours on the file system of the workspace. Commands cannot write in it.
#[derive(Debug)]
struct ParkingDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

impl Placeholders {
    pub(crate) fn new(policy: &SandboxPolicy, lifeline: Option<Arc<Lifeline>>) -> Self {
        let writable = policy.writable_paths();
        let device = policy.roots.first().and_then(|root| root.metadata().ok()).map(|root| root.dev());
        let candidates = policy.aside.iter().map(PathBuf::as_path).chain(policy.temp.parent());
        let candidates = candidates.filter_map(|place| place.canonicalize().ok());
        let candidates =
            candidates.filter(|place| !writable.iter().any(|writable| place.starts_with(writable)));
        let candidates =
            candidates.filter(|place| place.metadata().is_ok_and(|place| Some(place.dev()) == device));
        Self {
            candidates: candidates.collect(),
            aside: None,
            standing: Vec::new(),
            waiting: Vec::new(),
            lifeline,
            cleaner: None,
        }
    }

    /// Puts one wherever a protected name is missing in a directory that is there.
    pub(crate) fn put(&mut self, guarded: &[ProtectedRoot]) {
        if let Some(lifeline) = self.lifeline.take_if(|_| is_any_missing(guarded)) {
            self.cleaner = Cleaner::start(&lifeline, &removable(guarded)).ok();
        }
        let mut parents: Vec<(PathBuf, bool)> = Vec::new();
        for ProtectedRoot { root, names, .. } in guarded {
            for ProtectedName { name, placeholder } in names {
                let path = root.join(name);
                if *placeholder == Placeholder::None || self.standing.iter().any(|one| one.path == path) {
                    continue;
                }
                let one = self.restore_parked(&path).or_else(|| {
                    let parent = path.parent()?;
                    if !parents.iter().any(|(known, _)| known == parent) {
                        let there = fs::symlink_metadata(parent).is_ok_and(|meta| meta.is_dir());
                        parents.push((parent.to_owned(), there));
                    }
                    // Where we cannot make it, neither can the command, which has no more rights.
                    let there = parents.iter().any(|(known, there)| known == parent && *there);
                    if there { create(&path, *placeholder).ok().flatten() } else { None }
                });
                self.standing.extend(one);
            }
        }
    }

    /// Removes all placeholders that no other process relies on.
    pub(crate) fn remove(&mut self) {
        for one in std::mem::take(&mut self.standing) {
            if one.lock.try_lock().is_err() {
                continue;
            }
            let Some(meta) = one.at_its_path() else { continue };
            match if one.is_empty(&meta) { self.move_aside(&one.path) } else { None } {
                Some(name) => self.waiting.push((name, one)),
                None => remove_placeholder(&one.path),
            }
        }
    }

    /// The directories that stand in for missing names now.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let is_directory = |one: &&ActivePlaceholder| one.lock.metadata().is_ok_and(|meta| meta.is_dir());
        self.standing.iter().filter(is_directory).map(|one| one.path.clone()).collect()
    }

    /// Brings back the one that waits for this path.
    fn restore_parked(&mut self, path: &Path) -> Option<ActivePlaceholder> {
        let (name, one) =
            self.waiting.swap_remove(self.waiting.iter().position(|(_, one)| one.path == path)?);
        let aside = self.aside.as_ref()?;
        if renameat_with(aside.directory.as_fd(), &name, CWD, path, RenameFlags::NOREPLACE).is_err() {
            // The name was created in the meantime, so our placeholder is not needed.
            remove_placeholder(&aside.path.join(name));
            return None;
        }
        (one.lock.try_lock_shared().is_ok() && one.at_its_path().is_some()).then_some(one)
    }

    fn move_aside(&mut self, path: &Path) -> Option<OsString> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if self.aside.is_none() {
            self.aside = std::mem::take(&mut self.candidates)
                .iter()
                .find_map(|place| ParkingDirectory::make(place).ok());
        }
        let aside = self.aside.as_ref()?;
        let name = OsString::from(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let moved = renameat_with(CWD, path, aside.directory.as_fd(), &name, RenameFlags::NOREPLACE);
        moved.is_ok().then_some(name)
    }
}

/// True if a placeholder is needed.
fn is_any_missing(guarded: &[ProtectedRoot]) -> bool {
    guarded.iter().any(|ProtectedRoot { root, names, .. }| {
        names.iter().any(|ProtectedName { name, placeholder }| {
            *placeholder != Placeholder::None && fs::symlink_metadata(root.join(name)).is_err()
        })
    })
}

/// The placeholders that the cleaner may remove.
fn removable(guarded: &[ProtectedRoot]) -> Vec<Removable> {
    let names = guarded.iter().flat_map(|ProtectedRoot { root, names, .. }| {
        let names = names.iter().filter(|name| name.placeholder != Placeholder::None);
        names.map(|name| root.join(&name.name))
    });
    names
        .filter_map(|path| {
            let path = CString::new(path.into_os_string().into_vec()).ok()?;
            Some(Removable { path, directory_mode: DIRECTORY | MARK, file_mode: FILE | MARK })
        })
        .collect()
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.remove();
        if let Some(aside) = &self.aside {
            for (name, _) in &self.waiting {
                remove_placeholder(&aside.path.join(name));
            }
            // Another process may have its own entries in it; then it is not empty.
            let _ = fs::remove_dir(&aside.path);
        }
    }
}

impl ParkingDirectory {
    fn make(place: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut attempt = 0;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = place.join(format!(".qwen-{}-{number}", std::process::id()));
            // Making it fails where anything of that name exists, a link laid out beforehand included.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { directory: File::open(&path)?.into(), path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Makes a placeholder, or joins one that is there. None when the name is really there.
fn create(path: &Path, placeholder: Placeholder) -> io::Result<Option<ActivePlaceholder>> {
    for _ in 0..ATTEMPTS {
        match fs::symlink_metadata(path) {
            Ok(meta) if !is_placeholder(path, &meta) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, placeholder)?,
            Err(error) => return Err(error),
        }
        // If it disappears between two steps, another process that relied on it has removed it.
        let Ok(lock) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path) else {
            continue;
        };
        let identity = identity(&lock.metadata()?);
        let one = ActivePlaceholder { path: path.to_owned(), lock, identity };
        if one.lock.try_lock_shared().is_ok() && one.at_its_path().is_some() {
            return Ok(Some(one));
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
    let empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    is_marked(meta) && (!meta.is_dir() || empty())
}

/// True if a path is a placeholder that a sandbox of this or another process put there. It is removed with the last
/// sandbox that uses it.
pub fn is_placeholder_at(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| is_placeholder(path, &meta))
}

/// True if something looks like a placeholder, if it is a directory without looking into it.
fn is_marked(meta: &fs::Metadata) -> bool {
    let mode = meta.mode() & 0o7777;
    if meta.is_dir() {
        mode == DIRECTORY | MARK
    } else {
        meta.is_file() && mode == FILE | MARK && meta.size() == 0
    }
}

fn identity(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Removes a placeholder, or clears the mark if another process has filled it.
fn remove_placeholder(path: &Path) {
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

    struct Fixture {
        place: tempfile::TempDir,
        root: PathBuf,
        policy: SandboxPolicy,
    }

    impl Fixture {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let root = place.path().join("workspace");
            let temp = place.path().join("aside/temp");
            fs::create_dir(&root).unwrap();
            fs::create_dir_all(&temp).unwrap();
            Self { place, policy: SandboxPolicy::new(&root, temp).resolved().unwrap(), root }
        }

        fn guarded(&self) -> Vec<ProtectedRoot> {
            vec![ProtectedRoot { root: self.root.clone(), names: ProtectedName::usual(), pinned: Vec::new() }]
        }

        fn put(&self) -> Placeholders {
            let mut placeholders = Placeholders::new(&self.policy, None);
            placeholders.put(&self.guarded());
            placeholders
        }

        fn names(&self) -> Vec<String> {
            names(&self.root)
        }

        fn aside(&self) -> Vec<String> {
            names(&self.place.path().join("aside"))
        }
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn placeholders_are_removed_with_their_last_user() {
        let fixture = Fixture::new();
        let (mut one, mut two) = (fixture.put(), fixture.put());
        assert_eq!(fixture.names(), [".mcp.json", ".qwen"]);
        one.remove();
        assert_eq!(fixture.names(), [".mcp.json", ".qwen"]);
        two.remove();
        assert_eq!(fixture.names(), Vec::<String>::new());
        drop((one, two));
        assert_eq!(fixture.aside(), ["temp"]);
    }

    #[test]
    fn parked_placeholders_are_reused_with_their_mounts() {
        let fixture = Fixture::new();
        let inode = || fs::metadata(fixture.root.join(".qwen")).unwrap().ino();
        let mut placeholders = fixture.put();
        let first = inode();
        placeholders.remove();
        assert_eq!(fixture.names(), Vec::<String>::new());
        placeholders.put(&fixture.guarded());
        assert_eq!(inode(), first);
    }

    #[test]
    fn a_name_created_meanwhile_is_left_alone() {
        let fixture = Fixture::new();
        let mut placeholders = fixture.put();
        placeholders.remove();
        fs::write(fixture.root.join(".mcp.json"), "{}").unwrap();
        placeholders.put(&fixture.guarded());
        drop(placeholders);
        assert_eq!(fs::read_to_string(fixture.root.join(".mcp.json")).unwrap(), "{}");
        assert_eq!(
            (fixture.names(), fixture.aside()),
            (vec![".mcp.json".to_owned()], vec!["temp".to_owned()])
        );
    }

    #[test]
    fn existing_files_are_not_replaced_by_placeholders() {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.root.join(".git/hooks")).unwrap();
        fs::create_dir(fixture.root.join(".qwen")).unwrap();
        fs::write(fixture.root.join(".mcp.json"), "").unwrap();
        let put = fixture.put();
        assert!(fixture.root.join(".git/config").is_file());
        drop(put);
        assert_eq!(fixture.names(), [".git", ".mcp.json", ".qwen"]);
        assert_eq!(names(&fixture.root.join(".git")), ["hooks"]);
    }

    #[test]
    fn placeholders_of_a_killed_process_are_removed_by_the_next() {
        let fixture = Fixture::new();
        // The locks go, as they do with a process; the placeholders stay.
        fixture.put().standing.clear();
        assert_eq!(fixture.names(), [".mcp.json", ".qwen"]);
        drop(fixture.put());
        assert_eq!(fixture.names(), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_another_program_puts_into_a_placeholder_stays() {
        let fixture = Fixture::new();
        let put = fixture.put();
        let settings = fixture.root.join(".qwen/settings.json");
        fs::write(&settings, "{}").unwrap();
        drop(put);
        assert!(settings.exists());
        assert_eq!(fs::metadata(fixture.root.join(".qwen")).unwrap().mode() & 0o7777, DIRECTORY);
    }

    #[test]
    fn without_a_parking_directory_placeholders_are_deleted() {
        let mut fixture = Fixture::new();
        // Commands may write there, so nothing of ours can wait in it.
        fixture.policy.writable.push(fixture.place.path().canonicalize().unwrap());
        let mut placeholders = fixture.put();
        placeholders.remove();
        assert_eq!((fixture.names(), fixture.aside()), (vec![], vec!["temp".to_owned()]));
    }
}
