//! Memory files: instructions for every agent that works in a directory. By default `QWEN.md` and
//! `AGENTS.md`, the user's files first, then from the root of the workspace down to the working directory.

mod import;

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default file names, in lookup order.
pub const NAMES: [&str; 2] = ["QWEN.md", "AGENTS.md"];

/// The file name that is used in a directory without any of [`NAMES`].
pub const FALLBACK: &str = "CLAUDE.md";

/// The maximum total size of all memory files including imports, in bytes.
pub const MAX_TOTAL: usize = 128 * 1024;

/// How many levels up the root of the workspace is searched for.
const MAX_LEVELS: usize = 32;

/// Which memory files are loaded.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLocations<'a> {
    /// The directory of the user's files.
    pub home: Option<&'a Path>,
    /// The working directory of the session.
    pub cwd: &'a Path,
    /// The file names; empty means [`NAMES`].
    pub names: &'a [String],
    /// The file name that is used in a directory without any of `names`.
    pub fallback: Option<&'a str>,
    /// False if only the user's files are loaded.
    pub project: bool,
    /// The maximum size of one file, in bytes.
    pub max_file: usize,
}

impl<'a> MemoryLocations<'a> {
    /// The default files for work in `cwd`.
    pub fn new(home: Option<&'a Path>, cwd: &'a Path) -> Self {
        Self { home, cwd, names: &[], fallback: Some(FALLBACK), project: true, max_file: MAX_TOTAL }
    }
}

/// The loaded memory files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The files, and how many bytes of each are included.
    pub files: Vec<(Arc<str>, usize)>,
    /// The text for the agent.
    pub text: String,
}

impl Memory {
    /// Reads the files, with those of their imports that `may_import` accepts.
    pub fn load(wanted: &MemoryLocations<'_>, may_import: &dyn Fn(&Path) -> bool) -> Self {
        let MemoryLocations { home, cwd, max_file, project, .. } = *wanted;
        let names: Vec<&str> = match wanted.names {
            [] => NAMES.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        let mut memory = Self::default();
        let root = root_of(cwd);
        let mut places: Vec<(PathBuf, PathBuf)> = Vec::new();
        places.extend(home.map(|home| (home.to_owned(), home.to_owned())));
        let mut below: Vec<PathBuf> =
            cwd.ancestors().take_while(|place| place.starts_with(&root)).map(Path::to_owned).collect();
        below.reverse();
        places.extend(below.into_iter().filter(|_| project).map(|place| (place, root.clone())));
        for (place, boundary) in places {
            let before = memory.files.len();
            for name in &names {
                memory.take(&place.join(name), &boundary, max_file, may_import);
            }
            if let Some(name) = wanted.fallback.filter(|_| memory.files.len() == before) {
                memory.take(&place.join(name), &boundary, max_file, may_import);
            }
        }
        memory
    }

    fn take(&mut self, path: &Path, boundary: &Path, max_file: usize, may_import: &dyn Fn(&Path) -> bool) {
        let room = MAX_TOTAL.saturating_sub(self.text.len()).min(max_file);
        let Some(text) = import::read(path, boundary, room, may_import) else { return };
        if text.trim().is_empty() || room == 0 {
            return;
        }
        let shown = path.display().to_string();
        for piece in ["\n--- ", shown.as_str(), " ---\n", text.trim(), "\n"] {
            self.text.push_str(piece);
        }
        self.files.push((shown.into(), text.len()));
    }

    /// The system prompt followed by the memory text.
    pub fn append_to(&self, system: &str) -> String {
        if self.text.is_empty() {
            return system.to_owned();
        }
        format!("{system}\n\n{}", self.text_with_title())
    }

    /// The text under a title; empty if there is none.
    pub fn text_with_title(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        format!("Instructions of the user and the project:\n{}", self.text)
    }
}

/// The nearest ancestor directory that contains a repository; `cwd` itself if there is none.
fn root_of(cwd: &Path) -> PathBuf {
    let root = cwd.ancestors().take(MAX_LEVELS).find(|place| place.join(".git").exists());
    root.unwrap_or(cwd).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn files_are_told_from_the_home_down_to_the_working_directory() {
        let place = tempfile::tempdir().unwrap();
        let (home, root) = (place.path().join("home"), place.path().join("repo"));
        let cwd = root.join("a/b");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        write(&home.join("QWEN.md"), "one");
        write(&root.join("QWEN.md"), "two");
        write(&root.join("AGENTS.md"), "three");
        write(&cwd.join("QWEN.md"), "four");
        write(&place.path().join("QWEN.md"), "above the root");
        let memory = Memory::load(&MemoryLocations::new(Some(&home), &cwd), &|_| true);
        let places: Vec<usize> =
            ["one", "two", "three", "four"].iter().map(|word| memory.text.find(word).unwrap()).collect();
        assert!(places.is_sorted(), "{}", memory.text);
        assert!(!memory.text.contains("above the root"));
        assert_eq!(memory.files.len(), 4);
    }

    #[test]
    fn imports_are_read_within_the_place_and_only_once() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("repo");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        write(&place.path().join("secret"), "secret words");
        write(&root.join("QWEN.md"), "@docs/rules.md\n@../secret\nmail me@x.org\n@nobody\n");
        write(&root.join("docs/rules.md"), "be kind\n@../QWEN.md\n@more.md");
        write(&root.join("docs/more.md"), "and brief");
        std::os::unix::fs::symlink(place.path().join("secret"), root.join("AGENTS.md")).unwrap();
        let memory = Memory::load(&MemoryLocations::new(None, &root), &|_| true);
        for piece in ["be kind", "and brief", "me@x.org", "@nobody", "@../secret"] {
            assert!(memory.text.contains(piece), "{piece}: {}", memory.text);
        }
        assert!(!memory.text.contains("secret words"), "{}", memory.text);
        assert_eq!(memory.text.matches("be kind").count(), 1);
    }

    #[test]
    fn files_mentioned_in_a_line_are_imported_behind_it_except_in_code() {
        let place = tempfile::tempdir().unwrap();
        for name in ["overview", "list", "span", "block"] {
            write(&place.path().join(format!("{name}.md")), &format!("the {name}"));
        }
        let text = "See @overview.md, then\n- git (@list.md).\nnot `@span.md`\n```\n@block.md\n```\nend";
        write(&place.path().join("QWEN.md"), text);
        let memory = Memory::load(&MemoryLocations::new(None, place.path()), &|_| true);
        let expected = "See @overview.md, then\nthe overview\n- git (@list.md).\nthe list\nnot `@span.md`\n\
                        ```\n@block.md\n```\nend";
        assert!(memory.text.contains(expected), "{}", memory.text);
    }

    #[test]
    fn the_whole_is_bounded() {
        let place = tempfile::tempdir().unwrap();
        write(&place.path().join("QWEN.md"), &"x".repeat(MAX_TOTAL * 2));
        write(&place.path().join("AGENTS.md"), "too late");
        let memory = Memory::load(&MemoryLocations::new(None, place.path()), &|_| true);
        assert!(memory.text.len() < MAX_TOTAL + 200 && !memory.text.contains("too late"));
    }

    #[test]
    fn other_names_take_the_place_of_the_usual_ones_and_each_file_is_bounded() {
        let place = tempfile::tempdir().unwrap();
        write(&place.path().join("QWEN.md"), "the usual one");
        write(&place.path().join("HOUSE.md"), &"x".repeat(500));
        write(&place.path().join("RULES.md"), "be kind");
        let names = ["HOUSE.md".to_owned(), "RULES.md".to_owned()];
        let memory = Memory::load(
            &MemoryLocations { names: &names, max_file: 100, ..MemoryLocations::new(None, place.path()) },
            &|_| true,
        );
        assert!(!memory.text.contains("the usual one") && memory.text.contains("be kind"), "{}", memory.text);
        // The directory's name may contain an x.
        let holds = |length| memory.text.contains(&"x".repeat(length));
        assert!(holds(100) && !holds(101), "{}", memory.text);
    }
}
