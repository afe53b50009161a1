//! `run_shell_command` and `shell_task` with real processes.

mod fixture;

use std::os::unix::fs::symlink;
use std::sync::Arc;

use fixture::{Fixture, alive};
use qwen_events::Channel;
use qwen_sandbox::process::Environment;
use qwen_tools::SessionResources;
use serde_json::json;

#[tokio::test]
async fn output_and_exit_code_come_back_and_are_streamed_in_order() {
    let fixture = Fixture::new();
    let outcome = fixture.shell("echo one; echo two; echo three").await;
    assert_eq!(outcome.text, "one\ntwo\nthree\n");
    assert_eq!(outcome.exit_code, Some(0));
    assert_eq!(outcome.error_code, None);
    assert_eq!(fixture.streamed(Channel::Stdout), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn how_a_command_ended_is_said() {
    let fixture = Fixture::new();
    for (command, text, exit_code, error_code) in [
        ("true", "(no output)", Some(0), None),
        ("echo -n x", "x", Some(0), None),
        ("echo oops >&2; exit 3", "oops\nExit code: 3", Some(3), Some("command_failed")),
        ("echo -n x; exit 1", "x\nExit code: 1", Some(1), Some("command_failed")),
        ("kill -TERM $$", "The command was killed by signal 15.", Some(143), Some("command_failed")),
        ("yes | head -n 1", "y\n", Some(0), None),
        ("cat; echo no input", "no input\n", Some(0), None),
        ("[ -t 0 ] || [ -t 1 ] || echo no terminal", "no terminal\n", Some(0), None),
    ] {
        let outcome = fixture.shell(command).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.exit_code, outcome.error_code),
            (text, exit_code, error_code),
            "{command}"
        );
    }
    assert_eq!(fixture.streamed(Channel::Stderr), "oops\n");
}

#[tokio::test]
async fn a_character_that_comes_in_two_pieces_is_whole() {
    let fixture = Fixture::new();
    fixture.fifo("gate");
    let path = fixture.path().join("gate");
    let sink = fixture.sink.clone();
    // The command goes on with the second half only after what came before the first one was streamed.
    let gate = tokio::spawn(async move {
        sink.news.notified().await;
        tokio::task::spawn_blocking(move || std::fs::write(path, "go")).await.unwrap().unwrap();
    });
    let outcome = fixture.shell(r"printf 'a\342\202'; cat gate > /dev/null; printf '\254b\377'").await;
    gate.await.unwrap();
    assert_eq!(outcome.text, "a€b\u{fffd}");
    assert_eq!(fixture.streamed(Channel::Stdout), "a€b\u{fffd}");
}

#[tokio::test]
async fn a_command_runs_in_the_given_directory() {
    let fixture = Fixture::new();
    fixture.write("sub/x", "");
    let outcome = fixture.call("run_shell_command", json!({"command": "pwd", "directory": "sub"})).await;
    assert_eq!(outcome.text, format!("{}/sub\n", fixture.path().display()));
}

#[tokio::test]
async fn a_time_out_ends_what_left_the_session_too() {
    let fixture = Fixture::new();
    // A longer time-out is tried only where the machine did not get to start the command within a shorter
    // one.
    for timeout in [300, 3_000, 30_000] {
        let script = "setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000' & wait";
        let outcome = fixture.call("run_shell_command", json!({"command": script, "timeout": timeout})).await;
        assert_eq!(outcome.error_code, Some("tool_timeout"), "{}", outcome.text);
        assert!(outcome.text.contains(&format!("timed out after {timeout} ms")), "{}", outcome.text);
        if fixture.path().join("pid").exists() {
            break;
        }
    }
    assert!(!alive(fixture.number_in("pid")));
}

#[tokio::test]
async fn a_cancelled_command_is_gone_when_the_call_ends_even_if_it_will_not_listen() {
    let fixture = Fixture::new();
    let canceller = fixture.cancel_at_first_output();
    let outcome =
        fixture.shell("trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 1000; done").await;
    canceller.await.unwrap();
    assert!(outcome.cancelled);
    assert_eq!(outcome.error_code, Some("cancelled"));
    assert!(outcome.text.starts_with("ready\nThe command was cancelled"), "{}", outcome.text);
    assert!(!alive(fixture.number_in("pid")));
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_starts_nothing() {
    let fixture = Fixture::new();
    fixture.cx.cancel.cancel();
    assert!(fixture.shell("touch started").await.cancelled);
    assert!(!fixture.path().join("started").exists());
}

#[tokio::test]
async fn a_cancelled_command_may_clean_up() {
    let fixture = Fixture::new();
    let canceller = fixture.cancel_at_first_output();
    let outcome = fixture.shell("trap 'echo cleaned; exit' TERM; echo ready; sleep 1000 & wait").await;
    canceller.await.unwrap();
    assert!(outcome.text.starts_with("ready\ncleaned\n"), "{}", outcome.text);
}

#[tokio::test]
async fn leftover_processes_of_a_finished_command_are_ended() {
    let fixture = Fixture::new();
    for left in [
        "sleep 1000 & echo $! > pid",
        "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; until [ -s pid ]; do :; done",
    ] {
        let outcome = fixture.shell(left).await;
        assert_eq!(outcome.error_code, None, "{}", outcome.text);
        assert!(!alive(fixture.number_in("pid")), "{left}");
        std::fs::remove_file(fixture.path().join("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_crowd_of_processes_is_ended_however_deep_and_wherever_they_went() {
    let fixture = Fixture::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do
        setsid sh -c 'setsid sh -c \"setsid sleep 1000 & echo \\$! >> pids; wait\" & echo $! >> pids; wait' & echo $! >> pids
    done; until [ $(wc -l < pids) = 30 ]; do :; done";
    let outcome = fixture.shell(script).await;
    assert_eq!(outcome.error_code, None, "{}", outcome.text);
    let pids = fixture.read("pids");
    assert_eq!(pids.lines().count(), 30);
    assert!(pids.lines().all(|pid| !alive(pid.parse().unwrap())));
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_but_does_not_keep_it_alive() {
    let fixture = Fixture::new();
    fixture.sink.hold();
    let sink = fixture.sink.clone();
    let cancel = fixture.cx.cancel.clone();
    let (pid, done) = (fixture.path().join("pid"), fixture.path().join("done"));
    let reader = tokio::spawn(async move {
        sink.news.notified().await;
        // One piece is with the reader and a pipe is full: the command cannot have got through its megabyte.
        assert!(!done.exists());
        cancel.cancel();
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        tokio::task::spawn_blocking(move || fixture::wait_until_gone(pid)).await.unwrap();
        sink.release();
    });
    let outcome = fixture.shell("echo $$ > pid; head -c 1000000 /dev/zero | tr '\\0' x; touch done").await;
    reader.await.unwrap();
    assert!(outcome.cancelled);
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_whole_in_a_file() {
    let fixture = Fixture::new();
    let outcome = fixture.shell("echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert!(outcome.text.starts_with("first\nxxx"));
    assert!(outcome.text.ends_with("xxx\nlast\n"));
    assert!(outcome.text.len() <= SessionResources::OUTPUT_LIMIT);
    let (head, tail) = outcome.text.split_once("[…").unwrap();
    assert!(tail.len() > head.len());
    let file = outcome.output_file.unwrap();
    assert!(outcome.text.contains(&*file));
    assert!(
        outcome.text.contains("9988492 bytes (0 line breaks) left out here"),
        "{}",
        &outcome.text[3_800..4_000]
    );
    assert_eq!(std::fs::metadata(&*file).unwrap().len(), 10_000_012);
    // The model can read on in it, and only read.
    let part = fixture.call("read_file", json!({"file_path": &*file, "offset": 3})).await;
    assert_eq!(part.text, "[lines 3 to 3 of 3]\n3\tlast\n");
    let write = fixture.call("write_file", json!({"file_path": &*file, "content": ""})).await;
    assert_eq!(write.error_code, Some("permission_denied"));
}

#[tokio::test]
async fn output_and_errors_come_in_the_order_they_were_written() {
    let fixture = Fixture::new();
    let script = "for i in {0..999}; do if (( i * 7919 % 3 )); then echo $i; else echo $i >&2; fi; done";
    let expected: String = (0..1000).map(|i| format!("{i}\n")).collect();
    for _ in 0..5 {
        assert_eq!(fixture.shell(script).await.text, expected);
    }
    let outcome = fixture.call("run_shell_command", json!({"command": script, "is_background": true})).await;
    let task = json!({"task_id": "shell-1", "action": "output", "wait": 60_000});
    let seen = fixture.call("shell_task", task).await;
    assert!(seen.text.ends_with(&format!("New output:\n{expected}")), "{} {}", outcome.text, seen.text);
}

#[tokio::test]
async fn a_failed_part_of_the_last_pipeline_is_reported() {
    let fixture = Fixture::new();
    for (command, text) in [
        ("false | cat", "[In the last pipeline, part 1 of 2 exited with code 1.]"),
        ("echo x | (exit 3) | cat; ", "[In the last pipeline, part 2 of 3 exited with code 3.]"),
        ("false | cat; echo done", "done\n"),
        ("yes | head -n 1", "y\n"),
        ("(exit 2) | (exit 4)", "Exit code: 4\n[In the last pipeline, part 1 of 2 exited with code 2.]"),
        ("false || echo no pipeline", "no pipeline\n"),
        ("trap 'echo mine' EXIT; false | cat", "mine\n"),
    ] {
        let text = if text.starts_with("[In") { format!("(no output)\n{text}") } else { text.to_owned() };
        assert_eq!(fixture.shell(command).await.text, text, "{command}");
    }
    let broken = fixture.shell("ls /nowhere |\n cat; )").await;
    assert!(broken.text.contains("line 2: syntax error"), "{}", broken.text);
}

#[tokio::test]
async fn a_background_task_can_be_waited_for_and_its_last_lines_read() {
    let fixture = Fixture::new();
    let command = json!({"command": "seq 1 50; exit 7", "is_background": true});
    fixture.call("run_shell_command", command).await;
    let look = json!({"task_id": "shell-1", "action": "output", "wait": 60_000, "tail": 3});
    assert_eq!(
        fixture.call("shell_task", look.clone()).await.text,
        "Task shell-1: seq 1 50; exit 7\nIt ended with exit code 7.\nThe last 3 lines of its output:\n48\n49\n50\n"
    );
    // A look at the end does not count as having seen what is new.
    let new = json!({"task_id": "shell-1", "action": "output"});
    assert!(fixture.call("shell_task", new).await.text.contains("New output:\n1\n2\n"));
}

#[tokio::test]
async fn a_command_that_is_too_long_for_an_argument_runs_all_the_same() {
    let fixture = Fixture::new();
    let outcome = fixture.shell(&format!(": {}\necho done $#", "x".repeat(300_000))).await;
    assert_eq!(outcome.text, "done 0\n");
}

#[tokio::test]
async fn a_failed_start_is_reported() {
    let fixture = Fixture::new();
    std::fs::remove_dir(fixture.path()).unwrap();
    let outcome = fixture.shell("true").await;
    assert_eq!(outcome.error_code, Some("spawn_failed"));
    assert!(outcome.text.contains(fixture.path().to_str().unwrap()), "{}", outcome.text);
    std::fs::create_dir(fixture.path()).unwrap();
}

#[tokio::test]
async fn without_bash_it_is_sh_and_without_sh_it_is_an_error() {
    let programs = tempfile::tempdir().unwrap();
    let mut env = Environment::empty();
    env.set("PATH", programs.path());
    let fixture = Fixture::with(|resources| resources.env = Arc::new(env));
    let outcome = fixture.shell("echo $0").await;
    assert_eq!(outcome.error_code, Some("spawn_failed"));
    assert!(outcome.text.contains("no program called sh in PATH"), "{}", outcome.text);
    let sh = Environment::inherited().find_program("sh".as_ref()).unwrap();
    symlink(sh, programs.path().join("sh")).unwrap();
    assert_eq!(fixture.shell("echo $0").await.text, "sh\n");
}

#[tokio::test]
async fn commands_get_the_given_environment_and_no_descriptor_of_ours() {
    let mut env = Environment::inherited();
    env.set("GIVEN", "yes");
    let fixture = Fixture::with(|resources| resources.env = Arc::new(env));
    fixture.write("leaked", "");
    let path = fixture.path().join("leaked");
    let leaked =
        rustix::fs::openat(rustix::fs::CWD, path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())
            .unwrap();
    let outcome = fixture.shell("echo $GIVEN; ls -l /proc/self/fd").await;
    drop(leaked);
    assert!(outcome.text.starts_with("yes\n"), "{}", outcome.text);
    assert!(!outcome.text.contains("leaked"), "{}", outcome.text);
}

#[tokio::test]
async fn a_command_that_kills_its_guardian_goes_with_it() {
    let fixture = Fixture::new();
    let outcome = fixture.shell("echo $$ > pid; kill -9 $PPID; exec sleep 1000").await;
    assert_eq!(outcome.error_code, Some("command_failed"), "{}", outcome.text);
    tokio::task::spawn_blocking({
        let pid = fixture.number_in("pid");
        move || fixture::wait_until_gone(pid)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_line_that_begins_like_an_option_is_a_command() {
    let fixture = Fixture::new();
    for line in ["-x", "-c 'echo run'", "--version", "-- echo run", "-s < /dev/null"] {
        let outcome = fixture.shell(line).await;
        assert_eq!(outcome.exit_code, Some(127), "{line}: {}", outcome.text);
        assert!(outcome.text.contains("command not found"), "{line}: {}", outcome.text);
    }
}

#[tokio::test]
async fn a_background_task_runs_on_shows_its_output_and_can_be_ended() {
    let fixture = Fixture::new();
    fixture.fifo("gate");
    let script = "echo $$ > pid; echo hello; echo > gate; exec sleep 1000";
    let outcome = fixture.call("run_shell_command", json!({"command": script, "is_background": true})).await;
    assert!(
        outcome.text.starts_with("Started in the background as task shell-1 (process "),
        "{}",
        outcome.text
    );
    fixture.read("gate");
    assert!(alive(fixture.number_in("pid")));

    let task =
        async |action| fixture.call("shell_task", json!({"task_id": "shell-1", "action": action})).await.text;
    assert_eq!(task("output").await, format!("Task shell-1: {script}\nIt is running.\nNew output:\nhello\n"));
    assert!(task("output").await.ends_with("Nothing new was written."));
    assert!(task("kill").await.contains("It was ended"));
    assert!(!alive(fixture.number_in("pid")));
    assert!(task("output").await.contains("It was killed by signal 15."));
    let unknown = fixture.call("shell_task", json!({"task_id": "shell-2", "action": "kill"})).await;
    assert_eq!(unknown.error_code, Some("task_not_found"));
    assert!(unknown.text.contains("shell-1"), "{}", unknown.text);
}

#[tokio::test]
async fn background_tasks_end_with_the_session() {
    let fixture = Fixture::new();
    fixture.fifo("gate");
    let script = "echo $$ > pid; echo > gate; exec sleep 1000";
    fixture.call("run_shell_command", json!({"command": script, "is_background": true})).await;
    fixture.read("gate");
    let pid = fixture.number_in("pid");
    assert!(alive(pid));
    drop(fixture);
    fixture::wait_until_gone(pid);
}
