//! A process under control.

use mock_model::process::{Program, Signal, marked, wait_gone, wait_marked_gone};
use mock_model::{MockModel, Reply};

fn shell(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script])
}

#[test]
fn a_run_ends_with_its_output_error_and_code() {
    let ended = shell("read line; echo \"got $line\"; echo oops >&2; exit 3").stdin("this\n").run();
    assert_eq!((ended.code, ended.signal), (Some(3), None));
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("got this\n", "oops\n"));
}

#[test]
fn lines_go_back_and_forth() {
    let mut run = shell("while read line; do echo \"{\\\"n\\\":$line}\"; done; echo bye").start();
    run.write_line(1);
    assert_eq!(run.json()["n"], 1);
    for n in 2..=5 {
        run.write_line(n);
    }
    assert_eq!(run.json_until(|line| line["n"] == 5).len(), 4);
    run.close_stdin();
    assert_eq!(run.line().as_deref(), Some("bye"));
    assert_eq!(run.line(), None);
    let ended = run.wait();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.starts_with("{\"n\":1}\n"), "all of it, taken lines too: {}", ended.stdout);
}

#[test]
fn a_host_that_does_not_read_stalls_the_writer_until_it_does() {
    // More than any pipe holds: the program can only end once the test takes its lines.
    let mut run =
        shell("i=0; while [ $i -lt 30000 ]; do echo line-$i; i=$((i+1)); done; echo all >&2").start();
    assert_eq!(run.line().as_deref(), Some("line-0"));
    assert_eq!(run.stderr(), "");
    let ended = run.finish();
    assert_eq!(ended.stdout.lines().count(), 30_000);
    assert_eq!(ended.stderr, "all\n");
}

#[test]
fn signals_arrive_and_their_end_is_told() {
    let run = shell("echo ready; exec sleep 1000").start();
    let mut trapped =
        shell("trap 'echo stopped; exit 143' TERM; echo ready; while :; do read x || :; done").start();
    assert_eq!(trapped.line().as_deref(), Some("ready"));
    trapped.signal(Signal::TERM);
    trapped.close_stdin();
    let ended = trapped.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(143), "ready\nstopped\n"));
    run.signal(Signal::KILL);
    assert_eq!(run.wait().signal, Some(9));
}

#[test]
fn the_place_is_fresh_and_kept_between_runs_of_a_clone() {
    let program = Program::new("/bin/sh");
    let write =
        program.clone().args(["-c", "mkdir -p $QWEN_HOME; echo kept > $QWEN_HOME/a; echo here > b"]).run();
    assert_eq!(write.code, Some(0));
    let read = program.clone().args(["-c", "cat $QWEN_HOME/a b; ls -A $HOME"]).run();
    assert_eq!(read.stdout, "kept\nhere\n.qwen\n");
    let home = program.home_path().to_owned();
    drop(program);
    assert!(!home.exists(), "the directories go with the last one that uses them");
}

#[test]
fn a_mock_is_given_by_the_openai_variables() {
    let mock = MockModel::with([Reply::text("hi")]);
    let ended = shell("echo $OPENAI_BASE_URL $OPENAI_API_KEY").with_model(&mock).run();
    assert_eq!(ended.stdout, format!("{} test-key\n", mock.base_url()));
}

#[test]
fn processes_are_found_by_their_mark_and_gone_when_they_are() {
    let mark = format!("mock-model-mark-{}", std::process::id());
    assert!(marked(&mark).is_empty());
    // It speaks for itself: between a fork and the end of an exec a process has no environment to be known
    // by.
    let script = "sh -c 'echo $$; kill -STOP $$' & read x; kill -KILL $!";
    let mut run = shell(script).env("MOCK_MARK", &mark).start();
    let grandchild: u32 = run.line().unwrap().parse().unwrap();
    assert!(marked(&mark).contains(&grandchild) && marked(&mark).contains(&run.pid()));
    run.close_stdin();
    wait_gone(grandchild);
    wait_gone(run.pid());
    wait_marked_gone(&mark);
}

#[test]
fn dropping_a_run_kills_it() {
    let run = shell("exec sleep 1000").start();
    let pid = run.pid();
    drop(run);
    wait_gone(pid);
}

#[test]
fn standard_error_can_be_waited_for() {
    let run = shell("echo warming up >&2; echo ready >&2; exec sleep 1000").start();
    run.wait_for_stderr("ready");
    assert!(!run.has_ended());
}

#[test]
#[should_panic(expected = "wrote a line that is not valid JSON")]
fn a_line_that_is_no_json_fails_with_the_line() {
    shell("echo plain").start().json();
}

#[test]
#[should_panic(expected = "cannot start /nonexistent/program")]
fn a_missing_program_is_named() {
    Program::new("/nonexistent/program").start();
}
