//! What is left on disk, who may see it, and what happens where it cannot be kept.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate, sse};

use super::harness::{conversation, done, log, qwen, sessions};

#[test]
fn sessions_are_for_their_owner_alone() {
    let mock = MockModel::with([Reply::text("one")]);
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&program.qwen_home_path()), 0o700);
    assert_eq!(mode(&program.qwen_home_path().join("sessions")), 0o700);
    assert_eq!(mode(&log(&program, "a")), 0o600);
}

#[test]
fn the_end_of_a_turn_is_kept_before_it_is_told() {
    let mock = MockModel::with([Reply::text("one")]);
    let program =
        qwen(&mock).args(["-p", "First", "--session-id", "a", "--output-format", "stream-chunk-json"]);
    let mut run = program.start();
    run.close_stdin();
    run.json_until(|line| line["metadata"]["turn"]["status"] == "done");
    let kept = std::fs::read_to_string(log(&program, "a")).unwrap();
    assert!(kept.lines().last().unwrap().contains(r#""type":"turn_end""#), "{kept}");
}

#[test]
fn a_session_that_shall_not_be_kept_leaves_nothing() {
    for flags in [&["--no-session-persistence"][..], &["--no-chat-recording"], &["--chat-recording", "false"]]
    {
        let mock = MockModel::with([Reply::text("one")]);
        let program = qwen(&mock);
        done(&program, &[&["-p", "First"], flags].concat());
        assert!(!program.qwen_home_path().exists(), "{flags:?}");
    }
}

#[test]
fn a_session_that_shall_not_be_kept_can_still_begin_with_what_is() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let before = std::fs::read(log(&program, "a")).unwrap();
    done(&program, &["-p", "Again", "--resume", "a", "--no-session-persistence"]);
    assert_eq!(conversation(&mock.requests()[1]), ["user: First", "assistant: one", "user: Again"]);
    assert_eq!(std::fs::read(log(&program, "a")).unwrap(), before);
}

#[test]
fn a_worker_that_was_never_asked_leaves_nothing() {
    let mock = MockModel::start();
    let program =
        qwen(&mock).args(["--input-format", "stream-json"]).stdin("{\"type\":\"heartbeat_request\"}\n");
    assert_eq!(program.run().code, Some(0));
    assert!(!program.qwen_home_path().exists());
}

#[test]
fn a_second_process_on_a_live_session_is_refused() {
    let held = Reply::new([sse::text("one"), gate("held"), sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([held, Reply::text("two"), Reply::text("three")]);
    let program = qwen(&mock);
    let mut first = program.clone().args(["-p", "First", "--session-id", "a"]).start();
    first.close_stdin();
    mock.reached("held");
    for flags in [["--resume", "a"], ["--session-id", "a"]] {
        let ended = program.clone().args(["-p", "x", "--output-format", "json"]).args(flags).run();
        assert_eq!(ended.code, Some(42), "{flags:?}: {}", ended.stderr);
        let error = &ended.json_lines()[0]["error"];
        assert_eq!(error["code"], "session_in_use", "{flags:?}");
        let message = error["message"].as_str().unwrap();
        assert!(["'a'", "ID a "].iter().any(|name| message.contains(name)), "{error}");
    }
    let worker = program.clone().args(["--resume", "a", "--input-format", "stream-json"]).run();
    assert_eq!(worker.code, Some(42), "{}", worker.stderr);
    assert_eq!(sessions(&program, &["delete", "a"]).code, Some(42));
    // Looking at it and forking it are fine.
    assert!(sessions(&program, &["show", "a"]).stdout.contains("> First"));
    done(&program, &["-p", "Fork", "--resume", "a", "--fork-session"]);
    mock.open("held");
    assert_eq!(first.wait().code, Some(0));
    done(&program, &["-p", "Now", "--resume", "a"]);
}

#[test]
fn a_process_that_was_killed_holds_nothing() {
    let mock = MockModel::with([Reply::new([gate("held")]), Reply::text("two")]);
    let program = qwen(&mock);
    let first = program.clone().args(["-p", "First", "--session-id", "a"]).start();
    mock.reached("held");
    first.signal(Signal::KILL);
    assert_eq!(first.wait().signal, Some(9));
    done(&program, &["-p", "Second", "--resume", "a"]);
}

#[test]
fn without_a_writable_session_directory_the_turn_continues_with_one_warning() {
    let mock =
        MockModel::with([Reply::call("call_1", "list_directory", r#"{"path":"."}"#), Reply::text("one")]);
    // A file in the place of the directory cannot be written by anyone, not even by root.
    let program = qwen(&mock).args(["-p", "First", "--session-id", "a"]);
    std::fs::write(program.qwen_home_path(), "in the way").unwrap();
    let ended = program.run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "one\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("cannot be written").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_session_without_a_home_goes_on_and_says_so() {
    let mock = MockModel::with([Reply::text("one")]);
    let program = qwen(&mock).env_remove("HOME").env_remove("QWEN_HOME");
    let ended = done(&program, &["-p", "First"]);
    assert!(ended.stderr.contains("QWEN_HOME"), "{}", ended.stderr);
}

#[test]
fn a_full_disk_costs_the_log_and_not_the_session() {
    let long = "word ".repeat(20_000);
    let mock = MockModel::with([Reply::text("one"), Reply::text(&long), Reply::text("three")]);
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    // A limit on the size of files is what a full disk looks like to the one who writes; 64 blocks of 512
    // bytes.
    let script = "ulimit -f 64; exec \"$@\"";
    let limited = mock_model::process::Program::new("/bin/sh")
        .args([
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_qwen"),
            "--model",
            "mock",
            "-p",
            "Second",
            "--resume",
            "a",
        ])
        .with_model(&mock)
        .env("QWEN_HOME", program.qwen_home_path())
        .cwd(program.cwd_path());
    let ended = limited.run();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.trim(), long.trim());
    assert_eq!(ended.stderr.matches("cannot be written").count(), 1, "{}", ended.stderr);
    let kept = std::fs::read(log(&program, "a")).unwrap();
    assert_eq!(kept.last(), Some(&b'\n'), "only whole lines are left behind");
    done(&program, &["-p", "Third", "--resume", "a"]);
    assert_eq!(conversation(&mock.requests()[2])[..3], ["user: First", "assistant: one", "user: Second"]);
}

#[test]
fn resuming_a_damaged_log_gives_a_warning() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let kept = std::fs::read_to_string(log(&program, "a")).unwrap();
    let (first, rest) = kept.split_once('\n').unwrap();
    std::fs::write(log(&program, "a"), format!("{first}\nnonsense\n{rest}")).unwrap();
    let ended = done(&program, &["-p", "Again", "--resume", "a"]);
    assert!(ended.stderr.contains("a line of the log of the session 'a' cannot be read"), "{}", ended.stderr);
    assert_eq!(conversation(&mock.requests()[1]), ["user: First", "assistant: one", "user: Again"]);
}
