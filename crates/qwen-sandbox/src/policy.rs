//! What a sandboxed command may do, as requested by the session.

use std::path::{Component, Path, PathBuf};

use crate::system_temp::{SYSTEM_TEMP, SystemTemp};

/// What a command in the sandbox may do. It may read everything except `deny_read` and write only what is
/// listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The workspace: writable, except the protected names in it.
    pub roots: Vec<PathBuf>,
    /// The session's private temporary directory, which exists already: writable. `TMPDIR` points there.
    pub temp: PathBuf,
    /// A private directory in the place of `/tmp`. Only where mounts are available.
    pub system_temp: Option<SystemTemp>,
    /// Further directories and files that may be written, such as a cache.
    pub writable: Vec<PathBuf>,
    /// Files and directories that may not be read, and thus not written either.
    pub deny_read: Vec<PathBuf>,
    /// Readable directories inside a path that may not be read.
    pub show: Vec<PathBuf>,
    /// The workspace's directories if they are not writable. Paths in them that may not be read look as git
    /// tracks them.
    pub visible_roots: Vec<PathBuf>,
    /// Files and directories in writable places that may not be changed. Enforced by mounts: only where
    /// mounts are available, and only for files that exist when a command starts.
    pub deny_write: Vec<PathBuf>,
    /// True if the network may be reached.
    pub network: bool,
    /// True if the private network has a gateway, which decides about each connection. Only where network
    /// namespaces are available and `network` is false.
    pub gateway: bool,
    /// True if sockets in the file system may be reached: with them the Docker daemon, D-Bus and the ssh
    /// agent.
    pub unix_sockets: bool,
    /// Names in each root that may not be written, whether they exist or not.
    pub protect: Vec<ProtectedName>,
    /// Files that programs outside the sandbox run, such as the scripts of hooks. They may not be written,
    /// whether they exist or not.
    pub scripts: Vec<PathBuf>,
    /// Our directories that commands cannot write, preferably on the workspace's file system. Placeholders
    /// for missing names are stored there between commands. The parent of `temp` is tried too.
    pub aside: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// The usual policy: write in the workspace and the temporary directory, no network, no sockets.
    pub fn new(root: impl Into<PathBuf>, temp: impl Into<PathBuf>) -> Self {
        Self {
            roots: vec![root.into()],
            temp: temp.into(),
            system_temp: None,
            writable: Vec::new(),
            deny_read: Vec::new(),
            show: Vec::new(),
            visible_roots: Vec::new(),
            deny_write: Vec::new(),
            network: false,
            gateway: false,
            unix_sockets: false,
            protect: ProtectedName::usual(),
            scripts: Vec::new(),
            aside: Vec::new(),
        }
    }

    /// True if a file that exists is missing or unreadable inside: it lies in a place that may not be read, or in
    /// the system's temporary directory without being shown there.
    pub(crate) fn hides(&self, file: &Path) -> bool {
        let places = |places: &[PathBuf]| places.iter().any(|place| file.starts_with(place));
        let is_shown = places(&self.show) || file.starts_with(&self.temp);
        if is_shown || !file.exists() {
            return false;
        }
        let in_temp = self.system_temp.as_ref().zip(file.strip_prefix(SYSTEM_TEMP).ok());
        let is_missing = in_temp.is_some_and(|(temp, below)| {
            let name = below.components().next().map(Component::as_os_str);
            name.is_some_and(|name| !temp.visible.iter().any(|visible| visible == name))
        });
        places(&self.deny_read) || (is_missing && !places(&self.roots) && !places(&self.writable))
    }

    /// All writable paths, without those inside another entry.
    pub(crate) fn writable_paths(&self) -> Vec<&Path> {
        let mut places: Vec<&Path> =
            self.roots.iter().chain(&self.writable).chain([&self.temp]).map(PathBuf::as_path).collect();
        places.sort_unstable();
        // A parent sorts before its children.
        places.dedup_by(|later, earlier| later.starts_with(*earlier));
        places
    }

    /// The same policy with every path absolute and free of links. Paths that do not exist are kept if they
    /// may be created later.
    pub(crate) fn resolved(&self) -> Result<Self, SandboxPolicyError> {
        let followed = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().map(|path| path.canonicalize().unwrap_or(path.clone())).collect()
        };
        let existing = |path: &PathBuf| {
            path.canonicalize().map_err(|source| SandboxPolicyError { path: path.clone(), source })
        };
        Ok(Self {
            roots: self.roots.iter().map(existing).collect::<Result<_, _>>()?,
            temp: existing(&self.temp)?,
            // Skip paths that do not exist yet, such as a cache, instead of refusing the command.
            writable: self.writable.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            deny_read: followed(&self.deny_read),
            show: self.show.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            visible_roots: followed(&self.visible_roots),
            deny_write: followed(&self.deny_write),
            ..self.clone()
        })
    }
}

/// A workspace or temporary directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox cannot let commands write in {}: {source}", path.display())]
pub struct SandboxPolicyError {
    path: PathBuf,
    source: std::io::Error,
}

/// A name in the workspace that commands may not write, because programs outside the sandbox act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedName {
    /// The name, relative to the root.
    pub name: PathBuf,
    /// What replaces the name while a command runs and the name does not exist.
    pub placeholder: Placeholder,
}

/// How the creation of a missing name is prevented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// An empty directory: version control does not see it, and nothing reads settings from it.
    Directory,
    /// An empty file, for names whose readers expect a file.
    File,
    /// No placeholder, because its presence would have an effect. The name is watched and removed instead.
    None,
}

impl ProtectedName {
    fn with_placeholder(name: &str, placeholder: Placeholder) -> Self {
        Self { name: name.into(), placeholder }
    }

    /// Git's hooks and settings, our own settings and Claude's, and the list of MCP servers.
    pub fn usual() -> Vec<Self> {
        let in_git = Self::in_git_directory().into_iter();
        let in_git =
            in_git.map(|Self { name, placeholder }| Self { name: Path::new(".git").join(name), placeholder });
        in_git.chain(Self::settings()).collect()
    }

    /// The names in a git directory that git executes or reads settings from. `commondir` and
    /// `config.worktree` also provide settings to a repository.
    pub(crate) fn in_git_directory() -> Vec<Self> {
        vec![
            Self::with_placeholder("hooks", Placeholder::Directory),
            Self::with_placeholder("config", Placeholder::File),
            Self::with_placeholder("commondir", Placeholder::None),
            Self::with_placeholder("config.worktree", Placeholder::None),
        ]
    }

    /// The names of settings that agents read in a directory.
    pub(crate) fn settings() -> Vec<Self> {
        vec![
            Self::with_placeholder(".qwen", Placeholder::Directory),
            Self::with_placeholder(".mcp.json", Placeholder::Directory),
            Self::with_placeholder(".claude/settings.json", Placeholder::None),
            Self::with_placeholder(".claude/settings.local.json", Placeholder::None),
            Self::with_placeholder(".claude/hooks", Placeholder::None),
            Self::with_placeholder(".claude/agents", Placeholder::None),
            Self::with_placeholder(".claude/skills", Placeholder::None),
            Self::with_placeholder(".claude/commands", Placeholder::None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_writable_one_is_not_listed_again() {
        let mut policy = SandboxPolicy::new("/w", "/w/tmp");
        policy.writable = vec!["/cache".into(), "/w-other".into(), "/w/deep/er".into()];
        assert_eq!(policy.writable_paths(), [Path::new("/cache"), Path::new("/w"), Path::new("/w-other")]);
    }

    #[test]
    fn a_workspace_that_is_not_there_is_refused_by_name() {
        let error = SandboxPolicy::new("/nowhere/at/all", "/").resolved().unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
