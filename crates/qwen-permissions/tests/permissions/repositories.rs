//! Git in a repository that wants to run something.

use std::path::Path;
use std::process::Command;

use qwen_events::Verdict;
use qwen_permissions::{GitHardening, Mode};

use crate::Desk;

const LOOKING: &[&str] = &[
    "git status",
    "git log -p",
    "git diff",
    "git show HEAD",
    "git blame tracked",
    "git log --format=%G? -1",
    "git ls-files -m",
    "git describe --always",
    "git grep a",
    "git stash list",
];

/// A repository with one commit and one change.
pub fn repository(desk: &Desk) {
    git(&desk.root(), &["init", "-q", "."]);
    git(&desk.root(), &["config", "user.email", "a@example.com"]);
    git(&desk.root(), &["config", "user.name", "a"]);
    std::fs::write(desk.root().join("tracked"), "a\n").unwrap();
    git(&desk.root(), &["add", "tracked"]);
    git(&desk.root(), &["commit", "-qm", "first"]);
    std::fs::write(desk.root().join("tracked"), "b\n").unwrap();
}

pub fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs what the policy lets run, as it says, and gives back how many commands did run, and what they said.
fn look_around(desk: &Desk, directory: &Path) -> (usize, String) {
    let (mut ran, mut said) = (0, String::new());
    for command in LOOKING {
        let judgement = desk.run_in(directory, command);
        let hardening = judgement.harden_git.unwrap_or_else(|| panic!("{command}"));
        if judgement.decision.verdict != Verdict::Allow {
            continue;
        }
        ran += 1;
        said.push_str(&run(command, directory, &hardening));
    }
    (ran, said)
}

/// Runs a command as a session would, in an environment that is as bad as can be.
fn run(command: &str, directory: &Path, hardening: &GitHardening) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-c", command]).current_dir(directory);
    for name in ["GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_TRACE"] {
        assert!(GitHardening::unsets(name.as_bytes()), "{name}");
        shell.env_remove(name);
    }
    shell.envs(hardening.env());
    shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    String::from_utf8_lossy(&shell.output().unwrap().stdout).into_owned()
}

#[test]
fn looking_at_a_plain_repository_works() {
    let desk = Desk::new(Mode::Default);
    repository(&desk);
    let (ran, said) = look_around(&desk, &desk.root());
    assert_eq!(ran, LOOKING.len());
    assert!(said.contains("+b"), "{said}");
}

#[test]
fn settings_that_name_a_program_start_none() {
    let settings = [
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "pager.status",
        "diff.external",
        "core.sshCommand",
        "gpg.program",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.alternateRefsCommand",
        "credential.helper",
        "core.hooksPath",
        "alias.status",
    ];
    for setting in settings {
        let desk = Desk::new(Mode::Default);
        repository(&desk);
        let trace = desk.directory.path().join("trace");
        let script = desk.directory.path().join("evil.sh");
        std::fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat \"$1\"\n", trace.display())).unwrap();
        Command::new("chmod").arg("+x").arg(&script).status().unwrap();
        std::fs::write(desk.root().join(".gitattributes"), "tracked diff=evil filter=evil\n").unwrap();
        git(&desk.root(), &["config", "log.showSignature", "true"]);
        for config in [".git/config", "included", ".git/config.worktree"] {
            let desk_config = desk.root().join(config);
            git(
                &desk.root(),
                &["config", "-f", desk_config.to_str().unwrap(), setting, script.to_str().unwrap()],
            );
            git(&desk.root(), &["config", "include.path", "../included"]);
            git(&desk.root(), &["config", "extensions.worktreeConfig", "true"]);
            let (ran, said) = look_around(&desk, &desk.root());
            assert!(!trace.exists(), "{setting} in {config} was run");
            assert_eq!(ran, LOOKING.len(), "{setting} in {config}");
            assert!(said.contains("-a\n+b\n"), "{setting} in {config}: {said}");
            // It would have been run.
            if runs_by_itself(setting) {
                for command in LOOKING {
                    let quiet = ["-c", command];
                    Command::new("bash").args(quiet).current_dir(desk.root()).output().unwrap();
                }
                assert!(trace.exists(), "{setting} in {config} does nothing");
                std::fs::remove_file(&trace).unwrap();
            }
            std::fs::remove_file(desk_config).unwrap();
            if config == ".git/config" {
                std::fs::write(desk.root().join(config), "[core]\n\trepositoryformatversion = 0\n").unwrap();
            }
        }
    }
}

/// Whether one of the commands runs what the setting names, here and without a terminal.
fn runs_by_itself(setting: &str) -> bool {
    !matches!(
        setting,
        "core.pager"
            | "pager.log"
            | "pager.status"
            | "core.sshCommand"
            | "gpg.program"
            | "filter.evil.smudge"
            | "core.alternateRefsCommand"
            | "credential.helper"
            | "core.hooksPath"
            | "alias.status"
    )
}

#[test]
fn hooks_and_hidden_repositories_start_nothing() {
    let desk = Desk::new(Mode::Default);
    repository(&desk);
    let trace = desk.directory.path().join("trace");
    let hook = format!("#!/bin/sh\ntouch {}\n", trace.display());
    for name in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout"] {
        let path = desk.root().join(".git/hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &hook).unwrap();
        Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    }
    // A bare repository in a directory of the tree, whose settings name a program.
    let bare = desk.root().join("bare");
    git(&desk.root(), &["init", "-q", "--bare", "bare"]);
    git(&bare, &["config", "core.bare", "false"]);
    git(&bare, &["config", "core.worktree", "."]);
    git(&bare, &["config", "core.fsmonitor", &format!("touch {}", trace.display())]);
    look_around(&desk, &desk.root());
    look_around(&desk, &bare);
    assert!(!trace.exists());
}

#[test]
fn a_submodule_starts_nothing() {
    let desk = Desk::new(Mode::Default);
    repository(&desk);
    let trace = desk.directory.path().join("trace");
    let inner = desk.root().join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q", "."]);
    git(&inner, &["config", "user.email", "a@example.com"]);
    git(&inner, &["config", "user.name", "a"]);
    std::fs::write(inner.join("x"), "a\n").unwrap();
    std::fs::write(inner.join(".gitattributes"), "x filter=evil\n").unwrap();
    git(&inner, &["add", "x", ".gitattributes"]);
    git(&inner, &["commit", "-qm", "first"]);
    git(&desk.root(), &["add", "inner"]);
    git(&desk.root(), &["commit", "-qm", "second"]);
    git(&inner, &["config", "filter.evil.clean", &format!("touch {}; cat", trace.display())]);
    std::fs::write(inner.join("x"), "b\n").unwrap();
    look_around(&desk, &desk.root());
    assert!(!trace.exists());
}
