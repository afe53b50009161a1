//! `list_directory`: lists the entries of a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use qwen_events::{Argument, ArgumentRole, ArgumentValue, ClaudeTool, ToolCall, ToolDeclaration, ToolKind};
use qwen_sandbox::is_placeholder_at;
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{Arguments, CallContext, Outcome, ToolFuture};

const MAX_ENTRIES: usize = 1000;

const DESCRIPTION: &str = "Lists the entries of a directory of the workspace, not recursively: directories first, \
with a slash at the end, then files with their size in bytes. To find files by name in a whole tree use the tool \
glob.";

pub(super) struct ListDirectory;

tool_input! {
    struct Input {
        path: String = Argument::new(ArgumentValue::NonBlankText, "The directory, absolute or relative to the workspace; . is the workspace itself.").role(ArgumentRole::Path),
        ignore: Vec<String> = Argument::new(ArgumentValue::Texts, "Leave out names that match one of these patterns, such as *.log."),
    }
}

impl DeclaredTool for ListDirectory {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("list_directory", ToolKind::Read, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["list_files", "read_folder"])
            .claude(&[ClaudeTool::with_name("LS")]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { path, ignore }, arguments) = Input::parse(call)?;
    let ignored = patterns(&arguments, &ignore)?;
    let workspace = Workspace::for_call(cx)?;
    let opened = workspace.open_directory(&path)?;
    let shown = workspace.display_path(&opened.path);
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
        // Not the project's: the sandbox protects these names while commands may run.
        if is_placeholder_at(&opened.path.join(name)) {
            continue;
        }
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
        lines.push(format!("[… and {} more; use the tool glob to narrow it down …]", count - MAX_ENTRIES));
    }
    lines.push(String::new());
    Ok(Outcome::success(lines.join("\n")))
}

fn patterns(arguments: &Arguments, ignore: &[String]) -> Result<GlobSet, Refusal> {
    let wrong = |error: globset::Error| {
        arguments.refuse("ignore", format_args!("is not a list of patterns: {error}"))
    };
    let mut set = GlobSetBuilder::new();
    for pattern in ignore {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(wrong)?);
    }
    Ok(set.build().map_err(wrong)?)
}
