//! Git in a repository that may not be ours: its settings can name programs, and looking must not start them.
//!
//! What a setting of a fixed name can do is switched off from outside, by [`git_hardening_env`]. Drivers have names of
//! their own choice (`filter.x.clean`, `diff.x.textconv`) and cannot be; a repository that has settings which are not
//! known to be harmless is therefore looked at only after asking.

use std::path::{Path, PathBuf};

/// Settings that are overridden, because a repository can make them run something.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("interactive.diffFilter", "cat"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Variables that are set.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// The largest settings file that is read.
const MAX_SETTINGS: u64 = 256 * 1024;

/// The environment in which git only looks, whatever the repository's settings say.
pub fn git_hardening_env() -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    env.push(("GIT_CONFIG_COUNT".to_owned(), OVERRIDES.len().to_string()));
    for (index, (key, value)) in OVERRIDES.iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned()));
    }
    env
}

/// Variables that must not be there when git only looks.
pub fn git_hardening_unset() -> &'static [&'static str] {
    &[
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_PROXY_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_DIR",
        "GIT_WORK_TREE",
    ]
}

/// Whether the settings of the repository around a directory can run nothing that the environment does not switch off.
pub(super) fn repository_is_inert(directory: &Path) -> bool {
    if directory.components().any(|part| part.as_os_str() == ".git") {
        return false;
    }
    let Some(dot_git) =
        directory.ancestors().map(|above| above.join(".git")).find(|path| path.symlink_metadata().is_ok())
    else {
        return true;
    };
    let Some(git_dir) = git_directory(&dot_git) else { return false };
    let elsewhere = git_dir.join("commondir");
    let common = match elsewhere.symlink_metadata() {
        Ok(_) => match read_bounded(&elsewhere) {
            Some(path) => git_dir.join(path.trim_end_matches('\n')),
            None => return false,
        },
        Err(_) => git_dir.clone(),
    };
    let modules = dot_git.with_file_name(".gitmodules");
    settings_are_inert(&common.join("config"))
        && settings_are_inert(&git_dir.join("config.worktree"))
        && settings_are_inert(&modules)
}

/// The directory that a `.git` is or points to.
fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let text = read_bounded(dot_git)?;
    let path = text.strip_prefix("gitdir:")?.trim();
    Some(dot_git.parent()?.join(path))
}

fn settings_are_inert(path: &Path) -> bool {
    if path.symlink_metadata().is_err() {
        return true;
    }
    read_bounded(path).is_some_and(|text| text_is_inert(&text))
}

fn read_bounded(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_SETTINGS {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// Whether every setting in a file is known to run nothing, or is overridden.
fn text_is_inert(text: &str) -> bool {
    let mut section = String::new();
    for line in text.lines() {
        let mut rest = line.trim();
        while let Some(header) = rest.strip_prefix('[') {
            // A closing bracket inside of quotes would only end our reading early, and leave a key we do not know.
            let Some((name, after)) = header.split_once(']') else { return false };
            section = name.split([' ', '.', '"', '\t']).next().unwrap_or("").to_ascii_lowercase();
            if !section_is_known(&section) {
                return false;
            }
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let key = rest.split(['=', ' ', '\t']).next().unwrap_or("").to_ascii_lowercase();
        if !key_is_inert(&section, &key) {
            return false;
        }
    }
    true
}

fn section_is_known(section: &str) -> bool {
    matches!(
        section,
        "advice"
            | "am"
            | "apply"
            | "branch"
            | "checkout"
            | "clone"
            | "color"
            | "column"
            | "commit"
            | "core"
            | "credential"
            | "diff"
            | "extensions"
            | "feature"
            | "fetch"
            | "format"
            | "gc"
            | "gpg"
            | "grep"
            | "http"
            | "index"
            | "init"
            | "lfs"
            | "log"
            | "maintenance"
            | "merge"
            | "pack"
            // What is set for all wins over a pager of one command.
            | "pager"
            | "pull"
            | "push"
            | "rebase"
            | "receive"
            | "remote"
            | "rerere"
            | "stash"
            | "status"
            | "submodule"
            | "tag"
            | "url"
            | "user"
            | "versionsort"
            | "worktree"
    )
}

fn key_is_inert(section: &str, key: &str) -> bool {
    match section {
        "core" => matches!(
            key,
            "abbrev"
                | "alternaterefscommand"
                | "askpass"
                | "autocrlf"
                | "bare"
                | "bigfilethreshold"
                | "checkstat"
                | "commentchar"
                | "commitgraph"
                | "compression"
                | "editor"
                | "eol"
                | "excludesfile"
                | "filemode"
                | "fscache"
                | "fsmonitor"
                | "hookspath"
                | "ignorecase"
                | "logallrefupdates"
                | "longpaths"
                | "multipackindex"
                | "pager"
                | "precomposeunicode"
                | "preloadindex"
                | "protecthfs"
                | "protectntfs"
                | "quotepath"
                | "repositoryformatversion"
                | "safecrlf"
                | "sharedrepository"
                | "sparsecheckout"
                | "sparsecheckoutcone"
                | "sshcommand"
                | "symlinks"
                | "trustctime"
                | "untrackedcache"
                | "whitespace"
        ),
        "diff" => matches!(
            key,
            "algorithm"
                | "colormoved"
                | "context"
                | "ignoresubmodules"
                | "indentheuristic"
                | "interhunkcontext"
                | "mnemonicprefix"
                | "noprefix"
                | "renamelimit"
                | "renames"
                | "wordregex"
                | "wserrorhighlight"
        ),
        "submodule" => matches!(
            key,
            "url" | "path" | "active" | "branch" | "shallow" | "update" | "fetchrecursesubmodules"
        ),
        "" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::text_is_inert;

    #[test]
    fn settings_are_inert_only_if_each_is_known_to_be() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch X\n[remote \"origin\"]\n\
                     \turl = https://example.com/x.git\n[branch \"main\"]\n\tremote = origin\n# comment\n[user] name = a\n[pager] log = touch X\n";
        assert!(text_is_inert(plain));
        for odd in [
            "[filter \"x\"]\n\tclean = touch X\n",
            "[FILTER \"x\"] process = touch X",
            "[core][filter \"x\"] clean = touch X",
            "[diff \"x\"]\n\ttextconv = touch X\n",
            "[diff]\n\texternal = touch X\n",
            "[diff.x]\n\tcommand = touch X\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../evil\n",
            "[core]\n\tworktree = /\n",
            "[core]\n\tgitproxy = x\n",
            "[core]\n\tattributesfile = x\n",
            "[alias]\n\tst = !touch X\n",
            "[submodule \"a\"]\n\tignore = none\n",
            "[hook \"a\"]\n\tcommand = touch X\n",
            "[unheard-of]\n\ta = b\n",
            "a = b\n",
            "[core\n",
        ] {
            assert!(!text_is_inert(odd), "{odd}");
        }
    }
}
