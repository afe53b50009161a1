//! What a git command line does once its global options and its aliases are resolved. Deny and ask rules are
//! matched against the result.

use std::path::{Path, PathBuf};

use crate::paths::workspace::Workspace;
use crate::shell::options::is_listed;
use crate::shell::{self, SimpleCommand, Word};
use qwen_git::repository::Repository;
use qwen_git::settings::{Setting, settings_in};

/// Global options that take the next word.
const WITH_VALUE: &str = "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree";

/// How many aliases may lead to each other.
const MAX_ALIASES: usize = 6;

/// Subcommands of git itself, which no alias can replace.
const BUILTINS: &str = "add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file check-attr \
 check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index cherry cherry-pick clean clone column \
 commit commit-graph commit-tree config count-objects credential credential-cache credential-store daemon describe diagnose \
 diff diff-files diff-index diff-pairs diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch \
 fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects gc get-tar-commit-id grep hash-object help hook \
 http-backend http-fetch http-push imap-send index-pack init init-db instaweb interpret-trailers last-modified log ls-files \
 ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-octopus merge-one-file \
 merge-ours merge-recursive merge-resolve merge-subtree merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes \
 pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push quiltimport range-diff read-tree rebase \
 receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay \
 repo request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch \
 show-index show-ref sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file \
 unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack \
 verify-tag version whatchanged worktree write-tree";

/// The index of the subcommand, and so the number of words in front of it; `None` if there is none or it is
/// only known when the command runs.
pub(crate) fn subcommand_index(words: &[Word]) -> Option<usize> {
    let mut index = 1;
    loop {
        let text = words.get(index)?.literal()?;
        if is_listed(WITH_VALUE, text) {
            index += 2;
        } else if text.starts_with('-') {
            index += 1;
        } else {
            return Some(index);
        }
    }
}

/// The commands that an alias of git expands to.
#[derive(Debug, Default)]
pub(crate) struct GitActions {
    /// Each with its global options removed.
    pub(crate) commands: Vec<Vec<Word>>,
    /// There may be further ones, which are only known when it runs.
    pub(crate) is_incomplete: bool,
}

/// Where aliases are looked up.
pub(crate) struct AliasSources<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) search_path: &'a [PathBuf],
    /// Possible working directories; `None` if they are not known.
    pub(crate) directories: Option<&'a [PathBuf]>,
}

impl GitActions {
    /// Resolves a command; `None` if it is not git.
    pub(crate) fn find(invocation: &SimpleCommand, sources: &AliasSources<'_>) -> Option<Self> {
        let words = as_git(&invocation.words)?;
        let mut actions = Self::default();
        actions.resolve(&words, sources, MAX_ALIASES);
        let moves_settings = |name: &str| {
            name.starts_with("GIT_CONFIG")
                || is_listed("GIT_DIR GIT_EXEC_PATH HOME XDG_CONFIG_HOME PATH", name)
        };
        let is_builtin = actions.commands.iter().all(|command| is_known_subcommand(command));
        if !is_builtin && invocation.assignments.iter().any(|assignment| moves_settings(&assignment.name)) {
            actions.is_incomplete = true;
        }
        Some(actions)
    }

    fn resolve(&mut self, words: &[Word], sources: &AliasSources<'_>, depth: usize) {
        let Some(at) = subcommand_index(words) else {
            self.is_incomplete |= words.iter().any(|word| word.literal().is_none());
            self.commands.push(words.to_vec());
            return;
        };
        let mut command = vec![words[0].clone()];
        command.extend_from_slice(&words[at..]);
        let name = words[at].known_prefix().to_owned();
        self.commands.push(command);
        if is_listed(BUILTINS, &name) || sources.has_program(&name) {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else {
            self.is_incomplete = true;
            return;
        };
        let (values, complete) = sources.aliases(&name, &words[1..at]);
        self.is_incomplete |= !complete;
        for value in values {
            self.alias(&value, &words[..at], &words[at + 1..], sources, depth);
        }
    }

    /// Resolves an alias. The global options in `before` apply to every git command that it leads to.
    fn alias(
        &mut self,
        value: &str,
        before: &[Word],
        arguments: &[Word],
        sources: &AliasSources<'_>,
        depth: usize,
    ) {
        let Some(script) = value.strip_prefix('!') else {
            let mut words = before.to_vec();
            words.extend(split(value).into_iter().map(Word::Literal));
            words.extend_from_slice(arguments);
            self.resolve(&words, sources, depth);
            return;
        };
        let analysis = shell::analyse(script);
        self.is_incomplete |= analysis.unanalysable.is_some();
        for invocation in analysis.invocations.into_iter().filter(|invocation| !invocation.words.is_empty()) {
            // Git appends the arguments to the script, so they may belong to any of its commands.
            let mut words = invocation.words;
            words.extend_from_slice(arguments);
            match as_git(&words) {
                Some(words) => self.resolve(&[before, &words[1..]].concat(), sources, depth),
                None => self.commands.push(words),
            }
        }
    }
}

impl AliasSources<'_> {
    /// True if a program implements the subcommand. Git prefers it to an alias.
    fn has_program(&self, name: &str) -> bool {
        !name.contains('/')
            && self.search_path.iter().any(|entry| entry.join(format!("git-{name}")).is_file())
    }

    /// Every value that an alias may have, and whether there can be no others.
    fn aliases(&self, name: &str, globals: &[Word]) -> (Vec<String>, bool) {
        let mut values = Vec::new();
        let mut complete = self.directories.is_some();
        let mut places: Vec<PathBuf> = self.directories.unwrap_or_default().to_vec();
        let key = format!("alias.{name}").to_ascii_lowercase();
        let mut rest = globals.iter();
        while let Some(word) = rest.next() {
            let text = word.known_prefix();
            match (text, text.split_once('=')) {
                ("-c", _) => {
                    let Some(setting) = rest.next() else { break };
                    let given = setting.known_prefix();
                    let (given, value) = given.split_once('=').unwrap_or((given, ""));
                    if given.eq_ignore_ascii_case(&key) {
                        values.push(value.to_owned());
                        complete &= setting.literal().is_some();
                    }
                    complete &= !given.to_ascii_lowercase().starts_with("include") && !given.is_empty();
                }
                ("-C", _) => {
                    let other = rest.next().map(Word::known_prefix).unwrap_or_default();
                    for place in &mut places {
                        *place = self.workspace.place(Path::new(other), place).written;
                    }
                }
                ("--config-env" | "--git-dir" | "--exec-path", _)
                | (_, Some(("--config-env" | "--git-dir" | "--exec-path", _))) => complete = false,
                _ if is_listed(WITH_VALUE, text) => {
                    rest.next();
                }
                _ => {}
            }
        }
        for file in self.settings_files(&places, &mut complete) {
            let Some(settings) = settings_in(&file, self.workspace.home(), &|_| true) else {
                complete = false;
                continue;
            };
            let is_meant = |setting: &Setting| {
                let spelt = match &setting.subsection {
                    Some(subsection) if setting.key == "command" => subsection,
                    Some(_) => return false,
                    None => &setting.key,
                };
                setting.section == "alias" && spelt.eq_ignore_ascii_case(name)
            };
            values.extend(settings.into_iter().filter(is_meant).map(|setting| setting.value));
        }
        (values, complete)
    }

    /// The settings files of the repositories around some directories, of the user and of the system.
    fn settings_files(&self, places: &[PathBuf], complete: &mut bool) -> Vec<PathBuf> {
        let mut files = vec![PathBuf::from("/etc/gitconfig")];
        if let Some(home) = self.workspace.home() {
            files.extend([home.join(".gitconfig"), home.join(".config/git/config")]);
        }
        for place in places {
            match Repository::find(place, self.workspace) {
                Ok(repository) => files.extend(repository.iter().flat_map(Repository::settings_files)),
                Err(_) => *complete = false,
            }
        }
        files
    }
}

/// The words of a git command, with `git-push` read as `git push`.
fn as_git(words: &[Word]) -> Option<Vec<Word>> {
    let name = shell::basename(words.first()?.literal()?);
    let git = Word::Literal("git".to_owned());
    if name == "git" {
        return Some(std::iter::once(git).chain(words[1..].iter().cloned()).collect());
    }
    let subcommand = name.strip_prefix("git-").filter(|rest| is_listed(BUILTINS, rest))?;
    Some([git, Word::Literal(subcommand.to_owned())].into_iter().chain(words[1..].iter().cloned()).collect())
}

fn is_known_subcommand(command: &[Word]) -> bool {
    command.get(1).and_then(Word::literal).is_some_and(|name| is_listed(BUILTINS, name))
}

/// Splits the value of an alias as git does: at blanks, with quotes and backslashes.
fn split(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, character) if character.is_ascii_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(open), _) if character == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::{split, subcommand_index};
    use crate::shell::Word;

    #[test]
    fn the_value_of_an_alias_is_split_as_git_splits_it() {
        for (value, words) in [
            ("push", vec!["push"]),
            ("  log --format='%h  %s' ", vec!["log", "--format=%h  %s"]),
            ("a\\ b \"c \\\" d\" ''", vec!["a b", "c \" d", ""]),
        ] {
            assert_eq!(split(value), words, "{value}");
        }
    }

    #[test]
    fn the_subcommand_stands_behind_the_global_options() {
        let index = |line: &str| {
            let words: Vec<Word> = line.split(' ').map(|word| Word::Literal(word.to_owned())).collect();
            subcommand_index(&words)
        };
        assert_eq!(index("git push"), Some(1));
        assert_eq!(index("git -C x --no-pager -c a=b push"), Some(6));
        assert_eq!(index("git --git-dir=x --work-tree y log push"), Some(4));
        assert_eq!(index("git --version"), None);
    }
}
