//! Walks through directories that leave out what ignore files name. The library that reads those files opens whatever has
//! their names and reads it to its end, so they are looked at first: a pipe, a device or a huge file is never opened.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

/// The files that a walk reads in every directory.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore", ".qwenignore"];
/// What git leaves out of one repository without saying so in a tracked file.
const EXCLUDE_FILE: &str = ".git/info/exclude";
/// The largest ignore file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A walk below `root`: links are not followed, `.git` is left out, and so is what ignore files name. A directory whose
/// ignore files cannot be read safely is not entered; where that is `root` or a directory above it, no ignore file counts.
pub fn tree_walk(root: &Path) -> WalkBuilder {
    tree_walk_along(root, |_| true)
}

/// The same, of entries that `wanted` says yes to alone.
pub fn tree_walk_along(
    root: &Path,
    wanted: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let whole_system = root == Path::new("/");
    builder
        // Names with a dot in front hold much that matters (.github, .env.example); what git keeps for itself does not.
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        // Read below, where it is safe: in a linked worktree the library would follow what files say.
        .git_exclude(false)
        .filter_entry(move |entry| {
            wanted(entry)
                && entry.file_name() != ".git"
                && !(whole_system && is_kernel_made(entry))
                && (!entry.file_type().is_some_and(|kind| kind.is_dir())
                    || has_readable_ignore_files(entry.path()))
        });
    if root.ancestors().all(has_readable_ignore_files) {
        builder.add_custom_ignore_filename(".qwenignore");
        let exclude = root.join(EXCLUDE_FILE);
        if exclude.is_file() && is_readable(&exclude) {
            // A file that cannot be read names nothing.
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

/// True for a regular file of moderate size, also behind a link, and for what is not there.
fn is_readable(file: &Path) -> bool {
    match file.metadata() {
        Ok(about) => about.is_file() && about.len() <= LARGEST,
        Err(_) => true,
    }
}

/// In a workspace that is the whole system, what the kernel makes up is not walked into: it has no end.
fn is_kernel_made(entry: &DirEntry) -> bool {
    entry.depth() == 1 && ["proc", "sys", "dev"].iter().any(|name| entry.file_name() == *name)
}
