//! Directory walks that respect ignore files. The library opens any file with such a name and reads it to the
//! end, so the files are checked first: a pipe, a device or a huge file is never opened.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

/// The files that a walk reads in every directory.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore", ".qwenignore"];
/// Git's untracked ignore file of a repository.
const EXCLUDE_FILE: &str = ".git/info/exclude";
/// The largest ignore file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A walk below `root`: links are not followed, and `.git` and ignored files are skipped. A directory whose
/// ignore files cannot be read safely is not entered; where that is `root` or a directory above it, no ignore
/// file counts.
pub fn tree_walk(root: &Path) -> WalkBuilder {
    tree_walk_along(root, |_| true)
}

/// Like [`tree_walk`], but visits only entries that `wanted` accepts.
pub fn tree_walk_along(
    root: &Path,
    wanted: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let whole_system = root == Path::new("/");
    builder
        // Include dot files, many of which matter (.github, .env.example), but not `.git`.
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        // Added below after a check: in a linked worktree the library would follow paths from files.
        .git_exclude(false)
        .filter_entry(move |entry| {
            wanted(entry)
                && entry.file_name() != ".git"
                && !(whole_system && is_virtual_file_system(entry))
                && (!entry.file_type().is_some_and(|kind| kind.is_dir())
                    || has_readable_ignore_files(entry.path()))
        });
    if root.ancestors().all(has_readable_ignore_files) {
        builder.add_custom_ignore_filename(".qwenignore");
        let exclude = root.join(EXCLUDE_FILE);
        if exclude.is_file() && is_readable(&exclude) {
            // An unreadable file ignores nothing.
            let _ = builder.add_ignore(exclude);
        }
    } else {
        builder.ignore(false).git_ignore(false).parents(false);
    }
    builder
}

fn has_readable_ignore_files(directory: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| is_readable(&directory.join(name)))
}

/// True for a regular file of moderate size, also behind a symbolic link, and for a missing file.
fn is_readable(file: &Path) -> bool {
    match file.metadata() {
        Ok(about) => about.is_file() && about.len() <= LARGEST,
        Err(_) => true,
    }
}

/// If the workspace is the root file system, skip the kernel's virtual file systems, which are unbounded.
fn is_virtual_file_system(entry: &DirEntry) -> bool {
    entry.depth() == 1 && ["proc", "sys", "dev"].iter().any(|name| entry.file_name() == *name)
}
