//! What people do every day: it runs without a question, a refusal or a failure where they expect it to. As many
//! lines as there are attacks would be too few; each line here once asked or failed, or could.

mod lines;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::denied::git_output;
use crate::everyday::lines::{READING, REPOSITORY, WORKING};
use crate::harness::{Scene, each, has_sandbox, write, write_program};

/// How many lines that change nothing share a session.
const SHARED: usize = 16;

/// A project with a few languages in a repository with two branches and a remote.
fn project(rules: &Value) -> Scene {
    let scene = Scene::new().user_settings(&json!({ "permissions": rules }));
    let here = scene.here();
    for name in ["way-out", "link", "evil", "sub/prog", "options/-oX"] {
        fs::remove_file(here.join(name)).unwrap();
    }
    for (name, content) in REPOSITORY {
        write(here.join(name), content);
    }
    write_program(here.join("run.sh"), "#!/bin/sh\necho hi\n");
    git_output(here, &["init", "-q", "-b", "main", "."]);
    for (name, value) in [("user.name", "a"), ("user.email", "a@example.org"), ("gc.auto", "0")] {
        git_output(here, &["config", name, value]);
    }
    git_output(here, &["add", "-A"]);
    git_output(here, &["commit", "-qm", "first commit"]);
    git_output(here, &["tag", "v1"]);
    git_output(here, &["checkout", "-qb", "feature"]);
    write(here.join("feature.txt"), "new\n");
    git_output(here, &["add", "-A"]);
    git_output(here, &["commit", "-qm", "second"]);
    git_output(here, &["checkout", "-q", "main"]);
    write(here.join("docs/x.md"), "three\n");
    git_output(here, &["add", "-A"]);
    git_output(here, &["commit", "-qm", "third"]);
    let remote = scene.out("remote.git").display().to_string();
    git_output(here, &["init", "-q", "--bare", &remote]);
    git_output(here, &["remote", "add", "origin", &remote]);
    git_output(here, &["push", "-q", "-u", "origin", "main"]);
    write(here.join("README.md"), "# Title\ntext TODO one\nmore\n");
    scene
}

/// True if every program that a line needs is there: those of other languages may not be.
fn has_programs(line: &str) -> bool {
    const OPTIONAL: [&str; 14] = [
        "node", "npm", "npx", "go", "gofmt", "cargo", "gcc", "cmake", "java", "jq", "rg", "perl", "python3",
        "pytest",
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|place| place.join(name).is_file());
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| OPTIONAL.contains(word)).all(is_there)
}

fn check(scene: &Scene, mode: &str, lines: &[&str]) -> Result<(), String> {
    let mock = mock_model::MockModel::start();
    let mut program = scene.program.clone().args(["--approval-mode", mode]).with_model(&mock);
    // Tool chains that a user installed in the real home.
    for (name, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
        let home = std::env::var_os("HOME").unwrap_or_default();
        let value = std::env::var_os(name).unwrap_or_else(|| Path::new(&home).join(place).into_os_string());
        program = program.env(name, value);
    }
    let outside = tempfile::tempdir().unwrap();
    let scene = Scene { program, mock, outside, names: scene.names };
    let rounds: Vec<Vec<(&str, Value)>> =
        lines.iter().map(|line| vec![("run_shell_command", json!({ "command": line }))]).collect();
    let rounds: Vec<&[(&str, Value)]> = rounds.iter().map(Vec::as_slice).collect();
    let played = scene.play_rounds(&rounds);
    for (line, number) in lines.iter().zip(1..) {
        let said = played.result(&format!("c{number}"));
        if played.lists(&format!("c{number}")) || said.contains("Exit code") {
            return Err(format!("{mode}: {line}: {said}"));
        }
    }
    Ok(())
}

#[test]
fn there_are_two_hundred_lines() {
    assert!(READING.len() + WORKING.len() >= 200, "{} and {}", READING.len(), WORKING.len());
}

#[test]
fn looking_around_needs_no_rule() {
    if !has_sandbox() {
        return;
    }
    let lines: Vec<&str> = READING.iter().copied().filter(|line| has_programs(line)).collect();
    let groups: Vec<&[&str]> = lines.chunks(SHARED).collect();
    each(&groups, |lines| check(&project(&json!({})), "default", lines));
}

#[test]
fn work_needs_no_question_in_a_mode_without_questions() {
    if !has_sandbox() {
        return;
    }
    // The rules are of those that people have; none is about what the lines do.
    let rules =
        json!({ "deny": ["Bash(git push --force *)", "Bash(sudo *)", "Bash(curl *)", "Edit(/deploy/**)"] });
    let lines: Vec<&str> = WORKING.iter().copied().filter(|line| has_programs(line)).collect();
    each(&lines, |line| check(&project(&rules), "yolo", &[line]));
}

#[test]
fn work_that_rules_allow_needs_no_question() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows: [(&str, &[&str]); 8] = [
        ("Bash(npm *)", &["npm test", "npm run build", "npm run lint --silent", "npm test -- --watch=false", "npm ls"]),
        ("Bash(make *)", &["make", "make test", "make -j2 all", "make clean && make all"]),
        ("Bash(cargo *)", &["cargo check --offline 2>&1 | tail -5", "cargo metadata --offline --no-deps --format-version 1"]),
        ("Bash(go *)", &["go list ./...", "go mod verify", "go env GOCACHE"]),
        ("Bash(pytest *)", &["pytest", "pytest -q -x", "pytest -k a --maxfail=1"]),
        ("Bash(git *)", &["git add -A", "git add -A && git commit -m msg", "git checkout -b topic && git switch main", "git stash && git stash pop", "git fetch"]),
        ("Bash(python3 *)", &["python3 script.py", "python3 -m json.tool data.json"]),
        ("Edit", &["echo note >> notes.md", "cat README.md > copy.md"]),
    ];
    let rows: Vec<(&str, &str)> =
        rows.into_iter().flat_map(|(rule, lines)| lines.iter().map(move |line| (rule, *line))).collect();
    let rows: Vec<(&str, &str)> = rows.into_iter().filter(|(_, line)| has_programs(line)).collect();
    each(&rows, |(rule, line)| check(&project(&json!({ "allow": [rule] })), "default", &[line]));
}
