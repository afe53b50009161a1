//! The commands whose results are recorded.

use serde_json::json;

use super::cases::Case;

pub fn foreground() -> Vec<Case> {
    let run = |title, command: &str| Case::titled(title, "run_shell_command", json!({"command": command}));
    vec![
        run(
            "standard output and standard error in order",
            "echo one; echo two >&2; echo three; echo four >&2",
        ),
        run("no output", "true"),
        run("an exit code", "echo before; exit 3"),
        run("an exit code without output", "exit 4"),
        run("a signal", "kill -9 $$"),
        run("an earlier part of the pipeline failed", "(echo out; exit 7) | cat"),
        run("SIGPIPE in a pipeline", "yes | head -n 2"),
        run("Unicode", "cat unicode.txt"),
        run("binary output", r"printf 'a\000b\377\033[31mred\033[0m\n'"),
        Case::titled("a time-out", "run_shell_command", json!({"command": "exec sleep 600", "timeout": 500})),
        run("without a last line end", "printf end"),
        run("as many bytes as come at once", "head -c 11520 /dev/zero | tr '\\0' x"),
        run("one byte more than comes at once", "head -c 11521 /dev/zero | tr '\\0' x"),
        run("more lines than come at once", "seq 1 5000"),
        run("more Unicode than comes at once", "for i in $(seq 1 1000); do echo \"日本語☃ $i\"; done"),
        run("more of both streams, and an exit code", "seq 1 2000; seq 3001 5000 >&2; exit 5"),
    ]
}

pub fn background() -> Vec<Case> {
    let start = |title, command: &str| {
        let arguments = json!({"command": command, "is_background": true, "description": "a task"});
        Case::titled(title, "run_shell_command", arguments)
    };
    let task = |title, arguments| Case::titled(title, "shell_task", arguments);
    let end = json!({"task_id": "shell-1", "action": "output", "wait": 600_000});
    vec![
        start("start", "until [ -e go-1 ]; do sleep 0.01; done; echo out; echo err >&2; exit 3"),
        task("a wait for the end", end.clone()).releasing("go-1"),
        task("nothing new", end),
        task("the last lines", json!({"task_id": "shell-1", "action": "output", "tail": 1})),
        start("start of one that lasts", "exec sleep 600"),
        task("one that is running", json!({"task_id": "shell-2", "action": "output"})),
        task("an end by request", json!({"task_id": "shell-2", "action": "kill"})),
        start("start of one with much output", "until [ -e go-3 ]; do sleep 0.01; done; seq 1 5000"),
        task(
            "more lines than come at once",
            json!({"task_id": "shell-3", "action": "output", "wait": 600_000}),
        )
        .releasing("go-3"),
        task("a task that does not exist", json!({"task_id": "shell-9", "action": "output"})),
    ]
}
