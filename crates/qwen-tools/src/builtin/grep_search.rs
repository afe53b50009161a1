//! `grep_search`: lines that match a regular expression.

use std::io;
use std::path::Path;

use globset::GlobMatcher;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use qwen_events::{ToolCall, ToolSpec};
use tokio_util::sync::CancellationToken;

use super::walk::{self, Start};
use super::{cancelled, spec};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{Arguments, MayRead, Outcome, Tool, ToolCx, ToolFuture};

const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 10_000;
/// How much of a long line is shown.
const LINE_CHARS: usize = 500;

const DESCRIPTION: &str = "Finds lines that match a regular expression (Rust syntax, like ripgrep) in the files of the \
workspace, and gives them by file with their line numbers. A pattern without capital letters matches both cases. \
Binary files, .git and files that ignore files name (.gitignore, .ignore, .qwenignore) are left out.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"pattern":{"type":"string","description":"The regular expression."},
"glob":{"type":"string","description":"Only look in files that match this pattern, such as *.rs or src/**/*.{ts,tsx}."},
"path":{"type":"string","description":"The directory or file to look in. Default: the workspace."},
"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"How many matching lines to give at most. Default 200."}},
"required":["pattern"]}"#;

/// The tool.
pub(super) struct GrepSearch {
    spec: ToolSpec,
}

impl GrepSearch {
    pub(super) fn new() -> Self {
        Self { spec: spec("grep_search", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for GrepSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &ToolCx) -> Result<Outcome, Refusal> {
    let arguments = Arguments::of(call)?;
    let pattern = arguments.text("pattern")?;
    if pattern.is_empty() {
        return Err(arguments.refuse("pattern", "is empty").into());
    }
    let path = arguments.optional_sound_text("path")?;
    let limit = arguments.optional_number("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
    let matcher =
        RegexMatcherBuilder::new().case_smart(true).crlf(true).build(pattern).map_err(|error| {
            arguments.refuse("pattern", format_args!("is no regular expression: {error}"))
        })?;
    let glob = match arguments.optional_sound_text("glob")? {
        // Without a slash it is about names, wherever they are.
        Some(glob) if !glob.contains('/') => Some(walk::pattern(&arguments, "glob", &format!("**/{glob}"))?),
        Some(glob) => Some(walk::pattern(&arguments, "glob", glob.strip_prefix("./").unwrap_or(glob))?),
        None => None,
    };
    let workspace = Workspace::of(cx)?;
    let start = Start::open(&workspace, path)?;
    let search = Search {
        matcher,
        glob,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        max_chars: cx.bench.output_limit,
        may_read: cx.bench.may_read.clone(),
        workspace,
        start,
    };
    let asked = pattern.to_owned();
    let found = walk::beside(cx, move |cancel| Ok(search.run(cancel))).await?;
    if cx.cancel.is_cancelled() {
        return Ok(cancelled());
    }
    Ok(Outcome::success(found.text(&asked)))
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

/// What was found, as it will be told.
#[derive(Default)]
struct Found {
    body: String,
    chars: usize,
    lines: usize,
    files: usize,
    full: bool,
}

impl Search {
    fn run(&self, cancel: &CancellationToken) -> Found {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(b'\0'))
            .build();
        let mut found = Found::default();
        for file in self.start.files(cancel) {
            if self.glob.as_ref().is_some_and(|glob| !glob.is_match(&file)) {
                continue;
            }
            let Some((handle, _)) = Workspace::open_found(&self.start.directory, &file) else { continue };
            let path = self.start.directory.path.join(&file);
            let lines = Lines { search: self, found: &mut found, path: &path, named: false, cancel };
            // A file that cannot be read to its end gave what it could.
            let _ = searcher.search_file(&self.matcher, &handle, lines);
            if found.full {
                break;
            }
        }
        found
    }
}

/// Takes the matching lines of one file.
struct Lines<'a> {
    search: &'a Search,
    found: &'a mut Found,
    path: &'a Path,
    named: bool,
    cancel: &'a CancellationToken,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let found = &mut *self.found;
        if !self.named && self.search.may_read.as_ref().is_some_and(|may_read| !may_read(self.path)) {
            return Ok(false);
        }
        if found.lines >= self.search.limit || found.chars >= self.search.max_chars {
            found.full = true;
            return Ok(false);
        }
        if !self.named {
            self.named = true;
            found.files += 1;
            found.add(&self.search.workspace.shown(self.path).to_string_lossy());
        }
        let line = String::from_utf8_lossy(matched.bytes());
        let line = line.trim_end_matches(['\r', '\n']);
        let number = matched.line_number().unwrap_or(0);
        found.lines += 1;
        match line.char_indices().nth(LINE_CHARS) {
            Some((at, _)) => found.add(&format!("{number}: {}…", &line[..at])),
            None => found.add(&format!("{number}: {line}")),
        }
        Ok(!self.cancel.is_cancelled())
    }
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
