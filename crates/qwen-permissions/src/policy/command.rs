//! The judgement on shell commands.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use qwen_events::{Behavior, ToolKind, Verdict};

use crate::Mode;
use crate::git::command_line::{AliasSources, GitActions, subcommand_index};
use crate::paths::denied_paths::MAX_ENTRIES;
use crate::paths::named_paths::NamedPaths;
use crate::paths::protected::mentions_protected;
use crate::paths::workspace::ResolvedPath;
use crate::policy::coverage::{Coverage, Covering};
use crate::policy::exclusions::{copied_words, excluded_words};
use crate::policy::reach::{FileAccess, Reach, is_unseen};
use crate::policy::{Judgement, Policy, allow, ask, judgement, ruled};
use crate::programs::{self, Use};
use crate::programs::{only_names_things, runs_its_arguments};
use crate::rules::command_pattern::{CommandPattern, Found};
use crate::rules::path_pattern::PathPattern;
use crate::rules::{Rule, Scope};
use crate::shell::options::is_listed;
use crate::shell::{self, Analysis, Redirection, RedirectionKind, SimpleCommand, Word};

impl Policy {
    /// Judges a command line: each of its commands must pass on its own.
    pub(crate) fn judge_command(&self, tool: &str, command: &str, cwd: &Path) -> Judgement {
        let analysis = shell::analyse(command);
        let coverage = Coverage::new(self, tool, cwd, &analysis);
        let judgement = self.judge_analysis(tool, command, cwd, &analysis, &coverage);
        let harden_git = only_looks_with_git(&analysis).then(|| coverage.git_hardening().unwrap_or_default());
        Judgement { harden_git, ..judgement }
    }

    fn judge_analysis(
        &self,
        tool: &str,
        command: &str,
        cwd: &Path,
        analysis: &Analysis,
        coverage: &Coverage<'_>,
    ) -> Judgement {
        let line = Line { tool, command, cwd, analysis, git: self.git_actions(analysis, coverage) };
        let denied = self.strictest(Behavior::Deny, &line);
        if let Some((rule, Found::Yes)) = denied {
            return ruled(Verdict::Deny, format!("The rule {} denies it.", rule.text()), rule);
        }
        if self.mode() == Mode::Plan
            && let Err(problem) = coverage.by_reading()
        {
            let reason = format!("The session is in plan mode, which only reads, and {problem}.");
            return judgement(Verdict::Deny, reason.into(), None);
        }
        if let Some((rule, _)) = denied {
            return ruled(Verdict::Ask, format!("It may do what the rule {} denies.", rule.text()), rule);
        }
        if let Some(rule) =
            self.shows_denied_objects(&line.git, analysis, &git_directories(analysis, coverage, cwd), cwd)
        {
            let reason = format!(
                "Git may show content that the rule {} denies, from its objects. Name other paths after --.",
                rule.text()
            );
            return ruled(Verdict::Ask, reason, rule);
        }
        if let Some((rule, _)) = self.strictest(Behavior::Ask, &line) {
            return ruled(Verdict::Ask, format!("The rule {} requires approval.", rule.text()), rule);
        }
        if let Some(reason) = &analysis.unanalysable {
            let watched = self.rules(Behavior::Deny).iter().chain(self.rules(Behavior::Ask));
            // A rule about files is a rule about what a command does to them.
            let is_about = |rule: &&Rule| rule.concerns(tool) || matches!(rule.scope, Scope::Path(_));
            if let Some(rule) = watched.into_iter().find(is_about) {
                let reason = format!("It may do what the rule {} is about: {reason}.", rule.text());
                return ruled(Verdict::Ask, reason, rule);
            }
        }
        if self.writes_protected(command, cwd, analysis) {
            return ask("Writing what git, qwen or MCP run later always requires approval.");
        }
        if self.mode() == Mode::Plan {
            return self.reading(command);
        }
        let whole = self.rules(Behavior::Allow).iter().filter(|rule| rule.concerns(tool)).find(|rule| {
            match &rule.scope {
                Scope::All => true,
                Scope::Command(pattern) => pattern.is_everything() || pattern.is_exactly(command),
                _ => false,
            }
        });
        if let Some(rule) = whole {
            return ruled(Verdict::Allow, format!("The rule {} allows it.", rule.text()), rule);
        }
        if self.mode() == Mode::Yolo {
            return allow("The mode yolo allows everything.");
        }
        if let Some(reason) = &analysis.unanalysable {
            return ask(&format!("Its effect cannot be determined: {reason}."));
        }
        if analysis.defines_functions {
            return ask("It defines a function, which no rule covers.");
        }
        match coverage.by_rules() {
            Ok(Covering::Rule(rule)) => {
                ruled(Verdict::Allow, format!("The rule {} allows it.", rule.text()), rule)
            }
            Ok(Covering::Redirections) => allow("It writes only files that may be edited."),
            Ok(Covering::Reads) => self.reading(command),
            Err(problem) => ask(&format!("It requires approval: {problem}.")),
        }
    }

    /// The judgement on a command that only reads. A command that failed in the read-only sandbox before
    /// asks, or is refused in plan mode.
    fn reading(&self, command: &str) -> Judgement {
        if !self.failed_read_only.iter().any(|failed| **failed == *command) {
            return Judgement { read_only: true, ..allow("It only reads, in the workspace.") };
        }
        let reason = "It failed in the read-only sandbox; write access requires approval.";
        if self.mode() == Mode::Plan {
            return judgement(
                Verdict::Deny,
                "The session is in plan mode, which is read-only, and it failed because of that.".into(),
                None,
            );
        }
        ask(reason)
    }

    /// The meaning of a line's git commands, where a rule may deny or ask for a command.
    fn git_actions(&self, analysis: &Analysis, coverage: &Coverage<'_>) -> Vec<Option<GitActions>> {
        let mut restricting = self.rules(Behavior::Deny).iter().chain(self.rules(Behavior::Ask));
        let is_about = |rule: &Rule| match &rule.scope {
            Scope::Command(_) => true,
            Scope::Path(_) => self.concerns_kind(rule, ToolKind::Read),
            Scope::All | Scope::Host(_) | Scope::Network(_) | Scope::Unknown => false,
        };
        if !restricting.any(is_about) {
            return Vec::new();
        }
        let directories = coverage.followed_directories();
        let sources = AliasSources {
            workspace: &self.workspace,
            search_path: &self.search_path,
            directories: directories.as_deref().ok(),
        };
        analysis.invocations.iter().map(|invocation| GitActions::find(invocation, &sources)).collect()
    }

    /// The rule of a list that matches a command most certainly, if any does.
    fn strictest(&self, behavior: Behavior, line: &Line<'_>) -> Option<(&Rule, Found)> {
        self.rules(behavior)
            .iter()
            .map(|rule| (rule, self.match_rule(rule, line)))
            .filter(|(_, found)| *found != Found::No)
            .max_by_key(|(_, found)| *found)
    }

    fn match_rule(&self, rule: &Rule, line: &Line<'_>) -> Found {
        let Line { tool, command, cwd, analysis, .. } = *line;
        match &rule.scope {
            Scope::All | Scope::Unknown if rule.concerns(tool) => Found::Yes,
            Scope::Command(pattern) if rule.concerns(tool) => {
                if pattern.is_everything() || pattern.is_exactly(command) {
                    return Found::Yes;
                }
                let in_words = (0..analysis.invocations.len()).map(|at| line.finds(pattern, at)).max();
                let inside = pattern.program().is_some_and(|program| {
                    let runs = |invocation| may_run(invocation, program) || sets_code(invocation, program);
                    analysis.invocations.iter().any(runs) || writes_and_runs(analysis, program)
                });
                in_words.unwrap_or(Found::No).max(if inside { Found::Perhaps } else { Found::No })
            }
            Scope::Path(pattern) => {
                let (reads, writes) =
                    (self.concerns_kind(rule, ToolKind::Read), self.concerns_kind(rule, ToolKind::Edit));
                let such = |place: &ResolvedPath| pattern.forbids(place, &self.workspace, self.anchor(cwd));
                let places = NamedPaths::new(&self.workspace, analysis, cwd);
                let found = analysis.invocations.iter().map(|invocation| {
                    let looks = only_reads_files(invocation);
                    let counts = (reads && !only_prints(invocation)) || (writes && !looks);
                    // What a command copies from it does not change.
                    let words = named_words(invocation, !reads).filter(|_| counts);
                    let runs = counts && invocation.program_name().is_some_and(takes_code);
                    let targets = invocation
                        .redirections
                        .iter()
                        .filter(|redirection| match redirection.kind {
                            // Here-text matters only for programs that run it.
                            RedirectionKind::Here => runs,
                            kind => reads || kind.writes(),
                        })
                        .map(|redirection| &redirection.target);
                    words.chain(targets).map(|word| found_in(&places, word, runs, &such)).max()
                });
                let found = found.flatten().max().unwrap_or(Found::No);
                let accesses = [(reads, FileAccess::Read), (writes, FileAccess::Write)];
                // In a directory that is not known, any name may be one that the rule is about.
                let is_open = |(counts, access): (bool, FileAccess)| counts && !self.is_enforced(access);
                if places.is_lost() && accesses.into_iter().any(is_open) {
                    return found.max(Found::Perhaps);
                }
                let reached = |(counts, access): (bool, FileAccess)| {
                    counts && found == Found::No && self.may_reach(pattern, access, &places, cwd, analysis)
                };
                if accesses.into_iter().any(reached) { Found::Perhaps } else { found }
            }
            _ => Found::No,
        }
    }

    /// True if the kernel keeps commands from what rules deny.
    fn is_enforced(&self, access: FileAccess) -> bool {
        let kernel = self.kernel();
        match access {
            FileAccess::Read => kernel.hides,
            FileAccess::Write => kernel.holds,
        }
    }

    /// True if a line may reach files that match a pattern without naming them, and the kernel does not
    /// prevent that.
    fn may_reach(
        &self,
        pattern: &PathPattern,
        access: FileAccess,
        places: &NamedPaths<'_>,
        cwd: &Path,
        analysis: &Analysis,
    ) -> bool {
        let reaches: Vec<(&SimpleCommand, Reach)> = analysis
            .invocations
            .iter()
            .map(|invocation| (invocation, Reach::compute(invocation, analysis, access)))
            .filter(|(_, reach)| *reach != Reach::default())
            .collect();
        let redirected = |redirection: &Redirection| match redirection.kind {
            RedirectionKind::Read => access == FileAccess::Read,
            kind => access == FileAccess::Write && kind.writes(),
        };
        let target_is_unseen = analysis
            .invocations
            .iter()
            .flat_map(|invocation| &invocation.redirections)
            .any(|redirection| redirected(redirection) && is_unseen(&redirection.target, analysis));
        if reaches.is_empty() && !target_is_unseen {
            return false;
        }
        if self.is_enforced(access) {
            return false;
        }
        if target_is_unseen || reaches.iter().any(|(_, reach)| reach.unseen) {
            return true;
        }
        let (seen, budget) = (RefCell::new(HashMap::new()), Cell::new(MAX_ENTRIES));
        let holds = |place: &ResolvedPath| {
            place.forms().any(|above| {
                let mut seen = seen.borrow_mut();
                *seen.entry(above.to_owned()).or_insert_with(|| {
                    let mut left = budget.get();
                    let holds = above.is_dir() && self.holds(above, pattern, cwd, &mut left);
                    budget.set(left);
                    holds
                })
            })
        };
        reaches.iter().any(|(invocation, reach)| {
            (reach.here && places.stands_in(&holds))
                || (reach.below && invocation.words.iter().skip(1).any(|word| places.may_name(word, &holds)))
        })
    }

    /// True if a command may write a protected path.
    fn writes_protected(&self, command: &str, cwd: &Path, analysis: &Analysis) -> bool {
        if analysis.unanalysable.is_some() && mentions_protected(command) {
            return true;
        }
        let places = NamedPaths::new(&self.workspace, analysis, cwd);
        let names_parts = [".git", ".qwen", ".mcp", "hooks"].iter().any(|part| command.contains(part));
        if places.is_lost() && names_parts && analysis.invocations.iter().any(may_write) {
            return true;
        }
        let protected = |word: &Word| places.may_name(word, &|place| self.is_protected(place));
        analysis.invocations.iter().any(|invocation| {
            let redirected = invocation
                .redirections
                .iter()
                .any(|redirection| redirection.kind.writes() && protected(&redirection.target));
            let name = invocation.program_name().unwrap_or("");
            let acts = match name {
                // What is done in the directory may name its files in ways that are not found.
                "cd" | "pushd" => analysis.invocations.iter().any(may_write),
                _ => may_write(invocation),
            };
            // Code can name a path in the middle of a word.
            let named = |word: &Word| {
                protected(word) || (runs_its_arguments(name) && mentions_protected(word.known_prefix()))
            };
            let mut targets = named_words(invocation, true);
            redirected || sets_git_config(invocation) || (acts && targets.any(named))
        })
    }

    /// The directory that relative paths in rules refer to.
    pub(crate) fn anchor<'a>(&'a self, cwd: &'a Path) -> &'a Path {
        self.workspace.roots().first().map_or(cwd, |root| root.as_path())
    }
}

/// The directories in which the git commands of a line may work, as far as they are known.
fn git_directories(analysis: &Analysis, coverage: &Coverage<'_>, cwd: &Path) -> Vec<PathBuf> {
    let mut directories = coverage.followed_directories().unwrap_or_else(|_| vec![cwd.to_owned()]);
    let starts = directories.clone();
    for invocation in &analysis.invocations {
        let words = &invocation.words;
        let globals = subcommand_index(words).map_or(&words[..], |at| &words[..at]);
        let others = globals.windows(2).filter(|pair| pair[0].literal() == Some("-C"));
        let others: Vec<&str> = others.map(|pair| pair[1].known_prefix()).collect();
        if !others.is_empty() {
            let joined =
                |start: &PathBuf| others.iter().fold(start.clone(), |place, other| place.join(other));
            directories.extend(starts.iter().map(joined));
        }
    }
    directories
}

/// How a command uses its program if no rule covers it.
fn looked_at(invocation: &SimpleCommand) -> Option<Use> {
    programs::examine(&invocation.words, &[]).ok()
}

/// A command line that rules are matched against.
struct Line<'a> {
    tool: &'a str,
    command: &'a str,
    cwd: &'a Path,
    analysis: &'a Analysis,
    /// The commands that each git command expands to. Empty if no rule asks for it.
    git: Vec<Option<GitActions>>,
}

impl Line<'_> {
    /// How certainly one of the commands matches a pattern.
    fn finds(&self, pattern: &CommandPattern, at: usize) -> Found {
        let Some(invocation) = self.analysis.invocations.get(at) else { return Found::No };
        let Some(actions) = self.git.get(at).and_then(Option::as_ref) else {
            return pattern.finds(&invocation.words);
        };
        let resolved = actions.commands.iter().map(|words| pattern.finds(words)).max().unwrap_or(Found::No);
        let further = if actions.is_incomplete { Found::Perhaps } else { Found::No };
        let as_written =
            if pattern.is_about_git_subcommand() { Found::No } else { pattern.finds(&invocation.words) };
        resolved.max(further).max(as_written)
    }
}

/// The arguments of a command that may name what it works on; with `changed`, only those that may name what
/// it changes.
fn named_words(invocation: &SimpleCommand, changed: bool) -> impl Iterator<Item = &Word> {
    let excluded = excluded_words(invocation);
    let copied = copied_words(invocation).into_iter().map(move |is_copied| is_copied && changed);
    let words = invocation.words.iter().zip(excluded.into_iter().zip(copied)).skip(1);
    words.filter(|(_, (is_excluded, is_copied))| !is_excluded && !is_copied).map(|(word, _)| word)
}

/// False for a command that changes no file by itself.
fn may_write(invocation: &SimpleCommand) -> bool {
    let changes_directory = matches!(invocation.program_name(), Some("cd" | "pushd" | "popd"));
    !(changes_directory || only_reads_files(invocation) || only_prints(invocation) || invocation.transparent)
}

fn only_reads_files(invocation: &SimpleCommand) -> bool {
    invocation.words.is_empty() || looked_at(invocation).is_some_and(|used| used.only_reads)
}

/// True if a command's words are text for it and never files.
fn only_prints(invocation: &SimpleCommand) -> bool {
    matches!(invocation.program(), Some("echo" | "printf" | ":" | "true" | "false"))
}

/// How certainly a word names such a path. `runs` means that the word belongs to a program that runs code.
fn found_in(places: &NamedPaths<'_>, word: &Word, runs: bool, such: &dyn Fn(&ResolvedPath) -> bool) -> Found {
    if places.names(word, such) {
        Found::Yes
    } else if places.may_name(word, such) || (runs && places.may_speak_of(word.known_prefix(), such)) {
        Found::Perhaps
    } else {
        Found::No
    }
}

/// True if a line writes a text that names `program`, and runs a file: perhaps the same one.
fn writes_and_runs(analysis: &Analysis, program: &str) -> bool {
    let is_file = |redirection: &Redirection| {
        redirection.kind.writes() && !redirection.target.known_prefix().starts_with("/dev/")
    };
    let writes = analysis.invocations.iter().any(|invocation| {
        invocation.program_name() == Some("tee") || invocation.redirections.iter().any(is_file)
    });
    let runs_a_file = |invocation: &SimpleCommand| {
        invocation.program().is_some_and(|path| path.contains('/'))
            || invocation.program_name().is_some_and(runs_its_arguments)
    };
    let tells = |invocation: &SimpleCommand| {
        let words = invocation.words.iter().skip(1).filter(|_| only_prints(invocation));
        words.chain(here_texts(invocation)).any(|word| names_program(word, program))
    };
    writes && analysis.invocations.iter().any(runs_a_file) && analysis.invocations.iter().any(tells)
}

/// True if a program is named in a word, or in the middle of it.
fn names_program(word: &Word, program: &str) -> bool {
    let is_in = |text: &str| {
        text.split(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '-' | '.')))
            .any(|part| part == program)
    };
    match word {
        Word::Literal(text) => is_in(text),
        Word::Dynamic(dynamic) => is_in(&dynamic.prefix) || is_in(&dynamic.tail),
    }
}

/// The texts that a command gets as its input.
fn here_texts(invocation: &SimpleCommand) -> impl Iterator<Item = &Word> {
    let here = |redirection: &&Redirection| redirection.kind == RedirectionKind::Here;
    invocation.redirections.iter().filter(here).map(|redirection| &redirection.target)
}

/// True if a command may run `program` from its words or its input text: it runs code, or its arguments are
/// not known to be harmless.
fn may_run(invocation: &SimpleCommand, program: &str) -> bool {
    let names_it = |word: &Word| names_program(word, program);
    let given = here_texts(invocation);
    let may_run_words =
        |name: &str| runs_its_arguments(name) || !(programs::is_known(name) || invocation.transparent);
    let runs = invocation.program_name().is_some_and(may_run_words) && !only_names_things(&invocation.words);
    // What a wrapper runs is a separate command, and so is what an alias of git expands to.
    let is_resolved = |at: usize| {
        let text = |at: usize| invocation.words.get(at).and_then(Word::literal).unwrap_or("");
        let gives_alias = text(at).get(..6).is_some_and(|start| start.eq_ignore_ascii_case("alias."));
        invocation.transparent
            || (invocation.program_name() == Some("git") && gives_alias && text(at - 1) == "-c")
    };
    let words = (1..invocation.words.len()).filter(|at| !is_resolved(*at)).map(|at| &invocation.words[at]);
    (words.chain(given).any(names_it) && (runs || programs::examine(&invocation.words, &[]).is_err()))
        || passes_on(invocation, program)
}

/// True if a command sets a variable in which programs look for a command, and `program` is named in it.
fn sets_code(invocation: &SimpleCommand, program: &str) -> bool {
    const ENDS: [&str; 22] = [
        "ASKPASS",
        "BROWSER",
        "CLOSE",
        "COMMAND",
        "DIFF",
        "EDITOR",
        "FLAGS",
        "HELPER",
        "LINKER",
        "OPEN",
        "OPT",
        "OPTIONS",
        "OPTS",
        "PAGER",
        "RSH",
        "RUNNER",
        "RUSTC",
        "SHELL",
        "SSH",
        "VISUAL",
        "WRAPPER",
        "script_shell",
    ];
    let takes_a_command = |name: &str| {
        ENDS.iter().any(|end| name.ends_with(end))
            || name.starts_with("GIT_CONFIG_")
            || is_listed("AR AS CC CPP CXX FC LD MAKE", name)
    };
    let unquoted = |text: &str| Word::Literal(text.replace(['"', '\'', '\\'], ""));
    let names_it = |value: &Word| match value {
        Word::Literal(text) => names_program(value, program) || names_program(&unquoted(text), program),
        Word::Dynamic(dynamic) => {
            names_program(value, program) || names_program(&unquoted(&dynamic.tail), program)
        }
    };
    invocation.assignments.iter().any(|set| takes_a_command(&set.name) && names_it(&set.value))
}

/// True if a command may copy or move a program to another name.
fn passes_on(invocation: &SimpleCommand, program: &str) -> bool {
    let is_it = |word: &Word| {
        word.literal().is_some_and(|text| text.contains('/') && shell::basename(text) == program)
    };
    let writes = invocation.redirections.iter().any(|redirection| redirection.kind.writes());
    let copies = !only_reads_files(invocation) && !only_prints(invocation) || writes;
    copies && invocation.words.iter().skip(1).any(is_it)
}

/// True if a word of a program may be code, or a script of its own kind.
fn takes_code(name: &str) -> bool {
    runs_its_arguments(name) || matches!(name, "sed" | "gsed" | "jq") || !programs::is_known(name)
}

/// True if a command writes git's settings.
fn sets_git_config(invocation: &SimpleCommand) -> bool {
    if invocation.program_name() != Some("git") {
        return false;
    }
    let words = &invocation.words;
    match subcommand_index(words) {
        Some(at) => words[at].literal() == Some("config") && !programs::reads_git_config(words, at),
        None => words.iter().any(|word| word.known_prefix() == "config"),
    }
}

/// True if every git command in the line is read-only.
fn only_looks_with_git(analysis: &Analysis) -> bool {
    let mut uses =
        analysis.invocations.iter().filter(|invocation| invocation.program_name() == Some("git")).peekable();
    uses.peek().is_some() && uses.all(only_reads_files)
}
