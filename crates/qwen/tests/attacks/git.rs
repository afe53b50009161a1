//! A repository whose settings name programs: looking at it starts none of them, and shows what there is to
//! see.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{Scene, TWIN, each, write, write_program};

/// A setting, the command that looks, and whether git alone would run what the setting names here.
struct Row(&'static str, &'static str, bool);

/// The program that settings name: it leaves a trace outside of the workspace and hands on what it gets.
fn armed(file: &str, setting: &str) -> Scene {
    let scene = Scene::in_repository().args(["--sandbox=false"]);
    let evil = scene.out("evil");
    write_program(&evil, format!("#!/bin/sh\n: > {}\ncat ${{1:+\"$1\"}}\n", scene.out("X").display()));
    write(scene.here().join(".git/info/attributes"), "file diff=evil filter=evil\n");
    scene.git(&["config", "log.showSignature", "true"]);
    scene.git(&["config", "include.path", "../included"]);
    scene.git(&["config", "-f", file, setting, &evil.display().to_string()]);
    for hook in ["post-index-change", "reference-transaction", "pre-commit"] {
        let program = std::fs::read(&evil).unwrap();
        write_program(scene.here().join(".git/hooks").join(hook), program);
    }
    scene
}

#[test]
fn looking_starts_nothing_that_a_repository_names_and_shows_what_there_is() {
    #[rustfmt::skip]
    let rows = [
        Row("diff.external", "git diff", true),
        Row("diff.external", "timeout 20 git diff HEAD -- file", true),
        Row("diff.evil.command", "git diff", true),
        Row("diff.evil.textconv", "git diff", true),
        Row("diff.evil.textconv", "git log -p", true),
        Row("diff.evil.textconv", "git show", true),
        Row("diff.evil.textconv", "git blame file", true),
        Row("filter.evil.clean", "git status && git log", false),
        Row("filter.evil.clean", "git diff", true),
        Row("filter.evil.process", "git status --short && git log", false),
        Row("core.fsmonitor", "git status && git log", true),
        Row("core.pager", "git log", false),
        Row("pager.log", "git --no-pager log", false),
        Row("gpg.program", "git log --format='%G? %s'", false),
        Row("core.sshCommand", "git log", false),
        Row("core.hooksPath", "git status && git log", false),
        Row("core.editor", "git log", false),
        Row("credential.helper", "git log", false),
        Row("alias.status", "git status && git log", false),
    ];
    each(&rows, |Row(setting, command, alone)| {
        for (file, allow) in [(".git/config", None), ("included", Some("Bash(git *)"))] {
            let mut scene = armed(file, setting);
            if let Some(rule) = allow {
                scene = scene.args(["--allowed-tools", rule]);
            }
            let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
            let said = played.result("c1");
            if scene.out("X").exists() {
                return Err(format!("{setting} in {file}: {command} ran it: {said}"));
            }
            if played.lists("c1") || !said.contains(TWIN) {
                return Err(format!("{setting} in {file}: {command} shows nothing: {said}"));
            }
            let mut shell = Command::new("bash");
            shell.args(["-c", command]).current_dir(scene.here()).env("HOME", scene.program.home_path());
            shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            if *alone && !scene.out("X").exists() {
                return Err(format!("{setting} in {file}: {command} would not have run it"));
            }
        }
        Ok(())
    });
}

#[test]
fn the_users_variables_do_not_bring_programs_along() {
    for name in ["GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR"] {
        let scene = armed(".git/config", "user.signingKey");
        let evil = scene.out("evil").display().to_string();
        let scene = scene.env(name, evil);
        let played = scene.play(&[("run_shell_command", json!({ "command": "git diff" }))]);
        assert!(!scene.out("X").exists(), "{name}: {}", played.result("c1"));
        assert!(played.result("c1").contains("+twin"), "{name}: {}", played.result("c1"));
    }
}
