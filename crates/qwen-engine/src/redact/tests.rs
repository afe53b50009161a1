//! Tests of the redaction of events.

use proptest::prelude::*;
use qwen_events::*;

use super::*;

const KEY: &str = "correct-horse-battery";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn redactor() -> EventRedactor {
    EventRedactor::new(Arc::new(Redactor::new([KEY])))
}

fn event(body: Body) -> Event {
    Event { at: Timestamp(7), scope: Scope::default(), body }
}

fn call(id: &str, arguments: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(CallId::new(id), "run_shell_command".into(), Json::trusted(arguments)))
}

fn text(text: &str) -> Body {
    Body::TextDelta(text.into())
}

fn delta(index: u32, arguments: &str) -> Body {
    Body::ToolCallDelta {
        index,
        call_id: CallId::new(format!("call-{index}")),
        name: "edit".into(),
        arguments: arguments.into(),
    }
}

fn message_end(text: &str) -> Body {
    Body::MessageEnd(Box::new(MessageEnd {
        message_id: "m".into(),
        model: "m".into(),
        text: text.into(),
        thought: text.into(),
        signature: None,
        thoughts: Vec::new(),
        calls: vec![call("call-0", &format!("{{\"a\":\"{text}\"}}"))],
        finish: Finish::Stop,
        usage: Usage::default(),
        aborted: false,
    }))
}

fn tool_end(call: &Arc<ToolCall>, text: &str) -> Body {
    Body::ToolEnd(Box::new(ToolEnd {
        call: call.clone(),
        status: ToolStatus::Success,
        text: text.into(),
        media: Vec::new(),
        display: Some(Display::Text(text.into())),
        error_code: None,
        output_file: None,
        exit_code: None,
        duration_ms: 0,
    }))
}

fn redacted(redactor: &mut EventRedactor, bodies: impl IntoIterator<Item = Body>) -> Vec<Body> {
    let mut all = Vec::new();
    for body in bodies {
        let Redacted { before, event } = redactor.redact(event(body));
        all.extend(before.into_iter().chain(event).map(|event| event.body));
    }
    all
}

fn joined(bodies: &[Body]) -> String {
    bodies
        .iter()
        .filter_map(|body| if let Body::TextDelta(text) = body { Some(&**text) } else { None })
        .collect()
}

#[test]
fn a_secret_that_is_said_in_pieces_is_not_told() {
    let end = format!("my key is {KEY}.");
    let redacted = redacted(
        &mut redactor(),
        [text("my key is cor"), text("rect-hor"), text("se-battery"), text("."), message_end(&end)],
    );
    assert_eq!(joined(&redacted), "my key is c***.");
    let Some(Body::MessageEnd(end)) = redacted.last() else { panic!("{redacted:?}") };
    assert_eq!(&*end.text, "my key is c***.");
    assert_eq!(end.calls[0].arguments.as_str(), r#"{"a":"my key is c***."}"#);
}

#[test]
fn text_that_was_held_back_precedes_later_events() {
    let redacted = redacted(
        &mut redactor(),
        [
            text("it is corr"),
            delta(0, ""),
            delta(0, "{\"a\":\"corr"),
            delta(1, "{\"b\":\"x\"}"),
            delta(0, "ectly\"}"),
            Body::ThoughtDelta("corr".into()),
            text("ect"),
            message_end("x"),
        ],
    );
    let expected = [
        text("it is c"),
        text("orr"),
        delta(0, ""),
        delta(0, "{\"a\":\"c"),
        delta(0, "orr"),
        delta(1, "{\"b\":\"x\"}"),
        delta(0, "ectly\"}"),
        Body::ThoughtDelta("c".into()),
        Body::ThoughtDelta("orr".into()),
        // The text continued like the key, so the rest of it is still held back.
    ];
    assert_eq!(redacted[..9], expected);
    assert_eq!(joined(&redacted), "it is correct");
    assert!(matches!(redacted.last(), Some(Body::MessageEnd(_))));
}

#[test]
fn arguments_are_whole_before_their_call_is() {
    let whole = call("call-0", "{\"a\":\"corr\"}");
    let redacted = redacted(&mut redactor(), [delta(0, "{\"a\":\"corr"), Body::ToolCall(whole.clone())]);
    assert_eq!(redacted, [delta(0, "{\"a\":\"c"), delta(0, "orr"), Body::ToolCall(whole)]);
}

#[test]
fn output_is_looked_at_channel_by_channel_and_call_by_call() {
    let (one, two) = (call("1", "{}"), call("2", "{}"));
    let output = |call: &Arc<ToolCall>, channel, text: &str| Body::ToolOutput {
        call: call.clone(),
        channel,
        text: text.into(),
    };
    let redacted = redacted(
        &mut redactor(),
        [
            output(&one, Channel::Stdout, "a correct-"),
            output(&two, Channel::Stdout, "b correct-"),
            output(&one, Channel::Stderr, "c correct-"),
            output(&one, Channel::Stdout, "horse-battery d"),
            tool_end(&two, "x"),
            tool_end(&one, "x"),
        ],
    );
    assert_eq!(
        redacted,
        [
            output(&one, Channel::Stdout, "a c"),
            output(&two, Channel::Stdout, "b c"),
            output(&one, Channel::Stderr, "c c"),
            output(&one, Channel::Stdout, "*** d"),
            output(&two, Channel::Stdout, "orrect-"),
            tool_end(&two, "x"),
            output(&one, Channel::Stderr, "orrect-"),
            tool_end(&one, "x"),
        ]
    );
}

#[test]
fn a_sub_agent_and_its_caller_do_not_mix() {
    let mut redactor = redactor();
    let inner = Scope { parent: Some(CallId::new("1")), ..Scope::default() };
    let in_call = |body| Event { at: Timestamp(7), scope: inner.clone(), body };
    assert_eq!(redactor.redact(event(text("corr"))).event, Some(event(text("c"))));
    assert_eq!(redactor.redact(in_call(text("ect"))).event, Some(in_call(text("ect"))));
    assert_eq!(redactor.redact(event(text("idor"))).event, Some(event(text("orridor"))));
}

#[test]
fn no_event_with_a_text_contains_a_secret() {
    let dirty = format!("x {KEY} y {TOKEN} z");
    let arc: Arc<str> = dirty.as_str().into();
    let json = Json::trusted(format!("{{\"a\":\"{dirty}\"}}"));
    let wrong = || ErrorInfo::new(ErrorKind::Input, "code", dirty.as_str());
    let dirty_call = Arc::new(ToolCall {
        malformed: Some(arc.clone()),
        ..ToolCall::new(CallId::new("1"), "edit".into(), json.clone())
    });
    let diff = || FileDiff {
        file_name: "f".into(),
        file_path: "/f".into(),
        diff: arc.clone(),
        original: Some(arc.clone()),
        modified: arc.clone(),
        stat: DiffStat::default(),
    };
    let confirmations = [
        Confirmation::Edit(diff()),
        Confirmation::Exec { command: arc.clone(), root_command: arc.clone() },
        Confirmation::Info { prompt: arc.clone(), urls: vec![arc.clone()] },
        Confirmation::Plan { plan: arc.clone() },
    ];
    let displays = [
        Display::Text(arc.clone()),
        Display::FileDiff(diff()),
        Display::TodoList(vec![Todo { id: "1".into(), content: arc.clone(), status: TodoStatus::Pending }]),
        Display::Plan { message: arc.clone(), plan: arc.clone() },
        Display::Task(TaskProgress {
            agent: "a".into(),
            description: arc.clone(),
            status: "running",
            tool_calls: 0,
            tokens: 0,
            result: Some(arc.clone()),
        }),
    ];
    let parts = || {
        vec![
            Part::Text(arc.clone()),
            Part::Thought { text: arc.clone(), signature: None },
            Part::Call(dirty_call.clone()),
            Part::Result(ToolResult {
                call_id: CallId::new("1"),
                name: "edit".into(),
                text: arc.clone(),
                media: Vec::new(),
                is_error: false,
            }),
        ]
    };
    let command = |body| {
        Body::CommandResult(Box::new(CommandResult {
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: PromptId::new("p"),
            message_uuid: None,
            message_origin: None,
            cleared_session: None,
            command: CommandCall { kind: CommandKind::Slash, path: Vec::new(), args: arc.clone() },
            body,
        }))
    };
    let control = |call| Body::ControlRequest {
        request_id: "r".into(),
        session_id: SessionId::parse("s").unwrap(),
        prompt_id: None,
        call: Box::new(call),
    };
    let mut bodies = vec![
        Body::TurnStart(Box::new(TurnStart {
            turn: 1,
            run_id: "r".into(),
            message: arc.clone(),
            parts: parts(),
            model: "m".into(),
            cwd: "/".into(),
            tools: Vec::new(),
            ..TurnStart::new(SessionId::parse("s").unwrap(), PromptId::new("p"))
        })),
        Body::NodeExit { error: Some(arc.clone()) },
        text(&dirty),
        Body::ThoughtDelta(dirty.as_str().into()),
        delta(0, json.as_str()),
        Body::ToolCall(dirty_call.clone()),
        message_end(&dirty),
        Body::Decision {
            call: dirty_call.clone(),
            decision: Decision { verdict: Verdict::Ask, reason: arc.clone(), rule: None },
        },
        Body::ToolStart(dirty_call.clone()),
        Body::ToolOutput { call: dirty_call.clone(), channel: Channel::Stdout, text: dirty.as_str().into() },
        tool_end(&dirty_call, &dirty),
        Body::State(json.clone()),
        Body::Custom(json.clone()),
        Body::Checkpoint(Box::new(Checkpoint {
            id: "c".into(),
            timestamp: Timestamp(1),
            step: 1,
            state: json.clone(),
            thread_id: SessionId::parse("s").unwrap(),
            namespace: "".into(),
        })),
        Body::Console { level: ConsoleLevel::Info, scope: LogScope::System, text: dirty.as_str().into() },
        Body::History(Box::new(HistoryChange::Added(vec![Message { role: Role::User, parts: parts() }]))),
        Body::History(Box::new(HistoryChange::Replaced(vec![Message { role: Role::User, parts: parts() }]))),
        Body::Error(Box::new(wrong())),
        Body::Fatal(Box::new(wrong())),
        Body::HintResult(Box::new(HintResult {
            session_id: SessionId::parse("s").unwrap(),
            prompt_id: PromptId::new("p"),
            trigger: HintTrigger::At,
            status: HintStatus::Ok,
            suggestions: vec![Suggestion {
                label: arc.clone(),
                value: arc.clone(),
                description: Some(arc.clone()),
            }],
            is_perfect_match: false,
            message: Some(arc.clone()),
        })),
        command(CommandResultBody::Message { level: Level::Info, content: arc.clone() }),
        command(CommandResultBody::Dialog { name: "d".into(), data: json.clone() }),
        command(CommandResultBody::Tool { name: "t".into(), arguments: json.clone() }),
        command(CommandResultBody::SubmitPrompt { content: arc.clone() }),
        control(ControlCall::HookCallback {
            callback_id: "h".into(),
            input: json.clone(),
            tool_use_id: None,
        }),
        Body::ControlReply(Box::new(ControlReply {
            request_id: "r".into(),
            nested: false,
            result: Ok(json.clone()),
        })),
        Body::ControlReply(Box::new(ControlReply {
            request_id: "r".into(),
            nested: false,
            result: Err(wrong()),
        })),
        Body::TurnEnd(Box::new(TurnEnd {
            error: Some(wrong()),
            reply: arc.clone(),
            denials: vec![Denial {
                tool_name: "edit".into(),
                call_id: CallId::new("1"),
                arguments: json.clone(),
                reason: arc.clone(),
            }],
            control_errors: vec![wrong()],
            structured: Some(json.clone()),
            ..TurnEnd::new(PromptId::new("p"), EndStatus::Error)
        })),
    ];
    for confirmation in confirmations {
        bodies.push(Body::Approval {
            call: dirty_call.clone(),
            confirmation: Box::new(confirmation.clone()),
            reason: arc.clone(),
        });
        bodies.push(control(ControlCall::CanUseTool {
            call: dirty_call.clone(),
            confirmation: Box::new(confirmation),
            reason: arc.clone(),
            blocked_path: None,
            agent_id: None,
        }));
    }
    for display in displays {
        bodies.push(Body::ToolDisplay { call: dirty_call.clone(), display: Box::new(display) });
    }
    for thinking in [
        Thinking::TotExpand { candidates: vec![arc.clone()] },
        Thinking::TotBacktrack { reason: arc.clone(), to_depth: 0 },
        Thinking::GotNodeComplete { id: "1".into(), result_summary: arc.clone() },
        Thinking::GotNodeFailed { id: "1".into(), error: arc.clone() },
    ] {
        bodies.push(Body::Thinking(Box::new(thinking)));
    }
    for notice in [
        SessionEvent::Retry { attempt: 1, max_retries: 1, delay_ms: 1, status: None, error: arc.clone() },
        SessionEvent::ModelFallback { from: "a".into(), to: "b".into(), reason: arc.clone() },
        SessionEvent::MaxTokens { message: arc.clone() },
        SessionEvent::LoopDetected { message: arc.clone() },
    ] {
        bodies.push(Body::Session(Box::new(notice)));
    }
    for body in bodies {
        let before = format!("{body:?}");
        assert!(before.contains(KEY), "{before}");
        let shown = format!("{:?}", redactor().redact(event(body)));
        assert!(!shown.contains(KEY) && !shown.contains(TOKEN), "{shown}");
        assert!(shown.contains("c***") && shown.contains("ghp_***"), "{shown}");
    }
}

proptest! {
    #[test]
    fn a_message_is_told_the_same_however_its_text_comes(
        words in prop::collection::vec(prop_oneof![Just(KEY), Just(TOKEN), Just("correct"), Just(" and "), Just("c")], 0..8),
        sizes in prop::collection::vec(1usize..9, 1..40),
    ) {
        let whole = words.concat();
        let mut rest = whole.as_str();
        let mut bodies = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            bodies.push(text(piece));
            rest = more;
        }
        bodies.push(message_end(&whole));
        let redacted = redacted(&mut redactor(), bodies);
        let Some(Body::MessageEnd(end)) = redacted.last() else { panic!("{redacted:?}") };
        prop_assert_eq!(joined(&redacted), &*end.text);
        prop_assert!(!end.text.contains(KEY) && !end.text.contains(TOKEN));
    }
}
