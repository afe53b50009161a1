//! The thinnest path: a prompt, its answer, an interrupt, the end.

use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::Signal;

use crate::harness::{Screen, contains, qwen};

#[test]
fn a_prompt_is_answered_and_printed_once() {
    let mock = MockModel::with([Reply::text("Hello **there**.\n\n```rust\nlet x = 1;\n```\n")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("say hello\r");
    screen.wait_for("let x = 1;");
    screen.wait_gone("esc interrupts");
    let contents = screen.contents();
    for text in ["> say hello", "Hello there.", "let x = 1;"] {
        assert_eq!(contents.matches(text).count(), 1, "{text}:\n{contents}");
    }
    screen.type_keys("\u{4}");
    assert_eq!(screen.wait().code(), Some(0));
    screen.assert_given_back();
    screen.assert_cooked();
    assert!(screen.contents().contains("Hello there."), "what was printed stays");
    assert!(!contains(&screen.raw, b"\x1b[2J") && !contains(&screen.raw, b"\x1b[3J"), "nothing is cleared");
    assert!(!contains(&screen.raw, b"\x1b[?1049h"), "no alternate screen");
}

#[test]
fn escape_interrupts_a_turn_and_the_next_prompt_works() {
    let mock = MockModel::with([
        Reply::new([sse::text("Part of it"), gate("never")]),
        Reply::text("Second answer."),
    ]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("first\r");
    mock.reached("never");
    screen.wait_for("Part of it");
    screen.type_keys("\u{1b}");
    screen.wait_for("Interrupted.");
    screen.type_keys("second\r");
    screen.wait_for("Second answer.");
}

#[test]
fn ctrl_c_clears_the_draft_first_and_then_ends_the_turn() {
    let mock = MockModel::with([Reply::new([gate("never")]), Reply::text("Second answer.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("first\r");
    mock.reached("never");
    screen.type_keys("a draft");
    screen.wait_for("> a draft");
    screen.type_keys("\u{3}\u{3}");
    screen.wait_for("Interrupted.");
    screen.type_keys("second\r");
    screen.wait_for("Second answer.");
}

#[test]
fn what_was_cleared_comes_back_with_up() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("a precious draft");
    screen.wait_for("a precious draft");
    screen.type_keys("\u{3}");
    screen.wait_gone("a precious draft");
    screen.type_keys("\u{1b}[A");
    screen.wait_for("a precious draft");
}

#[test]
fn a_draft_survives_being_killed() {
    let mock = MockModel::with([]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("not sent yet");
    screen.wait_for("not sent yet");
    let draft = || {
        let folder = program.qwen_home_path().join("terminal");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| file.path()).find(|path| path.extension().is_some_and(|kind| kind == "draft"))
    };
    while draft().is_none() {
        std::thread::yield_now();
    }
    screen.signal(Signal::KILL);
    screen.wait();
    let mut again = Screen::start(&program);
    again.wait_for("not sent yet");
}

#[test]
fn the_terminal_is_given_back_after_a_signal_and_after_kill_9() {
    let mock = MockModel::with([]);
    for signal in [Signal::TERM, Signal::HUP] {
        let mut screen = Screen::ready(&qwen(&mock));
        screen.signal(signal);
        screen.wait();
        screen.assert_given_back();
        screen.assert_cooked();
    }
    let mut screen = Screen::ready(&qwen(&mock));
    screen.signal(Signal::KILL);
    screen.wait_for_raw(b"\x1b[?2004l");
    screen.assert_given_back();
}

#[test]
fn a_closed_terminal_ends_the_process() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.hang_up();
    screen.wait();
}

#[test]
fn after_a_resize_the_region_is_painted_for_the_new_width() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("some words that are longer than half of the screen will be wide");
    screen.wait_for("will be wide");
    screen.resize(40, 12);
    screen.wait_until("the draft in two rows", |screen| {
        let rows: Vec<String> = screen.rows(0, 40).collect();
        rows.iter().any(|row| row.trim_end().ends_with("longer than half"))
            && rows.iter().filter(|row| row.starts_with("> ")).count() == 1
    });
}
