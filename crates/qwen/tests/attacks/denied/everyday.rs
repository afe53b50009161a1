//! What has to work in the sandbox although names are protected and processes are hidden.

use serde_json::json;

use crate::denied::{denying, run};
use crate::harness::{Scene, each, has_sandbox, write};

#[test]
fn cleaning_and_stashing_succeed_with_protected_names() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        "git clean -fd", "git clean -fdx", "git clean -fdX", "git clean -ndx", "git stash -u && git stash pop", "git stash --all && git stash pop",
        "git add -A && git status --short", "git status --ignored",
    ];
    each(&rows, |command| {
        let scene = denying(&[]);
        write(scene.here().join("untracked/file"), "u\n");
        let played = run(&scene, &format!("{command} && echo finished"));
        let said = played.result("c1");
        if !said.contains("finished") || said.contains("?? .qwen") || said.contains(".mcp.json\n") {
            return Err(format!("{command}: {said}"));
        }
        Ok(())
    });
}

#[test]
fn commands_see_no_processes_but_their_own() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    let command = "sleep 60 & for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done; kill -0 $! && kill $! && wait $!; \
                   test $? -gt 128 && echo signalled; ls -d /proc/1 2>&1; jobs";
    let played = run(&scene, command);
    let said = played.result("c1");
    assert!(said.contains("sleep 60") && said.contains("signalled"), "{said}");
    assert!(!said.contains("--approval-mode") && !said.contains("qwen-guardian"), "{said}");
    assert!(said.contains("cannot access"), "the first process of the machine is not visible: {said}");
}

#[test]
fn a_redirection_that_a_rule_covers_writes_its_file() {
    if !has_sandbox() {
        return;
    }
    #[rustfmt::skip]
    let rows = [
        ("Edit", "echo more >> notes"), ("Edit(/notes)", "echo more > notes"), ("Edit(/**)", "cat file >> notes"),
        ("Edit(/notes)", "{ echo a; echo more; } > notes"), ("Edit(notes)", "printf 'more\\n' | cat > notes"),
    ];
    each(&rows, |(rule, command)| {
        let scene = Scene::new().user_settings(&json!({ "permissions": { "allow": [rule] } }));
        write(scene.here().join("file"), "more\n");
        let played = scene.play(&[("run_shell_command", json!({ "command": command }))]);
        let text = std::fs::read_to_string(scene.here().join("notes")).unwrap_or_default();
        if !text.contains("more") || played.lists("c1") {
            return Err(format!("{rule}: {command}: {}", played.result("c1")));
        }
        let other = scene.play(&[("run_shell_command", json!({ "command": "echo x >> ../outside" }))]);
        if !other.lists("c1") {
            return Err(format!("{rule} covers another place"));
        }
        Ok(())
    });
}
