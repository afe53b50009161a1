//! The paths that a command line names, certainly or possibly. Deny rules are matched against all of them.

use std::path::{Path, PathBuf};

use crate::paths::argument_paths::{braces, expand, paths_in};
use crate::paths::workspace::{ResolvedPath, Workspace};
use crate::shell::{Analysis, Dynamic, SimpleCommand, Word};

/// The most directories that a line is followed through.
const MAX_DIRECTORIES: usize = 16;

/// Most literal texts that are tried as the value of a word.
const MAX_TEXTS: usize = 256;

/// A command line, prepared for path lookups.
pub(crate) struct NamedPaths<'a> {
    workspace: &'a Workspace,
    /// Possible working directories while it runs, the starting directory first.
    directories: Vec<PathBuf>,
    /// There may be further ones.
    is_lost: bool,
    /// All literal texts of the line. A word that is only known at run time may be composed of them.
    texts: Vec<String>,
}

impl<'a> NamedPaths<'a> {
    pub(crate) fn new(workspace: &'a Workspace, analysis: &'a Analysis, cwd: &Path) -> Self {
        let texts = spelt_out(analysis, cwd);
        let mut places = Self { workspace, directories: vec![cwd.to_owned()], is_lost: false, texts };
        let sets_variables = analysis.invocations.iter().any(|invocation| !invocation.assignments.is_empty());
        for invocation in &analysis.invocations {
            match (invocation.program_name(), &invocation.words[..]) {
                (Some("cd"), [_]) => places.enter("~"),
                (Some("cd" | "pushd"), [_, words @ ..]) => {
                    for word in words {
                        places.change_to(word, sets_variables);
                    }
                }
                _ => {}
            }
        }
        places
    }

    /// Follows a word of `cd`. A variable that the line sets may have any value that the line spells out.
    fn change_to(&mut self, word: &Word, sets_variables: bool) {
        match word {
            Word::Literal(text) if matches!(text.as_str(), "-P" | "-L" | "-e" | "-@" | "--") => {}
            Word::Literal(text) if text.starts_with('-') || text.starts_with('+') => self.is_lost = true,
            Word::Literal(text) => self.enter(&text.clone()),
            Word::Dynamic(dynamic) => {
                self.is_lost |= dynamic.made || (dynamic.glob.is_none() && !sets_variables);
                for text in self.texts.clone() {
                    self.enter(&text);
                }
            }
        }
    }

    fn enter(&mut self, target: &str) {
        let further: Vec<PathBuf> = self
            .directories
            .iter()
            .map(|directory| self.workspace.place(Path::new(target), directory).written)
            .filter(|further| further.is_dir() && !self.directories.contains(further))
            .collect();
        self.directories.extend(further);
        self.is_lost |= self.directories.len() > MAX_DIRECTORIES;
        self.directories.truncate(MAX_DIRECTORIES);
    }

    /// True if the line changes to a directory that cannot be determined.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// True if a word names such a place from where the line starts.
    pub(crate) fn names(&self, word: &Word, such: &dyn Fn(&ResolvedPath) -> bool) -> bool {
        self.directories.first().is_some_and(|start| self.in_directory(word, start, such))
    }

    /// True if a word may name such a path, in any possible working directory and with any value of its
    /// variables.
    pub(crate) fn may_name(&self, word: &Word, such: &dyn Fn(&ResolvedPath) -> bool) -> bool {
        self.directories.iter().any(|directory| {
            self.in_directory(word, directory, such)
                || self
                    .guesses(word, directory)
                    .iter()
                    .any(|guess| such(&self.workspace.place(guess, directory)))
        })
    }

    /// True if the working directory of the line may be such a path.
    pub(crate) fn stands_in(&self, such: &dyn Fn(&ResolvedPath) -> bool) -> bool {
        self.directories.iter().any(|directory| such(&self.workspace.place(directory, directory)))
    }

    /// True if code in `text` may name such a path anywhere.
    pub(crate) fn may_speak_of(&self, text: &str, such: &dyn Fn(&ResolvedPath) -> bool) -> bool {
        let letters = |character: char| character.is_alphanumeric() || "_-./~+@".contains(character);
        text.split(|character| !letters(character)).filter(|piece| !piece.is_empty()).any(|piece| {
            self.directories.iter().any(|directory| such(&self.workspace.place(Path::new(piece), directory)))
        })
    }

    fn in_directory(&self, word: &Word, directory: &Path, such: &dyn Fn(&ResolvedPath) -> bool) -> bool {
        paths_in(word, directory).iter().any(|path| such(&self.workspace.place(path, directory)))
    }

    /// Possible values of a word that is only known at run time.
    fn guesses(&self, word: &Word, directory: &Path) -> Vec<PathBuf> {
        let Word::Dynamic(Dynamic { prefix, glob: None, tail, .. }) = word else { return Vec::new() };
        if tail.contains('{') {
            return braces(tail).into_iter().flatten().map(PathBuf::from).collect();
        }
        let mut guesses = Vec::new();
        // `$PWD/x`, `$HOME/x` and the like.
        let below = tail.trim_start_matches('/');
        if prefix.is_empty() && !below.is_empty() {
            guesses.push(PathBuf::from(below));
            guesses.push(Path::new("~").join(below));
            let homes = self.workspace.home().into_iter().chain([directory]);
            guesses.extend(homes.filter_map(|place| expand(below, place)).flatten());
        }
        guesses.extend(self.texts.iter().map(|text| PathBuf::from(format!("{prefix}{text}{tail}"))));
        guesses
    }
}

/// The literal values and words of a line, including their parts and the files that match them.
fn spelt_out(analysis: &Analysis, cwd: &Path) -> Vec<String> {
    let is_dynamic = |word: &Word| word.literal().is_none();
    let any_dynamic = |invocation: &SimpleCommand| {
        invocation.words.iter().any(is_dynamic)
            || invocation.redirections.iter().any(|redirection| is_dynamic(&redirection.target))
    };
    if !analysis.invocations.iter().any(any_dynamic) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    for invocation in &analysis.invocations {
        let values = invocation.assignments.iter().map(|assignment| &assignment.value);
        let targets = invocation.redirections.iter().map(|redirection| &redirection.target);
        for word in values.chain(invocation.words.iter().skip(1)).chain(targets) {
            texts.extend(word.known_prefix().split_whitespace().map(str::to_owned));
            if let Word::Dynamic(Dynamic { glob: Some(glob), .. }) = word {
                let found = expand(glob, cwd).into_iter().flatten();
                texts.extend(found.map(|path| path.to_string_lossy().into_owned()));
            }
        }
    }
    texts.dedup();
    texts.truncate(MAX_TEXTS);
    texts
}
