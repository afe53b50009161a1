//! The content that trust is bound to: everything in a folder that can make us run or allow something.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qwen_events::is_hidden;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scripts::{NameBase, find_named_files};
use crate::settings::Invocation;
use crate::settings::file::{self, Layer};

/// The settings files of a project.
const SETTINGS: &[&str] =
    &[".mcp.json", ".qwen/settings.json", ".claude/settings.json", ".claude/settings.local.json"];

/// Files and directories whose whole content counts.
const TREES: &[&str] = &[
    ".env",
    ".qwen/.env",
    ".qwen/agents",
    ".qwen/commands",
    ".qwen/extensions",
    ".qwen/hooks",
    ".qwen/output-styles",
    ".qwen/plugins",
    ".qwen/skills",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/output-styles",
    ".claude/plugins",
    ".claude/skills",
];

/// The most files of a folder, the deepest directory, and the most bytes of a file that are read.
const MAX_FILES: usize = 5_000;
const MAX_DEPTH: usize = 16;
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The most characters of a line for users.
const MAX_LINE: usize = 300;

/// One setting or file, as a line for users, and the SHA-256 of its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ContentItem(String, String);

/// The settings and files of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FolderContent {
    items: BTreeSet<ContentItem>,
}

/// The content of a folder and of the folders in it, by their path in the folder; empty for the folder itself.
pub type TreeContent = BTreeMap<String, FolderContent>;

/// The most directories that are searched for folders with content.
const MAX_DIRECTORIES: usize = 100_000;

/// Reads the content of `folder`, a real path, and of all folders in it. Folders beyond the limit have to be
/// trusted themselves.
pub fn collect_tree(folder: &Path, own: &UserDirectories) -> TreeContent {
    let mut tree = TreeContent::new();
    let mut open = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(directory) = open.pop() {
        count += 1;
        if count > MAX_DIRECTORIES {
            break;
        }
        let content = FolderContent::collect(&directory, own);
        if !content.is_empty() {
            tree.insert(relative_name(folder, &directory), content);
        }
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if ![".git", ".qwen", ".claude"].iter().any(|name| entry.file_name() == *name) {
                open.push(entry.path());
            }
        }
    }
    tree
}

/// The path of `directory` in `folder`, as the key of a [`TreeContent`].
pub fn relative_name(folder: &Path, directory: &Path) -> String {
    directory.strip_prefix(folder).unwrap_or(directory).to_string_lossy().into_owned()
}

/// Directories in a folder that belong to the user, not to the project.
#[derive(Debug, Clone)]
pub struct UserDirectories(Vec<PathBuf>);

impl UserDirectories {
    /// Returns the directories of our and of Claude's settings.
    pub fn resolve(invocation: &Invocation) -> Self {
        let home = invocation.var("HOME").map(|home| Path::new(home).join(".claude"));
        let claude = invocation.var("CLAUDE_CONFIG_DIR").map(PathBuf::from).or(home);
        Self(invocation.qwen_home().into_iter().chain(claude).map(|path| invocation.cwd.join(path)).collect())
    }

    fn contain(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let mut own = self.0.iter().filter_map(|own| own.canonicalize().ok());
        own.any(|own| path.starts_with(own))
    }
}

impl FolderContent {
    /// Reads the content of `folder`, which is a real path.
    pub fn collect(folder: &Path, own: &UserDirectories) -> Self {
        let mut collector = Collector { folder, seen: HashSet::new(), content: Self::default() };
        let mut scripts = BTreeSet::new();
        for name in SETTINGS {
            let path = folder.join(name);
            if path.is_file() && !own.contain(&path) {
                collector.add_settings(name, &path, &mut scripts);
            }
        }
        for name in TREES {
            let path = folder.join(name);
            if !own.contain(&path) {
                collector.add_tree(&path, MAX_DEPTH);
            }
        }
        for script in scripts {
            collector.add_tree(&script, 0);
        }
        collector.content
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The content as lines for users: allow rules, hooks and servers first.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<&str> = self.items.iter().map(|item| item.0.as_str()).collect();
        lines.sort_by_key(|line| rank(line));
        lines.into_iter().map(str::to_owned).collect()
    }

    /// The difference to an earlier content, as lines that start with `+`, `-` or `~` (changed).
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let labels = |here: &Self, there: &Self| -> BTreeSet<String> {
            here.items.difference(&there.items).map(|item| item.0.clone()).collect()
        };
        let (added, removed) = (labels(self, before), labels(before, self));
        let mut lines: Vec<(u8, String)> = Vec::new();
        for label in &added {
            let sign = if removed.contains(label) { '~' } else { '+' };
            lines.push((rank(label), format!("{sign} {label}")));
        }
        for label in removed.difference(&added) {
            lines.push((rank(label), format!("- {label}")));
        }
        lines.sort();
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// The position of a line in a list: what runs or allows something comes first.
fn rank(line: &str) -> u8 {
    let kinds = [": permissions.allow: ", ": hooks.", ": mcpServers."];
    let found = kinds.iter().position(|kind| line.contains(kind)).unwrap_or(kinds.len());
    u8::try_from(found).unwrap_or(u8::MAX)
}

struct Collector<'a> {
    folder: &'a Path,
    /// Device and number of the directories that were entered, since links are followed.
    seen: HashSet<(u64, u64)>,
    content: FolderContent,
}

impl Collector<'_> {
    fn add(&mut self, label: &str, content: &[u8]) {
        let digest = ring::digest::digest(&SHA256, content);
        self.content.items.insert(ContentItem(show(label), hexadecimal(digest.as_ref())));
    }

    /// Adds a settings file, one line per setting, and collects the scripts that it names.
    fn add_settings(&mut self, name: &str, path: &Path, scripts: &mut BTreeSet<PathBuf>) {
        let document = file::load(path, Layer::Workspace);
        let Ok(Some(document)) = document else {
            // An unusable file has no effect, but it may become usable.
            return self.add_tree(path, 0);
        };
        let settings = document.root.to_json();
        self.flatten(name, "", &settings);
        for key in ["hooks", "mcpServers", "env"] {
            self.find_scripts(&settings[key], scripts);
        }
    }

    /// Adds the lines `FILE: key.key: value`. An element of a list and a server are one line each, so that
    /// their parts cannot be exchanged unnoticed.
    fn flatten(&mut self, name: &str, path: &str, value: &Value) {
        let is_server = path.strip_prefix("mcpServers.").is_some();
        match value {
            Value::Object(fields) if !is_server => {
                for (key, value) in fields {
                    let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    self.flatten(name, &below, value);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.add_line(name, path, item);
                }
            }
            Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
                self.add_line(name, path, value);
            }
        }
    }

    fn add_line(&mut self, name: &str, path: &str, value: &Value) {
        let mut masked = value.clone();
        mask(path.rsplit('.').next().unwrap_or_default(), &mut masked);
        let text = masked.as_str().map_or_else(|| masked.to_string(), str::to_owned);
        self.add(&format!("{name}: {path}: {text}"), format!("{path}\0{value}").as_bytes());
    }

    fn find_scripts(&self, value: &Value, scripts: &mut BTreeSet<PathBuf>) {
        match value {
            Value::String(text) => {
                let named = find_named_files(text, NameBase { cwd: self.folder, home: None });
                let root = find_repository(self.folder);
                let is_own = |file: &PathBuf| file.canonicalize().is_ok_and(|file| file.starts_with(&root));
                let written_here = |file: &PathBuf| file.starts_with(&root);
                scripts.extend(named.into_iter().filter(|file| is_own(file) || written_here(file)));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_scripts(item, scripts)),
            Value::Object(fields) => fields.values().for_each(|item| self.find_scripts(item, scripts)),
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    /// Adds a file, or the files in a directory. Links are followed, because their readers follow them.
    fn add_tree(&mut self, path: &Path, depth: usize) {
        let Ok(about) = path.metadata() else { return };
        let label = path.strip_prefix(self.folder).unwrap_or(path).display().to_string();
        if self.content.items.len() >= MAX_FILES {
            // The content cannot be compared: it differs from every recorded one.
            return self.add("(more files than can be compared)", &fastrand::u128(..).to_le_bytes());
        }
        if !about.is_dir() {
            let digest = digest_file(path).unwrap_or_else(|error| format!("unreadable: {}", error.kind()));
            self.content.items.insert(ContentItem(show(&label), digest));
            return;
        }
        if depth == 0 || !self.seen.insert((about.dev(), about.ino())) {
            return;
        }
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries {
            self.add_tree(&entry, depth - 1);
        }
    }
}

/// The repository that a folder is in, or the folder itself.
fn find_repository(folder: &Path) -> PathBuf {
    let is_repository = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    folder.ancestors().find(is_repository).unwrap_or(folder).to_owned()
}

/// Computes the SHA-256 of a regular file without waiting for pipes.
fn digest_file(path: &Path) -> std::io::Result<String> {
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(at_once).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    }
    let mut context = Context::new(&SHA256);
    let mut file = file.take(MAX_BYTES);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(context.finish().as_ref())),
            length => context.update(&buffer[..length]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces values whose names look like those of secrets.
fn mask(key: &str, value: &mut Value) {
    let key = key.to_ascii_uppercase();
    let is_secret = ["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTHORIZATION", "COOKIE"]
        .iter()
        .any(|part| key.replace('-', "_").contains(part));
    match value {
        Value::String(text) if is_secret && !text.is_empty() => "***".clone_into(text),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| mask(key, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask("", item)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// A line for users: cut in the middle if it is long, with characters visible that could mislead.
fn show(line: &str) -> String {
    let count = line.chars().count();
    let escape =
        |c: char| if c.is_control() || is_hidden(c) { c.escape_unicode().to_string() } else { c.into() };
    if count <= MAX_LINE {
        return line.chars().map(escape).collect();
    }
    let start: String = line.chars().take(MAX_LINE * 2 / 3).map(escape).collect();
    let end: String = line.chars().skip(count - MAX_LINE / 3).map(escape).collect();
    format!("{start} […{} characters…] {end}", count - MAX_LINE)
}
