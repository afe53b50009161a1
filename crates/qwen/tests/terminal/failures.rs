//! What may go wrong with a terminal.

use mock_model::{MockModel, Reply, gate};
use rustix::process::{Signal, WaitOptions, waitpid};

use crate::stage::{Screen, qwen};

#[test]
fn suspending_gives_the_terminal_back_and_continuing_takes_it_again() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("kept");
    screen.wait_for("> kept");
    screen.type_keys("\u{1a}");
    let (_, status) = waitpid(Some(screen.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
    screen.wait_for_raw(b"\x1b[?2004l");
    screen.assert_given_back();
    screen.assert_cooked();
    screen.signal(Signal::CONT);
    screen.wait_until("the draft again", |now| now.contents().contains("> kept") && now.bracketed_paste());
    screen.type_keys("!");
    screen.wait_for("> kept!");
}

#[test]
fn no_size_of_the_terminal_breaks_it() {
    let mock = MockModel::with([Reply::text("An answer of some length, to be wrapped.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("hello\r");
    screen.wait_for("An answer");
    for (columns, rows) in [(1, 1), (2, 1), (500, 200), (20, 5), (3, 40), (80, 24)] {
        screen.resize(columns, rows);
    }
    screen.type_keys("still here");
    screen.wait_for("still here");
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_the_session_for_ever() {
    // 64 kB and more fill the terminal's buffer while nobody reads it.
    let long = "word ".repeat(40_000);
    let mock = MockModel::with([Reply::text(&long), Reply::text("The end.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.wait_for_request(0);
    // Only now is the screen read.
    screen.wait_gone("esc interrupts");
    screen.type_keys("again\r");
    screen.wait_for("The end.");
}

#[test]
fn escape_works_while_the_model_hangs_and_says_so() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.wait_for("Waiting for mock");
    screen.type_keys("\u{1b}");
    screen.wait_for("Interrupted.");
}

#[test]
fn quitting_during_a_turn_ends_it() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    mock.reached("never");
    screen.type_keys("\u{4}");
    assert_eq!(screen.wait().code(), Some(0));
    screen.assert_given_back();
}

#[test]
fn without_a_model_the_session_opens_and_says_what_is_missing() {
    let mock = MockModel::with([]);
    let program = qwen(&mock).env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL");
    let mut screen = Screen::start(&program);
    screen.wait_for("qwen --model demo");
    screen.wait_for("> ");
}

#[test]
fn without_colours_or_unicode_there_are_none() {
    let mock =
        MockModel::with([Reply::call("c1", "list_directory", r#"{"path":"."}"#), Reply::text("**Bold**.")]);
    let mut screen = Screen::ready(&qwen(&mock).env("NO_COLOR", "1").env("LANG", "C"));
    screen.type_keys("look\r");
    screen.wait_for("Bold.");
    screen.wait_for("* List .");
    let has_colour = (0..24).flat_map(|row| (0..80).map(move |column| (row, column))).any(|(row, column)| {
        let cell = screen.parser.screen().cell(row, column);
        cell.is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
    });
    assert!(!has_colour && screen.contents().is_ascii(), "{}", screen.contents());
}
