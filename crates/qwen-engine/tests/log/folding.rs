//! From the log to the conversation.

use std::sync::Arc;

use qwen_engine::log::Progress;
use qwen_events::{
    Body, CallId, Event, HistoryChange, Journal, Json, Message, MessageEnd, ModelUsage, Part, PromptId, Role,
    Scope, ToolStatus, Usage,
};

use super::story::{Place, Story, call, invalid, message, session, tool_end, two_turns, two_turns_messages};

#[test]
fn the_conversation_is_what_was_said() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages, two_turns_messages());
    assert_eq!(invalid(&folded.messages), None);
    assert!(folded.unanswered.calls.is_empty() && folded.unfinished.is_none());
    assert_eq!((folded.turns, folded.model_calls, folded.damaged), (2, 2, 0));
    assert_eq!(folded.usage, Usage { prompt_tokens: 20, completion_tokens: 4, ..Usage::default() });
    assert_eq!(folded.usage_by_model[0].calls, 2);
    assert_eq!(folded.prompt_ids, [PromptId::new("s########1"), PromptId::new("s########2")]);
    assert_eq!(folded.node_runs, [("think".into(), 3), ("act".into(), 1), ("observe".into(), 1)]);
    let checkpoints: Vec<&str> = folded.checkpoints.iter().map(|checkpoint| &*checkpoint.id).collect();
    assert_eq!(checkpoints, ["s-1-1", "s-1-2", "s-1-3", "s-1-4", "s-2-1"]);
}

#[test]
fn unfinished_calls_are_found_in_the_log() {
    let place = Place::new();
    let calls = [call("call_1"), call("call_2"), call("call_3")];
    let mut story = Story::default();
    story.turn(1, "Go").think("", &calls).enter("act").say(Body::ToolStart(calls[0].clone()));
    story.say(Body::ToolStart(calls[1].clone())).say(tool_end(&calls[0], ToolStatus::Success));
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    let progress: Vec<_> = folded.unanswered.calls.calls().iter().map(|open| &open.progress).collect();
    assert!(
        matches!(progress[..], [Progress::Ended(_), Progress::Started, Progress::Waiting]),
        "{progress:?}"
    );
    let unfinished = folded.unfinished.expect("an unfinished turn");
    assert_eq!(unfinished.start.prompt_id, PromptId::new("s########1"));
    assert_eq!((unfinished.steps, unfinished.model_calls, unfinished.tool_calls), (1, 1, 2));
    assert_eq!(folded.model_calls, 0, "only turns that ended are counted");
}

#[test]
fn a_new_turn_settles_what_an_old_one_left_open() {
    let place = Place::new();
    let calls = [call("call_1"), call("call_2")];
    let mut story = Story::default();
    story
        .turn(1, "Go")
        .think("", &calls)
        .enter("act")
        .say(Body::ToolStart(calls[0].clone()))
        .turn(2, "Again");
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(invalid(&folded.messages), None);
    let Part::Result(started) = &folded.messages[2].parts[0] else { panic!("a result") };
    let Part::Result(waiting) = &folded.messages[2].parts[1] else { panic!("a result") };
    assert!(started.is_error && started.text.contains("interrupted"), "{}", started.text);
    assert!(waiting.is_error && waiting.text.contains("not run"), "{}", waiting.text);
    assert_eq!(folded.unfinished.map(|turn| turn.start.turn), Some(2));
}

#[test]
fn a_message_that_was_cut_off_is_kept_as_far_as_it_came() {
    let place = Place::new();
    let Body::MessageEnd(end) = message("Half a sen", &[]) else { panic!("a message") };
    let mut story = Story::default();
    story.turn(1, "Go").enter("think");
    story.say(Body::MessageEnd(Box::new(MessageEnd { aborted: true, ..*end }))).exit().end(1, "Half a sen");
    let Body::MessageEnd(end) = message("", &[]) else { panic!("a message") };
    story.turn(2, "Go on").enter("think");
    // Thinking alone says nothing to the next turn.
    story.say(Body::MessageEnd(Box::new(MessageEnd { thought: "hm".into(), ..*end }))).exit().end(2, "");
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    let expected = [(Role::User, "Go"), (Role::Assistant, "Half a sen"), (Role::User, "Go on")];
    assert_eq!(folded.messages, expected.map(|(role, text)| Message::text(role, text)));
}

#[test]
fn the_conversation_of_a_sub_agent_is_its_own() {
    let place = Place::new();
    let calls = [call("call_1")];
    let mut story = Story::default();
    story.turn(1, "Go").think("", &calls).enter("act").say(Body::ToolStart(calls[0].clone()));
    let inner = Scope { parent: Some(CallId::new("call_1")), ..Scope::default() };
    let inside = [message("inner", &[call("call_9")]), tool_end(&call("call_9"), ToolStatus::Success)];
    for body in inside {
        story.events.push(Event { at: story.events[0].at, scope: inner.clone(), body });
    }
    story.say(tool_end(&calls[0], ToolStatus::Success)).exit();
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages.len(), 3);
    assert_eq!(invalid(&folded.messages), None);
}

#[test]
fn the_calls_of_a_thought_are_its_own_and_its_tokens_are_the_turns() {
    let place = Place::new();
    let mut story = Story::default();
    story.turn(1, "Solve").enter("expand");
    let thought = Scope { thought: Some("t1".into()), ..story.events[1].scope.clone() };
    let usage = Usage { prompt_tokens: 5, completion_tokens: 1, ..Usage::default() };
    let spent = ModelUsage { model: "mock".into(), calls: 1, usage, cost_usd: 0.0 };
    let inside = [
        Body::ThoughtUsage(Box::new(spent)),
        message("", &[call("call_9")]),
        tool_end(&call("call_9"), ToolStatus::Success),
    ];
    for body in inside {
        story.events.push(Event { at: story.events[0].at, scope: thought.clone(), body });
    }
    let journal = |entry| Body::Journal(Box::new(entry));
    let effect = |key: &str| Journal::Effect { key: key.into(), value: Json::trusted("[1]") };
    let base = Journal::Base { version: 1, next: "expand".into(), state: Json::trusted("{\"a\":1}") };
    let step = Journal::Step { next: Some("evaluate".into()), delta: Json::trusted("{\"b\":2}") };
    for entry in [base.clone(), effect("one"), effect("two"), step.clone(), effect("three")] {
        story.say(journal(entry));
    }
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages, [Message::text(Role::User, "Solve")]);
    assert!(folded.unanswered.calls.is_empty());
    let unfinished = folded.unfinished.expect("an unfinished turn");
    assert_eq!((unfinished.model_calls, unfinished.usage_by_model[0].usage.total()), (1, 6));
    assert_eq!(unfinished.journal, [base, step, effect("three")], "what a complete step did is done with");
}

#[test]
fn changes_of_the_conversation_are_followed() {
    let place = Place::new();
    let mut story = two_turns();
    let summary = vec![Message::text(Role::User, "We read two files.")];
    story.say(Body::History(Box::new(HistoryChange::Replaced(summary.clone()))));
    let more = vec![Message::text(Role::User, "By the way"), Message::text(Role::Assistant, "Yes")];
    story.say(Body::History(Box::new(HistoryChange::Added(more.clone()))));
    story.record(&mut place.begin("s"));
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages, [summary, more].concat());
}

#[test]
fn results_that_the_host_brings_answer_the_calls_that_wait_for_them() {
    let place = Place::new();
    let calls = [call("call_1"), call("call_2")];
    let mut story = Story::default();
    story.turn(1, "Go").think("", &calls).end(1, "");
    let result = |call: &Arc<qwen_events::ToolCall>| {
        let Body::ToolEnd(end) = tool_end(call, ToolStatus::Success) else { panic!("an end") };
        let result = qwen_events::ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: end.text,
            media: Vec::new(),
            is_error: false,
        };
        vec![Message { role: Role::Tool, parts: vec![Part::Result(result)] }]
    };
    story.say(Body::History(Box::new(HistoryChange::Added(result(&calls[1])))));
    story.record(&mut place.begin("half"));
    let half = place.store.fold(&session("half")).expect("a log");
    assert_eq!(half.unanswered.calls.waiting().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["call_1"]);
    story.say(Body::History(Box::new(HistoryChange::Added(result(&calls[0])))));
    story.record(&mut place.begin("whole"));
    let whole = place.store.fold(&session("whole")).expect("a log");
    assert!(whole.unanswered.calls.is_empty());
    assert_eq!(invalid(&whole.messages), None);
}
