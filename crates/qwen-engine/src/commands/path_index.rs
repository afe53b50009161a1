//! The paths of a workspace for completion. A small tree is read for each request. A large one is read once,
//! to its end, and refreshed beside the requests, so that a key never waits for the disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a request waits for a walk through the tree if some paths are known already.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(250);

/// How long a request waits for the first paths, or, with a search term, for all paths.
const FIRST_WALK_TIMEOUT: Duration = Duration::from_secs(3);

/// A tree whose walk takes longer than this is not read for each request.
const SLOW: Duration = Duration::from_millis(100);

/// The least age at which the paths of a large tree are read again.
const REFRESH: Duration = Duration::from_secs(2);

/// A large tree is not read again before this many times the duration of the last walk has passed, so that
/// walks take a small part of a core while somebody types.
const REFRESH_SHARE: u32 = 10;

/// The first walk makes what it has found available after this many paths.
const FIRST_PART: usize = 20_000;

/// The most paths that are kept.
const MAX_PATHS: usize = 4_000_000;

/// Paths relative to a root, in one allocation. Directories end with `/`.
#[derive(Debug, Clone, Default)]
pub struct PathList {
    text: String,
    /// The end of each path in `text`, and its letters.
    ends: Vec<(usize, u64)>,
}

impl PathList {
    fn push(&mut self, path: &str) {
        self.text.push_str(path);
        self.ends.push((self.text.len(), letters(path)));
    }

    /// The paths that contain all letters and digits of `typed`, in any order.
    pub(super) fn with_letters_of<'a>(&'a self, typed: &str) -> impl Iterator<Item = &'a str> {
        let wanted = letters(typed);
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        let paths = starts.zip(&self.ends);
        paths
            .filter(move |(_, (_, has))| has & wanted == wanted)
            .map(|(start, (end, _))| &self.text[start..*end])
    }
}

/// A bit for each ASCII letter, in any case, and for each digit.
fn letters(text: &str) -> u64 {
    let bit = |byte: u8| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => 1 << (letter - b'a'),
        digit @ b'0'..=b'9' => 1 << (26 + digit - b'0'),
        _ => 0,
    };
    text.bytes().fold(0, |all, byte| all | bit(byte))
}

#[derive(Default)]
struct State {
    root: PathBuf,
    paths: Arc<PathList>,
    /// When the last walk ended, and how long it took.
    walked: Option<(Instant, Duration)>,
    is_walking: bool,
}

/// The paths of the directory that was asked about last.
#[derive(Clone, Default)]
pub struct PathIndex {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl PathIndex {
    /// The paths below `root`. A request for something in particular waits for the first walk, whose
    /// beginning may not contain it.
    pub(super) fn paths(&self, root: &Path, is_specific: bool) -> Arc<PathList> {
        let mut state = self.lock();
        if state.root != root {
            *state = State { root: root.to_owned(), ..State::default() };
        }
        let is_slow = state.walked.is_some_and(|(_, took)| took > SLOW);
        let is_young = |(at, took): (Instant, Duration)| at.elapsed() < REFRESH.max(took * REFRESH_SHARE);
        let is_fresh = is_slow && state.walked.is_some_and(is_young);
        if !is_fresh && !state.is_walking {
            state.is_walking = self.walk(root);
        }
        let patience = match (is_slow, is_specific) {
            (true, _) => Duration::ZERO,
            (false, true) => FIRST_WALK_TIMEOUT,
            (false, false) => REFRESH_TIMEOUT,
        };
        let is_walking = |state: &mut State| state.is_walking && state.root == root;
        let waited = self.shared.1.wait_timeout_while(state, patience, is_walking);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let has_none = |state: &mut State| is_walking(state) && state.paths.ends.is_empty();
        let waited = self.shared.1.wait_timeout_while(state, FIRST_WALK_TIMEOUT, has_none);
        waited.unwrap_or_else(PoisonError::into_inner).0.paths.clone()
    }

    /// Starts a walk; false if no thread can be started.
    fn walk(&self, root: &Path) -> bool {
        let (index, root) = (self.clone(), root.to_owned());
        let work = move || {
            let started = Instant::now();
            let mut list = PathList::default();
            // Unreadable directories are skipped.
            for entry in qwen_tools::tree_walk(&root).build().take(MAX_PATHS).filter_map(Result::ok) {
                let Some(below) = entry.path().strip_prefix(&root).ok().and_then(Path::to_str) else {
                    continue;
                };
                if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                    if !below.is_empty() {
                        list.push(&format!("{below}/"));
                    }
                } else {
                    list.push(below);
                }
                if list.ends.len() == FIRST_PART {
                    index.publish_part(&root, &list);
                }
            }
            let mut state = index.lock();
            if state.root == root {
                state.paths = Arc::new(list);
                state.walked = Some((Instant::now(), started.elapsed()));
                state.is_walking = false;
            }
            drop(state);
            index.shared.1.notify_all();
        };
        thread::Builder::new().name("paths".to_owned()).spawn(work).is_ok()
    }

    /// Makes the beginning of the first walk available.
    fn publish_part(&self, root: &Path, list: &PathList) {
        let mut state = self.lock();
        if state.root == root && state.walked.is_none() {
            state.paths = Arc::new(list.clone());
            drop(state);
            self.shared.1.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_their_letters_and_new_files_at_once() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("src")).unwrap();
        std::fs::write(place.path().join("src/Main.rs"), "").unwrap();
        let index = PathIndex::default();
        let found = |typed: &str| -> Vec<String> {
            let paths = index.paths(place.path(), !typed.is_empty());
            let mut found: Vec<String> = paths.with_letters_of(typed).map(str::to_owned).collect();
            found.sort();
            found
        };
        assert_eq!(found(""), ["src/", "src/Main.rs"]);
        assert_eq!(found("MAIN"), ["src/Main.rs"]);
        assert!(found("z").is_empty());
        std::fs::write(place.path().join("zebra.txt"), "").unwrap();
        assert_eq!(found("z"), ["zebra.txt"]);
    }
}
