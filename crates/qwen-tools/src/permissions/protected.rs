//! Places whose content decides what runs later. Writing them always asks, by whatever tool.

use std::path::Path;

/// Whether a path is one of them, or inside of one, or holds one.
pub(super) fn is_protected(path: &Path) -> bool {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    names.iter().enumerate().any(|(index, name)| match name.as_str() {
        ".qwen" | ".mcp.json" => true,
        // The directory as a whole, and what git runs or obeys in it.
        ".git" => match names.get(index + 1).map(String::as_str) {
            None => true,
            Some(inner) => {
                matches!(inner, "hooks" | "config" | "config.worktree" | "commondir" | "gitdir")
                    || (inner == "info" && names.get(index + 2).is_some_and(|name| name == "attributes"))
                    || (matches!(inner, "modules" | "worktrees")
                        && names[index + 2..].iter().any(|name| matches!(name.as_str(), "hooks" | "config")))
            }
        },
        _ => false,
    })
}

/// Whether a text that cannot be analysed speaks of one of them.
pub(super) fn mentions_protected(text: &str) -> bool {
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
