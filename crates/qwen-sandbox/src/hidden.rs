//! What commands see in the place of paths that they may not read: present, with the size and time that git
//! knows, and unreadable. So a hidden file looks neither deleted nor changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use qwen_git::head::Head;
use qwen_git::index::{self, FileStamp, Index, IndexEntry, TrackedKind};
use qwen_git::layout;

use crate::policy::SandboxPolicy;
use crate::protection::watch::Tampering;

/// Most tracked files that are reproduced. A directory with more of them cannot be searched at all.
const MAX_TRACKED: usize = 4096;
/// Most objects of git that are hidden. Each is a mount.
const MAX_OBJECTS: usize = 512;
/// The time of a cover whose file changed too recently for git to trust its time.
const LONG_AGO: u32 = 1;

/// A hidden path and its cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenPath {
    pub path: PathBuf,
    pub cover: Cover,
}

/// What is mounted over a hidden path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Something of the same kind that can be neither read nor searched.
    Plain,
    File(CoverFile),
    /// A directory that cannot be listed, with the tracked files in it.
    Directory(Vec<(PathBuf, CoverEntry)>),
}

/// A tracked path in a hidden directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoverEntry {
    File(CoverFile),
    /// A submodule.
    Directory,
}

/// The properties of a file by which git recognises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoverFile {
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    pub executable: bool,
}

impl CoverFile {
    fn of_stamp(stamp: FileStamp, executable: bool) -> Self {
        Self { size: stamp.size.into(), modified: stamp.modified.into(), executable }
    }
}

/// All hidden paths of a sandbox, and the repositories that track some of them.
#[derive(Debug)]
pub(crate) struct HiddenView {
    pub paths: Vec<HiddenPath>,
    /// Objects that hold the tracked content of hidden files.
    pub objects: Vec<PathBuf>,
    repositories: Mutex<Vec<TrackingRepository>>,
}

/// A repository that has hidden paths in its working tree.
#[derive(Debug)]
struct TrackingRepository {
    root: PathBuf,
    git_directory: PathBuf,
    object_bytes: usize,
    common: PathBuf,
    /// Hidden paths, relative to the root.
    hidden: Vec<PathBuf>,
    /// What the index tracks of them.
    tracked: Vec<IndexEntry>,
    stamps: Vec<(PathBuf, FileStamp)>,
    /// The index that was looked at last.
    seen: Option<Identity>,
    /// The commit that was checked out when the watched command began.
    head: Option<Head>,
}

/// Device, inode, size and time of a file.
type Identity = (u64, u64, u64, i64, i64);

fn identify(file: &Path) -> Option<Identity> {
    let about = file.metadata().ok()?;
    Some((about.dev(), about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
}

impl HiddenView {
    /// Finds how the hidden paths of a resolved policy have to look.
    pub(crate) fn find(policy: &SandboxPolicy) -> Self {
        let roots: Vec<&Path> =
            policy.roots.iter().chain(&policy.visible_roots).map(PathBuf::as_path).collect();
        let mut paths: Vec<HiddenPath> = Vec::new();
        let mut repositories: Vec<TrackingRepository> = Vec::new();
        let mut sorted = policy.deny_read.clone();
        sorted.sort_unstable();
        for path in sorted {
            // Below another hidden path nothing is left to cover, unless something is shown in between.
            if policy.show.is_empty() && paths.iter().any(|known| path.starts_with(&known.path)) {
                continue;
            }
            let is_ours = roots.iter().any(|root| path.starts_with(root) && path != **root);
            if is_ours && path.symlink_metadata().is_ok() {
                note_repository(&path, &mut repositories);
            }
            paths.push(HiddenPath { path, cover: Cover::Plain });
        }
        for repository in &mut repositories {
            repository.look();
        }
        let mut room = MAX_TRACKED;
        for hidden in &mut paths {
            if roots.iter().any(|root| hidden.path.starts_with(root)) {
                hidden.cover = find_cover(&hidden.path, &repositories, &mut room);
            }
        }
        let objects = repositories.iter().flat_map(TrackingRepository::loose_objects);
        let mut objects: Vec<PathBuf> = objects.take(MAX_OBJECTS).collect();
        objects.sort_unstable();
        objects.dedup();
        Self { paths, objects, repositories: Mutex::new(repositories) }
    }

    /// True if a repository tracks a hidden path.
    pub(crate) fn has_tracked(&self) -> bool {
        self.lock().iter().any(|repository| !repository.tracked.is_empty())
    }

    /// True while the covers show what the repositories track.
    pub(crate) fn is_current(&self, policy: &SandboxPolicy) -> bool {
        let is_unchanged = |repository: &TrackingRepository| identify(&repository.index()) == repository.seen;
        if self.lock().iter().all(is_unchanged) {
            return true;
        }
        let now = Self::find(policy);
        let is_same = now.paths == self.paths && now.objects == self.objects;
        if is_same {
            *self.lock() = now.repositories.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        is_same
    }

    /// Makes git recognise the covers, and remembers what is tracked, before a command starts.
    pub(crate) fn begin(&self) {
        for repository in self.lock().iter_mut() {
            repository.stamp();
            repository.head = Head::read(&repository.git_directory, &repository.common);
        }
    }

    /// Puts back what a command changed in the index about hidden paths.
    pub(crate) fn end(&self) -> Vec<Tampering> {
        self.lock().iter_mut().filter_map(TrackingRepository::put_back).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<TrackingRepository>> {
        self.repositories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the repository whose working tree contains a path.
fn note_repository(path: &Path, repositories: &mut Vec<TrackingRepository>) {
    let Some(parent) = path.parent() else { return };
    let is_root = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
    let Some(root) = parent.ancestors().find(is_root) else { return };
    // Git's own files are not tracked.
    if path.strip_prefix(root).is_ok_and(|path| path.starts_with(".git")) {
        return;
    }
    let hidden = path.strip_prefix(root).unwrap_or(path).to_owned();
    if let Some(known) = repositories.iter_mut().find(|known| known.root == root) {
        known.hidden.push(hidden);
        return;
    }
    let Some(git_directory) = layout::directory(root) else { return };
    let common = layout::common_directory(&git_directory).unwrap_or_else(|| git_directory.clone());
    repositories.push(TrackingRepository {
        root: root.to_owned(),
        object_bytes: index::object_bytes(&common),
        git_directory,
        common,
        hidden: vec![hidden],
        tracked: Vec::new(),
        stamps: Vec::new(),
        seen: None,
        head: None,
    });
}

fn find_cover(path: &Path, repositories: &[TrackingRepository], room: &mut usize) -> Cover {
    let Ok(about) = path.symlink_metadata() else { return Cover::Plain };
    let repository = repositories.iter().filter(|known| path.starts_with(&known.root));
    let repository = repository.max_by_key(|known| known.root.as_os_str().len());
    let inner = repository.and_then(|known| path.strip_prefix(&known.root).ok());
    let tracked = || repository.into_iter().flat_map(|known| &known.tracked);
    let stamp = |entry: &IndexEntry| {
        let stamps = repository.into_iter().flat_map(|known| &known.stamps);
        stamps.into_iter().find(|(path, _)| *path == entry.path).map_or(entry.stamp(), |(_, stamp)| *stamp)
    };
    if about.is_file() {
        let entry = tracked().find(|entry| Some(entry.path.as_path()) == inner);
        return Cover::File(match entry.map(|entry| (stamp(entry), entry.kind())) {
            Some((stamp, TrackedKind::File { executable })) => CoverFile::of_stamp(stamp, executable),
            _ => CoverFile {
                size: about.len(),
                modified: about.mtime(),
                executable: about.mode() & 0o100 != 0,
            },
        });
    }
    if !about.is_dir() {
        return Cover::Plain;
    }
    let mut entries = Vec::new();
    for entry in tracked() {
        let Some(name) = inner.and_then(|inner| entry.path.strip_prefix(inner).ok()) else { continue };
        if name.as_os_str().is_empty() {
            // The directory itself is a submodule, which git cannot look into and takes for unchanged.
            return Cover::Plain;
        }
        let cover = match entry.kind() {
            TrackedKind::File { executable } => {
                CoverEntry::File(CoverFile::of_stamp(stamp(entry), executable))
            }
            TrackedKind::Submodule => CoverEntry::Directory,
            // The target of a link cannot be kept from being read.
            TrackedKind::Link | TrackedKind::Directory => return Cover::Plain,
        };
        let Some(left) = room.checked_sub(1) else { return Cover::Plain };
        *room = left;
        entries.push((name.to_owned(), cover));
    }
    if entries.is_empty() { Cover::Plain } else { Cover::Directory(entries) }
}

impl TrackingRepository {
    fn index(&self) -> PathBuf {
        self.git_directory.join("index")
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    fn hidden_entries(&self, index: &Index) -> Vec<IndexEntry> {
        index.entries.iter().filter(|entry| self.is_hidden(&entry.path)).cloned().collect()
    }

    /// Reads what the index tracks of the hidden paths, and which stamps git would not trust.
    fn look(&mut self) {
        self.seen = identify(&self.index());
        let Ok(Some(index)) = Index::read(&self.git_directory, self.object_bytes) else { return };
        self.tracked = self.hidden_entries(&index);
        self.stamps.clear();
        for entry in &self.tracked {
            let is_file = matches!(entry.kind(), TrackedKind::File { .. });
            if !is_file || !index.is_racy(entry) {
                continue;
            }
            let mut stamp = FileStamp { modified: LONG_AGO, ..entry.stamp() };
            if stamp.size == 0 {
                let about = fs::symlink_metadata(self.root.join(&entry.path));
                stamp.size = about.map_or(0, |about| u32::try_from(about.len()).unwrap_or(u32::MAX));
            }
            self.stamps.push((entry.path.clone(), stamp));
        }
    }

    /// Writes the stamps of the covers into the index. If that fails, git tries to read the covers and fails.
    fn stamp(&mut self) {
        if !self.stamps.is_empty()
            && index::restamp(&self.git_directory, self.object_bytes, &self.stamps).is_ok()
        {
            self.look();
        }
    }

    /// The objects that hold the content of tracked files, where each is a file.
    fn loose_objects(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.tracked.iter().filter(|entry| matches!(entry.kind(), TrackedKind::File { .. }));
        let objects = files.map(|entry| self.common.join("objects").join(entry.loose_object()));
        objects.filter(|object| object.is_file())
    }

    fn put_back(&mut self) -> Option<Tampering> {
        let seen = identify(&self.index());
        if seen == self.seen {
            return None;
        }
        let now = Index::read(&self.git_directory, self.object_bytes);
        let entries = match &now {
            Ok(Some(index)) => self.hidden_entries(index),
            Ok(None) => Vec::new(),
            // What cannot be read cannot be compared.
            Err(_) => return None,
        };
        let is_same = entries.len() == self.tracked.len()
            && entries
                .iter()
                .zip(&self.tracked)
                .all(|(new, old)| new.path == old.path && new.tracks_same(old));
        if is_same {
            return None;
        }
        let restored = index::restore(&self.git_directory, self.object_bytes, &self.tracked, &|path| {
            self.is_hidden(path)
        });
        let head = self.head.as_ref().is_none_or(|head| head.put_back(&self.git_directory, &self.common));
        let path = self.hidden.first().map_or(self.index(), |hidden| self.root.join(hidden));
        Some(Tampering { path, undone: restored.is_ok() && head })
    }
}
