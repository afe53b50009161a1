//! `grep_search`: finds lines that match a regular expression.

mod file_filter;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::types::{Types, TypesBuilder};
use qwen_events::{Argument, ArgumentRole, ArgumentValue, ClaudeTool, ToolCall, ToolDeclaration, ToolKind};
use tokio_util::sync::CancellationToken;

use self::file_filter::FileFilter;
use super::cancelled;
use super::walk::{self, Start};
use crate::declared::{DeclaredTool, tool_input};
use crate::output::boundary::{LONGEST_LINE, shorten_line};
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{ArgumentError, Arguments, CallContext, Outcome, SessionResources, ToolFuture};

const DEFAULT_LIMIT: u64 = 200;
const MAX_LIMIT: u64 = 10_000;
/// Characters added to a line: its number, and a mark if it was cut.
const LINE_EXTRA: usize = 32;

const DESCRIPTION: &str = "Finds lines that match a regular expression (Rust syntax, like ripgrep) in the files of the \
workspace, and returns them by file with their line numbers. A pattern without capital letters matches both cases. \
Binary files, .git and files that ignore files name (.gitignore, .ignore, .qwenignore) are left out.";

pub(super) struct GrepSearch;

tool_input! {
    struct Input {
        pattern: String = Argument::new(ArgumentValue::Text, "The regular expression."),
        glob: Option<String> = Argument::new(ArgumentValue::NonBlankText, "Search only files that match, such as *.rs or src/**/*.{ts,tsx}; ! excludes, and several patterns are separated by commas."),
        path: Option<String> = Argument::new(ArgumentValue::NonBlankText, "The directory or file to search. Default: the workspace.").role(ArgumentRole::Path),
        limit: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: MAX_LIMIT }, "The maximum number of matching lines. Default 200."),
    }
}

impl DeclaredTool for GrepSearch {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("grep_search", ToolKind::Read, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["ripgrep", "search_file_content", "search_text"])
            .claude(&[ClaudeTool {
                absent: &["limit"],
                added: CLAUDE_ARGUMENTS,
                defaults: &[
                    ("output_mode", "\"files_with_matches\""),
                    ("head_limit", "250"),
                    ("-i", "false"),
                ],
                ..ClaudeTool::with_name("Grep")
            }]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { pattern, glob, path, limit }, arguments) = Input::parse(call)?;
    let options = Options::read(&arguments)?;
    if pattern.is_empty() {
        return Err(arguments.refuse("pattern", "is empty").into());
    }
    let limit = options.limit.or(limit).unwrap_or(DEFAULT_LIMIT);
    let mut matcher = RegexMatcherBuilder::new();
    matcher.case_smart(options.ignores_case.is_none()).case_insensitive(options.ignores_case == Some(true));
    if options.multiline {
        matcher.multi_line(true).dot_matches_new_line(true);
    } else {
        matcher.crlf(true);
    }
    let matcher = matcher
        .build(&pattern)
        .map_err(|error| arguments.refuse("pattern", format_args!("is not a regular expression: {error}")))?;
    let workspace = Workspace::for_call(cx)?;
    let start = Start::open(&workspace, path.as_deref(), cx)?;
    let root = &start.directory.path;
    let filter = glob.as_deref().map(|glob| FileFilter::parse(&arguments, glob, root)).transpose()?;
    let search = Search {
        matcher,
        filter: filter.unwrap_or_default(),
        options,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        max_chars: SessionResources::RESULT_LIMIT,
        workspace,
        start,
        searched: AtomicUsize::new(0),
    };
    let asked = pattern.clone();
    let found = walk::run_search(cx, move |cancel| {
        let found = search.run(cancel);
        let empty = search.describe_empty_selection(glob.as_deref());
        Ok(empty.unwrap_or_else(|| found.text(&asked, search.options.output)))
    })
    .await?;
    if cx.cancel.is_cancelled() {
        return Ok(cancelled());
    }
    Ok(Outcome::success(found))
}

/// The arguments that only Claude's tool has.
const CLAUDE_ARGUMENTS: &[Argument] = &[
    claude_argument(
        "output_mode",
        ArgumentValue::Choice(&["content", "files_with_matches", "count"]),
        "content returns matching lines, files_with_matches the paths of files, count the number of matching lines per file. \
         Default files_with_matches.",
    ),
    claude_argument("-A", CONTEXT, "Lines to show after each match; only with content."),
    claude_argument("-B", CONTEXT, "Lines to show before each match; only with content."),
    claude_argument("-C", CONTEXT, "Lines to show before and after each match; only with content."),
    claude_argument("context", CONTEXT, "The same as -C."),
    claude_argument("-n", ArgumentValue::Flag, "Show line numbers; only with content. Default true."),
    claude_argument("-i", ArgumentValue::Flag, "Ignore case. Default false."),
    claude_argument(
        "-o",
        ArgumentValue::Flag,
        "Show only the matching part of each line; only with content. Default false.",
    ),
    claude_argument(
        "type",
        ArgumentValue::Text,
        "Search only files of this type, such as js, py, rust, go, java.",
    ),
    claude_argument(
        "head_limit",
        ArgumentValue::Number { min: 0, max: u64::MAX },
        "The maximum number of lines, files or counts; 0 for no limit. Default 250.",
    ),
    claude_argument(
        "offset",
        ArgumentValue::Number { min: 0, max: u64::MAX },
        "How many lines, files or counts to skip. Default 0.",
    ),
    claude_argument(
        "multiline",
        ArgumentValue::Flag,
        "Let patterns span lines, and . match line ends. Default false.",
    ),
];

/// The most lines around a match.
const MAX_CONTEXT: u64 = 1000;

const CONTEXT: ArgumentValue = ArgumentValue::Number { min: 0, max: MAX_CONTEXT };

const fn claude_argument(name: &'static str, value: ArgumentValue, description: &'static str) -> Argument {
    Argument { name, ..Argument::new(value, description) }
}

/// What a search gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchOutput {
    Lines,
    Files,
    Counts,
}

/// What the arguments of Claude's tool select. Ours has none of them.
struct Options {
    output: SearchOutput,
    before: usize,
    after: usize,
    numbers: bool,
    only_matches: bool,
    /// None to ignore case if the pattern has no capital letter.
    ignores_case: Option<bool>,
    types: Option<Types>,
    /// The name of the selected file type.
    type_name: Option<String>,
    limit: Option<u64>,
    skip: usize,
    multiline: bool,
}

impl Options {
    fn read(arguments: &Arguments) -> Result<Self, ArgumentError> {
        let output = match arguments.optional_text("output_mode")? {
            None | Some("content") => SearchOutput::Lines,
            Some("files_with_matches") => SearchOutput::Files,
            Some("count") => SearchOutput::Counts,
            Some(_) => {
                return Err(arguments.refuse("output_mode", "must be content, files_with_matches or count"));
            }
        };
        let lines = |name: &str| -> Result<Option<usize>, ArgumentError> {
            let count = arguments.optional_number(name, 0..=MAX_CONTEXT)?;
            Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
        };
        let around = lines("-C")?.or(lines("context")?).unwrap_or(0);
        let types = match arguments.optional_text("type")?.filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => {
                let types = TypesBuilder::new().add_defaults().select(name).build();
                Some(types.map_err(|error| arguments.refuse("type", error))?)
            }
        };
        let skip = arguments.optional_number("offset", 0..=u64::MAX)?.unwrap_or(0);
        let limit = arguments.optional_number("head_limit", 0..=u64::MAX)?;
        Ok(Self {
            output,
            before: lines("-B")?.unwrap_or(around),
            after: lines("-A")?.unwrap_or(around),
            numbers: arguments.optional_bool("-n")?.unwrap_or(true),
            only_matches: arguments.optional_bool("-o")?.unwrap_or(false),
            ignores_case: arguments.optional_bool("-i")?,
            types,
            type_name: arguments.optional_text("type")?.filter(|name| !name.is_empty()).map(str::to_owned),
            limit: limit.map(|limit| if limit == 0 { MAX_LIMIT } else { limit.min(MAX_LIMIT) }),
            skip: usize::try_from(skip).unwrap_or(usize::MAX),
            multiline: arguments.optional_bool("multiline")?.unwrap_or(false),
        })
    }

    /// True if files of this name are searched.
    fn includes(&self, file: &Path) -> bool {
        self.types.as_ref().is_none_or(|types| types.matched(file, false).is_whitelist())
    }
}

struct Search {
    matcher: RegexMatcher,
    filter: FileFilter,
    options: Options,
    limit: usize,
    max_chars: usize,
    workspace: Workspace,
    start: Start,
    /// How many files the filters selected.
    searched: AtomicUsize,
}

impl Search {
    /// Explains that the filters select no file, which is not the same as a text that does not occur. Returns
    /// `None` if they do select files, or if there are no filters.
    fn describe_empty_selection(&self, glob: Option<&str>) -> Option<String> {
        if self.searched.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let place = self.workspace.display_path(&self.start.directory.path).display().to_string();
        let why = match (glob, &self.options.type_name) {
            (Some(glob), Some(name)) => format!("no file of type {name} in {place} matches the glob {glob}"),
            (Some(glob), None) => format!("no file in {place} matches the glob {glob}"),
            (None, Some(name)) => format!("no file in {place} is of type {name}"),
            (None, None) => return None,
        };
        Some(format!("Nothing was searched: {why}."))
    }

    /// Searches several files at a time and returns the matches ordered by file name.
    fn run(&self, cancel: &CancellationToken) -> Found {
        let findings = Mutex::new(Findings::default());
        self.start.each_file(cancel, || {
            let mut searcher = SearcherBuilder::new();
            searcher.line_number(true).binary_detection(BinaryDetection::quit(b'\0'));
            if self.options.multiline {
                searcher.multi_line(true);
            } else {
                searcher.line_terminator(LineTerminator::crlf());
            }
            if self.options.output == SearchOutput::Lines {
                searcher.before_context(self.options.before).after_context(self.options.after);
            }
            let mut searcher = searcher.build();
            // Clone the matcher per thread: sharing one causes contention on its scratch space.
            let matcher = self.matcher.clone();
            let findings = &findings;
            move |file: &Path| {
                if !self.filter.selects(file) || !self.options.includes(file) {
                    return;
                }
                self.searched.fetch_add(1, Ordering::Relaxed);
                if lock(findings).is_beyond(file) {
                    return;
                }
                let Some((handle, _)) = Workspace::open_found(&self.start.directory, file) else { return };
                let mut lines = Lines {
                    search: self,
                    collected: FileMatches::default(),
                    file,
                    matches: 0,
                    may_show: None,
                    cancel,
                };
                // If reading fails midway, the lines found so far count.
                let _ = searcher.search_file(&matcher, &handle, &mut lines);
                if self.options.output != SearchOutput::Lines && lines.matches > 0 {
                    lines.collected.push(lines.matches.to_string(), true);
                }
                if !lines.collected.lines.is_empty() {
                    lock(findings).add(file.to_owned(), lines.collected, self);
                }
            }
        });
        findings.into_inner().unwrap_or_else(PoisonError::into_inner).into_matches(self)
    }

    /// True if this exceeds what the output can hold. Output is cut at line ends, so the limit has a small
    /// margin.
    fn exceeds_output(&self, lines: usize, chars: usize) -> bool {
        lines > self.limit.saturating_add(self.options.skip)
            || chars > self.max_chars + LONGEST_LINE + LINE_EXTRA
    }
}

fn lock(findings: &Mutex<Findings>) -> MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The matching lines of one file, formatted for the output.
#[derive(Default)]
struct FileMatches {
    lines: Vec<OutputLine>,
    chars: usize,
}

/// A line of the output.
struct OutputLine {
    text: String,
    /// False for the lines around a match, and for all but the first line of a match that spans several.
    is_match: bool,
}

impl FileMatches {
    fn push(&mut self, text: String, is_match: bool) {
        self.chars += text.chars().count() + 1;
        self.lines.push(OutputLine { text, is_match });
    }
}

/// Matches so far, at most what the output can hold. Ordered by file name, so that equal searches give equal
/// results.
#[derive(Default)]
struct Findings {
    files: BTreeMap<PathBuf, FileMatches>,
    lines: usize,
    chars: usize,
    /// The output is full from this file on.
    end: Option<PathBuf>,
}

impl Findings {
    fn is_beyond(&self, file: &Path) -> bool {
        self.end.as_deref().is_some_and(|end| file >= end)
    }

    fn add(&mut self, file: PathBuf, collected: FileMatches, search: &Search) {
        if self.is_beyond(&file) {
            return;
        }
        self.lines += collected.lines.len();
        self.chars += collected.chars;
        self.files.insert(file, collected);
        while let Some(last) = self.files.last_entry() {
            let (lines, chars) = (self.lines - last.get().lines.len(), self.chars - last.get().chars);
            if !search.exceeds_output(lines, chars) {
                return;
            }
            (self.lines, self.chars) = (lines, chars);
            self.end = Some(last.remove_entry().0);
        }
    }

    /// Returns the matches that fit into the output.
    fn into_matches(self, search: &Search) -> Found {
        let mut found = Found::default();
        let mut skipped = 0;
        for (file, collected) in self.files {
            let path = search.start.directory.path.join(&file);
            let path = search.workspace.display_path(&path).to_string_lossy().into_owned();
            let mut is_named = false;
            for line in &collected.lines {
                if skipped < search.options.skip {
                    skipped += 1;
                    continue;
                }
                if found.lines >= search.limit || found.chars >= search.max_chars {
                    found.full = true;
                    return found;
                }
                found.files += usize::from(!is_named);
                found.lines += 1;
                found.matches += usize::from(line.is_match);
                let line = &line.text;
                match search.options.output {
                    SearchOutput::Lines => {
                        if !is_named {
                            found.add(&path);
                        }
                        found.add(line);
                    }
                    SearchOutput::Files => found.add(&path),
                    SearchOutput::Counts => found.add(&format!("{path}:{line}")),
                }
                is_named = true;
            }
        }
        found
    }
}

/// Collects the matching lines of one file.
struct Lines<'a> {
    search: &'a Search,
    collected: FileMatches,
    file: &'a Path,
    /// The number of matching lines.
    matches: u64,
    /// Whether the file may be shown; asked only if it contains a match.
    may_show: Option<bool>,
    cancel: &'a CancellationToken,
}

impl Lines<'_> {
    fn may_show(&mut self) -> bool {
        let (start, file) = (&self.search.start, self.file);
        *self.may_show.get_or_insert_with(|| start.may_show(file))
    }

    /// Adds the lines in `bytes`, with a mark after their numbers that distinguishes matches from the lines
    /// around them.
    fn push(&mut self, bytes: &[u8], first: Option<u64>, is_match: bool) {
        let text = String::from_utf8_lossy(bytes);
        let mark = if is_match { ':' } else { '-' };
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let number = first.unwrap_or(0) + at as u64;
            let line = line.trim_end_matches(['\r', '\n']);
            let line = shorten_line(line);
            let number = if self.search.options.numbers { format!("{number}{mark} ") } else { String::new() };
            self.collected.push(format!("{number}{line}"), is_match && at == 0);
        }
    }

    /// True if the search continues in this file.
    fn should_continue(&self) -> bool {
        let enough = self.search.exceeds_output(self.collected.lines.len(), self.collected.chars);
        !enough && !self.cancel.is_cancelled()
    }
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        if !self.may_show() {
            return Ok(false);
        }
        self.matches += 1;
        let options = &self.search.options;
        match options.output {
            SearchOutput::Files => return Ok(false),
            SearchOutput::Counts => {}
            SearchOutput::Lines if options.only_matches => {
                let search = self.search;
                let bytes = matched.bytes();
                let mut parts = Vec::new();
                // The regular expression cannot fail: it has matched these bytes.
                let _ = search.matcher.find_iter(bytes, |part| {
                    parts.push(part);
                    true
                });
                for part in parts.into_iter().filter(|part| !part.is_empty()) {
                    self.push(&bytes[part], matched.line_number(), true);
                }
            }
            SearchOutput::Lines => self.push(matched.bytes(), matched.line_number(), true),
        }
        Ok(self.should_continue())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if !self.may_show() {
            return Ok(false);
        }
        self.push(context.bytes(), context.line_number(), false);
        Ok(self.should_continue())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.collected.push("--".to_owned(), false);
        Ok(self.should_continue())
    }
}

/// The search result, formatted for the output.
#[derive(Default)]
struct Found {
    body: String,
    chars: usize,
    lines: usize,
    /// How many of the lines are matches.
    matches: usize,
    files: usize,
    full: bool,
}

impl Found {
    fn add(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
        self.chars += line.chars().count() + 1;
    }

    fn text(&self, asked: &str, output: SearchOutput) -> String {
        let (matches, files) = (self.matches, self.files);
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match (matches, self.full, output) {
            (0, _, SearchOutput::Lines) => format!("No line matches {asked}."),
            (0, ..) => format!("No files found: no line matches {asked}."),
            (_, false, SearchOutput::Files) => format!("Found {files} file{}:\n{}", plural(files), self.body),
            (_, false, SearchOutput::Counts) => {
                format!("Matching lines in {files} file{}:\n{}", plural(files), self.body)
            }
            (_, true, SearchOutput::Files | SearchOutput::Counts) => {
                format!(
                    "The first {files} files (there are more; narrow the search or raise the limit):\n{}",
                    self.body
                )
            }
            (1, false, SearchOutput::Lines) => format!("1 match:\n{}", self.body),
            (_, false, SearchOutput::Lines) => {
                format!("{matches} matches in {files} file{}:\n{}", plural(files), self.body)
            }
            (_, true, SearchOutput::Lines) => format!(
                "The first {matches} matches (there are more; narrow the pattern, path or glob, or raise limit):\n{}",
                self.body
            ),
        }
    }
}
