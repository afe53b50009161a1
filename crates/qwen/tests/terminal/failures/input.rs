//! Keys and pastes that no terminal should send, and some do.

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, contains, qwen};

const PASTE: &str = "\u{1b}[200~";
const PASTE_END: &str = "\u{1b}[201~";

#[test]
fn what_is_typed_while_the_program_starts_is_not_lost() {
    let mock = MockModel::with([]);
    let mut screen = Screen::start(&qwen(&mock));
    screen.type_keys("typed early");
    screen.wait_for("> typed early");
}

#[test]
fn a_paste_that_never_ends_does_not_block_the_keyboard() {
    let mock = MockModel::with([Reply::text("Got it.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys(&format!("{PASTE}no end"));
    screen.wait_for("> no end");
    screen.type_keys(" typed");
    screen.wait_for("> no end typed");
    screen.type_keys("\r");
    screen.wait_for("Got it.");
}

#[test]
fn a_paste_in_pieces_is_one_paste() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    for piece in ["\u{1b}[20", "0~ab", "c\u{1b}[2", "01~d"] {
        screen.type_keys(piece);
    }
    screen.wait_for("> abcd");
}

#[test]
fn escapes_in_a_paste_are_neither_keys_nor_sent_to_the_terminal() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys(&format!("{PASTE}a\u{1b}]0;owned\u{7}\u{3}\u{4}\u{1b}[2Jb{PASTE_END}!"));
    screen.wait_until("the paste", |now| now.contents().contains("b!"));
    assert!(!contains(&screen.raw, b"\x1b]0;owned") && !contains(&screen.raw, b"\x1b[2J"));
    screen.type_keys("still here");
    screen.wait_for("still here");
}

#[test]
fn sequences_and_bytes_that_mean_nothing_type_nothing() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("\u{1b}[1;99Z\u{1b}[?61;1c\u{1b}OZ\u{1b}_Gx\u{1b}\\\u{1b}[99999999999u");
    screen.type_bytes(b"\xff\xfe\xc3");
    screen.type_keys("ok");
    screen.wait_until("the draft", |now| now.contents().contains("ok"));
    screen.type_keys("\u{15}clean");
    screen.wait_for("> clean");
}

#[test]
fn a_huge_paste_is_a_chip_that_survives_and_is_sent_whole() {
    let mock = MockModel::with([Reply::text("Read.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    let line = "0123456789abcdef".repeat(64);
    let paste: String = (0..1000).map(|_| format!("{line}\r")).collect();
    let keys = format!("{PASTE}{paste}{PASTE_END}");
    screen.type_in_background(keys.into_bytes());
    screen.wait_for("[paste 1: 1000 lines]");
    screen.type_keys("\r");
    screen.wait_for("Read.");
    assert!(mock.wait_for_request(0).body.to_string().len() > 1_000_000);
}

#[test]
fn an_editor_that_is_missing_leaves_the_draft() {
    let mock = MockModel::with([]);
    let program = qwen(&mock).env_remove("VISUAL").env("EDITOR", "/nowhere/editor");
    let mut screen = Screen::ready(&program);
    screen.type_keys("my draft\u{7}");
    screen.wait_for("The editor failed");
    screen.wait_for("> my draft");
}

#[test]
fn an_editor_that_fails_leaves_the_draft() {
    let mock = MockModel::with([Reply::text("Received.")]);
    let program = qwen(&mock).env_remove("VISUAL");
    let editor = program.cwd_path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\necho half > \"$1\"\nexit 3\n").unwrap();
    let program = program.env("EDITOR", format!("sh {}", editor.display()));
    let mut screen = Screen::ready(&program);
    screen.type_keys("my draft\u{7}");
    screen.wait_for("The editor failed");
    screen.wait_for("> my draft");
    screen.type_keys(" goes on\r");
    screen.wait_for("Received.");
    let said = mock.wait_for_request(0).body.to_string();
    assert!(said.contains("my draft goes on"), "{said}");
}
