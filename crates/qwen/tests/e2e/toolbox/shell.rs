//! Commands: streamed, ended in time, and in the background.

use std::fs;

use mock_model::{MockModel, Reply, Request};
use serde_json::json;

use super::Shop;
use crate::harness::asked;
use crate::wire::QWEN;

#[test]
fn a_command_says_how_it_ended_where_it_ran_and_is_ended_in_time() {
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
}

#[test]
fn output_that_is_too_long_is_kept_whole_in_a_file_that_the_result_names() {
    let mock = MockModel::start();
    // The file goes with the session, so it is a later call of the same session that looks at it.
    mock.answer_with(|request: &Request| {
        let results: Vec<String> = (request.messages().iter())
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect();
        let run = |command: &str| {
            Reply::call(command, "run_shell_command", &json!({"command": command}).to_string())
        };
        Some(match results.as_slice() {
            [] => run("seq 1 20000"),
            [cut] => {
                let named = cut
                    .split_once("the whole output is in ")
                    .and_then(|(_, rest)| rest.split_once(" \u{2026}]"));
                run(&format!("wc -l < {}", named.unwrap().0))
            }
            _ => Reply::text("Done."),
        })
    });
    let ended = asked(&mock, QWEN).arg("--yolo").run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let counted = mock.requests().pop().unwrap().messages().last().unwrap()["content"].to_string();
    assert!(counted.contains("20000"), "{counted}");
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let shop = Shop::new();
    // In the sandbox the command has another process id than here.
    let mark = format!("background-{}", std::process::id());
    let started = format!(
        "echo started; echo {mark} > begun; while [ ! -e go ]; do sleep 0.01; done; echo went; sleep 1000"
    );
    let told = shop.calls(&[
        ("run_shell_command", json!({"command": started, "is_background": true})),
        ("run_shell_command", json!({"command": "while [ ! -s begun ]; do sleep 0.01; done"})),
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
    mock_model::process::wait_marked_gone(&mark);
}
