//! When the bell rings: always for a question, and for the end of a long turn that nobody watches.

use qwen_events::{Body, EndStatus};
use qwen_tui::Effect;

use crate::harness::{Stage, turn_end};

const FOCUS_LOST: &str = "\u{1b}[O";
const FOCUS_GAINED: &str = "\u{1b}[I";

fn rings(stage: &mut Stage) -> bool {
    stage.effects().iter().any(|effect| matches!(effect, Effect::Notify(_)))
}

/// Whether a turn of this many milliseconds rings at its end.
fn end_rings(focus: &str, milliseconds: u64) -> bool {
    let mut stage = Stage::new(80, 24);
    stage.keys(focus);
    stage.keys("go\r");
    stage.turn_start();
    stage.pass(milliseconds);
    assert!(!rings(&mut stage), "a turn that runs does not ring");
    stage.event(Body::TurnEnd(Box::new(turn_end("t-1", EndStatus::Done))));
    rings(&mut stage)
}

#[test]
fn the_end_of_a_turn_rings_only_if_it_was_long_and_the_focus_is_known_to_be_elsewhere() {
    assert!(end_rings(FOCUS_LOST, 3000));
    assert!(!end_rings(FOCUS_LOST, 1000), "a short one");
    assert!(!end_rings(&format!("{FOCUS_LOST}{FOCUS_GAINED}"), 3000), "the user is back");
    assert!(!end_rings("", 3000), "a terminal that reports no focus");
}

#[test]
fn a_question_rings_whatever_the_focus() {
    for focus in ["", FOCUS_GAINED, FOCUS_LOST] {
        let mut stage = Stage::new(80, 24);
        stage.keys(focus);
        stage.keys("go\r");
        assert!(!rings(&mut stage));
        stage.question("q1", "cargo publish");
        assert!(rings(&mut stage), "{focus:?}");
    }
}
