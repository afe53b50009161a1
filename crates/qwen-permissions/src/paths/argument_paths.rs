//! Finds the files that the words of a command may name.

use std::path::{Path, PathBuf};

use crate::shell::Word;

/// The most directory entries that are looked at for one pattern.
const MAX_ENTRIES: usize = 4096;

/// The most words that are looked at for one with braces.
const MAX_WORDS: usize = 256;

/// Every path that a word may name: as a whole, behind `=`, `@` or `:`, or behind the letter of an option.
pub(crate) fn paths_in(word: &Word, cwd: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Word::Dynamic(dynamic) = word
        && let Some(names) = dynamic.glob.as_deref().and_then(|glob| expand(glob, cwd))
    {
        paths.extend(names);
    }
    let text = word.known_prefix();
    let mut add = |text: &str| {
        if !text.is_empty() {
            paths.push(PathBuf::from(text));
        }
    };
    add(text);
    let tail = match word {
        Word::Literal(_) => "",
        Word::Dynamic(dynamic) => dynamic.tail.as_str(),
    };
    for elsewhere in alternative_paths(text, tail, cwd) {
        add(&elsewhere);
    }
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

/// Alternative meanings of a path: `~+` and `~user` resolve to the working directory and a home directory,
/// and so do the links of a process in `/proc`.
fn alternative_paths(text: &str, tail: &str, cwd: &Path) -> Vec<String> {
    let mut ways = Vec::new();
    if let Some((user, rest)) = text.strip_prefix('~').and_then(|text| text.split_once('/'))
        && !user.is_empty()
    {
        ways.extend([rest.to_owned(), format!("~/{rest}")]);
    }
    if text.starts_with("/proc/") {
        let whole = format!("{text}{tail}");
        if let Some((_, rest)) = whole.split_once("/cwd/") {
            ways.push(cwd.join(rest).to_string_lossy().into_owned());
        }
        if let Some((_, rest)) = whole.split_once("/root/") {
            ways.push(format!("/{rest}"));
        }
    }
    ways
}

/// Returns the files that match a pattern, or a superset. `None` if there are too many entries to check.
pub(crate) fn expand(glob: &str, cwd: &Path) -> Option<Vec<PathBuf>> {
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
        let pattern = parts(component);
        // A wildcard does not match the leading dot of a hidden file.
        let hidden = component.starts_with(['.', '\\']);
        let mut next = Vec::new();
        for directory in found {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                budget = budget.checked_sub(1)?;
                let name = entry.file_name();
                let visible = hidden || !name.as_encoded_bytes().starts_with(b".");
                if visible && may_match(&pattern, name.as_encoded_bytes()) {
                    next.push(entry.path());
                }
            }
        }
        found = next;
    }
    Some(found)
}

/// A part of a pattern for one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Byte(u8),
    /// `?` or brackets.
    One,
    /// `*`.
    Any,
}

/// Reads a pattern. What brackets mean depends on the locale (`[[:lower:]]`, `[a-z]`, `[[=e=]]`), so brackets
/// are assumed to match any character.
fn parts(component: &str) -> Vec<Part> {
    let bytes = component.as_bytes();
    let mut parts = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => {
                parts.extend(bytes.get(at).map(|quoted| Part::Byte(*quoted)));
                at += 1;
            }
            b'*' => parts.push(Part::Any),
            b'?' => parts.push(Part::One),
            b'[' => {
                parts.push(Part::One);
                at = end_of_brackets(bytes, at).unwrap_or_else(|| {
                    // Unclosed brackets are literal, but implementations differ on where brackets close.
                    parts.pop();
                    parts.push(Part::Any);
                    at
                });
            }
            other => parts.push(Part::Byte(*other)),
        }
    }
    parts
}

/// Where a bracket expression ends that begins in front of `at`. The first character may be a closing
/// bracket, and classes have their own brackets.
fn end_of_brackets(bytes: &[u8], mut at: usize) -> Option<usize> {
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    loop {
        match bytes.get(at)? {
            b']' => return Some(at + 1),
            b'\\' => at += 2,
            b'[' => match bytes.get(at + 1) {
                Some(kind @ (b':' | b'=' | b'.')) => {
                    let rest = bytes.get(at + 2..)?;
                    let length = rest.windows(2).position(|pair| pair == [*kind, b']'])?;
                    at += 2 + length + 2;
                }
                _ => at += 1,
            },
            _ => at += 1,
        }
    }
}

/// True if a name may match in any locale: a character is one byte in some and several in others.
fn may_match(pattern: &[Part], name: &[u8]) -> bool {
    let plain = name.is_ascii();
    let (mut part, mut at) = (0, 0);
    let mut retry = None;
    while at < name.len() {
        match pattern.get(part) {
            Some(Part::Any) => {
                retry = Some((part, at));
                part += 1;
            }
            Some(Part::One) if !plain => {
                retry = Some((part, at));
                part += 1;
            }
            Some(Part::One) => (part, at) = (part + 1, at + 1),
            Some(Part::Byte(byte)) if *byte == name[at] => (part, at) = (part + 1, at + 1),
            _ => {
                let Some((wild, from)) = retry else { return false };
                retry = Some((wild, from + 1));
                (part, at) = (wild + 1, from + 1);
            }
        }
    }
    pattern[part..].iter().all(|part| *part == Part::Any || (*part == Part::One && !plain))
}

/// Expands braces. Returns `None` if there are too many words to check.
pub(crate) fn braces(word: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut ahead = vec![word.to_owned()];
    while let Some(word) = ahead.pop() {
        if done.len() + ahead.len() > MAX_WORDS {
            return None;
        }
        let innermost = word.find('}').and_then(|close| Some((word[..close].rfind('{')?, close)));
        let Some((open, close)) = innermost else {
            done.push(word);
            continue;
        };
        let inside = &word[open + 1..close];
        if inside.contains("..") && !inside.contains(',') {
            // A range: each result is short.
            ahead.push(format!("{}*{}", &word[..open], &word[close + 1..]));
            continue;
        }
        for choice in inside.split(',') {
            ahead.push(format!("{}{choice}{}", &word[..open], &word[close + 1..]));
        }
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::{braces, expand};

    #[test]
    fn braces_make_words() {
        let mut words = braces("a{b,c{d,e}}f").unwrap();
        words.sort();
        words.dedup();
        assert_eq!(words, ["abf", "acdf", "acef"]);
        assert_eq!(braces("x{1..3}").unwrap(), ["x*"]);
        assert!(braces(&"{a,b}".repeat(40)).is_none());
    }

    #[test]
    fn a_pattern_matches_a_superset_of_every_locale() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["link", "é", "x]y"] {
            std::fs::write(directory.path().join(file), "").unwrap();
        }
        for (glob, file) in [
            ("[[:lower:]]ink", "link"),
            ("[[=l=]]ink", "link"),
            ("[[.l.]]ink", "link"),
            ("l[a-z]nk", "link"),
            ("l[!A]nk", "link"),
            ("l[]i]nk", "link"),
            ("l[i]*", "link"),
            ("l?nk", "link"),
            ("?", "é"),
            ("??", "é"),
            ("x[]]y", "x]y"),
            ("x[a", "x[a"),
        ] {
            let found = expand(glob, directory.path()).unwrap();
            let holds = found.contains(&directory.path().join(file));
            assert_eq!(holds, file != "x[a", "{glob}: {found:?}");
        }
    }

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
