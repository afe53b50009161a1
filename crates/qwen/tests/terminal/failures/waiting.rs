//! A model, an MCP server, a hook or a person that does not answer.

use mock_model::{MockModel, Reply, Request, gate, sse};

use crate::harness::{Screen, qwen};

const ESC: &str = "\u{1b}";

#[test]
fn escape_works_while_the_model_hangs_and_says_what_it_ended() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.wait_for("Waiting for mock");
    screen.type_keys(ESC);
    screen.wait_for("Interrupted. Ended: the request to mock.");
    mock.client_gone(0);
}

#[test]
fn escape_works_while_a_hook_hangs_and_names_it() {
    let call = Reply::call("c1", "list_directory", r#"{"path":"."}"#);
    let mock = MockModel::with([call, Reply::text("After.")]);
    let program = qwen(&mock);
    let hook =
        r#"{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"sleep 1000"}]}]}}"#;
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(program.qwen_home_path().join("settings.json"), hook).unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("go\r");
    screen.wait_for("Running the hook PreToolUse");
    screen.type_keys(ESC);
    screen.wait_for("Interrupted. Ended: the hook PreToolUse");
    screen.type_keys("on\r");
    screen.wait_for("After.");
}

#[test]
fn escape_works_while_an_mcp_server_does_not_start() {
    let mock = MockModel::with([]);
    let program = qwen(&mock);
    let servers = r#"{"mcpServers":{"slow":{"command":"sleep","args":["1000"]}}}"#;
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(program.qwen_home_path().join("settings.json"), servers).unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("go\r");
    screen.wait_for("esc interrupts");
    screen.type_keys(ESC);
    screen.wait_for("Interrupted. Ended: the start of the turn");
    assert!(mock.requests().is_empty());
}

#[test]
fn escape_names_the_command_that_it_ended() {
    let mock = MockModel::with([Reply::call(
        "c1",
        "run_shell_command",
        r#"{"command":"echo be''gun; sleep 1000"}"#,
    )]);
    let mut screen = Screen::ready(&qwen(&mock).arg("--yolo"));
    screen.type_keys("go\r");
    // Its output, not its line on the screen.
    screen.wait_for("begun");
    screen.type_keys(ESC);
    screen.wait_for("Interrupted. Ended: Run echo be''gun; sleep 1000.");
}

/// A model that starts ten sub-agents at once, each of which needs an answer to read a file.
fn ten_readers() -> MockModel {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| {
        let prompt = request.last_user_text();
        let has_results = request.messages().iter().any(|message| message["role"] == "tool");
        let reader = (0..10).find(|n| prompt.contains(&format!("reader {n}")));
        Some(match (reader, has_results) {
            _ if prompt.contains("next") => Reply::text("Good."),
            (Some(_), true) => Reply::text("Read."),
            (None, true) => Reply::text("All read."),
            (Some(n), false) => {
                Reply::call("r", "read_file", &format!(r#"{{"file_path":"/etc/of-reader-{n}"}}"#))
            }
            (None, false) => {
                let calls = (0..10).map(|n| {
                    let arguments = format!(
                        r#"{{"description":"read","prompt":"You are reader {n}","subagent_type":"explore"}}"#
                    );
                    sse::call(n, &format!("c{n}"), "agent", &arguments)
                });
                Reply::new(calls.chain([sse::finish("tool_calls"), sse::done()]))
            }
        })
    });
    mock
}

#[test]
fn ten_questions_at_once_are_answered_one_by_one() {
    let mock = ten_readers();
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("read ten\r");
    screen.wait_for("(1 of 10)");
    screen.type_keys("\u{11}");
    for left in (1..=10).rev() {
        if left > 1 {
            screen.wait_for(&format!("(1 of {left})"));
        }
        screen.wait_for("y yes, once");
        screen.type_keys("y");
        if left > 1 {
            screen.wait_gone(&format!("(1 of {left})"));
            screen.type_keys("\u{11}");
        }
    }
    screen.wait_for("All read.");
    let asked = |n: usize| move |text: &str| text.contains(&format!("of-reader-{n}"));
    for n in 0..10 {
        assert!(mock.requests().iter().any(|request| asked(n)(&request.body.to_string())), "{n}");
    }
}

#[test]
fn questions_that_are_withdrawn_while_being_answered_are_not_answered() {
    let mock = ten_readers();
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("read ten\r");
    screen.wait_for("(1 of 10)");
    screen.type_keys("\u{11}");
    screen.wait_for("y yes, once");
    screen.type_keys("e");
    screen.wait_for("No, and tell the model:");
    screen.type_keys("because");
    screen.wait_for("> because");
    // Ctrl+C always belongs to the program, also while an answer is written.
    screen.type_keys("\u{3}");
    screen.wait_for("Interrupted. Ended:");
    screen.wait_gone("No, and tell the model:");
    screen.type_keys("next\r");
    screen.wait_for("Good.");
}

#[test]
fn a_request_of_a_background_agent_can_be_answered_after_the_turn() {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| {
        let is_agent = request.last_user_text().contains("You are the helper");
        let has_results = request.messages().iter().any(|message| message["role"] == "tool");
        Some(match (is_agent, has_results) {
            (true, true) => Reply::text("Helped."),
            (true, false) => Reply::call("t", "run_shell_command", r#"{"command":"touch made.txt"}"#),
            (false, true) => {
                Reply::new([gate("turn"), sse::text("Started."), sse::finish("stop"), sse::done()])
            }
            (false, false) => {
                let arguments =
                    r#"{"description":"help","prompt":"You are the helper","run_in_background":true}"#;
                Reply::call("a", "agent", arguments)
            }
        })
    });
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("go\r");
    screen.wait_for("? Run this command?");
    mock.open("turn");
    screen.wait_for("Started.");
    screen.wait_gone("Waiting for your answer");
    screen.wait_for("y yes, once");
    // From here on the key is known to be pressed by a user who sees the request.
    screen.pass_time(std::time::Duration::from_millis(500));
    screen.type_keys("y");
    screen.wait_for("Task completed");
    assert!(program.cwd_path().join("made.txt").exists());
}
