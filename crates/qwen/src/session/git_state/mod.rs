//! The state of a git repository, read from its files without starting git, so that no program of the
//! repository runs. Every read is bounded: what is too large or not understood is left out.

mod index;
mod objects;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use objects::{ObjectId, Objects};

/// The number of commits that are listed.
const COMMITS: usize = 5;
/// The maximum length of a subject line, in characters.
const MAX_SUBJECT: usize = 60;
/// The maximum size of a file with references.
const MAX_REFS: u64 = 1 << 20;

/// A repository as the model is told about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GitState {
    /// The checked-out branch, or where HEAD is detached.
    pub branch: String,
    /// The branch that the project integrates into.
    pub main_branch: Option<String>,
    /// The tracked files that changed; `None` if unknown.
    pub changed: Option<Vec<String>>,
    /// Id and subject of the last commits, newest first.
    pub commits: Vec<String>,
}

impl GitState {
    /// Reads the repository that contains `cwd`; `None` if there is none.
    pub fn read(cwd: &Path) -> Option<Self> {
        let repository = Repository::find(cwd)?;
        let head = read_bounded(&repository.directory.join("HEAD"))?;
        let head = head.trim();
        let branch = head.strip_prefix("ref: refs/heads/");
        let id = match head.strip_prefix("ref: ") {
            Some(name) => repository.resolve(name),
            None => ObjectId::parse(head),
        };
        let objects = Objects::new(repository.common.join("objects"));
        let (commits, tree) = history(&objects, id);
        Some(Self {
            branch: match branch {
                Some(branch) => clean(branch),
                None => format!("none, detached at {}", clean(head.get(..12).unwrap_or(head))),
            },
            main_branch: repository.main_branch(),
            changed: index::changed_files(&repository.directory.join("index"), &repository.root, tree),
            commits,
        })
    }

    /// One line about the repository.
    pub fn describe(&self) -> String {
        let mut text = format!("branch {}", self.branch);
        if let Some(main) = self.main_branch.as_ref().filter(|main| **main != self.branch) {
            text.push_str(&format!(", main branch {main}"));
        }
        match self.changed.as_deref() {
            None => {}
            Some([]) => text.push_str(", clean (untracked files not checked)"),
            Some(changed) => text.push_str(&format!(", dirty: {}", changed.join(", "))),
        }
        if !self.commits.is_empty() {
            text.push_str(&format!("; last commits: {}", self.commits.join(" | ")));
        }
        text
    }
}

/// Where a repository keeps its files.
struct Repository {
    /// The work tree.
    root: PathBuf,
    /// The directory of this work tree's HEAD and index.
    directory: PathBuf,
    /// The directory of objects and references, which linked work trees share.
    common: PathBuf,
}

impl Repository {
    fn find(cwd: &Path) -> Option<Self> {
        let root = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
        let git = root.join(".git");
        let directory =
            if git.is_file() { root.join(read_bounded(&git)?.strip_prefix("gitdir:")?.trim()) } else { git };
        let common = match read_bounded(&directory.join("commondir")) {
            Some(common) => directory.join(common.trim()),
            None => directory.clone(),
        };
        Some(Self { root: root.to_owned(), directory, common })
    }

    /// The object that a reference names.
    fn resolve(&self, name: &str) -> Option<ObjectId> {
        // A name from a file must not lead out of the directory.
        if name.split('/').any(|part| part == "..") || name.starts_with('/') {
            return None;
        }
        if let Some(text) = read_bounded(&self.common.join(name)) {
            return ObjectId::parse(text.trim());
        }
        let packed = read_bounded(&self.common.join("packed-refs"))?;
        let line =
            packed.lines().find(|line| line.split_once(' ').is_some_and(|(_, known)| known == name))?;
        ObjectId::parse(line.split(' ').next()?)
    }

    fn main_branch(&self) -> Option<String> {
        let head = read_bounded(&self.common.join("refs/remotes/origin/HEAD"));
        if let Some(name) =
            head.as_deref().and_then(|head| head.trim().strip_prefix("ref: refs/remotes/origin/"))
        {
            return Some(clean(name));
        }
        let known = |name: &&str| self.resolve(&format!("refs/heads/{name}")).is_some();
        ["main", "master", "trunk"].iter().find(|name| known(name)).map(|name| (*name).to_owned())
    }
}

/// The last commits, and the tree of the newest.
fn history(objects: &Objects, head: Option<ObjectId>) -> (Vec<String>, Option<ObjectId>) {
    let (mut commits, mut tree) = (Vec::new(), None);
    let mut next = head;
    while let Some(id) = next.take().filter(|_| commits.len() < COMMITS) {
        let Some(text) = objects.read_commit(&id) else { break };
        let (header, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let field =
            |name: &str| header.lines().find_map(|line| line.strip_prefix(name)).and_then(ObjectId::parse);
        tree = tree.or_else(|| field("tree "));
        next = field("parent ");
        let subject: String =
            clean(message.lines().next().unwrap_or_default()).chars().take(MAX_SUBJECT).collect();
        commits.push(format!("{} {subject}", id.short()));
    }
    (commits, tree)
}

/// Text of a repository on one line.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// A small text file; `None` if it is missing, too large or not text.
fn read_bounded(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_file(path)?.take(MAX_REFS).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Opens a regular file; `None` for anything else. A pipe or a device must not hold up the session.
fn open_file(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, arguments: &[&str]) -> bool {
        let mut command = Command::new("git");
        command
            .current_dir(folder)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
            .args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|output| output.status.success())
    }

    fn repository() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().ok()?;
        git(folder.path(), &["init", "-q", "-b", "main"]).then_some(folder)
    }

    #[test]
    fn branch_commits_and_changes_are_read_from_loose_and_packed_objects() {
        let Some(folder) = repository() else { return };
        let at = folder.path();
        for n in 1..=7 {
            std::fs::write(at.join("a.txt"), format!("{n}\n").repeat(n)).unwrap();
            assert!(git(at, &["add", "."]) && git(at, &["commit", "-q", "-m", &format!("Commit {n}")]));
        }
        for packed in [false, true] {
            if packed {
                assert!(git(at, &["gc", "-q"]) && git(at, &["pack-refs", "--all"]));
            }
            let state = GitState::read(at).unwrap();
            assert_eq!((state.branch.as_str(), state.main_branch.as_deref()), ("main", Some("main")));
            assert_eq!(state.changed, Some(Vec::new()), "packed: {packed}");
            let subjects: Vec<&str> =
                state.commits.iter().filter_map(|commit| commit.split_once(' ')).map(|it| it.1).collect();
            assert_eq!(
                subjects,
                ["Commit 7", "Commit 6", "Commit 5", "Commit 4", "Commit 3"],
                "packed: {packed}"
            );
        }
        assert!(git(at, &["checkout", "-q", "-b", "work"]));
        std::fs::write(at.join("a.txt"), "other\n").unwrap();
        let state = GitState::read(&at.join(".")).unwrap();
        assert_eq!((state.branch.as_str(), state.changed.unwrap().join(" ").as_str()), ("work", "a.txt"));
        assert!(git(at, &["add", "."]));
        let staged = GitState::read(at).unwrap().changed.unwrap();
        assert!(!staged.is_empty(), "what is staged is a change");
        assert!(git(at, &["checkout", "-q", "--detach"]));
        assert!(GitState::read(at).unwrap().branch.starts_with("none, detached at "));
    }

    #[test]
    fn a_touched_file_is_not_a_change_and_a_folder_without_repository_has_no_state() {
        let Some(folder) = repository() else { return };
        let at = folder.path();
        std::fs::write(at.join("a.txt"), "same\n").unwrap();
        assert!(git(at, &["add", "."]) && git(at, &["commit", "-q", "-m", "One"]));
        let text = std::fs::read(at.join("a.txt")).unwrap();
        std::fs::remove_file(at.join("a.txt")).unwrap();
        assert_eq!(GitState::read(at).unwrap().changed.unwrap(), ["a.txt"]);
        std::fs::write(at.join("a.txt"), text).unwrap();
        assert_eq!(GitState::read(at).unwrap().changed, Some(Vec::new()));
        let outside = tempfile::tempdir().unwrap();
        assert_eq!(GitState::read(outside.path()), None);
    }
}
