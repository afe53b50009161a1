//! Words of a command as the files that they may name.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;

use crate::shell::Word;

/// The most directory entries that are looked at for one pattern.
const MAX_ENTRIES: usize = 4096;

/// Every path that a word may name: as a whole, behind `=`, `@` or `:`, or behind the letter of an option.
pub(super) fn paths_in(word: &Word, cwd: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Word::Dynamic(dynamic) = word
        && let Some(names) = dynamic.glob.as_deref().and_then(|glob| expand(glob, cwd))
    {
        paths.extend(names);
    }
    let text = word.known_start();
    let mut add = |text: &str| {
        if !text.is_empty() {
            paths.push(PathBuf::from(text));
        }
    };
    add(text);
    for separator in ['=', '@', ':'] {
        if let Some((_, behind)) = text.split_once(separator) {
            add(behind);
        }
    }
    if text.starts_with('-') && !text.starts_with("--") {
        add(text.get(2..).unwrap_or(""));
    }
    paths
}

/// The files that match a pattern, or more; none where there are too many to look at.
pub(super) fn expand(glob: &str, cwd: &Path) -> Option<Vec<PathBuf>> {
    let mut budget = MAX_ENTRIES;
    let (base, rest) = match glob.strip_prefix('/') {
        Some(rest) => (PathBuf::from("/"), rest),
        None => (cwd.to_owned(), glob),
    };
    let mut found = vec![base];
    for component in rest.split('/').filter(|component| !component.is_empty()) {
        let wild = component.contains(['*', '?', '[']);
        if !wild {
            let name = component.replace('\\', "");
            for path in &mut found {
                path.push(&name);
            }
            continue;
        }
        let matcher = GlobBuilder::new(component)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .ok()?
            .compile_matcher();
        // A wildcard does not stand for the dot that hides a file.
        let hidden = component.starts_with(['.', '\\']);
        let mut next = Vec::new();
        for directory in found {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                budget = budget.checked_sub(1)?;
                let name = entry.file_name();
                let visible = hidden || !name.as_encoded_bytes().starts_with(b".");
                if visible && matcher.is_match(Path::new(&name)) {
                    next.push(entry.path());
                }
            }
        }
        found = next;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn a_pattern_finds_the_files_that_it_matches() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in ["a/x.rs", "b/y.rs", "b/z.txt", "c.rs", ".git/x.rs", ".h.rs"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let names = |glob: &str| {
            let mut names: Vec<String> = expand(glob, root)
                .unwrap()
                .iter()
                .map(|path| path.strip_prefix(root).unwrap().display().to_string())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("*.rs"), ["c.rs"]);
        assert_eq!(names("*/*.rs"), ["a/x.rs", "b/y.rs"]);
        assert_eq!(names("b/?.txt"), ["b/z.txt"]);
        assert_eq!(names(".*.rs"), [".h.rs"]);
        assert_eq!(names(".g*/x.rs"), [".git/x.rs"]);
        assert!(names("*.none").is_empty());
    }
}
