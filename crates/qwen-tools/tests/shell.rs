//! `run_shell_command` and `shell_task` with real processes.

mod bench;

use std::os::unix::fs::symlink;
use std::sync::Arc;

use bench::{Bench, alive};
use qwen_events::Channel;
use qwen_sandbox::process::Environment;
use qwen_tools::SessionResources;
use serde_json::json;

#[tokio::test]
async fn output_and_exit_code_come_back_and_are_streamed_in_order() {
    let bench = Bench::new();
    let outcome = bench.shell("echo one; echo two; echo three").await;
    assert_eq!(outcome.text, "one\ntwo\nthree\n");
    assert_eq!(outcome.exit_code, Some(0));
    assert_eq!(outcome.error_code, None);
    assert_eq!(bench.streamed(Channel::Stdout), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn how_a_command_ended_is_said() {
    let bench = Bench::new();
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
        let outcome = bench.shell(command).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.exit_code, outcome.error_code),
            (text, exit_code, error_code),
            "{command}"
        );
    }
    assert_eq!(bench.streamed(Channel::Stderr), "oops\n");
}

#[tokio::test]
async fn a_character_that_comes_in_two_pieces_is_whole() {
    let bench = Bench::new();
    bench.fifo("gate");
    let path = bench.path().join("gate");
    let sink = bench.sink.clone();
    // The command goes on with the second half only after what came before the first one was streamed.
    let gate = tokio::spawn(async move {
        sink.news.notified().await;
        tokio::task::spawn_blocking(move || std::fs::write(path, "go")).await.unwrap().unwrap();
    });
    let outcome = bench.shell(r"printf 'a\342\202'; cat gate > /dev/null; printf '\254b\377'").await;
    gate.await.unwrap();
    assert_eq!(outcome.text, "a€b\u{fffd}");
    assert_eq!(bench.streamed(Channel::Stdout), "a€b\u{fffd}");
}

#[tokio::test]
async fn it_runs_where_it_is_told_to() {
    let bench = Bench::new();
    bench.write("sub/x", "");
    let outcome = bench.call("run_shell_command", json!({"command": "pwd", "directory": "sub"})).await;
    assert_eq!(outcome.text, format!("{}/sub\n", bench.path().display()));
}

#[tokio::test]
async fn a_time_out_ends_what_left_the_session_too() {
    let bench = Bench::new();
    // A longer time-out is tried only where the machine did not get to start the command within a shorter one.
    for timeout in [300, 3_000, 30_000] {
        let script = "setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000' & wait";
        let outcome = bench.call("run_shell_command", json!({"command": script, "timeout": timeout})).await;
        assert_eq!(outcome.error_code, Some("tool_timeout"), "{}", outcome.text);
        assert!(outcome.text.contains(&format!("timed out after {timeout} ms")), "{}", outcome.text);
        if bench.path().join("pid").exists() {
            break;
        }
    }
    assert!(!alive(bench.number_in("pid")));
}

#[tokio::test]
async fn a_cancelled_command_is_gone_when_the_call_ends_even_if_it_will_not_listen() {
    let bench = Bench::new();
    let canceller = bench.cancel_at_first_output();
    let outcome = bench.shell("trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 1000; done").await;
    canceller.await.unwrap();
    assert!(outcome.cancelled);
    assert_eq!(outcome.error_code, Some("cancelled"));
    assert!(outcome.text.starts_with("ready\nThe command was cancelled"), "{}", outcome.text);
    assert!(!alive(bench.number_in("pid")));
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_starts_nothing() {
    let bench = Bench::new();
    bench.cx.cancel.cancel();
    assert!(bench.shell("touch started").await.cancelled);
    assert!(!bench.path().join("started").exists());
}

#[tokio::test]
async fn a_cancelled_command_may_clean_up() {
    let bench = Bench::new();
    let canceller = bench.cancel_at_first_output();
    let outcome = bench.shell("trap 'echo cleaned; exit' TERM; echo ready; sleep 1000 & wait").await;
    canceller.await.unwrap();
    assert!(outcome.text.starts_with("ready\ncleaned\n"), "{}", outcome.text);
}

#[tokio::test]
async fn what_a_finished_command_left_behind_is_ended() {
    let bench = Bench::new();
    for left in [
        "sleep 1000 & echo $! > pid",
        "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; until [ -s pid ]; do :; done",
    ] {
        let outcome = bench.shell(left).await;
        assert_eq!(outcome.error_code, None, "{}", outcome.text);
        assert!(!alive(bench.number_in("pid")), "{left}");
        std::fs::remove_file(bench.path().join("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_crowd_of_processes_is_ended_however_deep_and_wherever_they_went() {
    let bench = Bench::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do
        setsid sh -c 'setsid sh -c \"setsid sleep 1000 & echo \\$! >> pids; wait\" & echo $! >> pids; wait' & echo $! >> pids
    done; until [ $(wc -l < pids) = 30 ]; do :; done";
    let outcome = bench.shell(script).await;
    assert_eq!(outcome.error_code, None, "{}", outcome.text);
    let pids = bench.read("pids");
    assert_eq!(pids.lines().count(), 30);
    assert!(pids.lines().all(|pid| !alive(pid.parse().unwrap())));
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_but_does_not_keep_it_alive() {
    let bench = Bench::new();
    bench.sink.hold();
    let sink = bench.sink.clone();
    let cancel = bench.cx.cancel.clone();
    let (pid, done) = (bench.path().join("pid"), bench.path().join("done"));
    let reader = tokio::spawn(async move {
        sink.news.notified().await;
        // One piece is with the reader and a pipe is full: the command cannot have got through its megabyte.
        assert!(!done.exists());
        cancel.cancel();
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        tokio::task::spawn_blocking(move || bench::wait_until_gone(pid)).await.unwrap();
        sink.release();
    });
    let outcome = bench.shell("echo $$ > pid; head -c 1000000 /dev/zero | tr '\\0' x; touch done").await;
    reader.await.unwrap();
    assert!(outcome.cancelled);
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_whole_in_a_file() {
    let bench = Bench::new();
    let outcome = bench.shell("echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert!(outcome.text.starts_with("first\nxxx"));
    assert!(outcome.text.ends_with("xxx\nlast\n"));
    assert!(outcome.text.chars().count() < SessionResources::OUTPUT_LIMIT + 300);
    let file = outcome.output_file.unwrap();
    assert!(outcome.text.contains(&*file));
    assert!(outcome.text.contains("9970012 characters cut out"), "{}", &outcome.text[14_900..15_300]);
    assert_eq!(std::fs::metadata(&*file).unwrap().len(), 10_000_012);
    // The model can read on in it, and only read.
    let part = bench.call("read_file", json!({"file_path": &*file, "offset": 2})).await;
    assert_eq!(part.text, "[lines 3 to 3 of 3]\nlast\n");
    let write = bench.call("write_file", json!({"file_path": &*file, "content": ""})).await;
    assert_eq!(write.error_code, Some("permission_denied"));
}

#[tokio::test]
async fn a_command_that_is_too_long_for_an_argument_runs_all_the_same() {
    let bench = Bench::new();
    let outcome = bench.shell(&format!(": {}\necho done $#", "x".repeat(300_000))).await;
    assert_eq!(outcome.text, "done 0\n");
}

#[tokio::test]
async fn what_cannot_be_started_is_said() {
    let bench = Bench::new();
    std::fs::remove_dir(bench.path()).unwrap();
    let outcome = bench.shell("true").await;
    assert_eq!(outcome.error_code, Some("spawn_failed"));
    assert!(outcome.text.contains(bench.path().to_str().unwrap()), "{}", outcome.text);
    std::fs::create_dir(bench.path()).unwrap();
}

#[tokio::test]
async fn without_bash_it_is_sh_and_without_sh_it_is_an_error() {
    let programs = tempfile::tempdir().unwrap();
    let mut env = Environment::empty();
    env.set("PATH", programs.path());
    let bench = Bench::with(|resources| resources.env = Arc::new(env));
    let outcome = bench.shell("echo $0").await;
    assert_eq!(outcome.error_code, Some("spawn_failed"));
    assert!(outcome.text.contains("no program called sh in PATH"), "{}", outcome.text);
    let sh = Environment::inherited().find_program("sh".as_ref()).unwrap();
    symlink(sh, programs.path().join("sh")).unwrap();
    assert_eq!(bench.shell("echo $0").await.text, "sh\n");
}

#[tokio::test]
async fn commands_get_the_given_environment_and_no_descriptor_of_ours() {
    let mut env = Environment::inherited();
    env.set("GIVEN", "yes");
    let bench = Bench::with(|resources| resources.env = Arc::new(env));
    bench.write("leaked", "");
    let path = bench.path().join("leaked");
    let leaked =
        rustix::fs::openat(rustix::fs::CWD, path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())
            .unwrap();
    let outcome = bench.shell("echo $GIVEN; ls -l /proc/self/fd").await;
    drop(leaked);
    assert!(outcome.text.starts_with("yes\n"), "{}", outcome.text);
    assert!(!outcome.text.contains("leaked"), "{}", outcome.text);
}

#[tokio::test]
async fn a_command_that_kills_its_guardian_goes_with_it() {
    let bench = Bench::new();
    let outcome = bench.shell("echo $$ > pid; kill -9 $PPID; exec sleep 1000").await;
    assert_eq!(outcome.error_code, Some("command_failed"), "{}", outcome.text);
    tokio::task::spawn_blocking({
        let pid = bench.number_in("pid");
        move || bench::wait_until_gone(pid)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_line_that_begins_like_an_option_is_a_command() {
    let bench = Bench::new();
    for line in ["-x", "-c 'echo run'", "--version", "-- echo run", "-s < /dev/null"] {
        let outcome = bench.shell(line).await;
        assert_eq!(outcome.exit_code, Some(127), "{line}: {}", outcome.text);
        assert!(outcome.text.contains("command not found"), "{line}: {}", outcome.text);
    }
}

#[tokio::test]
async fn a_background_task_runs_on_shows_its_output_and_can_be_ended() {
    let bench = Bench::new();
    bench.fifo("gate");
    let script = "echo $$ > pid; echo hello; echo > gate; exec sleep 1000";
    let outcome = bench.call("run_shell_command", json!({"command": script, "is_background": true})).await;
    assert!(
        outcome.text.starts_with("Started in the background as task shell-1 (process "),
        "{}",
        outcome.text
    );
    bench.read("gate");
    assert!(alive(bench.number_in("pid")));

    let task =
        async |action| bench.call("shell_task", json!({"task_id": "shell-1", "action": action})).await.text;
    assert_eq!(task("output").await, format!("Task shell-1: {script}\nIt is running.\nNew output:\nhello\n"));
    assert!(task("output").await.ends_with("Nothing new was written."));
    assert!(task("kill").await.contains("It was ended"));
    assert!(!alive(bench.number_in("pid")));
    assert!(task("output").await.contains("It was killed by signal 15."));
    let unknown = bench.call("shell_task", json!({"task_id": "shell-2", "action": "kill"})).await;
    assert_eq!(unknown.error_code, Some("task_not_found"));
    assert!(unknown.text.contains("shell-1"), "{}", unknown.text);
}

#[tokio::test]
async fn background_tasks_end_with_the_session() {
    let bench = Bench::new();
    bench.fifo("gate");
    let script = "echo $$ > pid; echo > gate; exec sleep 1000";
    bench.call("run_shell_command", json!({"command": script, "is_background": true})).await;
    bench.read("gate");
    let pid = bench.number_in("pid");
    assert!(alive(pid));
    drop(bench);
    bench::wait_until_gone(pid);
}
