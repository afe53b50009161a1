//! Imports of memory files: `@path` alone on a line is replaced by the text of that file; the text of a file
//! that is mentioned within a line follows the line. Code spans and code blocks import nothing.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use qwen_tools::workspace::Workspace;

/// The maximum depth of nested imports.
const MAX_DEPTH: usize = 5;

/// The text of a file with its imports resolved, cut to `room` bytes. `None` if there is no such file inside
/// `boundary`. Files that `may_import` refuses stay a mention.
pub(super) fn read(
    path: &Path,
    boundary: &Path,
    room: usize,
    may_import: &dyn Fn(&Path) -> bool,
) -> Option<String> {
    let workspace = Workspace::new(boundary, &[]).ok()?;
    let mut reading = Reading { workspace, seen: HashSet::new(), room, may_import };
    let mut text = String::new();
    reading.read(path, 0, &mut text).then_some(text)
}

struct Reading<'a> {
    workspace: Workspace,
    seen: HashSet<PathBuf>,
    room: usize,
    may_import: &'a dyn Fn(&Path) -> bool,
}

impl Reading<'_> {
    /// Appends a file to `out`. Returns false if it cannot be read or was read before.
    fn read(&mut self, path: &Path, depth: usize, out: &mut String) -> bool {
        let Some(opened) = path.to_str().and_then(|path| self.workspace.open_file(path).ok()) else {
            return false;
        };
        let is_refused = depth > 0 && !(self.may_import)(&opened.path);
        if is_refused || !self.seen.insert(opened.path.clone()) {
            return false;
        }
        let room = self.room.saturating_sub(out.len());
        let mut bytes = Vec::new();
        let limit = u64::try_from(room).unwrap_or(u64::MAX);
        if opened.file.take(limit).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
            return false;
        }
        let text = String::from_utf8_lossy(&bytes);
        let folder = opened.path.parent().unwrap_or(Path::new("/"));
        let mut in_code_block = false;
        for line in text.lines() {
            let is_fence = ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
            in_code_block ^= is_fence;
            let imports = !in_code_block && !is_fence && depth < MAX_DEPTH;
            let alone = line.trim().strip_prefix('@').filter(|name| imports && !name.is_empty());
            if alone.is_some_and(|name| self.import(&folder.join(name), depth, out)) {
                continue;
            }
            if out.len() + line.len() > self.room {
                let mut end = self.room.saturating_sub(out.len());
                while !line.is_char_boundary(end) {
                    end -= 1;
                }
                out.push_str(&line[..end]);
                return true;
            }
            out.push_str(line);
            out.push('\n');
            for name in mentioned(line).filter(|_| imports) {
                self.import(&folder.join(name), depth, out);
            }
        }
        true
    }

    /// Appends an imported file as whole lines. Returns false if it cannot be read or was read before.
    fn import(&mut self, path: &Path, depth: usize, out: &mut String) -> bool {
        let before = out.len();
        let is_read = self.read(path, depth + 1, out);
        if out.len() > before && !out.ends_with('\n') {
            out.push('\n');
        }
        is_read
    }
}

/// The paths in a line: words that begin with `@`, outside of code spans, without surrounding punctuation.
fn mentioned(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split('`').step_by(2).flat_map(str::split_whitespace);
    words
        .filter_map(|word| word.trim_start_matches(['(', '[', '"', '\'']).strip_prefix('@'))
        .map(|name| name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']))
        .filter(|name| !name.is_empty())
}
