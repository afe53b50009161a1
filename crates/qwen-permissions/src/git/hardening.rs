//! Git in a repository that may not be ours: its settings can name programs, and read-only git commands must
//! not start them.
//!
//! Settings that name a program are overridden from outside, by a [`GitHardening`]: those of a fixed name
//! always, and drivers, whose names are chosen freely (`filter.x.clean`, `diff.x.textconv`), as the
//! repository's files have them. A repository with unknown settings needs approval.

use std::path::Path;

use crate::paths::workspace::Workspace;
use crate::shell::options::is_listed;
use qwen_git::repository::{Irregular, Repository};
use qwen_git::settings::{Setting, settings_in};

/// Settings that are overridden, because a repository can use them to run a program.
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
    ("diff.submodule", "short"),
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

/// Replaces the diff program that the repository configures. Git gives it the path, then file, hash and mode
/// of both sides; a path alone is one that is not merged.
const PLAIN_DIFFERENCE: &str = r#"plain() { if [ $# -lt 7 ]; then echo "* Unmerged path $1"; return; fi; echo "diff --git a/$1 b/$1"; diff -u --label "a/$1" --label "b/$1" -- "$2" "$5"; return 0; }; plain"#;

/// Overrides that make git read-only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitHardening {
    /// Settings of the repository that are overridden besides those of a fixed name.
    own: Vec<(String, String)>,
    /// True if the repository configures a diff program.
    shows_differences: bool,
}

impl GitHardening {
    /// Returns the overrides for the repositories of `directories`, or why they cannot be determined.
    pub(crate) fn collect<'a>(
        directories: impl IntoIterator<Item = &'a Path>,
        workspace: &Workspace,
    ) -> Result<Self, Irregular> {
        let mut hardening = Self::default();
        let mut seen = Vec::new();
        for directory in directories {
            let Some(repository) = Repository::find(directory, workspace)? else { continue };
            if seen.contains(&repository) {
                continue;
            }
            repository.check_submodules()?;
            let mut worktree = None;
            for file in repository.settings_files() {
                let may_include = |path: &Path| repository.holds(path, workspace);
                let settings = settings_in(&file, workspace.home(), &may_include).ok_or(UNKNOWN)?;
                for setting in &settings {
                    if setting.section == "core" && setting.key == "worktree" {
                        worktree = Some(setting.value.clone());
                    }
                    if names_a_file(setting) && !is_inside(&setting.value, &repository, workspace) {
                        return Err(Irregular("its settings name a file outside of the workspace"));
                    }
                    hardening.counter(setting, &repository)?;
                }
            }
            repository.check_worktree(worktree.as_deref())?;
            seen.push(repository);
        }
        hardening.own.sort_unstable();
        hardening.own.dedup();
        Ok(hardening)
    }

    /// The environment that makes git read-only regardless of the repository's settings.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> =
            VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if self.shows_differences {
            env.push(("GIT_EXTERNAL_DIFF".to_owned(), PLAIN_DIFFERENCE.to_owned()));
        }
        let fixed = OVERRIDES.iter().copied();
        let own = self.own.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        env.push(("GIT_CONFIG_COUNT".to_owned(), (OVERRIDES.len() + self.own.len()).to_string()));
        for (index, (key, value)) in fixed.chain(own).enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{index}"), key.to_owned()));
            env.push((format!("GIT_CONFIG_VALUE_{index}"), value.to_owned()));
        }
        env
    }

    /// True if a variable must be unset for read-only git: all of git's own, except the user's identity and
    /// the location of the user's settings.
    pub fn unsets(name: &[u8]) -> bool {
        name.starts_with(b"GIT_")
            && !name.starts_with(b"GIT_AUTHOR_")
            && !name.starts_with(b"GIT_COMMITTER_")
            && !matches!(
                name,
                b"GIT_CONFIG_GLOBAL"
                    | b"GIT_CONFIG_SYSTEM"
                    | b"GIT_CONFIG_NOSYSTEM"
                    | b"GIT_CEILING_DIRECTORIES"
                    | b"GIT_DISCOVERY_ACROSS_FILESYSTEM"
            )
    }

    /// Overrides a setting that can make git run something. Fails if the setting is unknown.
    fn counter(&mut self, setting: &Setting, repository: &Repository) -> Result<(), Irregular> {
        let mut set = |key: &str, value: &str| self.own.push((setting.sibling(key), value.to_owned()));
        let (key, named) = (setting.key.as_str(), setting.subsection.is_some());
        match setting.section.as_str() {
            "filter" => {
                for program in ["clean", "smudge", "process"] {
                    set(program, "");
                }
                set("required", "false");
            }
            "diff" if named => match key {
                "textconv" => {
                    set("textconv", "cat");
                    set("cachetextconv", "false");
                }
                "command" => set("command", PLAIN_DIFFERENCE),
                _ => {}
            },
            "diff" if key == "external" => self.shows_differences = true,
            "submodule" if key == "ignore" => set("ignore", "all"),
            "credential" if named && key == "helper" => set("helper", ""),
            "hook" => {
                set("command", "true");
                set("enabled", "false");
            }
            "gpg" if key == "program" => set("program", "false"),
            "core" if key == "worktree" => {
                return repository.check_worktree(Some(&setting.value));
            }
            section if !is_inert(section, key) => return Err(UNKNOWN),
            _ => {}
        }
        Ok(())
    }
}

const UNKNOWN: Irregular = Irregular("the settings of the repository may make git run something");

/// Settings whose value is a file that git reads, and may show.
const FILES: &str = "blame.ignorerevsfile commit.template core.attributesfile core.excludesfile diff.orderfile \
 format.signaturefile fsck.skiplist gpg.allowedsignersfile gpg.revocationfile init.templatedir mailmap.file";

fn names_a_file(setting: &Setting) -> bool {
    is_listed(FILES, &format!("{}.{}", setting.section, setting.key))
}

/// True if the file that a setting names is one of the workspace or of the repository.
fn is_inside(value: &str, repository: &Repository, workspace: &Workspace) -> bool {
    value.is_empty() || (!value.starts_with(['~', '%', ':']) && repository.holds(Path::new(value), workspace))
}

/// True if a setting runs nothing in read-only git, or is overridden by its fixed name.
fn is_inert(section: &str, key: &str) -> bool {
    match section {
        "core" => is_listed(CORE, key),
        "diff" => is_listed(DIFF, key),
        _ => is_listed(SECTIONS, section),
    }
}

/// Sections whose settings run nothing in read-only git. Global overrides win over the pager of one command,
/// and no transport is allowed.
const SECTIONS: &str = "add advice alias am apply attr blame branch browser bundle checkout clean clone color column commit \
 credential difftool extensions feature fetch filter fmt-merge-msg format fsck gc gitflow gitweb gpg grep gui guitool help \
 http i18n imap include includeif index init instaweb interactive lfs log lsrefs mailinfo mailmap maintenance man merge \
 mergetool notes pack pager protocol pull push rebase receive remote rerere reset safe sendemail sequence showbranch \
 sparse splitindex stash status submodule svn svn-remote tag tar trailer transfer uploadarchive uploadpack url user \
 versionsort web worktree";

/// Settings of `core`, likewise.
const CORE: &str = "abbrev alternaterefscommand askpass attributesfile autocrlf bare bigfilethreshold checkroundtripencoding \
 checkstat commentchar commentstring commitgraph compression createobject deltabasecachelimit disambiguate editor eol \
 excludesfile filemode filesreflocktimeout fscache fsmonitor fsync fsyncmethod fsyncobjectfiles gitproxy hidedotfiles \
 hookspath ignorecase ignorestat logallrefupdates longpaths loosecompression maxtreedepth multipackindex notesref \
 packedgitlimit packedgitwindowsize packedrefstimeout pager precomposeunicode prefersymlinkrefs preloadindex protecthfs \
 protectntfs quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex \
 sshcommand symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace";

/// Settings of `diff` for no driver of a name, likewise.
const DIFF: &str = "algorithm autorefreshindex colormoved colormovedws context dirstat dstprefix guitool ignoresubmodules \
 indentheuristic interhunkcontext mnemonicprefix noprefix orderfile relative renamelimit renames srcprefix \
 statgraphwidth statnamewidth submodule suppressblankempty tool trustexitcode wordregex wserrorhighlight";

#[cfg(test)]
mod tests {
    use super::GitHardening;
    use crate::paths::workspace::Workspace;

    fn hardening(config: &str) -> Option<GitHardening> {
        let place = tempfile::tempdir().unwrap();
        for directory in ["objects", "refs"] {
            std::fs::create_dir_all(place.path().join(".git").join(directory)).unwrap();
        }
        std::fs::write(place.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(place.path().join(".git/config"), config).unwrap();
        GitHardening::collect([place.path()], &Workspace::new([place.path().to_owned()], None)).ok()
    }

    #[test]
    fn settings_that_name_a_program_are_overridden() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch X\n[remote \"origin\"]\n\
                     \turl = https://example.com/x.git\n[branch \"main\"]\n\tremote = origin\n# comment\n[user] name = a\n[pager] log = touch X\n";
        assert_eq!(hardening(plain), Some(GitHardening::default()));
        for (config, key, value) in [
            ("[filter \"x\"]\n\tclean = touch X\n", "filter.x.clean", ""),
            ("[FILTER \"X y\"] process = touch X", "filter.X y.process", ""),
            ("[core][filter \"x\"] required", "filter.x.required", "false"),
            ("[diff \"x\"]\n\ttextconv = touch X\n", "diff.x.textconv", "cat"),
            ("[submodule \"a\"]\n\tignore = none\n", "submodule.a.ignore", "all"),
            ("[hook \"a\"]\n\tcommand = touch X\n", "hook.a.command", "true"),
        ] {
            let env = hardening(config).unwrap().env();
            let at = env.iter().find(|(_, found)| found == key).unwrap_or_else(|| panic!("{config}"));
            let of = at.0.replace("KEY", "VALUE");
            assert!(env.contains(&(of, value.to_owned())), "{config}: {env:?}");
        }
        assert!(hardening("[diff]\n\texternal = touch X\n").unwrap().shows_differences);
    }

    #[test]
    fn unknown_settings_are_ignored() {
        for odd in [
            "[core]\n\tworktree = /\n",
            "[core]\n\tunheard-of = x\n",
            "[diff]\n\tunheard-of = x\n",
            "[unheard-of]\n\ta = b\n",
            "[include]\n\tpath = ~other/x\n",
            "[include]\n\tpath = /etc/hosts\n",
            "[include]\n\tpath = ../../x\n",
            "[blame]\n\tignoreRevsFile = /etc/hosts\n",
            "[blame]\n\tignoreRevsFile = ../x\n",
            "[core]\n\texcludesFile = ~/x\n",
            "[mailmap]\n\tfile = :(optional)/etc/hosts\n",
            "a = b\n",
            "[core\n",
        ] {
            assert_eq!(hardening(odd), None, "{odd}");
        }
    }
}
