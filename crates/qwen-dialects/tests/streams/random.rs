//! Any turn that an engine may tell, in any dialect: only whole lines that the dialect knows, and its
//! invariants.

use std::collections::HashMap;

use proptest::prelude::*;
use qwen_dialects::{Dialect, Format, StreamInfo, StreamMode};
use qwen_events::{
    Body, ConsoleLevel, ControlReply, Display, EndStatus, ErrorInfo, ErrorKind, Event, Json, LogScope,
    SessionEvent, SessionId, Thinking, ToolStatus,
};
use serde_json::Value;

use crate::judge::{against_schema, through_wire_type};
use crate::script::{Script, call, diff, info, lines, tool_end};

/// Something that happens within a turn.
#[derive(Debug, Clone)]
enum Step {
    Text(String),
    Thought(String),
    Call { name: String, argument: String, streamed: bool },
    Message,
    Aborted,
    ToolEnd { status: u8, text: String, shown: bool },
    Output(String),
    Ask,
    CancelQuestion,
    Node(bool),
    State(String),
    SubAgent(Option<u8>),
    Notice(String),
    Error(String),
    Thinking(String, Vec<f64>),
    Heartbeat,
    Reply(bool, String),
    Display,
}

fn step() -> impl Strategy<Value = Step> {
    let text = any::<String>;
    prop_oneof![
        6 => text().prop_map(Step::Text),
        3 => text().prop_map(Step::Thought),
        3 => (text(), text(), any::<bool>())
            .prop_map(|(name, argument, streamed)| Step::Call { name, argument, streamed }),
        3 => Just(Step::Message),
        1 => Just(Step::Aborted),
        3 => (0_u8..4, text(), any::<bool>())
            .prop_map(|(status, text, shown)| Step::ToolEnd { status, text, shown }),
        1 => text().prop_map(Step::Output),
        1 => Just(Step::Ask),
        1 => Just(Step::CancelQuestion),
        2 => any::<bool>().prop_map(Step::Node),
        1 => text().prop_map(Step::State),
        2 => proptest::option::of(0_u8..2).prop_map(Step::SubAgent),
        1 => text().prop_map(Step::Notice),
        1 => text().prop_map(Step::Error),
        1 => (text(), proptest::collection::vec(-1.0..1.0, 0..3)).prop_map(|(id, scores)| Step::Thinking(id, scores)),
        1 => Just(Step::Heartbeat),
        1 => (any::<bool>(), text()).prop_map(|(nested, text)| Step::Reply(nested, text)),
        1 => Just(Step::Display),
    ]
}

fn status() -> impl Strategy<Value = EndStatus> {
    prop::sample::select(EndStatus::ALL.to_vec())
}

/// The steps as a turn that keeps the engine's promises: a speaker finishes its message before another
/// speaks, pieces come within messages, calls are whole before their message ends.
fn tell(steps: &[Step], status: EndStatus, reply: &str) -> Vec<Event> {
    let mut script = Script::turn();
    let mut nodes = 1;
    let mut calls = 0;
    let mut open = false;
    script.enter("think", 1);
    let string = |text: &str| serde_json::to_string(text).unwrap();
    for step in steps {
        let within_message = matches!(step, Step::Text(_) | Step::Thought(_) | Step::Call { .. });
        let between_messages = matches!(
            step,
            Step::Message | Step::Aborted | Step::Node(_) | Step::SubAgent(_) | Step::ToolEnd { .. }
        );
        if within_message && !open {
            script.message();
            open = true;
        }
        if between_messages && open {
            if matches!(step, Step::Aborted) {
                script.aborted()
            } else {
                script.end()
            };
            open = false;
        }
        let id = format!("call_{calls}");
        match step {
            Step::Message | Step::Aborted => {}
            Step::Text(text) => drop(script.text(text)),
            Step::Thought(text) => drop(script.thought(text)),
            Step::Call { name, argument, streamed } => {
                calls += 1;
                let id = format!("call_{calls}");
                let arguments = format!("{{\"a\":{}}}", string(argument));
                if *streamed {
                    script.arguments(calls, &id, name, "{\"a\":").arguments(
                        calls,
                        &id,
                        name,
                        &arguments[5..],
                    );
                }
                script.call(&id, name, &arguments);
            }
            Step::ToolEnd { status, text, shown } => {
                let status =
                    [ToolStatus::Success, ToolStatus::Error, ToolStatus::Denied, ToolStatus::Cancelled]
                        [usize::from(*status)];
                if status != ToolStatus::Denied {
                    script.tool_start(&id, "tool");
                }
                let display = shown.then(|| Display::FileDiff(diff(text)));
                let end = qwen_events::ToolEnd { display, ..tool_end(&id, "tool", status, text) };
                script.push(Body::ToolEnd(Box::new(end)));
            }
            Step::Output(text) => {
                let channel = qwen_events::Channel::Stderr;
                script.push(Body::ToolOutput {
                    call: call(&id, "tool", "{}"),
                    channel,
                    text: text.as_str().into(),
                });
            }
            Step::Ask => drop(script.ask(&format!("req-{calls}"), &id)),
            Step::CancelQuestion => {
                script.push(Body::ControlCancel { request_id: format!("req-{calls}").into() });
            }
            Step::Node(think) => {
                nodes += 1;
                script.exit().enter(if *think { "think" } else { "act" }, nodes);
            }
            Step::State(text) => drop(script.state(&format!("{{\"s\":{}}}", string(text)))),
            Step::SubAgent(which) => drop(script.inside(which.map(|n| format!("task_{n}")).as_deref())),
            Step::Notice(text) => {
                script.push(Body::Session(Box::new(SessionEvent::LoopDetected {
                    message: text.as_str().into(),
                })));
                script.push(Body::Console {
                    level: ConsoleLevel::Info,
                    scope: LogScope::Debug,
                    text: text.as_str().into(),
                });
            }
            Step::Error(text) => {
                script.push(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Input, "bad", text.as_str()))));
            }
            Step::Thinking(id, scores) => {
                script.push(Body::Thinking(Box::new(Thinking::TotEvaluate {
                    chosen: 0,
                    scores: scores.clone(),
                })));
                script.push(Body::Thinking(Box::new(Thinking::GotExpand {
                    id: id.as_str().into(),
                    nodes_added: 1,
                    edges_added: 0,
                })));
            }
            Step::Heartbeat => {
                script.push(Body::Heartbeat(qwen_events::Heartbeat::idle(
                    SessionId::parse("sess-001").unwrap(),
                )));
            }
            Step::Reply(nested, text) => {
                script.push(Body::ControlReply(Box::new(ControlReply {
                    request_id: "r".into(),
                    nested: *nested,
                    result: Ok(Json::trusted(string(text))),
                })));
            }
            Step::Display => {
                let display = Box::new(Display::Text("d".into()));
                script.push(Body::ToolDisplay { call: call(&id, "tool", "{}"), display });
            }
        }
    }
    if open {
        script.end();
    }
    let error = (status == EndStatus::Error).then(|| ErrorInfo::new(ErrorKind::Model, "model_error", reply));
    script.finish(status, reply, error)
}

fn infos() -> Vec<StreamInfo> {
    let mut infos = Vec::new();
    for dialect in [Dialect::Claude, Dialect::ClaudeLite, Dialect::Loom, Dialect::LoomExport] {
        infos.push(info(dialect));
    }
    let all = StreamInfo {
        partial_messages: true,
        session_state: true,
        replay_user_messages: true,
        ..info(Dialect::Claude)
    };
    infos.push(StreamInfo { qwen_sdk: true, ..all.clone() });
    infos.push(all);
    infos.push(StreamInfo {
        stream_modes: vec![StreamMode::Messages, StreamMode::Tools],
        ..info(Dialect::Loom)
    });
    infos
}

/// Blocks open and close one after the other, and their pieces add up to their lines.
fn check_claude(lines: &[Value]) {
    #[derive(Default)]
    struct Speaker {
        in_message: bool,
        open: Option<u64>,
        next: u64,
        pieces: HashMap<u64, String>,
        /// What the `assistant` lines of this message said, in order.
        said: Vec<String>,
    }
    let mut speakers: HashMap<String, Speaker> = HashMap::new();
    for line in lines {
        let speaker = speakers.entry(line["parent_tool_use_id"].to_string()).or_default();
        let event = &line["event"];
        match event["type"].as_str() {
            Some("message_start") => {
                assert!(!speaker.in_message);
                *speaker = Speaker { in_message: true, ..Speaker::default() };
            }
            Some("content_block_start") => {
                assert!(speaker.in_message && speaker.open.is_none(), "{line}");
                assert_eq!(event["index"], speaker.next, "{line}");
                speaker.open = Some(speaker.next);
                speaker.next += 1;
            }
            Some("content_block_delta") => {
                let index = speaker.open.expect("a delta within a block");
                assert_eq!(event["index"], index, "{line}");
                let delta = &event["delta"];
                let piece = delta["partial_json"].as_str().or(delta["text"].as_str()).unwrap();
                speaker.pieces.entry(index).or_default().push_str(piece);
            }
            Some("content_block_stop") => {
                assert_eq!(speaker.open.take(), event["index"].as_u64(), "{line}");
            }
            Some("message_stop") => {
                assert!(speaker.open.is_none());
                speaker.in_message = false;
                let mut pieces: Vec<_> = speaker.pieces.drain().map(|(_, text)| text).collect();
                pieces.sort();
                speaker.said.sort();
                assert_eq!(pieces, speaker.said);
            }
            _ => {}
        }
        if line["type"] == "assistant" && line["message"]["model"] != "<synthetic>" {
            let block = &line["message"]["content"][0];
            let said = block["text"].as_str().or(block["thinking"].as_str());
            speaker.said.push(said.map_or_else(|| block["input"].to_string(), str::to_owned));
        }
    }
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1);
}

fn check_lite(lines: &[Value]) {
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((of("message_start"), of("message_stop")), (1, 1));
    assert_eq!(lines[0]["type"], "message_start");
    assert_eq!(lines.last().unwrap()["type"], "message_stop");
}

fn check_loom(lines: &[Value]) {
    let numbers: Vec<_> = lines.iter().filter_map(|line| line["event_id"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(lines.iter().filter(|line| line.get("reply").is_some()).count(), 1);
    assert!(lines.last().unwrap().get("reply").is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_turn_in_any_dialect_is_whole_lines_that_the_dialect_knows(
        steps in proptest::collection::vec(step(), 0..40), status in status(), reply in any::<String>(),
    ) {
        let events = tell(&steps, status, &reply);
        for info in infos() {
            let lines = lines(&info, &events);
            for line in &lines {
                let again = through_wire_type(info.dialect, line).map_err(TestCaseError::fail)?;
                prop_assert_eq!(&again, line);
                against_schema(info.dialect, line).map_err(TestCaseError::fail)?;
            }
            match info.dialect {
                Dialect::Claude => check_claude(&lines),
                Dialect::ClaudeLite => check_lite(&lines),
                _ => {}
            }
            if info.dialect == Dialect::Loom {
                check_loom(&lines);
            }
            let document = crate::script::lines(&StreamInfo { format: Format::Json, ..info.clone() }, &events);
            let urgent = |line: &Value| {
                let kind = line["type"].as_str().unwrap_or_default();
                kind.starts_with("control_") || kind == "result/heartbeat" || line["subtype"] == "input_error"
            };
            prop_assert_eq!(document.iter().filter(|line| !urgent(line)).count(), 1);
        }
    }
}
