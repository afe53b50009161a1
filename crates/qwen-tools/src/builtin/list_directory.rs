//! `list_directory`: what is in a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use qwen_events::{ToolCall, ToolSpec};
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use super::spec;
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{Arguments, Outcome, Tool, ToolCx, ToolFuture};

const MAX_ENTRIES: usize = 1000;

const DESCRIPTION: &str = "Lists what is in a directory of the workspace, not in those below it: directories first, \
with a slash at the end, then files with their size in bytes. To find files by name in a whole tree use glob.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"The directory, absolute or relative to the workspace; . is the workspace itself."},
"ignore":{"type":"array","items":{"type":"string"},"description":"Leave out names that match one of these patterns, such as *.log."}},
"required":["path"]}"#;

/// The tool.
pub(super) struct ListDirectory {
    spec: ToolSpec,
}

impl ListDirectory {
    pub(super) fn new() -> Self {
        Self { spec: spec("list_directory", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for ListDirectory {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall, cx: &ToolCx) -> Result<Outcome, Refusal> {
    let arguments = Arguments::of(call)?;
    let path = arguments.sound_text("path")?;
    let ignored = patterns(&arguments)?;
    let workspace = Workspace::of(cx)?;
    let opened = workspace.open_directory(path)?;
    let shown = workspace.shown(&opened.path);
    let failed = |error: rustix::io::Errno| {
        Refusal::new("io_error", format!("{} cannot be listed: {error}.", shown.display()))
    };

    let mut entries: Vec<(bool, String)> = Vec::new();
    for entry in Dir::read_from(&opened.file).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || ignored.is_match(name) {
            continue;
        }
        let text = name.to_string_lossy();
        let Ok(stat) = statat(&opened.file, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        entries.push(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => (false, format!("{text}/")),
            FileType::RegularFile => (true, format!("{text} ({} bytes)", stat.st_size)),
            FileType::Symlink => {
                let to = readlinkat(&opened.file, name, Vec::new()).unwrap_or_default();
                (true, format!("{text} -> {}", to.to_string_lossy()))
            }
            _ => (true, format!("{text} (a device, pipe or socket)")),
        });
    }
    if entries.is_empty() {
        return Ok(Outcome::success(format!("{} is empty.", shown.display())));
    }
    entries.sort();
    let count = entries.len();
    let mut lines = vec![format!("{}:", shown.display())];
    lines.extend(entries.into_iter().take(MAX_ENTRIES).map(|(_, line)| line));
    if count > MAX_ENTRIES {
        lines.push(format!("[… and {} more; use glob to narrow it down …]", count - MAX_ENTRIES));
    }
    lines.push(String::new());
    Ok(Outcome::success(lines.join("\n")))
}

fn patterns(arguments: &Arguments) -> Result<GlobSet, Refusal> {
    let wrong =
        |error: globset::Error| arguments.refuse("ignore", format_args!("is no list of patterns: {error}"));
    let mut set = GlobSetBuilder::new();
    for pattern in arguments.optional_texts("ignore")? {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(wrong)?);
    }
    Ok(set.build().map_err(wrong)?)
}
