//! Whether everything that a command line does is covered: by a rule, or because it only reads in the
//! workspace.

use std::cell::OnceCell;
use std::path::{Component, Path, PathBuf};

use qwen_events::{Behavior, ToolKind, Verdict};

use crate::DeclaredCall;
use crate::git::hardening::GitHardening;
use crate::paths::argument_paths::expand;
use crate::policy::Policy;
use crate::programs::{self, Use};
use crate::rules::{Rule, Scope};
use crate::shell::builtins::is_plain_variable;
use crate::shell::options::is_listed;
use crate::shell::{Analysis, Assignment, Dynamic, Redirection, RedirectionKind, SimpleCommand, Word};
use qwen_git::repository::Irregular;

/// Most directories that a line may change to.
const MAX_DIRECTORIES: usize = 16;

/// The most directory entries that are looked at for links.
const MAX_ENTRIES: usize = 20_000;

const UNFOLLOWED: &str = "cd leads somewhere that is not spelt out";

/// The reason why something is not covered, phrased as the end of a sentence.
type Problem = String;

/// The question for one command line.
pub(crate) struct Coverage<'a> {
    policy: &'a Policy,
    tool: &'a str,
    cwd: &'a Path,
    analysis: &'a Analysis,
    directories: OnceCell<Result<Vec<PathBuf>, Problem>>,
    git_hardening: OnceCell<Result<GitHardening, Problem>>,
}

/// A rule that covers a command, and which words it lists literally.
struct Covered<'a> {
    rule: &'a Rule,
    named: Vec<bool>,
}

/// Why a line may run without a question.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Covering<'a> {
    /// The first rule that was needed.
    Rule(&'a Rule),
    /// Its commands only read, and its output goes to files that may be edited.
    Redirections,
    Reads,
}

/// True if a redirection changes a file.
fn writes_file(redirection: &Redirection) -> bool {
    let is_stream = matches!(redirection.target.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr"));
    redirection.kind.writes() && redirection.kind != RedirectionKind::Duplicate && !is_stream
}

impl<'a> Coverage<'a> {
    pub(crate) fn new(policy: &'a Policy, tool: &'a str, cwd: &'a Path, analysis: &'a Analysis) -> Self {
        let (directories, git_hardening) = (OnceCell::new(), OnceCell::new());
        Self { policy, tool, cwd, analysis, directories, git_hardening }
    }

    /// Checks that the line only reads in the workspace.
    pub(crate) fn by_reading(&self) -> Result<(), Problem> {
        if let Some(reason) = &self.analysis.unanalysable {
            return Err(reason.clone());
        }
        if self.analysis.defines_functions {
            return Err("it defines a function".to_owned());
        }
        for invocation in &self.analysis.invocations {
            self.surroundings(invocation, false)?;
            self.reads(invocation)?;
        }
        Ok(())
    }

    /// Whether each command is covered by a rule, or only reads apart from its redirections.
    pub(crate) fn by_rules(&self) -> Result<Covering<'a>, Problem> {
        let mut needed = None;
        let mut covered: Vec<Option<Covered<'a>>> = Vec::new();
        for invocation in &self.analysis.invocations {
            let by_rule = self.rule_for(invocation, &covered);
            if by_rule.is_none() {
                self.surroundings(invocation, true)?;
                self.reads(invocation).map_err(|problem| self.refusal(invocation).unwrap_or(problem))?;
            } else {
                self.redirections(invocation, true)?;
                self.unshadowed(invocation, false)?;
                if let Ok(used) = programs::examine(&invocation.words, &[]) {
                    self.git_is_tame(&used)?;
                }
            }
            needed = needed.or(by_rule.as_ref().map(|covered| covered.rule));
            covered.push(by_rule);
        }
        let mut redirections =
            self.analysis.invocations.iter().flat_map(|invocation| &invocation.redirections);
        Ok(match needed {
            Some(rule) => Covering::Rule(rule),
            None if redirections.any(writes_file) => Covering::Redirections,
            None => Covering::Reads,
        })
    }

    /// The rule that covers a command, its assignments included.
    fn rule_for(&self, invocation: &SimpleCommand, before: &[Option<Covered<'a>>]) -> Option<Covered<'a>> {
        if invocation.words.is_empty() {
            return None;
        }
        // A rule for a wrapper covers the wrapped command only if it lists that literally.
        if let Some(wrapped_by) = invocation.wrapped_by
            && let Some(outer) = before.get(wrapped_by.invocation).and_then(Option::as_ref)
        {
            let named = outer.named.get(wrapped_by.word..).unwrap_or(&[]);
            let spelt = named.first() == Some(&true) && invocation.assignments.is_empty();
            if spelt && programs::examine(&invocation.words, named).is_ok() {
                return Some(Covered { rule: outer.rule, named: named.to_vec() });
            }
        }
        let unusual: Vec<Word> = invocation
            .assignments
            .iter()
            .filter(|assignment| !is_harmless(assignment))
            .map(spelt_out)
            .collect();
        let spelt: Vec<Word> = unusual.iter().chain(&invocation.words).cloned().collect();
        let rules = self.policy.rules(Behavior::Allow).iter().filter(|rule| rule.concerns(self.tool));
        rules.into_iter().find_map(|rule| {
            let Scope::Command(pattern) = &rule.scope else { return None };
            let named = pattern.covers(&spelt)?;
            let (assignments, words) = named.split_at(unusual.len());
            let covers =
                assignments.iter().all(|named| *named) && programs::examine(&invocation.words, words).is_ok();
            covers.then(|| Covered { rule, named: words.to_vec() })
        })
    }

    /// Why a rule that is about this command does not cover it.
    fn refusal(&self, invocation: &SimpleCommand) -> Option<Problem> {
        let about =
            self.policy.rules(Behavior::Allow).iter().filter(|rule| rule.concerns(self.tool)).find_map(
                |rule| {
                    let Scope::Command(pattern) = &rule.scope else { return None };
                    let named = pattern.covers(&invocation.words)?;
                    programs::examine(&invocation.words, &named).err().map(|problem| (rule, problem))
                },
            );
        about.map(|(rule, problem)| format!("the rule {} does not cover it, because {problem}", rule.text()))
    }

    /// Whether a command only reads, and only in the workspace.
    fn reads(&self, invocation: &SimpleCommand) -> Result<(), Problem> {
        let Some(program) = invocation.program() else { return Ok(()) };
        self.unshadowed(invocation, true)?;
        // The wrapped command is judged separately.
        if invocation.transparent {
            return Ok(());
        }
        // What other commands of the line print is theirs to be judged.
        let prints = matches!(program, "echo" | "printf");
        let is_shown = |word: &Word| is_visible(word) || (prints && has_no_variable(word));
        let hidden = invocation.words.iter().find(|word| !is_shown(word));
        if let Some(word) = hidden.filter(|_| !matches!(program, "[[" | "[" | "test")) {
            let known = match word.known_prefix() {
                "" => String::new(),
                prefix => format!(" ({prefix}…)"),
            };
            return Err(format!("an argument of {program} is only known when it runs{known}"));
        }
        let used = programs::examine(&invocation.words, &[])?;
        if !used.only_reads {
            // A program with a path is not the one that its name suggests.
            let name = invocation.name_with_subcommand().filter(|name| name.starts_with(program));
            let name = name.as_deref().unwrap_or(program);
            return Err(format!("{name} is not known to be read-only"));
        }
        // The shell itself reads directories to expand patterns, independent of the program.
        let patterns = invocation.words.iter().filter(|word| word.literal().is_none() && is_visible(word));
        for pattern in patterns.filter(|_| program != "[[") {
            self.path_stays_inside(pattern, &self.directories()?)?;
        }
        if invocation.in_background {
            return Err(format!("{program} runs in the background"));
        }
        self.stays_inside(program, &used)
    }

    fn stays_inside(&self, program: &str, used: &Use) -> Result<(), Problem> {
        let directories = self.directories()?;
        for path in &used.paths {
            match path {
                // A plain variable holds a value from the line or from the user's environment.
                Word::Dynamic(dynamic) if is_a_variable(dynamic) => {
                    let given =
                        self.analysis.invocations.iter().flat_map(|invocation| &invocation.assignments);
                    for assignment in given {
                        self.path_stays_inside(&assignment.value, &directories)?;
                    }
                }
                path => self.path_stays_inside(path, &directories)?,
            }
        }
        if used.follows_links {
            self.links_stay_inside(program, used, &directories)?;
        }
        self.git_is_tame(used)
    }

    /// Checks that read-only git can be prevented from running programs in the repository's settings.
    fn git_is_tame(&self, used: &Use) -> Result<(), Problem> {
        match used.git {
            Some(_) if used.only_reads => self.git_hardening().map(drop),
            _ => Ok(()),
        }
    }

    /// The hardening for all git commands of the line, or why it cannot be determined.
    pub(crate) fn git_hardening(&self) -> Result<GitHardening, Problem> {
        self.git_hardening.get_or_init(|| self.harden_git()).clone()
    }

    fn harden_git(&self) -> Result<GitHardening, Problem> {
        for invocation in &self.analysis.invocations {
            let moves_git = |assignment: &&Assignment| {
                assignment.name.starts_with("GIT_") || is_listed("HOME XDG_CONFIG_HOME", &assignment.name)
            };
            if let Some(assignment) = invocation.assignments.iter().find(moves_git) {
                return Err(format!("{} changes which settings git uses", assignment.name));
            }
            let clears = |word: &Word| word.known_prefix().starts_with('-');
            if invocation.program_name() == Some("env") && invocation.words.get(1).is_some_and(clears) {
                return Err("env may take away the variables that restrict git".to_owned());
            }
        }
        let workspace = &self.policy.workspace;
        let here = self.followed_directories()?;
        let mut directories = here.clone();
        for invocation in &self.analysis.invocations {
            let used = programs::examine(&invocation.words, &[]).ok();
            let Some(chain) = used.and_then(|used| used.git).filter(|chain| !chain.is_empty()) else {
                continue;
            };
            let mut places = here.clone();
            for word in &chain {
                let other = word
                    .literal()
                    .ok_or_else(|| "the directory of git is only known when it runs".to_owned())?;
                for place in &mut places {
                    *place = place.join(other);
                }
            }
            directories.extend(places);
        }
        let real: Option<Vec<PathBuf>> =
            directories.iter().map(|directory| workspace.place(directory, self.cwd).real).collect();
        let real = real.ok_or_else(|| "its directory leads in a circle".to_owned())?;
        GitHardening::collect(real.iter().map(PathBuf::as_path), workspace)
            .map_err(|Irregular(problem)| problem.to_owned())
    }

    /// The directories that the line may be in while it runs, inside of the workspace or not. Fails if a
    /// change of directory cannot be followed.
    pub(crate) fn followed_directories(&self) -> Result<Vec<PathBuf>, Problem> {
        let mut directories = vec![self.cwd.to_owned()];
        for invocation in &self.analysis.invocations {
            match invocation.program_name() {
                Some("cd") => {}
                Some("pushd" | "popd" | "chdir" | "chroot" | "nsenter" | "unshare") => {
                    return Err("its changes of directory cannot be followed".to_owned());
                }
                _ => continue,
            }
            let target = match invocation.words.as_slice() {
                [_, target] => target.literal(),
                _ => None,
            };
            let is_plain = |target: &&str| {
                !target.is_empty()
                    && !target.starts_with('-')
                    && (!target.starts_with('~') || *target == "~" || target.starts_with("~/"))
            };
            let target = target.filter(is_plain).ok_or_else(|| UNFOLLOWED.to_owned())?;
            for directory in directories.clone() {
                let place = self.policy.workspace.place(Path::new(target), &directory);
                for form in place.forms() {
                    if !directories.iter().any(|known| known == form) {
                        directories.push(form.to_owned());
                    }
                }
            }
            if directories.len() > MAX_DIRECTORIES {
                return Err("it changes through too many directories".to_owned());
            }
        }
        Ok(directories)
    }

    fn path_stays_inside(&self, path: &Word, directories: &[PathBuf]) -> Result<(), Problem> {
        let text = path.known_prefix();
        if matches!(path.literal(), Some("-" | "/dev/null" | "/dev/stdin")) {
            return Ok(());
        }
        // The reason repeats what the command says, and never what was found by following it.
        let shown = match path {
            Word::Literal(text) => text.clone(),
            Word::Dynamic(dynamic) => dynamic.glob.clone().unwrap_or_else(|| format!("{text}…")),
        };
        let outside = || format!("{shown} is outside the workspace");
        if text.starts_with('~') || (directories.len() > 1 && climbs(Path::new(text))) {
            return Err(outside());
        }
        let is_inside = |path: &Path, directory: &Path| {
            self.policy.workspace.contains(&self.policy.workspace.place(path, directory))
        };
        for directory in directories {
            let found = match path {
                Word::Literal(text) => vec![PathBuf::from(text)],
                Word::Dynamic(dynamic) => {
                    let start = text.rsplit_once('/').map_or("", |(start, _)| start);
                    let start =
                        if text.starts_with('/') { Path::new("/").join(start) } else { PathBuf::from(start) };
                    if !is_inside(&start, directory) {
                        return Err(outside());
                    }
                    dynamic
                        .glob
                        .as_deref()
                        .and_then(|glob| expand(glob, directory))
                        .ok_or_else(|| format!("{text}… matches more files than can be examined"))?
                }
            };
            if !found.iter().all(|path| is_inside(path, directory)) {
                return Err(outside());
            }
        }
        Ok(())
    }

    /// The directories that the line may be in while it runs.
    fn directories(&self) -> Result<Vec<PathBuf>, Problem> {
        self.directories.get_or_init(|| self.possible_directories()).clone()
    }

    fn possible_directories(&self) -> Result<Vec<PathBuf>, Problem> {
        let mut directories = vec![self.cwd.to_owned()];
        for invocation in &self.analysis.invocations {
            if invocation.program_name() != Some("cd") {
                continue;
            }
            let target = match invocation.words.as_slice() {
                [_, target] => target.literal(),
                _ => None,
            };
            let plain = |target: &&str| {
                !target.is_empty() && !target.starts_with(['-', '~']) && !climbs(Path::new(target))
            };
            let Some(target) = target.filter(plain) else {
                return Err(UNFOLLOWED.to_owned());
            };
            let further: Vec<PathBuf> = directories.iter().map(|directory| directory.join(target)).collect();
            for directory in further {
                if !directories.contains(&directory) {
                    directories.push(directory);
                }
            }
            if directories.len() > MAX_DIRECTORIES {
                return Err("it changes through too many directories".to_owned());
            }
        }
        let workspace = &self.policy.workspace;
        match directories.iter().find(|directory| !workspace.contains(&workspace.place(directory, self.cwd)))
        {
            Some(outside) => Err(format!("{} is outside the workspace", outside.display())),
            None => Ok(directories),
        }
    }

    /// Whether every link below the directories that a program follows links in leads to the workspace.
    fn links_stay_inside(&self, program: &str, used: &Use, directories: &[PathBuf]) -> Result<(), Problem> {
        let named = used.paths.iter().flat_map(|path| {
            directories
                .iter()
                .map(|directory| self.policy.workspace.place(Path::new(path.known_prefix()), directory))
        });
        let mut ahead: Vec<PathBuf> =
            named.filter_map(|place| place.real).filter(|path| path.is_dir()).collect();
        let mut budget = MAX_ENTRIES;
        while let Some(directory) = ahead.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Some(left) = budget.checked_sub(1) else {
                    return Err(format!("{program} follows links in more files than can be examined"));
                };
                budget = left;
                let Ok(kind) = entry.file_type() else { continue };
                let place = kind.is_symlink().then(|| self.policy.workspace.place(&entry.path(), &directory));
                if place.is_some_and(|place| !self.policy.workspace.contains(&place)) {
                    return Err(format!("{program} follows links that lead out of the workspace"));
                }
                if kind.is_dir() {
                    ahead.push(entry.path());
                }
            }
        }
        Ok(())
    }

    /// Checks the assignments and redirections of a command.
    fn surroundings(&self, invocation: &SimpleCommand, may_write: bool) -> Result<(), Problem> {
        let on_its_own = invocation.words.is_empty();
        for assignment in &invocation.assignments {
            let plain = (on_its_own || assignment.in_loop) && is_plain_variable(&assignment.name);
            if !plain && !is_harmless(assignment) {
                return Err(format!("it sets the variable {}", assignment.name));
            }
        }
        self.redirections(invocation, may_write)
    }

    fn redirections(&self, invocation: &SimpleCommand, may_write: bool) -> Result<(), Problem> {
        invocation.redirections.iter().try_for_each(|redirection| self.redirection(redirection, may_write))
    }

    fn redirection(&self, redirection: &Redirection, may_write: bool) -> Result<(), Problem> {
        let writes = redirection.kind.writes();
        let target = match (redirection.kind, redirection.target.literal()) {
            (RedirectionKind::Duplicate, _) | (_, Some("/dev/null")) => return Ok(()),
            (RedirectionKind::Here, Some(_)) => return Ok(()),
            (RedirectionKind::Here, None) => return Err("its input is only known when it runs".to_owned()),
            (_, Some("/dev/stdout" | "/dev/stderr")) if writes => return Ok(()),
            (_, Some(target)) if target.starts_with('~') => {
                return Err(format!("it goes to or from {target}"));
            }
            (_, Some(target)) => target,
            (_, None) => return Err("where it goes to or comes from is only known when it runs".to_owned()),
        };
        if writes && !may_write {
            return Err(format!("it writes {target}"));
        }
        let kind = if writes { ToolKind::Edit } else { ToolKind::Read };
        let tool = self.policy.tools.first(kind).map_or("", |declared| declared.name);
        for directory in self.directories()? {
            let path = directory.join(target);
            let call = DeclaredCall::new(tool, kind, self.cwd).with_paths([path]);
            if self.policy.judge(&call).decision.verdict != Verdict::Allow {
                return Err(format!("it {} {target}", if writes { "writes" } else { "reads" }));
            }
        }
        Ok(())
    }

    /// Checks that a program is the well-known one of its name, and not one from the workspace that shadows
    /// it.
    fn unshadowed(&self, invocation: &SimpleCommand, known: bool) -> Result<(), Problem> {
        let Some(program) = invocation.program().filter(|program| !program.contains('/')) else {
            return Ok(());
        };
        let inside = |entry: &Path| {
            !entry.is_absolute()
                || self.policy.workspace.contains(&self.policy.workspace.place(entry, self.cwd))
        };
        let mut entries =
            self.policy.search_path.iter().filter(|entry| self.cwd.join(entry).join(program).exists());
        match entries.next() {
            // A rule for a program that exists only in the workspace refers to that program.
            Some(first) if inside(first) && (known || entries.any(|entry| !inside(entry))) => {
                Err(format!("{program} is a file of the workspace, in {}", first.display()))
            }
            _ => Ok(()),
        }
    }
}

/// True if a word can be seen through: a text, or a pattern for file names.
fn is_visible(word: &Word) -> bool {
    match word {
        Word::Literal(_) => true,
        Word::Dynamic(dynamic) => dynamic.glob.is_some(),
    }
}

/// True if nothing that is only known later in a word comes from a variable.
fn has_no_variable(word: &Word) -> bool {
    matches!(word, Word::Dynamic(dynamic) if dynamic.without_variables)
}

/// True if a word is a variable and nothing else.
fn is_a_variable(dynamic: &Dynamic) -> bool {
    !dynamic.made && dynamic.glob.is_none() && dynamic.prefix.is_empty() && dynamic.tail.is_empty()
}

/// True if a path contains `..`.
fn climbs(path: &Path) -> bool {
    path.components().any(|component| component == Component::ParentDir)
}

/// True if a variable only affects presentation.
fn is_harmless(assignment: &Assignment) -> bool {
    let name = assignment.name.as_str();
    let listed = name.starts_with("LC_")
        || matches!(
            name,
            "CI" | "CLICOLOR"
                | "CLICOLOR_FORCE"
                | "COLUMNS"
                | "FORCE_COLOR"
                | "LANG"
                | "LANGUAGE"
                | "LINES"
                | "NO_COLOR"
                | "TERM"
                | "TZ"
        );
    let plain = |value: &str| {
        !value.starts_with(['/', ':'])
            && !value.contains("..")
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@+-/".contains(&byte))
    };
    let listed = listed
        || matches!(name, "CARGO_TERM_COLOR" | "PYTHONUNBUFFERED" | "RUST_BACKTRACE" | "RUST_LOG")
        || (name == "NODE_ENV"
            && matches!(assignment.value.literal(), Some("development" | "production" | "test")));
    listed && !assignment.in_loop && assignment.value.literal().is_some_and(plain)
}

/// An assignment as a word, in the form that a rule uses.
fn spelt_out(assignment: &Assignment) -> Word {
    match assignment.value.literal() {
        Some(value) => Word::Literal(format!("{}={value}", assignment.name)),
        None => Word::anything(),
    }
}
