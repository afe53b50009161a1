//! Repositories that git finds where a careless reader would not, and repositories that use files of others.
//! Looking at them asks; what git itself creates is looked at without a question.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::harness::{Scene, TREASURE, TWIN, each, write, write_program};

/// A repository that asks, how it is laid out, and the command that looks at it.
struct Row(&'static str, fn(&Scene), &'static str);

fn run_git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let mut git = Command::new("git");
    git.args(identity).args(arguments).current_dir(directory).stdout(Stdio::null());
    assert!(git.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(), "git {arguments:?}");
}

/// A program outside of the workspace that leaves a trace beside it.
fn evil(scene: &Scene) -> String {
    let program = scene.out("evil");
    write_program(&program, format!("#!/bin/sh\n: > {}\ncat\n", scene.out("X").display()));
    program.display().to_string()
}

/// A repository in a directory, with a changed file and a filter that runs the program.
fn armed(scene: &Scene, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    run_git(directory, &["init", "-q", "."]);
    write(directory.join("tracked"), "a\n");
    write(directory.join(".gitattributes"), "tracked filter=evil\n");
    run_git(directory, &["add", "-A"]);
    run_git(directory, &["commit", "-q", "-m", TREASURE]);
    write(directory.join("tracked"), "b\n");
    // Git compares the content only if the time is another one.
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(directory.join("tracked")).unwrap().set_modified(long_ago).unwrap();
    run_git(directory, &["config", "filter.evil.clean", &evil(scene)]);
}

/// A harmless repository beside the armed one, for whoever looks in the wrong place.
fn plain(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    run_git(directory, &["init", "-q", "."]);
}

fn trailing_blank(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    fs::rename(sub.join(".git"), sub.join("store ")).unwrap();
    plain(&sub.join("decoy"));
    fs::rename(sub.join("decoy/.git"), sub.join("store")).unwrap();
    write(sub.join(".git"), "gitdir: store \n");
}

fn return_in_commondir(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    fs::rename(sub.join(".git"), sub.join("store")).unwrap();
    plain(&sub);
    fs::copy(sub.join("store/index"), sub.join(".git/index")).unwrap();
    write(sub.join(".git/commondir"), "../store\r\n");
}

fn empty_below(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    fs::create_dir_all(sub.join("nest/.git")).unwrap();
}

fn headless_below(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    plain(&sub.join("nest"));
    write(sub.join("nest/.git/HEAD"), "nothing\n");
}

fn linked_elsewhere(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &scene.out("other"));
    fs::create_dir_all(&sub).unwrap();
    std::os::unix::fs::symlink(scene.out("other/.git"), sub.join(".git")).unwrap();
}

fn file_elsewhere(scene: &Scene) {
    armed(scene, &scene.out("other"));
    write(scene.here().join("lair/.git"), format!("gitdir: {}\n", scene.out("other/.git").display()));
}

fn worktree_of_another(scene: &Scene) {
    armed(scene, &scene.out("other"));
    run_git(&scene.out("other"), &["worktree", "add", "-q", "../linked"]);
    let pointer = format!("gitdir: {}\n", scene.out("other/.git/worktrees/linked").display());
    write(scene.here().join("lair/.git"), pointer);
}

fn objects_elsewhere(scene: &Scene) {
    armed(scene, &scene.out("other"));
    let sub = scene.here().join("lair");
    plain(&sub);
    write(
        sub.join(".git/objects/info/alternates"),
        format!("{}\n", scene.out("other/.git/objects").display()),
    );
    let head = fs::read_to_string(scene.out("other/.git/refs/heads/main")).unwrap();
    write(sub.join(".git/refs/heads/main"), head);
}

fn objects_by_link(scene: &Scene) {
    objects_elsewhere(scene);
    let objects = scene.here().join("lair/.git/objects");
    fs::remove_dir_all(&objects).unwrap();
    std::os::unix::fs::symlink(scene.out("other/.git/objects"), objects).unwrap();
}

fn revisions_to_ignore(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    run_git(&sub, &["config", "--unset", "filter.evil.clean"]);
    run_git(&sub, &["config", "blame.ignoreRevsFile", &scene.out("treasure").display().to_string()]);
}

fn included_elsewhere(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    run_git(&sub, &["config", "--unset", "filter.evil.clean"]);
    write(scene.out("more"), format!("[filter \"evil\"]\n\tclean = {}\n", evil(scene)));
    run_git(&sub, &["config", "include.path", &scene.out("more").display().to_string()]);
}

fn hidden_submodule(scene: &Scene) {
    let sub = scene.here().join("lair");
    plain(&sub);
    armed(scene, &sub.join("inner"));
    write(
        sub.join(".gitmodules"),
        "[submodule \"inner\"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n",
    );
    run_git(&sub, &["add", "."]);
    run_git(&sub, &["commit", "-q", "-m", "outer"]);
    fs::remove_file(sub.join(".gitmodules")).unwrap();
}

fn nested(scene: &Scene) {
    armed(scene, &scene.here().join("lair/nest"));
}

fn grafts_by_link(scene: &Scene) {
    let sub = scene.here().join("lair");
    armed(scene, &sub);
    run_git(&sub, &["commit", "-q", "--amend", "-m", TWIN]);
    std::os::unix::fs::symlink(scene.out("treasure"), sub.join(".git/info/grafts")).unwrap();
}

fn here(scene: &Scene) {
    armed(scene, &scene.here().join("lair"));
}

/// Rules that allow everything in the line, so that only the place of the repository is in question.
const RULES: [&str; 5] = ["Bash(cd *)", "Bash(git *)", "Bash(env *)", "Bash(echo *)", "Bash(x=*)"];

#[test]
fn a_repository_that_git_finds_elsewhere_is_not_looked_at_unasked() {
    #[rustfmt::skip]
    let rows = [
        Row("a blank behind the pointer", trailing_blank, "cd lair && git diff"),
        Row("a carriage return in commondir", return_in_commondir, "cd lair && git diff"),
        Row("an empty .git below", empty_below, "cd lair/nest && git diff"),
        Row("a .git without a head below", headless_below, "cd lair/nest && git diff"),
        Row("a link to a repository", linked_elsewhere, "cd lair && git log"),
        Row("a pointer to a repository", file_elsewhere, "cd lair && git log"),
        Row("a pointer to a worktree of another", worktree_of_another, "cd lair && git log"),
        Row("objects of another repository", objects_elsewhere, "cd lair && git log"),
        Row("objects by a link", objects_by_link, "git -C lair log"),
        Row("grafts by a link", grafts_by_link, "git -C lair log"),
        Row("a file of revisions to ignore", revisions_to_ignore, "cd lair && git blame tracked"),
        Row("settings included from elsewhere", included_elsewhere, "cd lair && git diff"),
        Row("a submodule without its settings", hidden_submodule, "cd lair && git status"),
        Row("a directory in a variable", here, "x=lair; cd $x && git diff"),
        Row("a directory that a command says", here, "cd \"$(echo lair)\" && git diff"),
        Row("a pushed directory", here, "pushd lair && git diff"),
        Row("the directory before", here, "cd lair; cd ..; cd - && git diff"),
        Row("a directory that fails first", here, "cd missing; cd $PWD/lair; git diff"),
        Row("a cleared environment", here, "cd lair && env -i git diff"),
        Row("an unset variable", here, "cd lair && env -u GIT_CONFIG_COUNT git diff"),
        Row("another git directory", here, "GIT_DIR=lair/.git GIT_WORK_TREE=lair git diff"),
        Row("another git directory, exported", here, "export GIT_DIR=lair/.git GIT_WORK_TREE=lair; git diff"),
        Row("another git directory, by an option", here, "git --git-dir=lair/.git --work-tree=lair diff"),
    ];
    each(&rows, |Row(name, lay_out, command)| {
        for rules in [&[][..], &RULES] {
            let mut scene = Scene::new().args(["--sandbox=false"]);
            for rule in rules {
                scene = scene.args(["--allowed-tools", *rule]);
            }
            lay_out(&scene);
            // Preparing it may have run the filter.
            let _ = fs::remove_file(scene.out("X"));
            let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
            let said = played.result("c1");
            if scene.out("X").exists() || played.leaks(TREASURE) || !played.lists("c1") {
                return Err(format!("{name}, {} rules: {command}: {said}", rules.len()));
            }
            // It would have had an effect.
            let mut shell = Command::new("bash");
            shell.args(["-c", command]).current_dir(scene.here()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            let output = shell.output().unwrap();
            let told = [output.stdout, output.stderr].concat();
            if !scene.out("X").exists() && !String::from_utf8_lossy(&told).contains(TREASURE) {
                return Err(format!("{name}: {command} does nothing: {}", String::from_utf8_lossy(&told)));
            }
        }
        Ok(())
    });
}

#[test]
fn a_repository_that_can_be_followed_is_shown_and_runs_nothing() {
    let rows = [
        Row("a directory", here, "cd lair && git diff"),
        Row("a directory in a subshell", here, "(cd lair; git diff)"),
        Row("a directory that fails first", here, "cd missing; cd lair; git diff"),
        Row("a directory of git", here, "git -C lair diff"),
        Row("one directory after the other", nested, "git -C lair -C nest diff"),
        Row("two changes of directory", nested, "cd lair && cd nest && git diff"),
        Row("a change and a directory of git", nested, "cd lair && git -C nest diff"),
    ];
    each(&rows, |Row(name, lay_out, command)| {
        let scene = Scene::new().args(["--sandbox=false"]);
        lay_out(&scene);
        let _ = fs::remove_file(scene.out("X"));
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let said = played.result("c1");
        if scene.out("X").exists() || played.lists("c1") || !said.contains("+b") {
            return Err(format!("{name}: {command}: {said}"));
        }
        Ok(())
    });
}

#[test]
fn what_git_itself_creates_is_looked_at_unasked() {
    let rows: [Row; 7] = [
        Row("a plain repository", |_| (), "git log"),
        Row("a directory below", |_| (), "cd sub && git log"),
        Row("a directory below and back", |_| (), "(cd sub && git status) && git log"),
        Row(
            "a linked worktree",
            |scene| scene.git(&["worktree", "add", "-q", "linked"]),
            "cd linked && git log",
        ),
        Row(
            "a file in the repository of revisions to ignore",
            |scene| {
                write(scene.here().join("revisions"), "# none\n");
                scene.git(&["config", "blame.ignoreRevsFile", "revisions"]);
            },
            "git blame file",
        ),
        Row(
            "settings included from the repository",
            |scene| {
                write(scene.here().join("more"), "[user]\n\tname = a\n");
                scene.git(&["config", "include.path", "../more"]);
            },
            "git log",
        ),
        Row(
            "a submodule",
            |scene| {
                let other = scene.out("other");
                fs::create_dir_all(&other).unwrap();
                run_git(&other, &["init", "-q", "."]);
                run_git(&other, &["commit", "-q", "--allow-empty", "-m", TWIN]);
                let path = other.display().to_string();
                scene.git(&[
                    "-c",
                    "protocol.file.allow=always",
                    "submodule",
                    "--quiet",
                    "add",
                    &path,
                    "module",
                ]);
            },
            "git status && cd module && git log",
        ),
    ];
    each(&rows, |Row(name, lay_out, command)| {
        let scene = Scene::in_repository().args(["--sandbox=false"]);
        lay_out(&scene);
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let said = played.result("c1");
        if played.lists("c1") || !said.contains(TWIN) {
            return Err(format!("{name}: {command}: {said}"));
        }
        Ok(())
    });
}

#[test]
fn a_worktree_of_a_repository_outside_is_looked_at_if_that_repository_knows_it() {
    let scene = Scene::new().args(["--sandbox=false"]);
    let other = scene.out("other");
    fs::create_dir_all(&other).unwrap();
    run_git(&other, &["init", "-q", "."]);
    run_git(&other, &["commit", "-q", "--allow-empty", "-m", TWIN]);
    let linked = scene.here().join("linked");
    run_git(&other, &["worktree", "add", "-q", &linked.display().to_string()]);
    let look = ("run_shell_command", json!({ "command": "cd linked && git log" }));
    let played = scene.play(&[look]);
    assert!(!played.lists("c1") && played.result("c1").contains(TWIN), "{}", played.result("c1"));
}
