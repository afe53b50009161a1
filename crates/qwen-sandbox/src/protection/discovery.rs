//! Finds what has to be protected: not names only, but the objects behind them. A name in the workspace may
//! be a link, `.git` may be a file that names a directory elsewhere, and a git directory holds those of its
//! worktrees and submodules.

use std::fs;
use std::path::{Path, PathBuf};

use qwen_git::layout;
use qwen_git::settings::files_named_by_settings;

use crate::policy::{Placeholder, ProtectedName, SandboxPolicy};
use crate::protection::watch::ProtectedRoot;

/// Most links that are followed from one name, as in the kernel.
const LINKS: usize = 40;
/// Most git directories of submodules that are looked for.
const MODULES: usize = 256;
/// How deep git directories of submodules are looked for. Their names may contain slashes.
const MODULE_DEPTH: usize = 8;

/// The protected names of a sandbox.
pub(crate) struct ProtectedObjects {
    /// The names in each writable place.
    pub roots: Vec<ProtectedRoot>,
    /// The writable places.
    places: Vec<PathBuf>,
    git_directories: Vec<PathBuf>,
    /// The worktrees and submodules of these directories.
    parts: Vec<PathBuf>,
}

impl ProtectedObjects {
    /// Finds them. Adds the repositories to the policy that commands have to write for a commit: that of a
    /// linked worktree, and that of a parent directory.
    pub(crate) fn find(policy: &mut SandboxPolicy) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let outside: Vec<PathBuf> =
            policy.roots.iter().filter_map(|root| layout::repository_outside(root, user)).collect();
        policy.writable.extend(outside.iter().cloned());
        let places = policy.writable_paths().into_iter().map(Path::to_owned).collect();
        let mut found = Discovery { places, roots: Vec::new() };
        let mut git_directories = outside;
        for root in &policy.roots {
            for ProtectedName { name, placeholder } in &policy.protect {
                found.add_object(&root.join(name), *placeholder);
            }
            found.pin_unless_directory(&root.join(".git"));
            if let Some(directory) = layout::directory(root) {
                let common = layout::common_directory(&directory).unwrap_or_else(|| directory.clone());
                // A directory that holds the working tree cannot be held as a whole.
                let holds_root =
                    |path: &PathBuf| path.canonicalize().is_ok_and(|path| root.starts_with(path));
                let named = files_named_by_settings(&common, root, None).into_iter();
                for path in named.filter(|path| !holds_root(path)) {
                    found.add_object(&path, Placeholder::None);
                }
                // The part that a worktree shares with others.
                git_directories.extend(layout::common_directory(&directory));
                git_directories.push(directory);
            }
        }
        for script in &policy.scripts {
            found.add_object(script, Placeholder::None);
        }
        for directory in &git_directories {
            found.add_git_directory(directory);
        }
        let parts = parts(&git_directories);
        Self { roots: found.roots, places: found.places, git_directories, parts }
    }

    /// The names in worktrees and submodules that were added since.
    pub(crate) fn added(&self) -> Vec<ProtectedRoot> {
        if parts(&self.git_directories) == self.parts {
            return Vec::new();
        }
        let mut found = Discovery { places: self.places.clone(), roots: Vec::new() };
        for directory in &self.git_directories {
            found.add_git_directory(directory);
        }
        for root in &mut found.roots {
            let known = self.roots.iter().find(|known| known.root == root.root);
            root.names.retain(|name| !known.is_some_and(|known| known.names.contains(name)));
        }
        found.roots
    }

    /// True if git reads the settings of this directory, and it is protected.
    pub(crate) fn is_git_directory(&self, directory: &Path) -> bool {
        self.git_directories.iter().any(|known| {
            known == directory
                || (directory.starts_with(known)
                    && layout::common_directory(directory).is_some_and(|common| common == *known))
        }) || self.parts.iter().any(|known| known == directory && !known.join("commondir").exists())
    }
}

/// The directories of worktrees and submodules in git directories.
fn parts(git_directories: &[PathBuf]) -> Vec<PathBuf> {
    let in_each = git_directories
        .iter()
        .flat_map(|directory| ["worktrees", "modules"].map(|name| directory.join(name)));
    in_each.flat_map(|directory| directories(&directory)).collect()
}

struct Discovery {
    /// The writable places. Elsewhere the kernel refuses to write anyway.
    places: Vec<PathBuf>,
    roots: Vec<ProtectedRoot>,
}

impl Discovery {
    /// The writable place of a path without links in it, and the path relative to that place.
    fn place(&mut self, path: &Path) -> Option<(&mut ProtectedRoot, PathBuf)> {
        let place = self.places.iter().find(|place| path.starts_with(place) && path != **place)?;
        let name = path.strip_prefix(place).ok()?.to_owned();
        if self.roots.iter().all(|root| root.root != *place) {
            self.roots.push(ProtectedRoot { root: place.clone(), names: Vec::new(), pinned: Vec::new() });
        }
        Some((self.roots.iter_mut().find(|root| root.root == *place)?, name))
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path.starts_with(place) && path != place)
    }

    fn add(&mut self, path: &Path, placeholder: Placeholder) {
        let Some((place, name)) = self.place(path) else { return };
        if place.names.iter().all(|known| known.name != name) {
            place.names.push(ProtectedName { name, placeholder });
        }
    }

    /// Protects a link, or a file that acts as one, from being turned elsewhere.
    fn pin_unless_directory(&mut self, path: &Path) {
        let Some(path) = resolve_parents(path) else { return };
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir())
            && let Some((place, name)) = self.place(&path)
            && !place.pinned.contains(&name)
        {
            place.pinned.push(name);
        }
    }

    /// Protects a name, and every link and the object that it leads to.
    fn add_object(&mut self, path: &Path, placeholder: Placeholder) {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            let Some(at) = resolve_parents(&path) else { return };
            self.add(&at, placeholder);
            // A link on the way could be turned elsewhere.
            let above: Vec<&Path> =
                path.ancestors().skip(1).take_while(|above| self.is_writable(above)).collect();
            for directory in above {
                self.pin_unless_directory(directory);
            }
            let Ok(target) = fs::read_link(&at) else { return };
            let Some(parent) = at.parent() else { return };
            path = parent.join(target);
        }
    }

    /// Protects a git directory with those of its worktrees and submodules.
    fn add_git_directory(&mut self, directory: &Path) {
        self.add_names(directory);
        let mut left = MODULES;
        self.add_modules(&directory.join("modules"), MODULE_DEPTH, &mut left);
    }

    fn add_names(&mut self, directory: &Path) {
        for ProtectedName { name, placeholder } in ProtectedName::in_git_directory() {
            self.add_object(&directory.join(name), placeholder);
        }
        for worktree in directories(&directory.join("worktrees")) {
            for name in ["commondir", "gitdir", "config.worktree"] {
                self.add_object(&worktree.join(name), Placeholder::None);
            }
        }
    }

    fn add_modules(&mut self, directory: &Path, depth: usize, left: &mut usize) {
        for module in directories(directory) {
            if *left == 0 || depth == 0 {
                return;
            }
            *left -= 1;
            if layout::is_repository(&module) {
                self.add_names(&module);
                self.add_modules(&module.join("modules"), depth - 1, left);
            } else {
                self.add_modules(&module, depth - 1, left);
            }
        }
    }
}

/// The path with every link resolved except one at its end. What does not exist is kept as it is spelt.
fn resolve_parents(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let mut missing = vec![name.to_owned()];
    let mut directory = path.parent()?;
    loop {
        match directory.canonicalize() {
            Ok(found) => return Some(missing.into_iter().rev().fold(found, |path, name| path.join(name))),
            Err(_) => missing.push(directory.file_name()?.to_owned()),
        }
        directory = directory.parent()?;
    }
}

/// The directories in a directory, in order.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
