//! Commands that turn on what watches over them, so that a later one, or what they leave behind, is free.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Scene, each, has_sandbox};

fn shell(command: &str) -> (&'static str, Value) {
    ("run_shell_command", json!({ "command": command }))
}

#[test]
fn what_a_command_does_to_its_guardian_changes_nothing_for_the_next() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        ("kills it", "kill -9 $PPID"),
        ("stops it", "kill -STOP $PPID"),
        ("takes its descriptors", "prlimit --pid $PPID --nofile=3"),
        ("takes its memory", "prlimit --pid $PPID --as=1 --data=1 --stack=1"),
        ("takes its files", "prlimit --pid $PPID --fsize=0"),
        ("takes its time, and ours", "for p in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do prlimit --pid $p --cpu=1:1; done"),
        ("writes to it", "for f in /proc/$PPID/fd/* /proc/$PPID/mem /proc/$PPID/oom_score_adj; do echo x > $f; done"),
        ("takes its directory away", "rm -rf \"$TMPDIR\"; mkdir -p \"$TMPDIR\"; chmod 0 \"$TMPDIR\""),
        ("leaves a program behind", "(setsid sh -c 'sleep 1; touch {outside}/X {here}/late' &)"),
        ("makes a repository", "git init -q m"),
    ];
    each(&rows, |(name, command)| {
        let scene = Scene::in_repository().args(["--yolo", "--sandbox"]);
        let outside = crate::tree::Tree::of([scene.outside.path(), scene.program.home_path()]);
        let config = fs::read(scene.here().join(".git/config")).unwrap();
        let again = "g=$(printf .g; echo it); q=$(printf .q; echo wen); echo x > {outside}/X; echo x >> $g/config; mkdir $q/x; touch made";
        let played = scene.play_rounds(&[
            &[shell("echo first")],
            &[shell(&scene.filled(&format!("{{ {command}; }} 2>/dev/null; true")))],
            &[shell(&scene.filled(&format!("{{ {again}; }} 2>/dev/null; echo twin")))],
        ]);
        let now = crate::tree::Tree::of([scene.outside.path(), scene.program.home_path()]);
        let changed = now.changed_since(&outside);
        let here = |path: &str| scene.here().join(path);
        let told = played.result("c3");
        if !changed.is_empty() || here(".qwen").exists() || fs::read(here(".git/config")).unwrap() != config {
            return Err(format!("{name}: the next one got out: {changed:?} {told}"));
        }
        if !here("made").exists() || here("late").exists() || !told.contains("twin") {
            return Err(format!("{name}: the next one was spoilt: {told}"));
        }
        Ok(())
    });
}

/// The processes that have written their ids into a file of the workspace.
fn left_alive(file: &Path) -> Result<Vec<String>, String> {
    let pids = fs::read_to_string(file).map_err(|error| format!("nobody was started: {error}"))?;
    let alive = |pid: &&str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
    };
    Ok(pids.lines().filter(alive).map(str::to_owned).collect())
}

#[test]
fn what_a_command_leaves_behind_ends_even_when_it_ends_or_stops_its_guardian() {
    // Without a sandbox nothing keeps it from that.
    let leave = "g=$PPID; setsid sh -c 'echo $$ >> pids; exec sleep 1000' & \
        (setsid sh -c 'echo $$ >> pids; sleep 1000 & wait' &); while [ \"$(wc -l < pids 2>/dev/null)\" != 2 ]; do :; done; ";
    let rows = [
        ("killed", "kill -9 $g; sleep 1000"),
        ("stopped", "kill -STOP $g; echo done"),
        ("stopped, and waits", "kill -STOP $g; sleep 1000"),
        ("stopped and killed", "kill -STOP $g; kill -9 $g; sleep 1000"),
    ];
    each(&rows, |(name, then)| {
        let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
        let command = json!({ "command": format!("{leave}{then}"), "timeout": 2000 });
        let played = scene.play_rounds(&[&[("run_shell_command", command)], &[shell("echo twin")]]);
        let left = left_alive(&scene.here().join("pids"))?;
        if !left.is_empty() || !played.result("c2").contains("twin") {
            return Err(format!("{name}: {left:?} are left: {}", played.result("c2")));
        }
        Ok(())
    });
}
