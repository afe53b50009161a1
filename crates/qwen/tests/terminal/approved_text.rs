//! A request shows what would run: beginning, end, and everything that tries to hide between them.

use std::time::Duration;

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, qwen};

const ASK: &str = "\u{11}";

fn run(command: &str) -> Reply {
    let arguments = serde_json::json!({ "command": command }).to_string();
    Reply::call("c1", "run_shell_command", &arguments)
}

#[test]
fn beginning_end_and_hidden_characters_of_a_command_are_shown_before_and_after_the_answer() {
    let padded = format!("ls -la{}; touch X", " ".repeat(6000));
    let lines = format!("ls -la{}touch X", "\n".repeat(500));
    let long = format!("echo {}; touch X", "a".repeat(9000));
    let many: String = (0..300).map(|n| format!("echo {n}\n")).collect::<String>() + "touch X";
    for (command, marks) in [
        (padded.as_str(), &["ls -la", "⟨6000 spaces⟩", "; touch X"][..]),
        (&lines, &["ls -la", "⟨500 line breaks⟩", "touch X"]),
        (&long, &["echo aaa", "rows hidden", "touch X"]),
        (&many, &["echo 0", "rows hidden", "touch X"]),
        ("touch X #\rls -la", &["touch X #", "ls -la"]),
        ("touch \u{202e}X\u{200b}", &["202"]),
        ("touch X #\u{1b}[2K\u{1b}[1Gls -la", &["touch X #", "[2K", "ls -la"]),
    ] {
        let mock = MockModel::with([run(command), Reply::text("No then.")]);
        let mut screen = Screen::ready(&qwen(&mock));
        screen.type_keys("go\r");
        screen.wait_for("? Run this command?");
        screen.type_keys(ASK);
        screen.wait_for("y yes, once");
        for mark in marks {
            assert!(screen.contents().contains(mark), "{mark:?} of {command:.40?}:\n{}", screen.contents());
        }
        screen.type_keys("n");
        screen.wait_for("No then.");
        // The transcript does not let a part of the command disappear either.
        assert!(!screen.contents().lines().any(|line| line.trim() == "ls -la"), "{}", screen.contents());
    }
}

#[test]
fn a_request_that_does_not_fit_is_answered_only_after_its_extent_was_shown() {
    let many: String = (0..300).map(|n| format!("echo {n}\n")).collect::<String>() + "touch X";
    let mock = MockModel::with([run(&many), Reply::text("All done.")]);
    let program = qwen(&mock);
    let mut screen = Screen::sized(&program, 60, 4);
    screen.wait_for("> ");
    screen.type_keys("go\r");
    screen.wait_for("? Run this");
    screen.type_keys(ASK);
    screen.wait_for("y yes");
    // There is room for the answers only.
    screen.type_keys("y");
    screen.pass_time(Duration::from_millis(600));
    assert!(!program.cwd_path().join("X").exists());
    assert_eq!(mock.requests().len(), 1);
    screen.resize(60, 20);
    screen.wait_for("rows hidden");
    screen.wait_for("touch X");
    screen.type_keys("y");
    screen.wait_for("All done.");
    assert!(program.cwd_path().join("X").exists());
}
