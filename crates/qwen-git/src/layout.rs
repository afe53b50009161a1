//! The directories of a repository: where a worktree keeps it, and what it shares with other worktrees.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes in a file that names a directory; git itself reads more, but no path is longer.
const LONGEST_LINK: u64 = 16 * 1024;

/// The repository outside the workspace that commands have to write for a commit: the one that a linked
/// worktree belongs to, or the one of a parent directory. Git does not use the repository of another user than
/// `user`, the effective one.
pub fn repository_outside(root: &Path, user: u32) -> Option<PathBuf> {
    let top = root.ancestors().find(|directory| fs::symlink_metadata(directory.join(".git")).is_ok())?;
    let directory = top.join(".git");
    if fs::symlink_metadata(&directory).ok()?.is_file() {
        return linked_repository(top).filter(|common| !root.starts_with(common));
    }
    let is_ours = fs::symlink_metadata(&directory).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
    (top != root && is_ours && is_repository(&directory) && !root.starts_with(&directory))
        .then_some(directory)
}

/// The repository of a linked worktree, if its record points back to the worktree. A file in the workspace
/// alone proves nothing, because commands can write it.
fn linked_repository(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let own = named_directory(root)?;
    let back = own.join(first_line(&own.join("gitdir"))?);
    if back.canonicalize().ok()? != link.canonicalize().ok()? || own.starts_with(root) {
        return None;
    }
    // Only the layout that git makes: <common>/worktrees/<name>.
    let worktrees = own.parent()?;
    let common = worktrees.parent()?;
    if worktrees.file_name()? != "worktrees"
        || common_directory(&own)? != common
        || !common.join("HEAD").is_file()
    {
        return None;
    }
    Some(common.to_owned())
}

/// The git directory of a working directory: `.git`, or the directory that a link or a file of that name
/// leads to.
pub fn directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let directory = git.canonicalize().ok().filter(|found| found.is_dir());
    directory.or_else(|| named_directory(root))
}

/// The directory that the file `.git` names.
fn named_directory(root: &Path) -> Option<PathBuf> {
    let line = first_line(&root.join(".git"))?;
    root.join(line.strip_prefix("gitdir: ")?).canonicalize().ok().filter(|found| found.is_dir())
}

/// The directory that a worktree's git directory shares with others.
pub fn common_directory(directory: &Path) -> Option<PathBuf> {
    directory.join(first_line(&directory.join("commondir"))?).canonicalize().ok()
}

/// True if git takes a directory for a repository.
pub fn is_repository(directory: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| directory.join(name).is_dir())
        && fs::symlink_metadata(directory.join("HEAD")).is_ok()
}

fn first_line(file: &Path) -> Option<String> {
    // Reading a pipe would block forever.
    if !file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST_LINK) {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    Some(text.lines().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(path: &Path) -> u32 {
        path.metadata().unwrap().uid()
    }

    #[test]
    fn a_worktree_is_believed_only_when_its_repository_points_back() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (root, common) = (place.join("tree"), place.join("main/.git"));
        let own = common.join("worktrees/tree");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(common.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(linked_repository(&root), None);
        fs::write(own.join("gitdir"), format!("{}\n", place.join("elsewhere/.git").display())).unwrap();
        assert_eq!(linked_repository(&root), None);
        fs::write(own.join("gitdir"), format!("{}\n", root.join(".git").display())).unwrap();
        assert_eq!(linked_repository(&root), Some(common.clone()));
        fs::create_dir(root.join("sub")).unwrap();
        assert_eq!(
            repository_outside(&root.join("sub"), owner(&root)),
            Some(common.clone()),
            "also from a directory below"
        );
        fs::write(own.join("commondir"), format!("{}\n", place.display())).unwrap();
        assert_eq!(linked_repository(&root), None, "shared parts lie where git puts them");
    }

    #[test]
    fn a_worktree_record_inside_the_workspace_is_no_proof() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let own = root.join("fake/worktrees/x");
        fs::create_dir_all(&own).unwrap();
        fs::write(root.join("fake/HEAD"), "x").unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", root.join(".git").display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(linked_repository(&root), None);
    }

    #[test]
    fn the_repository_of_a_parent_directory_is_found_if_it_is_one() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let root = top.join("a/b");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(top.join(".git/objects")).unwrap();
        assert_eq!(repository_outside(&root, owner(&top)), None, "not a repository");
        fs::create_dir(top.join(".git/refs")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(repository_outside(&root, owner(&top)), Some(top.join(".git")));
        assert_eq!(repository_outside(&top, owner(&top)), None, "its own repository is inside");
        assert_eq!(repository_outside(&top.join(".git/objects"), owner(&top)), None);
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(repository_outside(&root, owner(&top)), None, "the nearest one counts");
    }
}
