//! A log as the events that it was written from.

use std::sync::Arc;

use qwen_engine::agent::ReactOnly;
use qwen_engine::log::Replay;
use qwen_events::{Body, EndStatus, Event};

use super::story::{Place, Story, call, session, two_turns};

fn replay(place: &Place, with_state: bool) -> Vec<Event> {
    let mut replay = Replay::new(place.store.read(&session("s")).expect("a log"));
    if with_state {
        replay = replay.with_state(Arc::new(ReactOnly));
    }
    let mut events = Vec::new();
    while let Some(event) = replay.next_event().expect("an event") {
        events.push(event);
    }
    events
}

/// What kinds of events there are, in order.
fn kinds(events: &[Event]) -> Vec<String> {
    let kind = |event: &Event| {
        let text = format!("{:?}", event.body);
        text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
    };
    events.iter().map(kind).collect()
}

#[test]
fn a_replay_says_what_was_said_and_the_pieces_that_were_not_kept() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let events = replay(&place, false);
    let kept: Vec<Event> = events
        .iter()
        .filter(|event| {
            !matches!(
                event.body,
                Body::MessageStart { .. }
                    | Body::TextDelta(_)
                    | Body::ToolCallDelta { .. }
                    | Body::ToolCall(_)
            )
        })
        .cloned()
        .collect();
    assert_eq!(kept, two_turns().events);
    assert_eq!(
        kinds(&events)[..10],
        [
            "TurnStart",
            "NodeEnter",
            "MessageStart",
            "TextDelta",
            "ToolCallDelta",
            "ToolCallDelta",
            "ToolCall",
            "ToolCall",
            "MessageEnd",
            "NodeExit"
        ]
    );
}

#[test]
fn readers_of_the_state_get_it_after_each_step_and_at_the_end() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let events = replay(&place, true);
    let states = events.iter().filter(|event| matches!(event.body, Body::State(_))).count();
    assert_eq!(states, 5);
    for pair in events.windows(2) {
        assert_eq!(matches!(pair[0].body, Body::NodeExit { .. }), matches!(pair[1].body, Body::State(_)));
    }
    let checkpoints: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Checkpoint(checkpoint) => Some(checkpoint),
            _ => None,
        })
        .collect();
    assert_eq!(checkpoints.iter().map(|c| &*c.id).collect::<Vec<_>>(), ["s-1-4", "s-2-1"]);
    assert!(checkpoints[0].state.as_str().contains("They are fine."));
}

#[test]
fn steps_of_a_dead_process_are_ended_in_the_replay() {
    let calls = [call("call_1"), call("call_2")];
    let mut story = Story::default();
    story.turn(1, "Go").think("I look.", &calls).enter("act").say(Body::ToolStart(calls[0].clone()));
    let whole = story.events.clone();
    for length in 1..=whole.len() {
        let place = Place::new();
        let mut recorder = place.begin("s");
        for event in &whole[..length] {
            recorder.record(event).expect("kept");
        }
        drop(recorder);
        let events = replay(&place, true);
        let count = |kind: &str| kinds(&events).iter().filter(|known| *known == kind).count();
        assert_eq!(count("NodeEnter"), count("NodeExit"), "{length} events");
        assert_eq!(count("ToolCall"), count("ToolEnd"), "{length} events");
        let Some(Event { body: Body::TurnEnd(end), .. }) = events.last() else {
            panic!("{length} events: the last is {:?}", events.last())
        };
        assert_eq!(end.status, EndStatus::Interrupted);
    }
}
