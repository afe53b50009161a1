//! `@path` alone on a line of a memory file is replaced by the text of that file.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use qwen_tools::workspace::Workspace;

/// The maximum depth of nested imports.
const MAX_DEPTH: usize = 5;

/// The text of a file with its imports resolved, cut to `room` bytes. `None` if there is no such file inside
/// `boundary`.
pub(super) fn read(path: &Path, boundary: &Path, room: usize) -> Option<String> {
    let workspace = Workspace::new(boundary, &[]).ok()?;
    let mut reading = Reading { workspace, seen: HashSet::new(), room };
    let mut text = String::new();
    reading.read(path, 0, &mut text).then_some(text)
}

struct Reading {
    workspace: Workspace,
    seen: HashSet<PathBuf>,
    room: usize,
}

impl Reading {
    /// Appends a file to `out`. Returns false if it cannot be read or was read before.
    fn read(&mut self, path: &Path, depth: usize, out: &mut String) -> bool {
        let Some(opened) = path.to_str().and_then(|path| self.workspace.open_file(path).ok()) else {
            return false;
        };
        if !self.seen.insert(opened.path.clone()) {
            return false;
        }
        let room = self.room.saturating_sub(out.len());
        let mut bytes = Vec::new();
        let limit = u64::try_from(room).unwrap_or(u64::MAX);
        if opened.file.take(limit).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
            return false;
        }
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            let imported = line.trim().strip_prefix('@').filter(|name| !name.is_empty() && depth < MAX_DEPTH);
            let target = imported.map(|name| opened.path.parent().unwrap_or(Path::new("/")).join(name));
            let before = out.len();
            if target.is_some_and(|target| self.read(&target, depth + 1, out)) {
                if out.len() > before && !out.ends_with('\n') {
                    out.push('\n');
                }
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
        }
        true
    }
}
