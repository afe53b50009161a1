//! Locates the repository that git would use for a directory.
//!
//! Git's own search is followed step by step. Wherever it leaves the layout that git itself creates (blanks
//! or a carriage return in a pointer file, a `.git` without a repository in it, a bare repository among the
//! files, a pointer to a repository that does not point back), the result is [`Irregular`] and the command
//! needs approval.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::settings::read_bounded;

/// Most entries of a directory of a repository that are looked at.
const MAX_ENTRIES: usize = 4096;

/// The largest index that is searched for submodules.
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// Why it cannot be determined what git would do, phrased as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Irregular(pub &'static str);

type Regular<T> = Result<T, Irregular>;

/// Decides which paths belong to the caller's working area, for links and pointers that leave a repository.
pub trait LocalPaths {
    /// True if a path, relative to `root`, is in the working area, both as written and with links followed.
    fn contains(&self, path: &Path, root: &Path) -> bool;

    /// The path, relative to `root`, with every link followed; `None` for a cycle.
    fn follow(&self, path: &Path, root: &Path) -> Option<PathBuf>;
}

/// A repository on disk. All paths are canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The directory that holds `.git`.
    pub root: PathBuf,
    pub git_directory: PathBuf,
    /// What its worktrees share.
    pub common: PathBuf,
    /// It is outside of its root and of the workspace. Git's settings must name the root as its worktree.
    must_name_root: bool,
}

impl Repository {
    /// The repository that git finds from a directory, if any.
    pub fn find(directory: &Path, workspace: &dyn LocalPaths) -> Regular<Option<Self>> {
        if directory.components().any(|part| part.as_os_str() == ".git") {
            return Err(Irregular("git would start inside of a .git directory"));
        }
        for above in directory.ancestors() {
            let dot_git = above.join(".git");
            match dot_git.symlink_metadata() {
                Ok(_) => return Self::at(above, &dot_git, workspace).map(Some),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(_) => return Err(Irregular("a .git cannot be read")),
            }
            // Git takes such a directory for a bare repository.
            if ["HEAD", "objects", "refs"].iter().all(|name| above.join(name).symlink_metadata().is_ok()) {
                return Err(Irregular("a bare repository is among the files"));
            }
        }
        Ok(None)
    }

    fn at(root: &Path, dot_git: &Path, workspace: &dyn LocalPaths) -> Regular<Self> {
        let root = canonical(root)?;
        let git_directory = match dot_git.metadata() {
            Ok(metadata) if metadata.is_dir() => canonical(dot_git)?,
            Ok(metadata) if metadata.is_file() => canonical(&root.join(pointer(dot_git, "gitdir: ")?))?,
            _ => return Err(Irregular("a .git is neither a directory nor a file")),
        };
        let common_file = git_directory.join("commondir");
        let common = match common_file.symlink_metadata() {
            Ok(_) => canonical(&git_directory.join(pointer(&common_file, "")?))?,
            Err(error) if error.kind() == ErrorKind::NotFound => git_directory.clone(),
            Err(_) => return Err(Irregular("a commondir cannot be read")),
        };
        let is_linked = git_directory.parent().is_some_and(|parent| {
            parent.file_name().is_some_and(|name| name == "worktrees") && parent.parent() == Some(&common)
        });
        if common != git_directory && !is_linked {
            return Err(Irregular("a repository shares another one in an unusual way"));
        }
        let mut repository = Self { root, git_directory, common, must_name_root: false };
        repository.is_a_repository()?;
        let parts = [&repository.git_directory, &repository.common];
        if !parts.iter().all(|part| repository.is_local(part, workspace)) {
            // A repository elsewhere is used only if it names this worktree, which the files here cannot
            // arrange.
            let back = repository.git_directory.join("gitdir");
            match back.symlink_metadata() {
                Ok(_) if is_linked => {
                    // Git writes it absolute, or relative to its directory.
                    let named = repository.git_directory.join(pointer(&back, "")?);
                    if canonical(&named)? != canonical(dot_git)? {
                        return Err(Irregular("a .git points to the repository of another worktree"));
                    }
                }
                _ => repository.must_name_root = true,
            }
        }
        repository.check_self_contained(workspace)?;
        Ok(repository)
    }

    /// Checks what git checks before it takes a directory for a repository.
    fn is_a_repository(&self) -> Regular<()> {
        let head = read_bounded(&self.git_directory.join("HEAD"));
        let names_a_commit = |head: &str| {
            let head = head.trim_end();
            head.strip_prefix("ref:").is_some_and(|name| name.trim_start().starts_with("refs/"))
                || (head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let whole = ["objects", "refs"].iter().all(|name| self.common.join(name).is_dir());
        match head {
            Some(head) if names_a_commit(&head) && whole => Ok(()),
            _ => Err(Irregular("a .git is not a repository, and git would look for another one")),
        }
    }

    /// Checks that no link and no list of alternate objects leads to another repository.
    fn check_self_contained(&self, workspace: &dyn LocalPaths) -> Regular<()> {
        const ELSEWHERE: Irregular = Irregular("the repository uses files of another one");
        let objects = self.common.join("objects");
        let parts = [
            self.git_directory.clone(),
            self.common.clone(),
            self.git_directory.join("info"),
            self.common.join("info"),
            objects.join("info"),
            objects.join("pack"),
            objects.clone(),
        ];
        let mut ahead: Vec<PathBuf> = parts.into();
        for names in ["logs", "refs"] {
            ahead.extend([self.git_directory.join(names), self.common.join(names)]);
        }
        ahead.sort_unstable();
        ahead.dedup();
        let mut budget = MAX_ENTRIES;
        while let Some(directory) = ahead.pop() {
            let is_nested = ["logs", "refs"].iter().any(|names| {
                [&self.git_directory, &self.common].iter().any(|own| directory.starts_with(own.join(names)))
            });
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_ENTRIES) {
                let Ok(kind) = entry.file_type() else { continue };
                // Hooks do not run for a command that only reads.
                let is_link = kind.is_symlink() && entry.file_name() != "hooks";
                if is_link && !self.holds(&entry.path(), workspace) {
                    return Err(ELSEWHERE);
                }
                if is_nested && kind.is_dir() && budget > 0 {
                    budget -= 1;
                    ahead.push(entry.path());
                }
            }
        }
        let alternates = objects.join("info/alternates");
        if alternates.symlink_metadata().is_err() {
            return Ok(());
        }
        let listed = read_bounded(&alternates).ok_or(ELSEWHERE)?;
        for line in listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let other = objects.join(line);
            let is_plain = !line.starts_with('"') && line.trim() == line;
            if !is_plain || !self.holds(&other, workspace) || other.join("info/alternates").exists() {
                return Err(ELSEWHERE);
            }
        }
        Ok(())
    }

    /// True if a path, relative to the root, is in the workspace or below the root.
    fn is_local(&self, path: &Path, workspace: &dyn LocalPaths) -> bool {
        workspace.contains(path, &self.root)
            || workspace.follow(path, &self.root).is_some_and(|real| real.starts_with(&self.root))
    }

    /// The same, or it is a file of the repository.
    pub fn holds(&self, path: &Path, workspace: &dyn LocalPaths) -> bool {
        let real = workspace.follow(path, &self.root);
        self.is_local(path, workspace)
            || real.is_some_and(|real| {
                [&self.git_directory, &self.common].iter().any(|own| real.starts_with(own))
            })
    }

    /// Checks the value of `core.worktree`, or that it is absent.
    pub fn check_worktree(&self, value: Option<&str>) -> Regular<()> {
        match value {
            None if self.must_name_root => Err(Irregular("a .git points to a repository elsewhere")),
            None => Ok(()),
            Some(value) if canonical(&self.git_directory.join(value))? == self.root => Ok(()),
            Some(_) => Err(Irregular("the repository belongs to another directory")),
        }
    }

    /// The files in which git finds the settings of this repository.
    pub fn settings_files(&self) -> [PathBuf; 3] {
        [
            self.common.join("config"),
            self.git_directory.join("config.worktree"),
            self.root.join(".gitmodules"),
        ]
    }

    /// Checks that git takes the settings of submodules from the file in the working tree. Without that file
    /// it takes them from the index or from a commit, where they cannot be seen.
    pub fn check_submodules(&self) -> Regular<()> {
        const HIDDEN: Irregular = Irregular("the settings of its submodules cannot be seen");
        if self.root.join(".gitmodules").symlink_metadata().is_ok() {
            return Ok(());
        }
        let index = self.git_directory.join("index");
        let Ok(metadata) = index.metadata() else { return Ok(()) };
        if !metadata.is_file() || metadata.len() > MAX_INDEX {
            return Err(HIDDEN);
        }
        let bytes = std::fs::read(&index).map_err(|_| HIDDEN)?;
        // The mode of a submodule, as it appears in an entry. `link` begins the extension that refers to
        // another index.
        let has = |wanted: &[u8; 4]| bytes.windows(4).any(|window| window == wanted);
        if has(&[0, 0, 0xe0, 0]) || has(b"link") && has_shared_index(&self.git_directory) {
            return Err(HIDDEN);
        }
        Ok(())
    }
}

fn has_shared_index(git_directory: &Path) -> bool {
    std::fs::read_dir(git_directory)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_ENTRIES)
        .any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex."))
}

/// The path in a file that points elsewhere: one line as git writes it, with nothing that could be read in
/// two ways.
fn pointer(file: &Path, before: &str) -> Regular<String> {
    const NOT_UNDERSTOOD: Irregular = Irregular("a file that points to a repository is not as git writes it");
    let text = read_bounded(file).ok_or(NOT_UNDERSTOOD)?;
    let path = text.strip_suffix('\n').unwrap_or(&text).strip_prefix(before).ok_or(NOT_UNDERSTOOD)?;
    let is_plain = !path.is_empty() && path.trim() == path && !path.chars().any(char::is_control);
    if is_plain { Ok(path.to_owned()) } else { Err(NOT_UNDERSTOOD) }
}

fn canonical(path: &Path) -> Regular<PathBuf> {
    path.canonicalize().map_err(|_| Irregular("a .git leads to nothing"))
}
