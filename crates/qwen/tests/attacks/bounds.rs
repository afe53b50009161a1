//! The bounds of the workspace for commands in the sandbox: directories that are added open at once, what a
//! rule denies to edit stays as it is whoever tries, and what other sessions keep is out of reach.

use std::fs;

use mock_model::Reply;
use serde_json::json;

use crate::harness::{Scene, TREASURE, each, has_sandbox, write};

fn shell(command: &str) -> (&'static str, serde_json::Value) {
    ("run_shell_command", json!({ "command": command }))
}

#[test]
fn a_directory_that_a_flag_adds_is_open_to_commands() {
    if !has_sandbox() {
        return;
    }
    for flag in ["--include-directories", "--add-dir"] {
        let scene = Scene::new();
        let outside = scene.outside.path().display().to_string();
        let scene = scene.args(["--yolo", "--sandbox", flag, &outside]);
        let played = scene.play(&[shell(&format!("echo x > {outside}/made && cat {outside}/made"))]);
        assert!(scene.out("made").exists(), "{flag}: {}", played.result("c1"));
    }
}

#[test]
fn a_directory_that_an_answer_adds_is_open_to_commands_and_file_tools_at_once() {
    if !has_sandbox() {
        return;
    }
    for added in [true, false] {
        let scene =
            Scene::new().args(["--sandbox", "--allowed-tools", "Bash", "--approval-mode", "auto-edit"]);
        let outside = scene.outside.path().display().to_string();
        let read = json!({ "file_path": format!("{outside}/treasure") });
        let made = json!({ "command": format!("echo x > {outside}/made") });
        let written = json!({ "file_path": format!("{outside}/written"), "content": "x" });
        // A command before it opens the sandbox as it is without the directory.
        let early = json!({ "command": format!("echo x > {outside}/early") });
        let call = |id: &str, tool: &str, arguments: &serde_json::Value| {
            Reply::new([scene.names.call(id, tool, arguments.clone())])
        };
        scene.mock.push(call("c1", "run_shell_command", &early));
        scene.mock.push(call("c2", "read_file", &read));
        scene.mock.push(call("c3", "run_shell_command", &made));
        scene.mock.push(call("c4", "write_file", &written));
        scene.mock.push(Reply::text("done"));
        let mut run = scene.worker().start();
        run.write_line(json!({ "messages": [{ "role": "user", "content": "go" }] }));
        let mut answer = json!({ "behavior": "allow" });
        if added {
            answer["updatedPermissions"] = json!([
                { "type": "addDirectories", "directories": [outside, "/nowhere/at/all"], "destination": "session" }
            ]);
        }
        loop {
            let told = run
                .json_until(|line| line["type"] == "control_request" || line["metadata"]["turn"].is_object());
            let last = told.last().unwrap();
            if last["type"] != "control_request" {
                break;
            }
            let result = if last.to_string().contains("treasure") {
                answer.clone()
            } else {
                json!({ "behavior": "deny" })
            };
            run.write_line(json!({
                "type": "control_response", "request_id": last["request_id"],
                "response": { "subtype": "success", "result": result },
            }));
        }
        let ended = run.finish();
        let there = |name: &str| scene.out(name).exists();
        assert_eq!(
            (there("early"), there("made"), there("written")),
            (false, added, added),
            "{added}: {}",
            ended.stdout
        );
    }
}

#[test]
fn what_a_rule_denies_to_edit_no_program_changes() {
    if !has_sandbox() {
        return;
    }
    // The rule, and the file that it is about.
    let rows = [
        ("Edit(/secret/**)", "secret/key"),
        ("Edit(./secret/key)", "secret/key"),
        ("Edit(*.lock)", "sub/x.lock"),
        ("Edit(**/.env)", "sub/.env"),
        ("Edit(.env)", ".env"),
        ("Write(/secret/**)", "secret/key"),
        ("Edit(/{outside}/cave/**)", "way-out/cave/treasure"),
    ];
    each(&rows, |(rule, file)| {
        for denied in [true, false] {
            let scene = Scene::new();
            let outside = scene.outside.path().display().to_string();
            let rule = scene.filled(rule);
            write(scene.here().join(file), "kept");
            // Nobody can tell from its words what it does.
            let rot: String = file.chars().rev().collect();
            write(
                scene.here().join("work"),
                format!(
                    "f=$(echo {rot} | rev); echo x >> $f; mv $f sub/moved; rm -rf $(dirname $f)/k*; echo twin\n"
                ),
            );
            let mut scene = scene.args(["--yolo", "--sandbox", "--add-dir", &outside]);
            if denied {
                scene = scene.args(["--exclude-tools", &rule]);
            }
            let played = scene.play(&[shell("bash ./work")]);
            let now = fs::read_to_string(scene.here().join(file)).unwrap_or_default();
            if !played.result("c1").contains("twin") {
                return Err(format!("{rule}: did not run: {}", played.result("c1")));
            }
            if (now == "kept") != denied {
                return Err(format!("{rule}, {denied}: {file} is {now:?}: {}", played.result("c1")));
            }
        }
        Ok(())
    });
}

#[test]
fn what_another_session_keeps_for_itself_no_command_reads() {
    if !has_sandbox() {
        return;
    }
    let shared = tempfile::tempdir().unwrap();
    let scene = || Scene::new().args(["--yolo", "--sandbox"]).env("TMPDIR", shared.path());
    let other = scene();
    let go = other.here().join("go");
    let held = format!(
        "echo {TREASURE} > $TMPDIR/note; seq 20000 | sed s/^/{TREASURE}/; echo $TMPDIR > ready; until [ -e {} ]; do sleep 0.05; done",
        go.display()
    );
    other.mock.push(Reply::new([other.names.call("c1", "run_shell_command", json!({ "command": held }))]));
    other.mock.push(Reply::text("done"));
    let mut run = other.program.clone().args(["-p", "x"]).start();
    run.close_stdin();
    let ready = other.here().join("ready");
    while !fs::read_to_string(&ready).is_ok_and(|path| path.ends_with('\n')) {
        std::thread::yield_now();
    }
    let theirs = fs::read_to_string(&ready).unwrap();
    let theirs = theirs.trim();
    assert!(fs::read_to_string(format!("{theirs}/note")).unwrap().contains(TREASURE));
    let scene = scene();
    let look = format!(
        "cat {theirs}/note {theirs}/../*; grep -rs treasure {0}; echo x > {theirs}/note; ls $TMPDIR; \
         echo own > $TMPDIR/own; cat $TMPDIR/own; mktemp > /dev/null && echo twin",
        shared.path().display()
    );
    let played = scene.play(&[shell(&look)]);
    let kept = fs::read_to_string(format!("{theirs}/note")).unwrap();
    fs::write(&go, "").unwrap();
    assert_eq!(run.wait().code, Some(0));
    // What it complains about may come in between.
    let said = |line: &str| played.result("c1").lines().any(|said| said == line);
    assert!(said("own") && said("twin"), "{}", played.result("c1"));
    assert!(!played.leaks(TREASURE) && kept.contains(TREASURE), "{}", played.result("c1"));
}

#[test]
fn a_session_reads_what_it_spilt_itself() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new().args(["--yolo", "--sandbox"]);
    let played = scene
        .play_rounds(&[&[shell("seq 100000")], &[shell("cd $TMPDIR/.. && ls *.txt && grep -c 99 *.txt")]]);
    assert!(played.result("c2").contains(".txt"), "{}", played.result("c2"));
}
