//! The description of tool results that Claude's CLI adds to the text for the model. Hooks get the same
//! fields (`qwen-engine`, `hooks/tool_response.rs`).

use std::borrow::Cow;

use qwen_events::{
    DiffHunk, Display, FileDiff, FileLines, FoundFiles, FoundLines, TaskProgress, ToolEnd, command_output,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The fields of one tool's result. The names are those of the published types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ToolOutput<'a> {
    /// The result of `Write`.
    Written {
        /// Either `create` or `update`.
        #[serde(rename = "type")]
        kind: Cow<'a, str>,
        /// The text after the change.
        content: Cow<'a, str>,
        /// The change of the file.
        #[serde(flatten)]
        change: FileChange<'a>,
    },
    /// The result of `Edit`.
    Edited {
        /// The piece that was replaced.
        old_string: Cow<'a, str>,
        /// What took its place.
        new_string: Cow<'a, str>,
        /// Whether every occurrence was replaced.
        replace_all: bool,
        /// The change of the file.
        #[serde(flatten)]
        change: FileChange<'a>,
    },
    /// The result of `MultiEdit` and `NotebookEdit`.
    Changed(FileChange<'a>),
    /// `Read`, of a text.
    Read {
        /// Always the literal `text`.
        #[serde(rename = "type")]
        kind: Cow<'a, str>,
        /// The lines that were read.
        file: ReadFile<'a>,
    },
    /// The result of `Bash`.
    Command {
        /// What it wrote, on either channel.
        stdout: Cow<'a, str>,
        /// Empty: both channels are in `stdout`.
        stderr: Cow<'a, str>,
        /// Whether it was ended before it was done.
        interrupted: bool,
        /// Always false: output is text.
        is_image: bool,
    },
    /// The result of `Task`.
    Agent {
        /// Names the transcript of the sub-agent.
        agent_id: Cow<'a, str>,
        /// The kind of sub-agent.
        agent_type: Cow<'a, str>,
        /// What it was asked.
        prompt: Cow<'a, str>,
        /// The report of the sub-agent.
        content: Vec<ReportText<'a>>,
        /// The number of its tool calls.
        total_tool_use_count: u64,
        /// The number of tokens that it used.
        total_tokens: u64,
        /// How long it worked.
        total_duration_ms: u64,
    },
    /// The result of `TodoWrite`.
    Todos {
        /// The list as the call gave it.
        new_todos: Value,
    },
    /// The result of `Grep`. Which fields exist depends on its mode.
    FoundLines {
        /// `content`, `count` or `files_with_matches`.
        mode: Cow<'a, str>,
        /// How many files match.
        num_files: usize,
        /// The files, unless they are in `content`.
        filenames: Vec<Cow<'a, str>>,
        /// The lines or counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Cow<'a, str>>,
        /// How many lines `content` has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_lines: Option<usize>,
        /// How many lines match.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        num_matches: Option<u64>,
    },
    /// The result of `Glob`.
    FoundFiles {
        /// How many files are listed.
        num_files: usize,
        /// The files that match.
        filenames: Vec<Cow<'a, str>>,
        /// True if there are more.
        truncated: bool,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// The result of `ExitPlanMode`.
    Plan {
        /// The plan that was approved.
        plan: Cow<'a, str>,
        /// Always false: the main agent plans.
        is_agent: bool,
    },
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange<'a> {
    /// The absolute path of the file.
    pub file_path: Cow<'a, str>,
    /// The text before; null if the file is new.
    pub original_file: Option<Cow<'a, str>>,
    /// The hunks of the change.
    pub structured_patch: Vec<Hunk<'a>>,
    /// True if the user changed the edit; always false.
    pub user_modified: bool,
}

/// One hunk of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk<'a> {
    /// Its first line in the old text.
    pub old_start: u64,
    /// How many of the old lines it has.
    pub old_lines: u64,
    /// Its first line in the new text.
    pub new_start: u64,
    /// How many of the new lines it has.
    pub new_lines: u64,
    /// The lines, each after ` `, `-` or `+`.
    pub lines: Vec<Cow<'a, str>>,
}

/// The lines of a file that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFile<'a> {
    /// The path as it was asked for.
    pub file_path: Cow<'a, str>,
    /// The lines that were read.
    pub content: Cow<'a, str>,
    /// How many there are.
    pub num_lines: u64,
    /// The number of the first.
    pub start_line: u64,
    /// How many lines the file has.
    pub total_lines: u64,
}

/// A piece of a sub-agent's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportText<'a> {
    /// Always the literal `text`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The text of the block.
    pub text: Cow<'a, str>,
}

impl<'a> ToolOutput<'a> {
    /// Describes the result of a successful call as the vendor does; none for tools without such a description.
    pub(in crate::claude) fn from_end(end: &'a ToolEnd) -> Option<Self> {
        let arguments: Map<String, Value> = serde_json::from_str(end.call.arguments.as_str()).ok()?;
        let given = |name: &str| arguments.get(name).cloned().unwrap_or_default();
        let text = |name: &str| Cow::Owned(given(name).as_str().unwrap_or_default().to_owned());
        Some(match (&*end.call.name, &end.display) {
            ("Write", Some(Display::FileDiff(diff))) => Self::Written {
                kind: if diff.original.is_some() { "update" } else { "create" }.into(),
                content: diff.modified.as_ref().into(),
                change: FileChange::from_diff(diff),
            },
            ("Edit", Some(Display::FileDiff(diff))) => Self::Edited {
                old_string: text("old_string"),
                new_string: text("new_string"),
                replace_all: given("replace_all").as_bool().unwrap_or(false),
                change: FileChange::from_diff(diff),
            },
            ("MultiEdit" | "NotebookEdit", Some(Display::FileDiff(diff))) => {
                Self::Changed(FileChange::from_diff(diff))
            }
            ("Read", _) if end.media.is_empty() => {
                Self::Read { kind: "text".into(), file: ReadFile::from_result(text("file_path"), &end.text) }
            }
            ("Bash", _) => Self::Command {
                stdout: command_output(&end.text).into(),
                stderr: "".into(),
                interrupted: false,
                is_image: false,
            },
            ("Task" | "Agent", Some(Display::Task(task))) => Self::agent(end, task, text("prompt")),
            ("TodoWrite", _) => Self::Todos { new_todos: given("todos") },
            ("Grep", _) => Self::search(&end.text, text("output_mode")),
            ("Glob", _) => {
                let found = FoundFiles::parse(&end.text);
                Self::FoundFiles {
                    num_files: found.filenames.len(),
                    filenames: found.filenames.into_iter().map(Cow::Borrowed).collect(),
                    truncated: found.is_truncated,
                    duration_ms: end.duration_ms,
                }
            }
            ("ExitPlanMode", Some(Display::Plan { plan, .. })) => {
                Self::Plan { plan: plan.as_ref().into(), is_agent: false }
            }
            _ => return None,
        })
    }

    fn search(text: &'a str, mode: Cow<'a, str>) -> Self {
        let mode = if mode.is_empty() { "files_with_matches".into() } else { mode };
        let found = FoundLines::parse(text, &mode);
        Self::FoundLines {
            num_files: found.num_files,
            filenames: found.filenames.into_iter().map(Cow::Borrowed).collect(),
            content: found.content.map(Cow::Borrowed),
            num_lines: found.num_lines,
            num_matches: found.num_matches,
            mode,
        }
    }

    fn agent(end: &'a ToolEnd, task: &'a TaskProgress, prompt: Cow<'a, str>) -> Self {
        Self::Agent {
            agent_id: end.call.id.as_str().into(),
            agent_type: task.agent.as_ref().into(),
            prompt,
            content: vec![ReportText { kind: "text".into(), text: end.text.as_ref().into() }],
            total_tool_use_count: task.tool_calls,
            total_tokens: task.tokens,
            total_duration_ms: end.duration_ms,
        }
    }
}

impl<'a> ReadFile<'a> {
    /// Takes the lines out of the text of a result.
    fn from_result(file_path: Cow<'a, str>, text: &'a str) -> Self {
        match FileLines::parse(text) {
            Some(lines) => Self {
                file_path,
                content: lines.content.into(),
                num_lines: lines.count,
                start_line: lines.first,
                total_lines: lines.total,
            },
            None => {
                let count = text.lines().count() as u64;
                Self { file_path, content: text.into(), num_lines: count, start_line: 1, total_lines: count }
            }
        }
    }
}

impl<'a> FileChange<'a> {
    fn from_diff(diff: &'a FileDiff) -> Self {
        Self {
            file_path: diff.file_path.as_ref().into(),
            original_file: diff.original.as_deref().map(Cow::Borrowed),
            structured_patch: diff.hunks().into_iter().map(Hunk::from).collect(),
            user_modified: false,
        }
    }
}

impl<'a> From<DiffHunk<'a>> for Hunk<'a> {
    fn from(hunk: DiffHunk<'a>) -> Self {
        Self {
            old_start: hunk.old.0,
            old_lines: hunk.old.1,
            new_start: hunk.new.0,
            new_lines: hunk.new.1,
            lines: hunk.lines.into_iter().map(Cow::Borrowed).collect(),
        }
    }
}
