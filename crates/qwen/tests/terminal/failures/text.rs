//! Text that is hard to show.

use mock_model::{MockModel, Reply, gate, sse};

use crate::harness::{Screen, contains, qwen};

#[test]
fn the_caret_is_behind_wide_and_combined_characters() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    for (text, column) in [("漢字", 6), ("e\u{301}", 3), ("שלום", 6)] {
        screen.type_keys(text);
        screen.wait_until(&format!("the caret behind {text}"), |now| now.cursor_position().1 == column);
        screen.type_keys("\u{15}");
        screen.wait_until("an empty composer", |now| now.cursor_position().1 == 2);
    }
}

#[test]
fn emoji_tabs_and_right_to_left_text_reach_the_model_and_the_screen() {
    let mock = MockModel::with([Reply::text(
        "a\u{202e}b \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} ❤\u{fe0f} end",
    )]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("שלום 👩‍🚀\r");
    screen.wait_for("end");
    let said = mock.wait_for_request(0).body.to_string();
    assert!(said.contains("שלום 👩‍🚀"), "{said}");
    assert!(!contains(&screen.raw, "\u{202e}".as_bytes()), "no override of the direction");
    screen.wait_gone("esc interrupts");
    screen.type_keys("!printf 'left\\tright\\n'\r");
    screen.wait_for("right");
}

#[test]
fn a_line_of_a_megabyte_and_ten_of_output_do_not_stop_the_terminal() {
    let line = format!("begin {} finis", "x".repeat(1_000_000));
    let mock = MockModel::with([Reply::text(&line), Reply::text("Still here.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("go\r");
    screen.wait_for("finis");
    screen.wait_gone("esc interrupts");
    screen.type_keys("!head -c 10000000 /dev/zero | tr '\\0' y; echo; echo the-end\r");
    screen.wait_for("the-end");
    screen.wait_gone("esc interrupts");
    screen.type_keys("and now?\r");
    screen.wait_for("Still here.");
}

#[test]
fn a_table_or_a_fence_that_is_cut_off_is_shown_and_does_not_change_what_follows() {
    for cut in ["| name | size |\n|---|---|\n| cut-off", "```rust\nlet cut-off = 1;\nlet"] {
        let mock =
            MockModel::with([Reply::new([sse::text(cut), gate("never")]), Reply::text("**Plain** again.")]);
        let mut screen = Screen::ready(&qwen(&mock));
        screen.type_keys("go\r");
        mock.reached("never");
        screen.wait_for("cut-off");
        screen.type_keys("\u{1b}");
        screen.wait_for("Interrupted.");
        screen.wait_for("cut-off");
        screen.type_keys("go on\r");
        screen.wait_for("Plain again.");
    }
}
