//! Paths whose content determines what runs later. Writing them always asks, with every tool.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use qwen_events::is_hidden;

use qwen_git::settings::files_named_by_settings;

/// Most bytes in a file that names a git directory.
const LONGEST_LINK: u64 = 16 * 1024;

/// True if a path is one of them, or inside of one, or holds one.
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|part| fold_file_name(part.as_os_str())).collect();
    names.iter().enumerate().any(|(index, name)| match name.as_str() {
        ".qwen" | ".mcp.json" => true,
        ".claude" => names.get(index + 1).is_none_or(|inner| is_claude_configuration(inner)),
        // The directory as a whole, and the files in it that git executes or reads settings from.
        ".git" => match names.get(index + 1).map(String::as_str) {
            None => true,
            Some(inner) => {
                is_obeyed(inner)
                    || (inner == "info" && names.get(index + 2).is_some_and(|name| name == "attributes"))
                    // Other repositories whose objects git reads.
                    || (inner == "objects" && names.get(index + 2).is_some_and(|name| name == "info"))
                    || (matches!(inner, "modules" | "worktrees")
                        && names[index + 2..].iter().any(|name| is_obeyed(name) || name == "info"))
            }
        },
        _ => false,
    })
}

/// True for the names in `.claude` that make an agent run or allow something.
fn is_claude_configuration(name: &str) -> bool {
    matches!(name, "settings.json" | "settings.local.json" | "hooks" | "agents" | "skills" | "commands")
}

/// The protected names in a root that may be links to something else in the workspace.
const NAMES: &[&str] = &[
    ".qwen",
    ".mcp.json",
    ".claude",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/agents",
    ".claude/skills",
    ".claude/commands",
    ".git/hooks",
    ".git/config",
];

/// True if a path, without links in it, is what a protected name in one of the roots leads to, or what the
/// settings of its repository name, or inside of that.
pub(crate) fn is_behind_protected<'a>(
    path: &Path,
    roots: impl IntoIterator<Item = &'a Path>,
    home: Option<&Path>,
) -> bool {
    let leads_here = |root: &Path, name: &str| {
        let link = root.join(name);
        let Ok(target) = fs::read_link(&link) else { return false };
        let target = link.parent().unwrap_or(root).join(target);
        real_or_missing(&target).is_some_and(|target| match name {
            ".claude" => {
                let inner = path.strip_prefix(&target).ok().and_then(|inner| inner.components().next());
                inner.is_some_and(|inner| inner.as_os_str().to_str().is_some_and(is_claude_configuration))
            }
            _ => path.starts_with(&target),
        })
    };
    let is_named = |root: &Path| {
        let directory = git_directory_elsewhere(root).unwrap_or_else(|| root.join(".git"));
        let named = files_named_by_settings(&directory, root, home).into_iter();
        // The directory of hooks must not be the root itself.
        named
            .filter_map(|named| real_or_missing(&named))
            .any(|named| path.starts_with(&named) && *root != named)
    };
    roots.into_iter().any(|root| {
        NAMES.iter().any(|name| leads_here(root, name))
            || is_named(root)
            || git_directory_elsewhere(root)
                .and_then(|directory| path.strip_prefix(directory).ok())
                .is_some_and(|inner| {
                    inner.components().next().is_some_and(|name| is_obeyed(&fold_file_name(name.as_os_str())))
                })
    })
}

/// A path without links in it; its last part may be missing.
fn real_or_missing(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let missing = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    path.canonicalize().ok().or(missing)
}

/// The git directory of a root where `.git` is a link or a file that names it.
fn git_directory_elsewhere(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let meta = fs::symlink_metadata(&git).ok()?;
    if meta.is_symlink() {
        return git.canonicalize().ok();
    }
    if !meta.is_file() || meta.len() > LONGEST_LINK {
        return None;
    }
    let line = fs::read_to_string(&git).ok()?;
    root.join(line.lines().next()?.strip_prefix("gitdir: ")?).canonicalize().ok()
}

/// True if git executes or reads settings from the file of this name in a repository.
fn is_obeyed(name: &str) -> bool {
    matches!(name, "hooks" | "config" | "config.worktree" | "commondir" | "gitdir")
}

/// Normalises a name as the most lenient file system does: some ignore case, some ignore invisible
/// characters, some drop trailing dots and spaces.
fn fold_file_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if matches!(&*name, "." | "..") {
        return name.into_owned();
    }
    let seen: String = name.chars().filter(|&c| !is_hidden(c)).flat_map(char::to_lowercase).collect();
    seen.trim_end_matches(['.', ' ']).to_owned()
}

/// True if a text that cannot be analysed mentions a protected path.
pub(crate) fn mentions_protected(text: &str) -> bool {
    let text = text.to_lowercase();
    let claude = ["settings", "hooks", "agents", "skills", "commands"];
    [".git/hooks", ".git/config", ".qwen", ".mcp.json"].iter().any(|name| text.contains(name))
        || claude.iter().any(|name| text.contains(&format!(".claude/{name}")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{is_behind_protected, is_protected};

    #[test]
    fn the_target_of_a_protected_link_is_protected() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("conf/git/hooks")).unwrap();
        symlink("conf/mcp.json", root.join(".mcp.json")).unwrap();
        symlink("conf/git", root.join(".git")).unwrap();
        for (path, expected) in [
            ("conf/mcp.json", true),
            ("conf/git/hooks/pre-commit", true),
            ("conf/git/config", true),
            ("conf/git/HEAD", false),
            ("conf/other.json", false),
        ] {
            assert_eq!(is_behind_protected(&root.join(path), [root.as_path()], None), expected, "{path}");
        }
    }

    #[test]
    fn files_named_by_repository_settings_are_protected() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("tools/hooks")).unwrap();
        let settings = "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../more.cfg\n";
        fs::write(root.join(".git/config"), settings).unwrap();
        fs::write(root.join("more.cfg"), "[includeIf \"gitdir:/\"]\n\tpath = further.cfg\n").unwrap();
        for (path, expected) in [
            ("tools/hooks/pre-commit", true),
            ("tools/hooks", true),
            ("more.cfg", true),
            ("further.cfg", true),
            ("tools/other", false),
            ("file", false),
        ] {
            assert_eq!(is_behind_protected(&root.join(path), [root.as_path()], None), expected, "{path}");
        }
    }

    #[test]
    fn files_that_configure_execution_are_protected() {
        let cases = [
            ("/w/.git/hooks/pre-commit", true),
            ("/w/.git/config", true),
            ("/w/.GIT/Hooks/x", true),
            ("/w/sub/.git/config", true),
            ("/w/.git", true),
            ("/w/.git/modules/x/config", true),
            ("/w/.git/info/attributes", true),
            ("/w/.git/objects/info/alternates", true),
            ("/w/.git/worktrees/x/config.worktree", true),
            ("/w/.git/worktrees/x/commondir", true),
            ("/w/.git/modules/x/info/attributes", true),
            ("/w/.git./hooks/x", true),
            ("/w/.g\u{200c}it/config", true),
            ("/w/.qwen /settings.json", true),
            ("/w/.mcp.json.", true),
            ("/w/...", false),
            ("/w/.git/worktrees/x/HEAD", false),
            ("/w/.qwen/settings.json", true),
            ("/w/.qwen", true),
            ("/w/.mcp.json", true),
            ("/w/.git/COMMIT_EDITMSG", false),
            ("/w/.claude/settings.json", true),
            ("/w/sub/.claude/settings.local.json", true),
            ("/w/.claude/agents/a.md", true),
            ("/w/.claude/hooks", true),
            ("/w/.Claude/Skills/x/SKILL.md", true),
            ("/w/.claude/commands/x.md", true),
            ("/w/.claude/CLAUDE.md", false),
            ("/w/.gitignore", false),
            ("/w/git/hooks", false),
            ("/w/src/mcp.json", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
