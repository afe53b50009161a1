//! `run_shell_command` and `shell_task` with real processes.

mod bench;

use std::sync::Arc;

use bench::Bench;
use qwen_events::Channel;
use qwen_tools::Workbench;
use qwen_tools::process::Environment;

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
async fn a_failing_command_is_an_error_with_its_code() {
    let bench = Bench::new();
    let outcome = bench.shell("echo oops >&2; exit 3").await;
    assert_eq!(outcome.text, "oops\nExit code: 3");
    assert_eq!(outcome.exit_code, Some(3));
    assert_eq!(outcome.error_code, Some("command_failed"));
    assert_eq!(bench.streamed(Channel::Stderr), "oops\n");
}

#[tokio::test]
async fn a_time_out_ends_what_left_the_session_too() {
    let bench = Bench::new();
    // The fifo tells when the grandchild is there; the short time-out starts before, so the command waits for it.
    let script = "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do :; done; wait";
    let outcome =
        bench.call("run_shell_command", serde_json::json!({"command": script, "timeout": 700})).await;
    assert_eq!(outcome.error_code, Some("tool_timeout"), "{}", outcome.text);
    assert!(outcome.text.contains("timed out after 700 ms"), "{}", outcome.text);
    assert!(!bench::alive(bench.number_in("pid")));
}

#[tokio::test]
async fn commands_do_not_get_the_keys() {
    let mut env = Environment::inherited();
    env.set("KEPT", "yes");
    let bench = Bench::with(Workbench { env: Arc::new(env), ..Workbench::new() });
    let outcome = bench.shell("echo $KEPT $OPENAI_API_KEY").await;
    assert_eq!(outcome.text, "yes\n");
}
