//! What the sandbox has to know about git: where a worktree keeps its repository, and which settings do
//! nothing but describe.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes in a file that names a directory; git itself reads more, but no path is longer.
const LONGEST_LINK: u64 = 16 * 1024;

/// The repository outside the workspace that commands have to write for a commit: the one that a linked
/// worktree belongs to, or the one of a parent directory.
pub(crate) fn repository_outside(root: &Path) -> Option<PathBuf> {
    let top = root.ancestors().find(|directory| fs::symlink_metadata(directory.join(".git")).is_ok())?;
    let directory = top.join(".git");
    if fs::symlink_metadata(&directory).ok()?.is_file() {
        return linked_repository(top).filter(|common| !root.starts_with(common));
    }
    // Git itself does not use the repository of another user.
    let is_ours = fs::symlink_metadata(&directory)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw());
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
pub(crate) fn directory(root: &Path) -> Option<PathBuf> {
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
pub(crate) fn common_directory(directory: &Path) -> Option<PathBuf> {
    directory.join(first_line(&directory.join("commondir"))?).canonicalize().ok()
}

/// Most files of settings that are read for one repository.
const SETTINGS_FILES: usize = 16;
/// Most bytes of a file of settings.
const LONGEST_SETTINGS: u64 = 256 * 1024;

/// Files that git uses because the settings of a repository name them: the directory of hooks,
/// and further files of settings. `root` is where its working tree is.
pub(crate) fn files_named_by_settings(directory: &Path, root: &Path) -> Vec<PathBuf> {
    let mut obeyed = Vec::new();
    let mut ahead = vec![directory.join("config"), directory.join("config.worktree")];
    let mut read = 0;
    while let Some(file) = ahead.pop() {
        read += 1;
        let is_ordinary =
            file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LONGEST_SETTINGS);
        if read > SETTINGS_FILES || !is_ordinary {
            continue;
        }
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            let line = match line.strip_prefix('[').and_then(|header| header.split_once(']')) {
                Some((header, behind)) => {
                    section = header.split([' ', '.']).next().unwrap_or("").to_ascii_lowercase();
                    behind.trim()
                }
                None => line,
            };
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            if value.is_empty() || value.starts_with(['~', '%']) {
                continue;
            }
            match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
                ("core", "hookspath") => obeyed.push(root.join(value)),
                ("include" | "includeif", "path") => {
                    let path = file.parent().unwrap_or(root).join(value);
                    obeyed.push(path.clone());
                    ahead.push(path);
                }
                _ => {}
            }
        }
    }
    // A directory that holds the working tree cannot be held as a whole.
    obeyed.retain(|path| !path.canonicalize().is_ok_and(|path| root.starts_with(path)));
    obeyed
}

/// True if git takes a directory for a repository.
pub(crate) fn is_repository(directory: &Path) -> bool {
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

/// Settings that git or a person writes for a new repository and that make git run or read nothing else. `*`
/// stands for the name in a section.
const DESCRIBING: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("extensions", &["objectformat", "refstorage", "compatobjectformat", "partialclone"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("commit", &["gpgsign"]),
    ("pull", &["rebase", "ff"]),
    ("branch *", &["remote", "merge", "rebase"]),
    ("remote *", &["url", "fetch", "tagopt", "promisor", "partialclonefilter"]),
    ("submodule", &["active"]),
    ("submodule *", &["active", "url"]),
    ("advice", &["detachedhead"]),
    ("lfs", &["repositoryformatversion"]),
];

/// True if git's settings, as a text, only describe: no program is named, nothing else is read. What is not
/// understood does not.
pub(crate) fn only_describes(config: &str) -> bool {
    let mut allowed: &[&str] = &[];
    for line in config.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(section) = header.strip_suffix(']').and_then(section) else { return false };
            let Some((_, keys)) = DESCRIBING.iter().find(|(name, _)| *name == section) else { return false };
            allowed = keys;
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let known = allowed.contains(&key.trim().to_ascii_lowercase().as_str());
        // A value may go on in the next line, or name a helper program instead of an address.
        if !known || value.contains(['\\', '"']) || value.contains("::") {
            return false;
        }
    }
    true
}

/// `core`, or `branch *` for `branch "main"`.
fn section(header: &str) -> Option<String> {
    let plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-').then(|| name.to_ascii_lowercase())
    };
    let Some((name, quoted)) = header.split_once(' ') else { return plain(header) };
    let inner = quoted.trim().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains(['"', '\\', ']']) {
        return None;
    }
    Some(format!("{} *", plain(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_new_repository_only_describe() {
        for config in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            "# a remark\n[user]\n\tname = A. U. Thor\n\temail = a@example.org\n",
            "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "[core]\n\tbare\n",
        ] {
            assert!(only_describes(config), "{config}");
        }
    }

    #[test]
    fn settings_that_run_or_read_something_do_not() {
        for config in [
            "[core]\n\tfsmonitor = touch x\n",
            "[core]\n\thooksPath = evil\n",
            "[core]\n\tpager = touch x\n",
            "[core] fsmonitor = touch x\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
            "[alias]\n\tst = !touch x\n",
            "[filter \"x\"]\n\tclean = touch x\n",
            "[remote \"origin\"]\n\turl = ext::sh -c touch% x\n",
            "[remote \"origin\"]\n\tuploadpack = touch x\n",
            "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n",
            "[core]\nbare = false \\\n fsmonitor = x\n",
            "[branch \"a]\n[core]\nfsmonitor = x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "fsmonitor = x\n",
            "[core",
            "[core]]\nbare = true\n",
        ] {
            assert!(!only_describes(config), "{config}");
        }
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
            repository_outside(&root.join("sub")),
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
        assert_eq!(repository_outside(&root), None, "not a repository");
        fs::create_dir(top.join(".git/refs")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(repository_outside(&root), Some(top.join(".git")));
        assert_eq!(repository_outside(&top), None, "its own repository is inside");
        assert_eq!(repository_outside(&top.join(".git/objects")), None);
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(repository_outside(&root), None, "the nearest one counts");
    }

    /// The settings that git itself finds in a text; none when it refuses to read it.
    fn found_by_git(config: &str) -> Option<Vec<String>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, config.as_bytes()).unwrap();
        let mut git = std::process::Command::new("git");
        git.args(["config", "--list", "--name-only", "-z", "--no-includes", "--file"]).arg(file.path());
        let out = git.output().ok()?;
        let names = String::from_utf8_lossy(&out.stdout).into_owned();
        out.status.success().then(|| names.split_terminator('\0').map(str::to_owned).collect())
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { cases: 64, failure_persistence: None, ..Default::default() })]
        #[test]
        fn git_finds_nothing_else_in_what_only_describes(
            config in r#"((\[core\]|\[remote "[a\\"]?"\]|\[user\]| |\n|\t|\\|"|#|;|=|bare|url|name|fsmonitor = x|\[|\]|\r|a|::|\x00|\u{a0})?){0,12}"#,
        ) {
            if only_describes(&config) {
                let known = ["core.bare", "remote.a.url", "remote..url", "user.name"];
                for name in found_by_git(&config).unwrap_or_default() {
                    proptest::prop_assert!(known.contains(&name.as_str()), "{name} in {config:?}");
                }
            }
        }
    }
}
