//! Commands that try to get more out of a rule than it says. Each is tried three times: where a rule allows
//! its first program, it must leave no trace and be listed; beside it its harmless twin must run; and where
//! everything is allowed it must leave a trace, or it would be no attack.

mod acp;

use serde::Deserialize;
use serde_json::json;

use crate::harness::{Scene, TREASURE, TWIN, each, write_program};

/// The shell section of the attack suite, attacks 1 to 17. Attack 18 is the kernel's and is in `sandbox.rs`.
const SUITE: &str = include_str!("suite.jsonl");
/// Attacks of our own in the spirit of the suite.
const OWN: &str = include_str!("own.jsonl");

/// A command that tries to do more than it may.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    name: String,
    /// The rules that allow something.
    #[serde(default)]
    allow: Vec<String>,
    /// The rules that forbid something.
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default = "default_mode")]
    mode: String,
    /// What the model wants to run. `X` is the file that must not be made; the treasure must not be read.
    command: String,
    /// The same without the harm: it must run, and its output holds the harmless word.
    twin: String,
    /// True if the command has no effect here: it only looks dangerous, or needs something that is missing.
    #[serde(default)]
    inert: bool,
}

fn default_mode() -> String {
    "default".to_owned()
}

/// A row of the tables.
#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    /// A heading for the rows below it.
    Section {
        #[serde(rename = "section")]
        _section: String,
    },
    Attack(Attack),
}

fn attacks(table: &str) -> Vec<Attack> {
    let rows = table.lines().map(|line| match serde_json::from_str(line) {
        Ok(Row::Attack(attack)) => Some(attack),
        Ok(Row::Section { .. }) => None,
        Err(error) => panic!("{error}: {line}"),
    });
    rows.flatten().collect()
}

fn all() -> Vec<Attack> {
    [attacks(SUITE), attacks(OWN)].concat()
}

fn scene(attack: &Attack) -> Scene {
    let scene = Scene::in_repository().args(["--sandbox=false"]);
    // A directory of programs that comes first in the path: what attacks start without there being such a
    // program here.
    let programs = scene.out("bin");
    for program in ["rg", "sudo", "busybox", "parallel", "fd"] {
        write_program(programs.join(program), format!("#!/bin/sh\n: > {}/X\n", scene.here().display()));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.display());
    let mut scene = scene.env("PATH", path).env("MARK", "1");
    for rule in &attack.allow {
        scene = scene.args(["--allowed-tools", rule.as_str()]);
    }
    for rule in &attack.deny {
        scene = scene.args(["--exclude-tools", rule.as_str()]);
    }
    scene
}

fn shell(scene: &Scene, command: &str) -> (&'static str, serde_json::Value) {
    ("run_shell_command", json!({ "command": scene.filled(command) }))
}

/// The attack is refused and listed, and its twin is not.
fn withstood(attack: &Attack) -> Result<(), String> {
    let scene = scene(attack).args(["--approval-mode", attack.mode.as_str()]);
    let before = scene.tree();
    let played = scene.play(&[shell(&scene, &attack.command), shell(&scene, &attack.twin)]);
    let say = |what: String| Err(format!("{}: {:?}: {what}", attack.name, attack.command));
    let after = scene.tree();
    let changed = after.changed_since(&before);
    if !changed.is_empty() {
        return say(format!("it changed {changed:?}: {}", played.result("c1")));
    }
    if played.leaks(TREASURE) {
        return say("it told what is outside".to_owned());
    }
    if !played.lists("c1") {
        return say(format!("it is not among the denials: {}", played.result("c1")));
    }
    if played.lists("c2") || !played.result("c2").contains(TWIN) {
        return say(format!("the twin {:?} did not run: {}", attack.twin, played.result("c2")));
    }
    Ok(())
}

/// The attack would have had its effect.
fn assert_effective(attack: &Attack) -> Result<(), String> {
    let free = Attack { allow: Vec::new(), deny: Vec::new(), ..attack.clone() };
    let scene = scene(&free).args(["--yolo"]);
    let before = scene.tree();
    let played = scene.play(&[shell(&scene, &attack.command)]);
    let after = scene.tree();
    if after.changed_since(&before).is_empty() && !played.leaks(TREASURE) {
        return Err(format!("{}: {:?} does nothing: {}", attack.name, attack.command, played.result("c1")));
    }
    Ok(())
}

#[test]
fn no_command_gets_more_out_of_a_rule_than_it_says_and_its_twin_runs() {
    each(&all(), withstood);
}

#[test]
fn every_attack_would_have_had_an_effect() {
    let effective: Vec<Attack> = all().into_iter().filter(|attack| !attack.inert).collect();
    each(&effective, assert_effective);
}

#[test]
fn no_two_rows_are_one() {
    let rows = all();
    for (at, row) in rows.iter().enumerate() {
        assert!(
            rows[..at].iter().all(|other| other.command != row.command || other.deny != row.deny),
            "{}",
            row.command
        );
    }
    assert!(attacks(OWN).len() >= 30);
}

#[test]
fn a_list_of_tools_with_commands_in_it_leaves_only_those() {
    let run = |list: &str, command: &str| {
        let scene = Scene::new().args(["--yolo", "--sandbox=false", "--core-tools", list]);
        let played = scene.play(&[shell(&scene, command)]);
        (scene.here().join("X").exists(), played.lists("c1"))
    };
    for list in ["run_shell_command(echo *)", "Bash(echo *)", "read_file,Bash(echo *),Bash(ls)"] {
        assert_eq!(run(list, "touch X"), (false, true), "{list}");
        assert_eq!(run(list, "echo a; touch X"), (false, true), "{list}");
        assert_eq!(run(list, "echo a"), (false, false), "{list}");
    }
    for list in ["Bash(touch *)", "Bash", "Bash,Bash(echo *)"] {
        assert_eq!(run(list, "touch X"), (true, false), "{list}");
    }
}
