//! Resolves paths and checks whether they are inside the workspace.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many symbolic links a path may lead through.
const MAX_LINKS: usize = 40;

/// The directories that belong to a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workspace {
    /// The directories, as given and as they really are.
    roots: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Directories in worktrees that correspond to the working directory: patterns that are relative to it, or to the
    /// workspace, apply there too.
    mirrors: Vec<PathBuf>,
}

/// A path as written and as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Absolute, with `.` and `..` removed.
    pub(crate) written: PathBuf,
    /// With every symbolic link followed; `None` for a cycle.
    pub(crate) real: Option<PathBuf>,
}

impl ResolvedPath {
    /// Both forms of it.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.written.as_path()).chain(self.real.as_deref())
    }
}

impl Workspace {
    pub(crate) fn new(roots: impl IntoIterator<Item = PathBuf>, home: Option<PathBuf>) -> Self {
        let mut workspace = Self { roots: Vec::new(), home, mirrors: Vec::new() };
        for root in roots {
            workspace.add(&root);
        }
        workspace
    }

    pub(crate) fn add(&mut self, root: &Path) {
        let written = normal(root);
        let real = follow_links(&written);
        for root in std::iter::once(written).chain(real) {
            if !self.roots.contains(&root) {
                self.roots.push(root);
            }
        }
    }

    pub(crate) fn remove(&mut self, root: &Path) {
        let written = normal(root);
        let real = follow_links(&written);
        self.roots.retain(|known| *known != written && Some(known) != real.as_ref());
        self.mirrors.retain(|mirror| {
            !mirror.starts_with(&written) && !real.as_ref().is_some_and(|real| mirror.starts_with(real))
        });
    }

    pub(crate) fn add_mirror(&mut self, directory: &Path) {
        let written = normal(directory);
        let real = follow_links(&written);
        self.mirrors.extend(std::iter::once(written).chain(real));
    }

    pub(crate) fn mirrors(&self) -> &[PathBuf] {
        &self.mirrors
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// True if a place is inside, both as written and as it really is.
    pub(crate) fn contains(&self, place: &ResolvedPath) -> bool {
        place.real.is_some() && place.forms().all(|path| self.roots.iter().any(|root| path.starts_with(root)))
    }

    /// Where a path leads from a directory. `~/` is the home of the user.
    pub(crate) fn place(&self, path: &Path, cwd: &Path) -> ResolvedPath {
        let absolute = match path.strip_prefix("~").ok().zip(self.home()) {
            Some((rest, home)) => home.join(rest),
            None => cwd.join(path),
        };
        ResolvedPath { written: normal(&absolute), real: follow_links(&absolute) }
    }
}

impl qwen_git::repository::LocalPaths for Workspace {
    fn contains(&self, path: &Path, root: &Path) -> bool {
        self.contains(&self.place(path, root))
    }

    fn follow(&self, path: &Path, root: &Path) -> Option<PathBuf> {
        self.place(path, root).real
    }
}

/// Removes `.` and `..` from an absolute path without file system access.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Follows every symbolic link in a path, also when its end does not exist.
pub(crate) fn follow_links(path: &Path) -> Option<PathBuf> {
    let mut links = 0;
    let mut real = PathBuf::new();
    let mut ahead: Vec<OsString> = components(path);
    while let Some(component) = ahead.pop() {
        if component == ".." {
            real.pop();
            continue;
        }
        if component == "/" {
            real = PathBuf::from("/");
            continue;
        }
        let next = real.join(&component);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                ahead.extend(components(&target));
            }
            Err(_) => real = next,
        }
    }
    Some(real)
}

/// The components of a path, the last one first.
fn components(path: &Path) -> Vec<OsString> {
    let mut components: Vec<OsString> = path
        .components()
        .filter(|component| !matches!(component, Component::CurDir))
        .map(|component| component.as_os_str().to_owned())
        .collect();
    components.reverse();
    components
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::Workspace;

    #[test]
    fn a_place_is_inside_only_if_it_really_is() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let root = inside.path();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/file"), "").unwrap();
        std::fs::write(outside.path().join("secret"), "").unwrap();
        symlink(outside.path().join("secret"), root.join("link")).unwrap();
        symlink(outside.path(), root.join("dir")).unwrap();
        symlink(outside.path().join("missing"), root.join("dangling")).unwrap();
        symlink("sub", root.join("fine")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let workspace = Workspace::new([root.to_owned()], Some(outside.path().to_owned()));
        let cases = [
            ("sub/file", true),
            ("sub/missing", true),
            ("sub/../sub/file", true),
            ("fine/file", true),
            ("fine/../sub", true),
            (".", true),
            ("link", false),
            ("dir/secret", false),
            ("dir/../x", false),
            ("dangling", false),
            ("loop", false),
            ("../x", false),
            ("sub/../../x", false),
            ("~/secret", false),
            ("/etc/passwd", false),
        ];
        for (path, expected) in cases {
            let place = workspace.place(Path::new(path), root);
            assert_eq!(workspace.contains(&place), expected, "{path}: {place:?}");
        }
    }
}
