//! Parses a shell command as bash does, or reports that it cannot.
//!
//! [`analyse`] lists every simple command that a line can start, wherever it hides: pipelines, substitutions,
//! here-documents, wrappers such as `env` and `bash -c`. It works from an allow-list. Bytes, node kinds and
//! words that are not known to mean the same to bash and to the grammar make the whole line unanalysable;
//! what was found so far is kept, because a denied program stays denied in any context.
//!
//! The result is valid for `bash -c` without start-up files, functions or options from the environment.

pub(crate) mod builtins;
mod command;
mod expansion;
mod heredoc;
mod layout;
pub(crate) mod options;
mod plain;
mod quoting;
mod screen;
mod statement;
mod word;
pub(crate) mod wrappers;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

pub use plain::plain_words;
pub use word::{Dynamic, Word};

use statement::Reader;

/// How deep commands may be nested in each other before we stop reading.
const MAX_DEPTH: usize = 8;

/// Time limit for parsing one line. An ordinary line takes a thousandth of it.
const TIME_LIMIT: Duration = Duration::from_millis(250);

/// What a command line does, as far as it can be known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Analysis {
    /// Every simple command found.
    pub invocations: Vec<SimpleCommand>,
    /// Why there may be more to it than was found; none means that the list is complete.
    pub unanalysable: Option<String>,
    /// It defines functions: what their names do then is known, but no rule that allows a command means them.
    pub defines_functions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// The program and its arguments; empty where only assignments or redirections stand.
    pub words: Vec<Word>,
    /// The assignments in front of it.
    pub assignments: Vec<Assignment>,
    pub redirections: Vec<Redirection>,
    /// It runs concurrently with the following commands.
    pub in_background: bool,
    /// Another command that runs this one, such as `env` or `find -exec`.
    pub wrapped_by: Option<WrappedBy>,
    /// It only passes on what it wraps, so that what it wraps is all there is to judge.
    pub transparent: bool,
}

impl SimpleCommand {
    /// The program as written, where it is known.
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }

    /// The program without its directory.
    pub fn program_name(&self) -> Option<&str> {
        self.program().map(basename)
    }

    /// The program without its directory, with its subcommand if it is known to have some.
    pub fn name_with_subcommand(&self) -> Option<String> {
        let program = self.program_name()?;
        let argument =
            self.words.get(1).and_then(Word::literal).filter(|_| WITH_SUBCOMMANDS.contains(&program));
        let is_plain = |word: &&str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        Some(match argument.filter(is_plain) {
            Some(subcommand) => format!("{program} {subcommand}"),
            None => program.to_owned(),
        })
    }
}

/// Where in another command's arguments a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrappedBy {
    /// The index of the other command in [`Analysis::invocations`].
    pub invocation: usize,
    /// The index of the other command's word at which this one begins.
    pub word: usize,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
    /// It is the variable of a loop.
    pub in_loop: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectionKind,
    /// Its file, descriptor or text.
    pub target: Word,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    /// The command reads the file.
    Read,
    /// Writes a file anew.
    Write,
    /// Appends to a file.
    Append,
    /// Duplicates or closes a descriptor.
    Duplicate,
    /// Reads text from the command itself.
    Here,
}

impl RedirectionKind {
    /// True if a file is written.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Append)
    }
}

/// Reads a command line. Never fails: [`Analysis::unanalysable`] reports what cannot be parsed.
pub fn analyse(command: &str) -> Analysis {
    let mut analysis = Analysis::default();
    read(command, MAX_DEPTH, false, None, &mut analysis);
    analysis
}

/// The programs that a command line starts, each once, in their order; for people who are asked about it.
pub fn root_commands(command: &str) -> Vec<String> {
    let mut names = Vec::new();
    for invocation in analyse(command).invocations {
        if let Some(name) = invocation.program_name()
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        names.extend(command.split_whitespace().next().map(|word| basename(word).to_owned()));
    }
    names
}

/// Programs whose first argument selects what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt", "apt-get", "brew", "bun", "bundle", "cargo", "composer", "conda", "deno", "dnf", "docker",
    "dotnet", "gem", "gh", "git", "go", "helm", "kubectl", "npm", "pip", "pip3", "pnpm", "podman", "poetry",
    "rustup", "uv", "yarn",
];

/// The programs that a command line starts, as [`root_commands`], with the subcommand of those that have some.
pub fn subcommands(command: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in analyse(command).invocations.iter().filter_map(SimpleCommand::name_with_subcommand) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Reads one script, which may be the argument of a wrapper, into an analysis.
fn read(
    script: &str,
    depth: usize,
    in_background: bool,
    wrapped_by: Option<WrappedBy>,
    analysis: &mut Analysis,
) {
    if script.trim_matches([' ', '\t', '\n']).is_empty() {
        return;
    }
    if let Err(reason) = screen::screen(script) {
        note(analysis, reason);
    }
    if let Err(reason) = screen::check_parsable(script) {
        note(analysis, reason);
        return;
    }
    let Some(tree) = parse(&screen::ascii_substitute(script)) else {
        note(analysis, "it takes too long to be read");
        return;
    };
    if layout::is_too_deep(tree.root_node()) {
        note(analysis, "it is nested too deeply");
        return;
    }
    if let Err(reason) = layout::verify(tree.root_node(), script) {
        note(analysis, reason);
    }
    let first = analysis.invocations.len();
    Reader { source: script, depth, analysis: &mut *analysis, loop_values: Vec::new() }
        .program(tree.root_node(), in_background);
    for invocation in &mut analysis.invocations[first..] {
        invocation.wrapped_by = invocation.wrapped_by.or(wrapped_by);
    }
}

/// Parses a script. Returns `None` for texts that exceed the time limit, because the grammar is quadratic for
/// some.
fn parse(script: &[u8]) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let deadline = Instant::now() + TIME_LIMIT;
    let mut in_time = |_: &ParseState| {
        if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut in_time);
    parser.parse_with_options(&mut |at, _| script.get(at..).unwrap_or(&[]), None, Some(options))
}

/// Records why the line is not fully understood; the first reason wins.
fn note(analysis: &mut Analysis, reason: impl Into<String>) {
    if analysis.unanalysable.is_none() {
        analysis.unanalysable = Some(reason.into());
    }
}

/// The last component of a path.
pub(crate) fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
