//! Appended lines only: screen readers and terminals that cannot move the cursor.

use mock_model::{MockModel, Reply, sse};

use crate::harness::{Screen, contains, qwen};

#[test]
fn a_dumb_terminal_gets_lines_without_a_single_escape() {
    let call = Reply::call("c1", "run_shell_command", r#"{"command":"touch made.txt"}"#);
    let mock = MockModel::with([call, Reply::text("**Done**.")]);
    let program = qwen(&mock).env("TERM", "dumb");
    let mut screen = Screen::start(&program);
    screen.wait_for("mock in");
    screen.type_keys("make it\n");
    screen.wait_for("Question: Run this command?");
    // A line that is entered before the whole question is written is not an answer.
    screen.wait_for("Other text is sent to the model.");
    screen.type_keys("1\n");
    screen.wait_for("Done.");
    assert!(program.cwd_path().join("made.txt").exists());
    screen.type_keys("/quit\n");
    screen.wait();
    assert!(!contains(&screen.raw, b"\x1b"), "{}", screen.raw.escape_ascii());
    screen.assert_cooked();
}

#[test]
fn a_screen_reader_hears_no_ticking() {
    let mock = MockModel::with([Reply::text("Hello.")]);
    let mut screen = Screen::start(&qwen(&mock).arg("--screen-reader"));
    screen.wait_for("mock in");
    screen.type_keys("hi\n");
    screen.wait_for("Hello.");
    assert!(!screen.contents().contains("esc interrupts"));
    assert!(!contains(&screen.raw, b"\x1b[K"), "nothing is repainted");
}

#[test]
fn narration_on_a_terminal_is_marked_and_the_answer_is_not() {
    let mock = MockModel::with([
        Reply::new([
            sse::text("Let me look."),
            sse::call(0, "c1", "list_directory", r#"{"path":"."}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("There is nothing."),
    ]);
    let mut screen = Screen::start(&qwen(&mock).args(["-p", "look"]));
    screen.wait_for("There is nothing.");
    screen.wait_for("qwen: session");
    screen.wait();
    let shown = screen.contents();
    let mark = shown.find("(continues; not the answer yet)").unwrap();
    assert!(shown.contains("Let me look.\n(continues"), "{shown}");
    assert!(mark < shown.find("There is nothing.").unwrap(), "{shown}");
    assert_eq!(shown.matches("not the answer yet").count(), 1, "{shown}");
}
