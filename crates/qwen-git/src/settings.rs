//! Git's settings files, read as git reads them: every setting with its section, the files that one includes
//! with it.

use std::path::{Path, PathBuf};

/// The largest settings file that is read.
const MAX_LENGTH: u64 = 256 * 1024;

/// The most files that are read for one repository.
const MAX_FILES: usize = 64;

/// One setting. Section and key are in small letters, as git compares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub section: String,
    pub subsection: Option<String>,
    pub key: String,
    /// Empty where it is given without one.
    pub value: String,
}

impl Setting {
    /// The full name of another key in the same section.
    pub fn sibling(&self, key: &str) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{key}", self.section),
            None => format!("{}.{key}", self.section),
        }
    }
}

/// Returns the settings of a file and of all files that it includes, under any condition. `None` if some
/// cannot be parsed or may not be included. A missing file has no settings.
pub fn settings_in(
    file: &Path,
    home: Option<&Path>,
    may_include: &dyn Fn(&Path) -> bool,
) -> Option<Vec<Setting>> {
    let mut settings = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut ahead = vec![file.to_owned()];
    while let Some(file) = ahead.pop() {
        if seen.contains(&file) || file.symlink_metadata().is_err() {
            continue;
        }
        if seen.len() == MAX_FILES {
            return None;
        }
        let found = parse(&read_bounded(&file)?)?;
        for setting in found.iter().filter(|setting| {
            matches!(setting.section.as_str(), "include" | "includeif") && setting.key == "path"
        }) {
            ahead.push(Some(included(&setting.value, &file, home)?).filter(|path| may_include(path))?);
        }
        seen.push(file);
        settings.extend(found);
    }
    Some(settings)
}

/// Files that git uses because the settings of a repository name them: the directory of hooks,
/// and further files of settings.
pub fn files_named_by_settings(git_directory: &Path, root: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut obeyed = Vec::new();
    let mut ahead = vec![git_directory.join("config"), git_directory.join("config.worktree")];
    let mut budget = MAX_FILES;
    while let Some(file) = ahead.pop() {
        let Some(left) = budget.checked_sub(1) else { break };
        budget = left;
        for setting in read_bounded(&file).and_then(|text| parse(&text)).unwrap_or_default() {
            match (setting.section.as_str(), setting.key.as_str()) {
                ("core", "hookspath") => obeyed.extend(included(&setting.value, &root.join(".git"), home)),
                ("include" | "includeif", "path") => {
                    let path = included(&setting.value, &file, home);
                    obeyed.extend(path.clone());
                    ahead.extend(path);
                }
                _ => {}
            }
        }
    }
    obeyed
}

/// The text of a file of ordinary size.
pub fn read_bounded(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_LENGTH {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// The file that an include names.
fn included(value: &str, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(rest) = value.strip_prefix("~/") {
        return Some(home?.join(rest));
    }
    if value.is_empty() || value.starts_with(['~', '%']) {
        return None;
    }
    Some(from.parent()?.join(value))
}

/// Parses settings. Returns `None` if git or this parser does not understand the text.
pub fn parse(text: &str) -> Option<Vec<Setting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
        let Some(first) = rest.chars().next() else { return Some(settings) };
        if matches!(first, '#' | ';') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(header) = rest.strip_prefix('[') {
            let (name, subsection, after) = parse_header(header)?;
            section = Some((name, subsection));
            rest = after;
        } else {
            let (key, value, after) = parse_setting(rest)?;
            let (section, subsection) = section.clone()?;
            settings.push(Setting { section, subsection, key, value });
            rest = after;
        }
    }
}

/// `core]`, `diff "x"]` or `diff.x]`, without the opening bracket. Also returns the remaining text.
fn parse_header(header: &str) -> Option<(String, Option<String>, &str)> {
    let end = header.find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.')))?;
    let (name, rest) = header.split_at(end);
    let name = name.to_ascii_lowercase();
    if name.is_empty() {
        return None;
    }
    if let Some(after) = rest.strip_prefix(']') {
        return Some(match name.split_once('.') {
            Some((name, subsection)) => (name.to_owned(), Some(subsection.to_owned()), after),
            None => (name, None, after),
        });
    }
    let quoted = rest.strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']).strip_prefix('"')?;
    let mut subsection = String::new();
    let mut letters = quoted.chars();
    loop {
        match letters.next()? {
            '\n' | '\0' => return None,
            '"' => break,
            '\\' => subsection.push(letters.next().filter(|letter| *letter != '\n')?),
            letter => subsection.push(letter),
        }
    }
    let after = letters.as_str().strip_prefix(']')?;
    // A name with both kinds of subsection is one that we leave alone.
    (!name.contains('.')).then_some((name, Some(subsection), after))
}

/// Parses `key = value`. Also returns the text after the line.
fn parse_setting(text: &str) -> Option<(String, String, &str)> {
    let end =
        text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    if !key.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return None;
    }
    let key = key.to_ascii_lowercase();
    let rest = rest.trim_start_matches([' ', '\t']);
    if rest.is_empty() || rest.starts_with('\n') {
        return Some((key, String::new(), rest));
    }
    let mut letters = rest.strip_prefix('=')?.trim_start_matches([' ', '\t']).chars();
    let mut value = String::new();
    let mut quoted = false;
    loop {
        match letters.next() {
            None if quoted => return None,
            None => break,
            Some('\n') if quoted => return None,
            Some('\n') => break,
            Some('#' | ';') if !quoted => {
                while letters.next().is_some_and(|letter| letter != '\n') {}
                break;
            }
            Some('"') => quoted = !quoted,
            Some('\\') => match letters.next()? {
                '\n' => {}
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                letter @ ('"' | '\\') => value.push(letter),
                _ => return None,
            },
            Some('\0') => return None,
            Some(letter) => value.push(letter),
        }
    }
    Some((key, value.trim_end_matches([' ', '\t']).to_owned(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{parse, settings_in};

    fn names(text: &str) -> Vec<(String, String)> {
        let settings = parse(text).unwrap();
        settings.into_iter().map(|setting| (setting.sibling(&setting.key), setting.value)).collect()
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, name, value) in [
            ("[core]\n\tbare = false\n", "core.bare", "false"),
            ("[CORE] Bare", "core.bare", ""),
            ("\u{feff}[core]\r\n bare = a b \r\n", "core.bare", "a b"),
            ("[filter \"x\"]clean=a # b", "filter.x.clean", "a"),
            ("[filter \"x\\\"] y\"]clean = a", "filter.x\"] y.clean", "a"),
            ("[Diff.Ev]\ntextConv = a\\\nb", "diff.ev.textconv", "ab"),
            ("[a \"B.c\"]\nx = \"q # ; \\\" \"z", "a.B.c.x", "q # ; \" z"),
            ("[a]\n; y = [b]\nx=1", "a.x", "1"),
        ] {
            assert_eq!(names(text), [(name.to_owned(), value.to_owned())], "{text}");
        }
        assert_eq!(names("[a][b] x = 1\n[a \"c\"] y\n z = 2").len(), 3);
    }

    #[test]
    fn a_malformed_git_setting_is_ignored() {
        for text in [
            "a = b",
            "[core",
            "[]",
            "[core]\n1a = b",
            "[core]\na b",
            "[core]\na = \"b",
            "[core]\na = \\q",
            "[a \"b\" c]\n",
            "[a \"b\n\"]",
            "[a.b \"c\"]",
            "[a_b]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn included_git_settings_apply() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        write("config", "[include] path = one\n[includeIf \"gitdir:/\"] path = ~/two\n");
        write("one", "[include] path = config\n[a] b = c\n");
        write("two", "[include] path = missing\n[d] e = f\n");
        let (config, home) = (place.path().join("config"), Some(place.path()));
        let any = |_: &Path| true;
        let found = settings_in(&config, home, &any).unwrap();
        let keys: Vec<_> = found.iter().map(|setting| setting.sibling(&setting.key)).collect();
        assert!(keys.contains(&"a.b".to_owned()) && keys.contains(&"d.e".to_owned()), "{keys:?}");
        assert_eq!(settings_in(&config, None, &any), None);
        assert_eq!(settings_in(&config, home, &|path: &Path| !path.ends_with("two")), None);
        assert_eq!(settings_in(&place.path().join("none"), None, &any), Some(Vec::new()));
    }
}
