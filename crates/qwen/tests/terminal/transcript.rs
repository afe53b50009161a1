//! Ctrl+O: the whole transcript, from the session log.

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, contains, qwen};

#[test]
fn the_transcript_shows_what_was_folded_and_finds_words() {
    let command = Reply::call("c1", "run_shell_command", r#"{"command":"seq 1 100"}"#);
    let mock = MockModel::with([command, Reply::text("Counted to a hundred.")]);
    let mut screen = Screen::ready(&qwen(&mock).arg("--yolo"));
    screen.type_keys("count\r");
    screen.wait_for("Counted to a hundred.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("\u{f}");
    screen.wait_until("the alternate screen", vt100::Screen::alternate_screen);
    screen.wait_for("q close");
    screen.type_keys("/42\r");
    screen.wait_for("42");
    screen.type_keys("q");
    screen.wait_until("the main screen", |screen| !screen.alternate_screen());
    screen.wait_for("Counted to a hundred.");
    screen.type_keys("\u{4}");
    screen.wait();
    screen.assert_given_back();
}

#[test]
fn a_killed_process_leaves_no_alternate_screen_behind() {
    let mock = MockModel::with([Reply::text("Something.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("say\r");
    screen.wait_for("Something.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("\u{f}");
    screen.wait_until("the alternate screen", vt100::Screen::alternate_screen);
    screen.signal(rustix::process::Signal::KILL);
    screen.wait_for_raw(b"\x1b[?2004l");
    screen.assert_given_back();
}

#[test]
fn copying_uses_the_source_and_says_how() {
    let mock = MockModel::with([Reply::text("Some **bold** words.")]);
    let mut screen = Screen::ready(&qwen(&mock).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY"));
    screen.type_keys("say\r");
    screen.wait_for("Some bold words.");
    screen.type_keys("/copy\r");
    screen.wait_for("OSC 52");
    // "Some **bold** words." in base64.
    assert!(contains(&screen.raw, b"\x1b]52;c;U29tZSAqKmJvbGQqKiB3b3Jkcy4=\x07"));
}
