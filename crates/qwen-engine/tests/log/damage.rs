//! Logs that something happened to: torn, damaged, from the future.

use proptest::prelude::*;
use qwen_engine::log::{Folded, LogError};
use qwen_events::Body;

use super::story::{Place, Story, call, invalid, session, two_turns, two_turns_messages};

/// The conversation as a new turn would find it.
fn with_results(mut folded: Folded) -> Vec<qwen_events::Message> {
    folded.messages.extend(folded.unanswered.calls.take_results());
    folded.messages
}

/// A log with everything that can be cut in two.
fn text() -> Vec<u8> {
    let place = Place::new();
    let mut story = two_turns();
    let calls = [call("call_3"), call("call_4")];
    story.turn(3, "Und jetzt – schön?").think("", &calls).enter("act").say(Body::ToolStart(calls[0].clone()));
    story.record(&mut place.begin("s"));
    place.get("s")
}

#[test]
fn a_log_that_was_cut_off_anywhere_is_taken_up_with_a_valid_conversation() {
    let text = text();
    let place = Place::new();
    let first = text.iter().position(|byte| *byte == b'\n').expect("a first line") + 1;
    // At every byte of the last lines, and around every line break before them.
    let breaks: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let last = breaks[breaks.len() - 6];
    let near = |cut: usize| breaks.iter().any(|at| at.abs_diff(cut) <= 2);
    for cut in (0..=text.len()).filter(|cut| *cut >= last || near(*cut)) {
        place.put("s", &text[..cut]);
        let resumed = place.store.resume(&session("s"));
        if cut < first {
            assert!(matches!(resumed, Err(LogError::Unknown(_))), "cut at {cut}");
            continue;
        }
        let (mut recorder, folded) = resumed.expect("a session");
        assert_eq!(folded.damaged, 0, "cut at {cut}");
        let before = with_results(folded);
        assert_eq!(invalid(&before), None, "cut at {cut}");
        let mut story = Story::default();
        story.turn(9, "Go on");
        story.record(&mut recorder);
        drop(recorder);
        let after = place.store.fold(&session("s")).expect("a session");
        assert_eq!(after.damaged, 0, "cut at {cut}");
        assert_eq!(after.messages[..before.len()], before, "cut at {cut}");
        assert_eq!(after.messages.len(), before.len() + 1, "cut at {cut}");
    }
}

#[test]
fn a_log_whose_first_line_was_never_finished_is_begun_anew() {
    let place = Place::new();
    place.put("s", b"{\"type\":\"sess");
    two_turns().record(&mut place.begin("s"));
    assert_eq!(place.store.fold(&session("s")).expect("a log").messages, two_turns_messages());
    let belongs_to_somebody = place.begin("s").record(&two_turns().events[0]);
    assert!(matches!(belongs_to_somebody, Err(LogError::Exists(_))));
}

#[test]
fn lines_that_cannot_be_read_are_skipped_and_counted() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let text = place.get("s");
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.insert(3, b"\0\0\0\0\n");
    lines.insert(4, b"{\"at\":1,\"type\":\"message\",\"data\":{\"id\":7}}\n");
    lines.insert(5, b"\xff\xfe\n");
    lines.insert(6, b"{\"at\":1,\"type\":\"tool_start\",\"data\":{\"call\":{\"id\":\"nobody's\"}}}\n");
    // What a later version says is no damage.
    lines.insert(7, b"{\"at\":1,\"type\":\"hologram\",\"data\":{},\"more\":[]}\n");
    place.put("s", &lines.concat());
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages, two_turns_messages());
    assert_eq!(folded.damaged, 4);
}

#[test]
fn a_log_of_a_later_format_is_refused_and_said_to_be_one() {
    let place = Place::new();
    place.put("s", b"{\"type\":\"session\",\"v\":2}\n");
    let error = place.store.resume(&session("s")).map(|_| ()).expect_err("refused");
    assert!(matches!(error, LogError::Newer { version: 2, .. }));
    assert!(error.to_string().contains("later version"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_bytes_a_log_has_it_is_folded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let place = Place::new();
        place.put("s", &bytes);
        if let Ok(folded) = place.store.fold(&session("s")) {
            prop_assert_eq!(invalid(&with_results(folded)), None);
        }
    }

    #[test]
    fn whatever_happens_to_the_bytes_of_a_log_its_conversation_is_valid(
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut text = text();
        let first = text.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1;
        for (at, byte) in places {
            let rest = &mut text[first..];
            let at = at.index(rest.len());
            rest[at] = byte;
        }
        let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        for line in removed {
            if lines.len() > 2 {
                lines.remove(1 + line.index(lines.len() - 1));
            }
        }
        let place = Place::new();
        place.put("s", &lines.concat());
        let folded = place.store.fold(&session("s")).expect("the first line is whole");
        prop_assert_eq!(invalid(&with_results(folded)), None);
    }
}
