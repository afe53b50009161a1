//! Markdown pages and their fenced blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block with the line that it starts at.
pub struct Block {
    pub label: String,
    pub text: String,
    pub line: usize,
    /// The test file named by a `run by` comment above the block.
    pub run_by: Option<String>,
}

/// A page of the documentation.
pub struct Page {
    /// Relative to the repository.
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page that users and contributors read.
pub fn pages() -> Vec<Page> {
    let single = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "crates/qwen-kernel/README.md",
        "examples/README.md",
        "examples/repair/README.md",
        "packaging/harbor/README.md",
        "sdk/go/README.md",
        "sdk/java/README.md",
        "sdk/python/README.md",
        "sdk/typescript/README.md",
        "tasks/README.md",
    ];
    let mut paths: Vec<PathBuf> = single.map(PathBuf::from).into();
    collect(&root(), Path::new("docs"), &mut paths);
    paths.sort();
    paths.into_iter().map(|path| Page::read(&path)).collect()
}

fn collect(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(root, &path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap();
        Self { name: path.display().to_string(), blocks: blocks(&text), text }
    }

    /// The blocks of one label that no other test executes.
    pub fn labelled<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |block| block.run_by.is_none() && block.label == label)
    }

    /// The text outside fenced blocks and inline code.
    pub fn prose(&self) -> String {
        let mut prose = String::new();
        let mut fence: Option<&str> = None;
        for line in self.text.lines() {
            let marker = fence_of(line);
            match (fence, marker) {
                (None, Some(marker)) => fence = Some(marker),
                (Some(open), Some(marker)) if marker.starts_with(open) => fence = None,
                (None, None) => {
                    for (index, piece) in line.split('`').enumerate() {
                        prose.push_str(if index % 2 == 0 { piece } else { "" });
                    }
                    prose.push('\n');
                }
                _ => {}
            }
        }
        prose
    }
}

/// The run of backticks or tildes that a line starts with, if it opens or closes a block.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let length = line.len() - line.trim_start_matches(['`', '~']).len();
    (length >= 3).then(|| &line[..length])
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(String, Block)> = None;
    let mut run_by = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, fence_of(line)) {
            (Some((marker, _)), Some(fence)) if fence.starts_with(marker.as_str()) => {
                found.extend(open.take().map(|(_, block)| block));
            }
            (Some((_, block)), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(fence)) => {
                let label = line.trim_start()[fence.len()..].trim().to_owned();
                let block = Block { label, text: String::new(), line: index + 1, run_by: run_by.take() };
                open = Some((fence.to_owned(), block));
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => {
                let named =
                    line.trim().strip_prefix("<!-- run by: ").and_then(|rest| rest.strip_suffix(" -->"));
                run_by = named.map(str::to_owned);
            }
        }
    }
    found
}
