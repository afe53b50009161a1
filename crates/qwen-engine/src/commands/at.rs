//! `@path` in a prompt: the content that it names is appended to the prompt. A reference to nothing stays
//! text.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use qwen_events::image_type;
use qwen_events::{Media, MediaSource, Part};
use qwen_tools::workspace::{Opened, Workspace};

/// The maximum size of one attached file or resource, in bytes.
pub(crate) const MAX_FILE: u64 = 256 * 1024;

/// The maximum size of an image, in bytes.
pub(crate) const MAX_IMAGE: u64 = 8 * 1024 * 1024;

/// How many bytes of a file are read to detect its type.
const SNIFFED: u64 = 64;

/// The maximum total size of all files of a prompt, in bytes.
const MAX_TOTAL: usize = 1024 * 1024;

/// The maximum number of files per prompt.
const MAX_FILES: usize = 50;

/// An MCP resource reference in a prompt: `@server:uri`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    pub server: Arc<str>,
    /// The resource's URI as typed.
    pub uri: Arc<str>,
}

impl ResourceName {
    /// Parses the text after an `@` if it names one of `servers`.
    fn read(reference: &str, servers: &[Arc<str>]) -> Option<Self> {
        let (server, uri) = reference.split_once(':').filter(|(_, uri)| !uri.is_empty())?;
        let server = servers.iter().find(|known| ***known == *server)?;
        Some(Self { server: server.clone(), uri: uri.into() })
    }

    /// The URIs that may be meant: as typed, and without trailing punctuation.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &str> {
        let short = without_punctuation(&self.uri);
        [&*self.uri, short].into_iter().take(if short.len() < self.uri.len() && !short.is_empty() {
            2
        } else {
            1
        })
    }
}

/// The resources of `servers` that a prompt refers to, without duplicates.
pub fn resources(parts: &[Part], servers: &[Arc<str>]) -> Vec<ResourceName> {
    let mut found = Vec::new();
    for name in all_references(parts).iter().filter_map(|path| ResourceName::read(path, servers)) {
        if !found.contains(&name) && found.len() < MAX_FILES {
            found.push(name);
        }
    }
    found
}

fn all_references(parts: &[Part]) -> Vec<String> {
    let of = |part: &Part| match part {
        Part::Text(text) => references(text),
        _ => Vec::new(),
    };
    parts.iter().flat_map(of).collect()
}

/// The attachments for the references of a prompt. References to resources of `servers` are skipped; the
/// caller reads them from the server.
pub fn attachments(
    parts: &[Part],
    cwd: &Path,
    extra_roots: &[PathBuf],
    servers: &[Arc<str>],
    may_read: impl Fn(&Path) -> bool,
) -> Vec<Part> {
    let mut wanted = all_references(parts);
    wanted.retain(|path| ResourceName::read(path, servers).is_none());
    if wanted.is_empty() {
        return Vec::new();
    }
    let Ok(workspace) = Workspace::new(cwd, extra_roots) else { return Vec::new() };
    let roots = [cwd].into_iter().chain(extra_roots.iter().map(PathBuf::as_path));
    let mut taken = Attachment {
        workspace,
        // Opened files are compared by their canonical path.
        roots: roots.filter_map(|root| root.canonicalize().ok()).collect(),
        may_read: &may_read,
        seen: HashSet::new(),
        bytes: 0,
        parts: Vec::new(),
    };
    for path in &wanted {
        taken.take(path);
    }
    taken.parts
}

/// The reference at the start of a prompt and the rest of the text, if there is one.
pub fn leading(text: &str) -> Option<(String, &str)> {
    let rest = text.trim_start().strip_prefix('@')?;
    let (path, length) = reference(rest)?;
    Some((path, rest[length..].trim()))
}

/// Quotes a path as needed after an `@`.
pub fn at_reference(path: &str) -> String {
    let path = path.trim_start_matches('@');
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// The text after each `@` that starts a word.
fn references(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        // An `@` inside a word is part of an e-mail address or a handle.
        let starts_a_word =
            text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | ','));
        if starts_a_word && let Some((path, _)) = reference(&text[at + 1..]) {
            found.push(path);
        }
    }
    found
}

/// The path at the start of a text, quoted or not, and its length in the text.
fn reference(text: &str) -> Option<(String, usize)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"').filter(|end| *end > 0)?;
        return Some((quoted[..end].to_owned(), end + 2));
    }
    let mut path = String::new();
    let mut letters = text.char_indices();
    let mut length = 0;
    while let Some((at, letter)) = letters.next() {
        let taken = match letter {
            '\\' => letters.next().map(|(_, escaped)| escaped),
            _ if letter.is_whitespace() => break,
            _ => Some(letter),
        };
        path.extend(taken);
        length = at + letter.len_utf8() + if letter == '\\' { taken.map_or(0, char::len_utf8) } else { 0 };
    }
    (!path.is_empty()).then_some((path, length))
}

/// A name without trailing punctuation or closing brackets.
fn without_punctuation(name: &str) -> &str {
    name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']'])
}

struct Attachment<'a> {
    workspace: Workspace,
    roots: Vec<PathBuf>,
    may_read: &'a dyn Fn(&Path) -> bool,
    seen: HashSet<PathBuf>,
    bytes: usize,
    parts: Vec<Part>,
}

impl Attachment<'_> {
    fn take(&mut self, path: &str) {
        if path.contains(['*', '?', '{']) && self.workspace.open_file(path).is_err() {
            self.attach_matches(path);
            return;
        }
        // Punctuation after a path usually belongs to the sentence and not to the name.
        let spellings = [path, without_punctuation(path)];
        for spelling in spellings {
            if let Ok(opened) = self.workspace.open_file(spelling) {
                if !self.is_ignored(&opened.path, "file") {
                    self.attach_file(opened);
                }
                return;
            }
            if let Ok(opened) = self.workspace.open_directory(spelling) {
                if !self.is_ignored(&opened.path, "directory") {
                    self.attach_directory(&opened);
                }
                return;
            }
        }
    }

    /// True if ignore files exclude it. The model is informed that it exists, and can read it if necessary.
    fn is_ignored(&mut self, path: &Path, what: &str) -> bool {
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let Some(root) = root.filter(|root| *root != path) else { return false };
        let target = path.to_owned();
        let way = qwen_tools::tree_walk_along(root, move |entry| target.starts_with(entry.path()));
        let ignored = !way.build().filter_map(Result::ok).any(|entry| entry.path() == path);
        if ignored && (self.may_read)(path) {
            let shown = self.workspace.display_path(path).display().to_string();
            let text = format!("The {what} {shown} is left out, because ignore files name it.");
            self.parts.push(Part::Text(text.into()));
        }
        ignored
    }

    fn attach_file(&mut self, opened: Opened) {
        if !(self.may_read)(&opened.path)
            || self.seen.len() >= MAX_FILES
            || !self.seen.insert(opened.path.clone())
        {
            return;
        }
        let shown = self.workspace.display_path(&opened.path).display().to_string();
        let size = opened.metadata.len();
        let mut file = opened.file;
        let mut start = Vec::new();
        if (&mut file).take(SNIFFED).read_to_end(&mut start).is_err() {
            return;
        }
        if let Some(mime_type) = image_type(&start) {
            let mut bytes = start;
            if size <= MAX_IMAGE && file.take(MAX_IMAGE).read_to_end(&mut bytes).is_ok() {
                let data = base64::engine::general_purpose::STANDARD.encode(bytes);
                self.parts.push(Part::Text(format!("The image {shown}:").into()));
                self.parts.push(Part::Media(Media {
                    mime_type: mime_type.into(),
                    source: MediaSource::Base64(data.into()),
                }));
            } else {
                self.parts
                    .push(Part::Text(format!("The image {shown} is too large to be shown here.").into()));
            }
            return;
        }
        let room = MAX_FILE.min(u64::try_from(MAX_TOTAL.saturating_sub(self.bytes)).unwrap_or(0));
        let mut bytes = Vec::new();
        if start.as_slice().chain(file).take(room).read_to_end(&mut bytes).is_err() {
            return;
        }
        if bytes.contains(&0) {
            self.parts.push(Part::Text(format!("The file {shown} is not text ({size} bytes).").into()));
            return;
        }
        self.bytes += bytes.len();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\u{fffd}');
        let cut = if u64::try_from(bytes.len()).unwrap_or(u64::MAX) < size {
            format!("\n(cut after {} of {size} bytes; read the file for the rest)", bytes.len())
        } else {
            String::new()
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.parts
            .push(Part::Text(format!("\n--- {shown} ---\n{text}{end}--- end of {shown} ---{cut}\n").into()));
    }

    fn attach_directory(&mut self, opened: &Opened) {
        if !(self.may_read)(&opened.path) || !self.seen.insert(opened.path.clone()) {
            return;
        }
        let shown = self.workspace.display_path(&opened.path).display().to_string();
        let mut names: Vec<String> = qwen_tools::tree_walk(&opened.path)
            .max_depth(Some(1))
            .build()
            .take(1000)
            .filter_map(Result::ok)
            .filter(|entry| entry.depth() > 0)
            .map(|entry| {
                let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                format!("{}{}", entry.file_name().to_string_lossy(), if directory { "/" } else { "" })
            })
            .collect();
        names.sort();
        let list = names.join("\n");
        self.bytes += list.len();
        self.parts.push(Part::Text(
            format!("\n--- the directory {shown} ---\n{list}\n--- end of {shown} ---\n").into(),
        ));
    }

    fn attach_matches(&mut self, pattern: &str) {
        let Ok(glob) = globset::GlobBuilder::new(pattern).literal_separator(true).build() else { return };
        let glob = glob.compile_matcher();
        let Ok(root) = self.workspace.open_directory(".") else { return };
        let mut found: Vec<PathBuf> = qwen_tools::tree_walk(&root.path)
            .build()
            .take(20_000)
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.path().strip_prefix(&root.path).map(Path::to_owned).ok())
            .filter(|below| glob.is_match(below))
            .collect();
        found.sort();
        for below in found {
            if let Some(opened) = below.to_str().and_then(|below| self.workspace.open_file(below).ok()) {
                self.attach_file(opened);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_start_a_word() {
        let cases: &[(&str, &[&str])] = &[
            ("explain @src/main.rs please", &["src/main.rs"]),
            ("@a and (@b)", &["a", "b)"]),
            ("mail me@example.org", &[]),
            ("@\"my file.txt\" and @my\\ file.txt", &["my file.txt", "my file.txt"]),
            ("@ alone, and @\"\"", &[]),
            ("@@x", &["@x"]),
        ];
        for (text, expected) in cases {
            assert_eq!(references(text), *expected, "{text}");
        }
    }

    fn expanded(prompt: &str, place: &Path) -> String {
        let parts = attachments(&[Part::Text(prompt.into())], place, &[], &[], |_| true);
        let text = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Media(media) => format!("<{}>", media.mime_type),
            _ => String::new(),
        };
        parts.iter().map(text).collect()
    }

    #[test]
    fn existing_files_are_attached_behind_the_prompt_and_missing_ones_stay_text() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret words").unwrap();
        std::fs::create_dir(place.path().join("src")).unwrap();
        for (name, text) in [
            ("a.txt", "alpha"),
            ("b c.txt", "beta"),
            ("src/x.rs", "xx"),
            ("src/y.rs", "yy"),
            ("no-image.png", "just words"),
            (".gitignore", "z.log\nout/"),
            (".qwenignore", "mine.txt"),
            ("z.log", "zz"),
            ("mine.txt", "mm"),
        ] {
            std::fs::write(place.path().join(name), text).unwrap();
        }
        std::fs::write(place.path().join("p.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        std::fs::create_dir(place.path().join("out")).unwrap();
        std::fs::write(place.path().join("out/made"), "oo").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), place.path().join("link")).unwrap();
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("read @a.txt", &["--- a.txt ---\nalpha\n"], &[]),
            ("read @a.txt, now", &["alpha"], &[]),
            ("@\"b c.txt\"", &["beta"], &[]),
            ("@src", &["x.rs\ny.rs"], &["xx"]),
            ("@src/*.rs", &["xx", "yy"], &[]),
            ("@*.log", &[], &["zz"]),
            ("@z.log", &["The file z.log is left out"], &["zz"]),
            ("@mine.txt", &["The file mine.txt is left out"], &["mm"]),
            ("@out", &["The directory out is left out"], &["made"]),
            ("@out/made", &["is left out"], &["oo"]),
            ("@.", &["src/"], &["z.log", "out/"]),
            ("@**/*.txt", &["alpha", "beta"], &["mm"]),
            ("@p.png", &["<image/png>"], &[]),
            ("@no-image.png", &["just words"], &["<image"]),
            ("@nothing.txt", &[], &["---"]),
            ("@link", &[], &["secret words"]),
            ("@../etc", &[], &["---"]),
            ("me@a.txt", &[], &["alpha"]),
        ];
        for (prompt, with, without) in cases {
            let text = expanded(prompt, place.path());
            assert!(with.iter().all(|piece| text.contains(piece)), "{prompt}: {text}");
            assert!(without.iter().all(|piece| !text.contains(piece)), "{prompt}: {text}");
        }
    }

    #[test]
    fn a_resource_is_named_by_its_server_and_address() {
        let servers: [Arc<str>; 2] = ["docs".into(), "db.1".into()];
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("@docs:file:///a.md please", &[("docs", "file:///a.md")]),
            ("(@docs:x://y) and @\"db.1:a b\"", &[("docs", "x://y)"), ("db.1", "a b")]),
            ("@docs:a @docs:a", &[("docs", "a")]),
            ("@other:a @docs: me@docs:a @docs", &[]),
        ];
        for (text, expected) in cases {
            let found = resources(&[Part::Text((*text).into())], &servers);
            let found: Vec<_> = found.iter().map(|name| (&*name.server, &*name.uri)).collect();
            assert_eq!(found, *expected, "{text}");
        }
        let name = ResourceName { server: "docs".into(), uri: "x://y).".into() };
        assert_eq!(name.spellings().collect::<Vec<_>>(), ["x://y).", "x://y"]);
    }

    #[test]
    fn a_long_file_is_cut_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("long"), "x".repeat(300 * 1024)).unwrap();
        let text = expanded("@long", place.path());
        assert!(text.contains("(cut after 262144 of 307200 bytes"), "{}", &text[text.len() - 100..]);
    }

    #[test]
    fn a_file_that_may_not_be_read_is_not_attached() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(".env"), "KEY").unwrap();
        let parts = attachments(&[Part::Text("@.env".into())], place.path(), &[], &[], |_| false);
        assert!(parts.is_empty());
    }
}
