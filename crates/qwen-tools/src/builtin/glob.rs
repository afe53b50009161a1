//! `glob`: finds files whose path matches a pattern.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::SystemTime;

use qwen_events::{Argument, ArgumentRole, ArgumentValue, ClaudeTool, ToolCall, ToolDeclaration, ToolKind};
use tokio_util::sync::CancellationToken;

use super::cancelled;
use super::walk::{self, Start};
use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{CallContext, Outcome, ToolFuture};

const MAX_FILES: usize = 200;

const DESCRIPTION: &str = "Finds files whose path matches a pattern such as src/**/*.rs or **/*.{ts,tsx}, newest \
first, at most 200. Files that ignore files name (.gitignore, .ignore, .qwenignore) are left out, and so is .git.";

pub(super) struct Glob;

tool_input! {
    struct Input {
        pattern: String = Argument::new(ArgumentValue::NonBlankText, "The pattern; * stays within a name, ** crosses directories."),
        path: Option<String> = Argument::new(ArgumentValue::NonBlankText, "The directory to search. Default: the workspace.").role(ArgumentRole::Path),
    }
}

impl DeclaredTool for Glob {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("glob", ToolKind::Read, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["find_files"])
            .claude(&[ClaudeTool::with_name("Glob")]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { pattern: asked, path }, arguments) = Input::parse(call)?;
    let workspace = Workspace::for_call(cx)?;
    let start = Start::open(&workspace, path.as_deref(), cx)?;
    // A pattern that starts with the directory's own path matches below it.
    let below =
        asked.strip_prefix(&*start.directory.path.to_string_lossy()).map(|rest| rest.trim_start_matches('/'));
    if below.is_none() && ["/", "../", "~/"].iter().any(|start| asked.starts_with(start)) {
        let problem =
            "leads out of the searched directory; give a directory as `path`, and a pattern relative to it";
        return Err(arguments.refuse("pattern", problem).into());
    }
    let pattern = walk::pattern(&arguments, "pattern", below.or(asked.strip_prefix("./")).unwrap_or(&asked))?;

    let found = walk::run_search(cx, move |cancel| Ok(find(&start, &pattern, cancel))).await?;
    if cx.cancel.is_cancelled() {
        return Ok(cancelled());
    }
    let (mut files, root) = found;
    if files.is_empty() {
        return Ok(Outcome::success(format!("No file matches {asked}.")));
    }
    let count = files.len();
    files.sort_unstable();
    let mut text = match count {
        1 => "1 file:\n".to_owned(),
        _ if count > MAX_FILES => format!("{count} files, the newest {MAX_FILES} of them:\n"),
        _ => format!("{count} files, newest first:\n"),
    };
    for (_, file) in files.iter().take(MAX_FILES) {
        text.push_str(&workspace.display_path(&root.join(file)).to_string_lossy());
        text.push('\n');
    }
    Ok(Outcome::success(text))
}

type MatchingFiles = Vec<(Reverse<SystemTime>, PathBuf)>;

fn find(
    start: &Start,
    pattern: &globset::GlobMatcher,
    cancel: &CancellationToken,
) -> (MatchingFiles, PathBuf) {
    let files = start
        .files(cancel)
        .filter(|file| pattern.is_match(file) && start.may_show(file))
        .filter_map(|file| {
            let metadata = Workspace::stat_found(&start.directory, &file)?;
            Some((Reverse(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)), file))
        })
        .collect();
    (files, start.directory.path.clone())
}
