//! `grep_search`: finds lines that match a regular expression.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use globset::GlobMatcher;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use qwen_events::{Argument, ArgumentRole, ArgumentValue, ClaudeTool, ToolCall, ToolDeclaration, ToolKind};
use tokio_util::sync::CancellationToken;

use super::cancelled;
use super::walk::{self, Start};
use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{MayRead, Outcome, ToolCx, ToolFuture};

const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 10_000;
/// How many characters of a long line are shown.
const LINE_CHARS: usize = 500;
/// Characters added to a line: its number, and a mark if it was cut.
const LINE_EXTRA: usize = 32;

const DESCRIPTION: &str = "Finds lines that match a regular expression (Rust syntax, like ripgrep) in the files of the \
workspace, and gives them by file with their line numbers. A pattern without capital letters matches both cases. \
Binary files, .git and files that ignore files name (.gitignore, .ignore, .qwenignore) are left out.";

pub(super) struct GrepSearch;

tool_input! {
    struct Input {
        pattern: String = Argument::new(ArgumentValue::Text, "The regular expression."),
        glob: Option<String> = Argument::new(ArgumentValue::NonBlankText, "Only look in files that match this pattern, such as *.rs or src/**/*.{ts,tsx}."),
        path: Option<String> = Argument::new(ArgumentValue::NonBlankText, "The directory or file to look in. Default: the workspace.").role(ArgumentRole::Path),
        limit: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: MAX_LIMIT }, "How many matching lines to give at most. Default 200."),
    }
}

impl DeclaredTool for GrepSearch {
    const DECLARATION: &'static ToolDeclaration = &ToolDeclaration {
        name: "grep_search",
        aliases: &["ripgrep", "search_file_content", "search_text"],
        kind: ToolKind::Read,
        description: DESCRIPTION,
        arguments: Input::ARGUMENTS,
        claude: &[ClaudeTool { renamed: &[("limit", "head_limit")], ..ClaudeTool::named("Grep") }],
    };

    fn run<'a>(call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &ToolCx) -> Result<Outcome, Refusal> {
    let (Input { pattern, glob, path, limit }, arguments) = Input::parse(call)?;
    if pattern.is_empty() {
        return Err(arguments.refuse("pattern", "is empty").into());
    }
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let matcher =
        RegexMatcherBuilder::new().case_smart(true).crlf(true).build(&pattern).map_err(|error| {
            arguments.refuse("pattern", format_args!("is no regular expression: {error}"))
        })?;
    let glob = match glob.as_deref() {
        // A glob without a slash matches file names in any directory.
        Some(glob) if !glob.contains('/') => Some(walk::pattern(&arguments, "glob", &format!("**/{glob}"))?),
        Some(glob) => Some(walk::pattern(&arguments, "glob", glob.strip_prefix("./").unwrap_or(glob))?),
        None => None,
    };
    let workspace = Workspace::of(cx)?;
    let start = Start::open(&workspace, path.as_deref())?;
    let search = Search {
        matcher,
        glob,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        max_chars: cx.bench.output_limit,
        may_read: cx.bench.may_read.clone(),
        workspace,
        start,
    };
    let found = walk::beside(cx, move |cancel| Ok(search.run(cancel))).await?;
    if cx.cancel.is_cancelled() {
        return Ok(cancelled());
    }
    Ok(Outcome::success(found.text(&pattern)))
}

struct Search {
    matcher: RegexMatcher,
    glob: Option<GlobMatcher>,
    limit: usize,
    max_chars: usize,
    may_read: Option<MayRead>,
    workspace: Workspace,
    start: Start,
}

impl Search {
    /// Searches several files at a time and returns the matches ordered by file name.
    fn run(&self, cancel: &CancellationToken) -> Found {
        let findings = Mutex::new(Findings::default());
        self.start.each_file(cancel, || {
            let mut searcher = SearcherBuilder::new()
                .line_number(true)
                .line_terminator(LineTerminator::crlf())
                .binary_detection(BinaryDetection::quit(b'\0'))
                .build();
            // Clone the matcher per thread: sharing one causes contention on its scratch space.
            let matcher = self.matcher.clone();
            let findings = &findings;
            move |file: &Path| {
                let unwanted = self.glob.as_ref().is_some_and(|glob| !glob.is_match(file));
                if unwanted || lock(findings).is_beyond(file) {
                    return;
                }
                let Some((handle, _)) = Workspace::open_found(&self.start.directory, file) else { return };
                let path = self.start.directory.path.join(file);
                let mut lines = Lines { search: self, told: Told::default(), path: &path, cancel };
                // If reading fails midway, the lines found so far count.
                let _ = searcher.search_file(&matcher, &handle, &mut lines);
                if !lines.told.lines.is_empty() {
                    lock(findings).add(file.to_owned(), lines.told, self);
                }
            }
        });
        findings.into_inner().unwrap_or_else(PoisonError::into_inner).found(self)
    }

    /// True if this exceeds what the output can hold. Output is cut at line ends, so the limit has a small
    /// margin.
    fn is_enough(&self, lines: usize, chars: usize) -> bool {
        lines > self.limit || chars > self.max_chars + LINE_CHARS + LINE_EXTRA
    }
}

fn lock(findings: &Mutex<Findings>) -> MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The matching lines of one file, formatted for the output.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    chars: usize,
}

/// Matches so far, at most what the output can hold. Ordered by file name, so that equal searches give equal
/// results.
#[derive(Default)]
struct Findings {
    files: BTreeMap<PathBuf, Told>,
    lines: usize,
    chars: usize,
    /// The output is full from this file on.
    end: Option<PathBuf>,
}

impl Findings {
    fn is_beyond(&self, file: &Path) -> bool {
        self.end.as_deref().is_some_and(|end| file >= end)
    }

    fn add(&mut self, file: PathBuf, told: Told, search: &Search) {
        if self.is_beyond(&file) {
            return;
        }
        self.lines += told.lines.len();
        self.chars += told.chars;
        self.files.insert(file, told);
        while let Some(last) = self.files.last_entry() {
            let (lines, chars) = (self.lines - last.get().lines.len(), self.chars - last.get().chars);
            if !search.is_enough(lines, chars) {
                return;
            }
            (self.lines, self.chars) = (lines, chars);
            self.end = Some(last.remove_entry().0);
        }
    }

    /// Returns the matches that fit into the output.
    fn found(self, search: &Search) -> Found {
        let mut found = Found::default();
        for (file, told) in self.files {
            for (n, line) in told.lines.iter().enumerate() {
                if found.lines >= search.limit || found.chars >= search.max_chars {
                    found.full = true;
                    return found;
                }
                if n == 0 {
                    found.files += 1;
                    let path = search.start.directory.path.join(&file);
                    found.add(&search.workspace.shown(&path).to_string_lossy());
                }
                found.lines += 1;
                found.add(line);
            }
        }
        found
    }
}

/// Collects the matching lines of one file.
struct Lines<'a> {
    search: &'a Search,
    told: Told,
    path: &'a Path,
    cancel: &'a CancellationToken,
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        if self.told.lines.is_empty()
            && self.search.may_read.as_ref().is_some_and(|may_read| !may_read(self.path))
        {
            return Ok(false);
        }
        let line = String::from_utf8_lossy(matched.bytes());
        let line = line.trim_end_matches(['\r', '\n']);
        let number = matched.line_number().unwrap_or(0);
        let line = match line.char_indices().nth(LINE_CHARS) {
            Some((at, _)) => format!("{number}: {}…", &line[..at]),
            None => format!("{number}: {line}"),
        };
        self.told.chars += line.chars().count() + 1;
        self.told.lines.push(line);
        let enough = self.search.is_enough(self.told.lines.len(), self.told.chars);
        Ok(!enough && !self.cancel.is_cancelled())
    }
}

/// The search result, formatted for the output.
#[derive(Default)]
struct Found {
    body: String,
    chars: usize,
    lines: usize,
    files: usize,
    full: bool,
}

impl Found {
    fn add(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
        self.chars += line.chars().count() + 1;
    }

    fn text(&self, asked: &str) -> String {
        let (lines, files) = (self.lines, self.files);
        match (lines, self.full) {
            (0, _) => format!("No line matches {asked}."),
            (1, false) => format!("1 match:\n{}", self.body),
            (_, false) => {
                format!(
                    "{lines} matches in {files} file{}:\n{}",
                    if files == 1 { "" } else { "s" },
                    self.body
                )
            }
            (_, true) => format!(
                "The first {lines} matches (there are more; narrow the pattern, path or glob, or raise limit):\n{}",
                self.body
            ),
        }
    }
}
