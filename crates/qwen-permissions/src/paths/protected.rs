//! Paths whose content determines what runs later. Writing them always asks, with every tool.

use std::ffi::OsStr;
use std::path::Path;

use qwen_events::is_hidden;

/// Whether a path is one of them, or inside of one, or holds one.
pub(crate) fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|part| as_any_disk_reads(part.as_os_str())).collect();
    names.iter().enumerate().any(|(index, name)| match name.as_str() {
        ".qwen" | ".mcp.json" => true,
        // The directory as a whole, and the files in it that git executes or reads settings from.
        ".git" => match names.get(index + 1).map(String::as_str) {
            None => true,
            Some(inner) => {
                is_obeyed(inner)
                    || (inner == "info" && names.get(index + 2).is_some_and(|name| name == "attributes"))
                    || (matches!(inner, "modules" | "worktrees")
                        && names[index + 2..].iter().any(|name| is_obeyed(name) || name == "info"))
            }
        },
        _ => false,
    })
}

/// True if git executes or reads settings from the file of this name in a repository.
fn is_obeyed(name: &str) -> bool {
    matches!(name, "hooks" | "config" | "config.worktree" | "commondir" | "gitdir")
}

/// Normalises a name as the most lenient file system does: some ignore case, some ignore invisible
/// characters, some drop trailing dots and spaces.
fn as_any_disk_reads(name: &OsStr) -> String {
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
    [".git/hooks", ".git/config", ".qwen", ".mcp.json"].iter().any(|name| text.contains(name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_protected;

    #[test]
    fn what_decides_what_runs_is_protected() {
        let cases = [
            ("/w/.git/hooks/pre-commit", true),
            ("/w/.git/config", true),
            ("/w/.GIT/Hooks/x", true),
            ("/w/sub/.git/config", true),
            ("/w/.git", true),
            ("/w/.git/modules/x/config", true),
            ("/w/.git/info/attributes", true),
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
            ("/w/.gitignore", false),
            ("/w/git/hooks", false),
            ("/w/src/mcp.json", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }
}
