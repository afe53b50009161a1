//! Whatever order events come in, what is written are whole lines of JSON, and a turn's end is written once.

mod story;

use proptest::prelude::*;
use qwen_dialects::{Dialect, Encoder, Format, core, qwen};
use qwen_events::Body;
use serde_json::Value;

fn encoders() -> [(bool, Box<dyn Encoder>); 3] {
    let info = |dialect, format| story::info(dialect, format);
    [
        (false, qwen::encoder(&info(Dialect::Qwen, Format::StreamJson))),
        (false, qwen::encoder(&info(Dialect::Qwen, Format::StreamChunkJson))),
        (true, core::encoder(&info(Dialect::Core, Format::StreamJson))),
    ]
}

fn is_terminal(line: &Value) -> bool {
    let core = matches!(line["type"].as_str(), Some("finished" | "user_cancelled" | "error"));
    line["metadata"]["turn"].is_object() || (core && line["value"]["usageMetadata"].is_object())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lines_are_whole_and_terminal_records_are_one_a_turn(
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let events = story::everything().events;
        let events: Vec<_> = order.iter().map(|at| at.get(&events).clone()).collect();
        let ends = events.iter().filter(|event| matches!(event.body, Body::TurnEnd(_))).count();
        for (is_core, mut encoder) in encoders() {
            let mut terminals = 0;
            for event in &events {
                let mut out = Vec::new();
                encoder.encode(event, &mut out);
                prop_assert!(out.last().is_none_or(|byte| *byte == b'\n'));
                for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let line: Value = serde_json::from_slice(line)
                        .map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert!(line.is_object());
                    terminals += usize::from(is_terminal(&line));
                }
            }
            prop_assert_eq!(terminals, ends, "core: {}", is_core);
        }
    }
}
