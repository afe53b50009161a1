//! Commands: streamed, ended in time, and in the background.

use std::fs;

use serde_json::json;

use super::Shop;

#[test]
fn a_command_is_streamed_ended_in_time_and_kept_whole() {
    let shop = Shop::new();
    fs::create_dir(shop.path("sub")).unwrap();
    let run = |command: &str| ("run_shell_command", json!({"command": command}));
    let told = shop.calls(&[
        run("echo out; echo err >&2; exit 3"),
        ("run_shell_command", json!({"command": "pwd", "directory": "sub", "description": "Where am I"})),
        ("run_shell_command", json!({"command": "echo before; sleep 1000", "timeout": 300})),
        run("seq 1 20000"),
        run("kill -9 $$"),
        run("cat"),
        run("true"),
    ]);
    told[0].wrong().says(&["out\n", "err\n", "Exit code: 3"]);
    told[1].well().says(&["/sub\n"]);
    told[2].wrong().says(&["before", "timed out after 300 ms"]);
    told[3].well().says(&["1\n2\n3\n", "20000\n"]);
    assert!(told[3].text.len() < 40_000, "{}", told[3].text.len());
    told[4].wrong().says(&["signal 9"]);
    told[5].well();
    told[6].well().says(&["(no output)"]);
    // The scratch directory goes with the session, so that its file is looked at by a command of the same session.
    let again = Shop::new();
    let told = again.calls(&[run("seq 1 20000")]);
    let file = told[0].text.split_whitespace().find(|word| word.contains("shell") && word.contains('/'));
    assert!(file.is_some(), "the file with the whole output is not named");
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let shop = Shop::new();
    let started =
        "echo started; echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo went; sleep 1000";
    let told = shop.calls(&[
        ("run_shell_command", json!({"command": started, "is_background": true})),
        ("run_shell_command", json!({"command": "while [ ! -s pid ]; do sleep 0.01; done"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "output"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "kill"})),
        ("shell_task", json!({"task_id": "shell-1", "action": "output"})),
        ("shell_task", json!({"task_id": "nobody", "action": "output"})),
    ]);
    told[0].well().says(&["background"]);
    let id = told[0].text.split_whitespace().find(|word| word.starts_with("shell-")).unwrap().to_owned();
    assert_eq!(id, "shell-1");
    told[2].well().says(&["started", "It is running."]);
    told[3].well().says(&["was ended"]);
    told[4].well();
    told[5].wrong().says(&["no background task"]);
    mock_model::process::wait_gone(shop.read("pid").trim().parse().unwrap());
}
