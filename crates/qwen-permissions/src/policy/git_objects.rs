//! Content of denied files that git has stored: `git show`, `git diff --cached` or `git archive` print it from
//! objects, where no path is opened that the kernel could refuse. Where a rule denies to read tracked files,
//! git commands that may print objects ask, unless they name only other paths.

use std::path::{Path, PathBuf};

use qwen_events::{Behavior, ToolKind};
use qwen_git::index::{Index, object_bytes};
use qwen_git::layout;

use crate::git::command_line::{GitActions, subcommand_index};
use crate::paths::workspace::ResolvedPath;
use crate::policy::Policy;
use crate::rules::{Rule, Scope};
use crate::shell::options::is_listed;
use crate::shell::{Analysis, SimpleCommand, Word};

/// Subcommands that print no content of tracked files, with the options that [`shows_by_options`] leaves.
const PRINTS_NO_CONTENT: &str = "add am apply branch check-attr check-ignore check-mailmap check-ref-format checkout \
 cherry cherry-pick clean column commit commit-graph commit-tree config count-objects describe diff-files fetch for-each-ref fsck gc \
 hash-object help init interpret-trailers log ls-files ls-remote ls-tree maintenance merge merge-base mktag mktree \
 multi-pack-index mv name-rev notes pack-refs patch-id prune prune-packed pull push read-tree rebase reflog remote repack \
 rerere reset restore rev-list rev-parse revert rm shortlog show-branch show-ref sparse-checkout stage status stripspace \
 submodule switch symbolic-ref tag update-index update-ref update-server-info var verify-commit verify-pack verify-tag \
 version whatchanged write-tree";

/// Options that make a command print differences or search content, in full.
const SHOWING_OPTIONS: &str = "--binary --cc --check --color-words --diff-merges --ext-diff --function-context --lost-found \
 --output --output-indicator-new --patch --patch-with-stat --patch-with-raw --pickaxe-all --remerge-diff --show-current-patch \
 --stdin --textconv --unified --verbose --word-diff";

/// The letters of such options. `-v` shows differences for `status` and `commit` only.
const SHOWING_LETTERS: &[char] = &['p', 'u', 'U', 'c', 'L', 'S', 'G', 'W'];

/// Options with which a command that prints differences prints names and numbers only.
const SUMMARY_OPTIONS: &str = "--stat --numstat --shortstat --dirstat --name-only --name-status --no-patch --raw --summary -s \
 --compact-summary --quiet --exit-code -q";

/// Tracked paths that a rule denies to read, in the repositories that a line may work in.
struct DeniedObjects<'a> {
    rule: &'a Rule,
    /// `None` if it cannot be told which files are tracked.
    paths: Option<Vec<PathBuf>>,
}

impl Policy {
    /// The rule whose denied content a line may print from git's objects.
    pub(crate) fn shows_denied_objects(
        &self,
        actions: &[Option<GitActions>],
        analysis: &Analysis,
        directories: &[PathBuf],
        cwd: &Path,
    ) -> Option<&Rule> {
        let is_about =
            |rule: &&Rule| matches!(rule.scope, Scope::Path(_)) && self.concerns_kind(rule, ToolKind::Read);
        let mut rules = self.rules(Behavior::Deny).iter().filter(is_about).peekable();
        rules.peek()?;
        let may_show: Vec<&Vec<Word>> = actions
            .iter()
            .flatten()
            .flat_map(|actions| &actions.commands)
            .filter(|words| words.first().and_then(Word::literal) == Some("git") && prints_objects(words))
            .collect();
        let is_incomplete = actions.iter().flatten().any(|actions| actions.is_incomplete)
            || (actions.iter().flatten().next().is_some() && analysis.invocations.iter().any(moves_git));
        if may_show.is_empty() && !is_incomplete {
            return None;
        }
        let denied: Vec<DeniedObjects<'_>> =
            rules.filter_map(|rule| self.tracked_by(rule, directories, cwd)).collect();
        let shows = |denied: &&DeniedObjects<'_>| {
            is_incomplete || may_show.iter().any(|words| !self.names_only_others(words, denied, directories))
        };
        denied.iter().find(shows).map(|denied| denied.rule)
    }

    /// The tracked paths that a rule denies, in the repositories around some directories.
    fn tracked_by<'a>(
        &self,
        rule: &'a Rule,
        directories: &[PathBuf],
        cwd: &Path,
    ) -> Option<DeniedObjects<'a>> {
        let Scope::Path(pattern) = &rule.scope else { return None };
        let mut found = Vec::new();
        let mut roots: Vec<&Path> = Vec::new();
        for directory in directories
            .iter()
            .map(PathBuf::as_path)
            .chain(self.workspace.roots().iter().map(PathBuf::as_path))
        {
            let is_root = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
            roots.extend(directory.ancestors().find(is_root));
        }
        roots.sort_unstable();
        roots.dedup();
        for root in roots {
            let Some(git_directory) = layout::directory(root) else { continue };
            let common = layout::common_directory(&git_directory).unwrap_or_else(|| git_directory.clone());
            let index = match Index::read(&git_directory, object_bytes(&common)) {
                Ok(Some(index)) => index,
                Ok(None) => continue,
                Err(_) => return Some(DeniedObjects { rule, paths: None }),
            };
            found.extend(index.entries.iter().map(|entry| root.join(&entry.path)).filter(|path| {
                let place = ResolvedPath { written: path.clone(), real: Some(path.clone()) };
                pattern.forbids(&place, &self.workspace, self.anchor(cwd))
            }));
        }
        (!found.is_empty()).then_some(DeniedObjects { rule, paths: Some(found) })
    }

    /// True if a command is limited to paths that are not denied, or prints no more than names and numbers.
    fn names_only_others(&self, words: &[Word], denied: &DeniedObjects<'_>, directories: &[PathBuf]) -> bool {
        let Some(paths) = &denied.paths else { return false };
        let Some(texts) = words.iter().skip(1).map(Word::literal).collect::<Option<Vec<&str>>>() else {
            return false;
        };
        let (Some(subcommand), arguments) = (texts.first().copied(), texts.get(1..).unwrap_or_default())
        else {
            return false;
        };
        let is_summary = is_listed("show diff stash whatchanged diff-tree diff-index", subcommand)
            && arguments.iter().any(|text| is_listed(SUMMARY_OPTIONS, text) || text.starts_with("--stat="))
            && !shows_by_options(subcommand, arguments);
        if is_summary {
            return true;
        }
        // Shows whole commits that changed the paths.
        if arguments.iter().take_while(|text| **text != "--").any(|text| is_option(text, "--full-diff")) {
            return false;
        }
        // Lists and searches of content reach objects by other ways than by their paths.
        if !is_listed("show diff log blame annotate grep cat-file archive diff-tree diff-index", subcommand) {
            return false;
        }
        let is_other = |text: &str| {
            let is_plain =
                !text.is_empty() && !text.starts_with(':') && !text.contains(['*', '?', '[', '\\']);
            is_plain
                && directories.iter().all(|directory| {
                    let place = self.workspace.place(Path::new(text), directory);
                    paths.iter().all(|path| {
                        place.forms().all(|form| !path.starts_with(form) && !form.starts_with(path))
                    })
                })
        };
        // `REVISION:PATH` names one object by its path from the root.
        let named = |text: &str| {
            text.split_once(':').is_some_and(|(revision, path)| {
                !revision.is_empty()
                    && !path.starts_with(['.', '/'])
                    && !path.is_empty()
                    && is_other_object(path, paths)
            })
        };
        let (operands, limits) = match arguments.iter().position(|text| *text == "--") {
            Some(at) => (&arguments[..at], Some(&arguments[at + 1..])),
            None => (arguments, None),
        };
        let mut operands = operands.iter().filter(|text| !text.starts_with('-')).peekable();
        if let Some(limits) = limits.filter(|limits| !limits.is_empty()) {
            return limits.iter().all(|limit| is_other(limit));
        }
        let exists = |text: &str| directories.iter().any(|directory| directory.join(text).exists());
        operands.peek().is_some()
            && operands
                .all(|text| named(text) || (exists(text) && is_other(text) && subcommand != "cat-file"))
    }
}

/// True if a command gives git another working tree, repository or index, where what it checks out is not
/// protected, or lets it find denied paths under other names.
fn moves_git(invocation: &SimpleCommand) -> bool {
    const VARIABLES: &str = "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR \
     GIT_ICASE_PATHSPECS";
    const OPTIONS: &str = "--git-dir --work-tree --icase-pathspecs";
    let sets =
        |word: &Word| word.known_prefix().split_once('=').is_some_and(|(name, _)| is_listed(VARIABLES, name));
    let is_git = invocation.program_name() == Some("git");
    let end = subcommand_index(&invocation.words).unwrap_or(invocation.words.len());
    let options = invocation.words.iter().take(end).map(Word::known_prefix);
    // Shows the staged content to the editor of a commit.
    let is_verbose = |text: &str| text.to_ascii_lowercase().contains("commit.verbose");
    let mut moving =
        options.filter(|text| OPTIONS.split(' ').any(|option| text.starts_with(option)) || is_verbose(text));
    let sets_up_git = |name: &str| is_listed(VARIABLES, name) || name.starts_with("GIT_CONFIG");
    (is_git && moving.next().is_some())
        || invocation.assignments.iter().any(|set| sets_up_git(&set.name))
        || (!is_git && invocation.words.iter().any(sets))
}

/// True if a word names a repository by its place on this machine.
fn is_local(text: &&str) -> bool {
    text.starts_with(['.', '/', '~']) || text.starts_with("file:") || text.contains("../")
}

/// True if a path from the root of a repository is neither denied nor above what is.
fn is_other_object(path: &str, denied: &[PathBuf]) -> bool {
    let path = path.trim_end_matches('/');
    !denied.iter().any(|denied| denied.ends_with(path) || path_is_above(path, denied))
}

/// True if a relative path may be a directory above a denied path, whatever the root is.
fn path_is_above(path: &str, denied: &Path) -> bool {
    denied.ancestors().skip(1).any(|above| above.ends_with(path))
}

/// True if a git command, without global options, may print content of tracked files.
fn prints_objects(words: &[Word]) -> bool {
    let Some(subcommand) = words.get(1) else { return false };
    let Some(subcommand) = subcommand.literal() else { return true };
    let texts: Vec<&str> = words.iter().skip(2).map(Word::known_prefix).collect();
    let hides_option = words.iter().skip(2).any(Word::may_hide_an_option);
    match subcommand {
        // The files of the working tree, which the kernel protects, against the index.
        "diff" => {
            let is_staged = |text: &&&str| is_option(text, "--cached --staged --merge-base");
            hides_option
                || texts.iter().any(|text| is_staged(&text))
                || texts.iter().take_while(|text| **text != "--").any(|text| !text.starts_with('-'))
        }
        "grep" => {
            let mut operands =
                texts.iter().take_while(|text| **text != "--").filter(|text| !text.starts_with('-'));
            hides_option
                || texts.iter().any(|text| is_option(text, "--cached --recurse-submodules"))
                || operands.nth(1).is_some()
                || texts.iter().any(|text| text.starts_with("-e") || text.starts_with("-f"))
        }
        "cat-file" => hides_option || !texts.first().is_some_and(|text| matches!(*text, "-t" | "-s" | "-e")),
        "stash" => {
            let action = texts.iter().find(|text| !text.starts_with('-')).copied().unwrap_or("push");
            let is_quiet = is_listed("apply clear create drop list pop push save store", action);
            !is_quiet
                || hides_option
                || (action == "list" && shows_by_options("log", &texts))
                || selects_parts(&texts)
        }
        "worktree" => {
            let action = texts.iter().find(|text| !text.starts_with('-')).copied().unwrap_or("list");
            !is_listed("list lock move prune remove repair unlock", action)
        }
        "bisect" => texts.first().is_none_or(|action| is_listed("view visualize run", action)),
        "checkout" | "commit" | "reset" | "restore" if selects_parts(&texts) => true,
        "rebase" if runs_commands(&texts) => true,
        "merge" | "pull" | "cherry-pick" | "rebase" | "revert"
            if texts.iter().any(|text| text.contains("subtree")) =>
        {
            true
        }
        // The content of what a name leads to.
        "for-each-ref" | "tag" | "branch" if texts.iter().any(|text| text.contains("%(raw)")) => true,
        // Into a directory or a repository that no rule is about.
        "read-tree" if texts.iter().any(|text| is_option(text, "--prefix")) => true,
        "submodule" if texts.iter().any(|text| matches!(*text, "add" | "foreach")) => true,
        "fetch" | "pull" | "push" | "remote" if texts.iter().any(is_local) => true,
        _ if is_listed(PRINTS_NO_CONTENT, subcommand) => hides_option || shows_by_options(subcommand, &texts),
        _ => true,
    }
}

/// True if `rebase` runs commands between commits.
fn runs_commands(arguments: &[&str]) -> bool {
    let is_short = |text: &str| !text.starts_with("--") && text.starts_with('-') && text.contains('x');
    arguments.iter().any(|text| is_short(text) || is_option(text, "--exec"))
}

/// True if a command shows differences, so that its user can select some of them.
fn selects_parts(arguments: &[&str]) -> bool {
    arguments.iter().take_while(|text| **text != "--").any(|text| {
        if text.starts_with("--") {
            return is_option(text, "--patch --interactive");
        }
        let letters = text.strip_prefix('-').unwrap_or("");
        // What follows these letters is their value.
        letters
            .split(['b', 'B', 'c', 'C', 'F', 'm', 's', 'U'])
            .next()
            .is_some_and(|letters| letters.contains('p'))
    })
}

/// True if an option makes a command print content.
fn shows_by_options(subcommand: &str, arguments: &[&str]) -> bool {
    let takes_differences = is_listed(
        "log reflog rev-list show diff whatchanged shortlog diff-tree diff-index diff-files show-branch stash",
        subcommand,
    );
    let shows_when_verbose = matches!(subcommand, "status" | "commit");
    arguments.iter().take_while(|text| **text != "--").any(|text| {
        if text.starts_with("--") {
            return is_option(text, SHOWING_OPTIONS)
                && (takes_differences
                    || shows_when_verbose
                    || !is_option(text, "--patch --verbose --check --stdin --binary"));
        }
        let Some(letters) = text.strip_prefix('-') else { return false };
        let is_number = letters.starts_with(|first: char| first.is_ascii_digit() || first == 'n');
        (takes_differences && !is_number && letters.contains(SHOWING_LETTERS))
            || (shows_when_verbose
                && !letters.starts_with(['m', 'F', 'C', 'u'])
                && letters.split('m').next().is_some_and(|letters| letters.contains('v')))
    })
}

/// True if a word is one of the options, or an abbreviation of one, with or without a value.
fn is_option(text: &str, options: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    name.len() > 2 && name.starts_with("--") && options.split(' ').any(|option| option.starts_with(name))
}
