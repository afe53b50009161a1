//! What is kept, where, and for whom.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use qwen_engine::log::{EntryBody, Folded, LogError, Parent};
use qwen_events::{
    Body, CommandCall, CommandKind, CommandResult, CommandResultBody, Confirmation, Decision, Denial,
    DiffStat, Display, EndStatus, ErrorInfo, ErrorKind, Event, FileDiff, HistoryChange, Journal, Json, Level,
    McpServer, Media, MediaSource, Message, Part, PromptId, Role, SessionEvent, TaskProgress, Thinking,
    Timeout, Todo, TodoStatus, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Verdict,
};

use super::story::{Place, Story, call, header, message, session, start, tool_end, turn_end, two_turns};

/// One of everything that is kept, with all that can be in it.
fn everything() -> Vec<Body> {
    let asked = call("call_1");
    let changed = Arc::new(ToolCall { arguments: Json::trusted(r#"{"other":[1,{}]}"#), ..(*asked).clone() });
    let odd = Arc::new(ToolCall { malformed: Some("{\"half".into()), ..(*call("call_2")).clone() });
    let media = Media { mime_type: "image/png".into(), source: MediaSource::Base64("aGk=".into()) };
    let link =
        Media { mime_type: "image/png".into(), source: MediaSource::Url("https://example.com/a.png".into()) };
    let diff = FileDiff {
        file_name: "a.rs".into(),
        file_path: "/work/project/a.rs".into(),
        diff: "-a\n+b\n".into(),
        original: Some("a\n".into()),
        modified: "b\n".into(),
        stat: DiffStat { ai_added_lines: 1, ai_removed_lines: 2, user_added_lines: 3, user_removed_lines: 4 },
    };
    let error = ErrorInfo {
        param: Some("a.b".into()),
        status: Some(429),
        retryable: true,
        ..ErrorInfo::new(ErrorKind::Timeout(Timeout::Stall), "stalled", "it stood still")
    };
    let end = |display: Display| {
        Body::ToolEnd(Box::new(ToolEnd {
            call: asked.clone(),
            status: ToolStatus::Error,
            text: "no\u{2028}such \"file\"".into(),
            media: vec![media.clone()],
            display: Some(display),
            error_code: Some("file_not_found"),
            output_file: Some("/tmp/out".into()),
            exit_code: Some(-1),
            duration_ms: 7,
        }))
    };
    let command = |body| {
        let path = vec!["chat".into(), "list".into()];
        let call = CommandCall { kind: CommandKind::Slash, path, args: "x".into() };
        Body::CommandResult(Box::new(CommandResult::new(session("s"), PromptId::new("p"), call, body)))
    };
    let approval = |confirmation| Body::Approval {
        call: asked.clone(),
        confirmation: Box::new(confirmation),
        reason: "it writes".into(),
    };
    let thought = Part::Thought { text: "hm".into(), signature: Some("sig".into()) };
    let said = Message {
        role: Role::Assistant,
        parts: vec![thought, Part::Media(media.clone()), Part::Call(asked.clone())],
    };
    let mut bodies = vec![
        Body::TurnStart(Box::new(TurnStart {
            message: "other words".into(),
            parts: vec![
                Part::Text("words\nof two lines".into()),
                Part::Media(media.clone()),
                Part::Media(link),
            ],
            json_schema: Some(Json::trusted(r#"{"type":"object"}"#)),
            mcp_servers: vec![McpServer { name: "calc".into(), status: "connected".into() }],
            slash_commands: vec!["help".into()],
            agents: vec!["reviewer".into()],
            skills: vec!["release".into()],
            ..start(1, "x")
        })),
        Body::NodeEnter,
        message("two calls", &[asked.clone(), odd.clone()]),
        Body::Decision {
            call: asked.clone(),
            decision: Decision {
                verdict: Verdict::Ask,
                reason: "it writes".into(),
                rule: Some("Edit(*)".into()),
            },
        },
        approval(Confirmation::Edit(diff.clone())),
        approval(Confirmation::Exec { command: "ls -la".into(), root_command: "ls".into() }),
        approval(Confirmation::Mcp { server: "calc".into(), tool: "add".into(), display: "Add".into() }),
        approval(Confirmation::Info { prompt: "fetch".into(), urls: vec!["https://example.com".into()] }),
        approval(Confirmation::Plan { plan: "1. go".into() }),
        Body::ToolStart(changed),
        end(Display::Text("shown".into())),
        end(Display::FileDiff(FileDiff { original: None, ..diff })),
        end(Display::TodoList(vec![Todo {
            id: "1".into(),
            content: "do".into(),
            status: TodoStatus::InProgress,
        }])),
        end(Display::Plan { message: "m".into(), plan: "p".into() }),
        end(Display::Task(TaskProgress {
            agent: "reviewer".into(),
            description: "d".into(),
            status: "completed",
            tool_calls: 2,
            tokens: 99,
            result: Some("fine".into()),
        })),
        tool_end(&odd, ToolStatus::Denied),
        Body::NodeExit { error: Some("it broke".into()) },
        Body::History(Box::new(HistoryChange::Added(vec![said.clone()]))),
        Body::History(Box::new(HistoryChange::Replaced(vec![Message::text(Role::User, "a summary")]))),
        Body::Custom(Json::trusted(r#"{"kind":"note","n":[1.0,null]}"#)),
        Body::ThoughtUsage(Box::new(turn_end(1, "").usage_by_model.remove(0))),
        Body::Journal(Box::new(Journal::Base { version: 1, next: "a".into(), state: Json::empty_object() })),
        Body::Journal(Box::new(Journal::Effect { key: "k".into(), value: Json::trusted("1.50") })),
        Body::Journal(Box::new(Journal::Step { next: None, delta: Json::trusted("null") })),
        Body::Error(Box::new(error.clone())),
        command(CommandResultBody::Message { level: Level::Warning, content: "c".into() }),
        command(CommandResultBody::Dialog { name: "settings".into(), data: Json::trusted("{\"a\":1}") }),
        command(CommandResultBody::Tool { name: "t".into(), arguments: Json::empty_object() }),
        command(CommandResultBody::SubmitPrompt { content: "c".into() }),
        Body::TurnEnd(Box::new(TurnEnd {
            status: EndStatus::MaxToolCalls,
            error: Some(error.clone()),
            denials: vec![Denial {
                tool_name: "edit".into(),
                call_id: asked.id.clone(),
                arguments: asked.arguments.clone(),
                reason: "no".into(),
            }],
            control_errors: vec![error],
            structured: Some(Json::trusted("[1]")),
            continuation: true,
            ..turn_end(1, "not what was said last")
        })),
    ];
    bodies.extend(notices().into_iter().map(|notice| Body::Session(Box::new(notice))));
    bodies.extend(thoughts().into_iter().map(|step| Body::Thinking(Box::new(step))));
    bodies
}

fn notices() -> Vec<SessionEvent> {
    vec![
        SessionEvent::Finished,
        SessionEvent::Compressed { original_tokens: 9, new_tokens: 1, manual: false },
        SessionEvent::MaxTokens { message: "cut".into() },
        SessionEvent::MaxTurns { limit: 3 },
        SessionEvent::Cancelled,
        SessionEvent::Retry { attempt: 1, max_retries: 4, delay_ms: 10, status: None, error: "busy".into() },
        SessionEvent::ModelFallback { from: "a".into(), to: "b".into(), reason: "r".into() },
        SessionEvent::LoopDetected { message: "again".into() },
        SessionEvent::ModeChanged { mode: "plan".into() },
    ]
}

fn thoughts() -> Vec<Thinking> {
    vec![
        Thinking::TotExpand { candidates: vec!["a".into(), "b".into()] },
        Thinking::TotEvaluate { chosen: 1, scores: vec![0.25, 1.0] },
        Thinking::TotBacktrack { reason: "r".into(), to_depth: 1 },
        Thinking::GotPlan { node_ids: vec!["a".into()], edge_count: 0 },
        Thinking::GotNodeStart { id: "a".into() },
        Thinking::GotNodeComplete { id: "a".into(), result_summary: "s".into() },
        Thinking::GotNodeFailed { id: "a".into(), error: "e".into() },
        Thinking::GotExpand { id: "a".into(), nodes_added: 2, edges_added: 3 },
    ]
}

#[test]
fn everything_that_is_kept_comes_back_as_it_went() {
    let place = Place::new();
    let mut story = Story::default();
    story.enter("think");
    for body in everything() {
        story.say(body);
    }
    let mut recorder = place.begin("s");
    // The first event has no turn to belong to yet, and is kept all the same.
    story.record(&mut recorder);
    drop(recorder);
    let mut reader = place.store.read(&session("s")).expect("a log");
    let mut kept = Vec::new();
    while let Some(entry) = reader.next_entry().expect("an entry") {
        let EntryBody::Event(body) = entry.what else { panic!("only events were said") };
        kept.push(Event { at: entry.at, scope: entry.scope, body });
    }
    assert_eq!(reader.damaged(), 0);
    for (kept, said) in kept.iter().zip(&story.events) {
        assert_eq!(kept, said);
    }
    assert_eq!(kept.len(), story.events.len());
}

#[test]
fn pieces_and_what_belongs_to_the_connection_are_not_kept() {
    let place = Place::new();
    let mut story = Story::default();
    story.turn(1, "x").say(Body::TextDelta("a".into())).say(Body::ThoughtDelta("b".into()));
    story
        .say(Body::Heartbeat(qwen_events::Heartbeat::idle(session("s"))))
        .say(Body::Ready)
        .say(Body::State(Json::empty_object()));
    story.record(&mut place.begin("s"));
    assert_eq!(place.get("s").split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 2);
}

#[test]
fn nothing_is_on_disk_before_the_first_turn() {
    let place = Place::new();
    let mut recorder = place.begin("s");
    let mut story = Story::default();
    story.say(Body::History(Box::new(HistoryChange::Added(vec![Message::text(Role::User, "context")]))));
    story.record(&mut recorder);
    assert!(!place.home().join("sessions").exists());
    let mut story = Story::default();
    story.turn(1, "Hello");
    story.record(&mut recorder);
    let folded = place.store.fold(&session("s")).expect("a log");
    assert_eq!(folded.messages, [Message::text(Role::User, "context"), Message::text(Role::User, "Hello")]);
    assert_eq!(&*folded.header.title, "Hello");
}

#[test]
fn logs_are_for_their_owner_alone() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let mode = |path: std::path::PathBuf| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(place.home().join("sessions")), 0o700);
    assert_eq!(mode(place.store.path(&session("s"))), 0o600);
}

#[test]
fn a_session_is_held_by_one_recorder_at_a_time() {
    let place = Place::new();
    let id = session("s");
    let mut recorder = place.begin("s");
    two_turns().record(&mut recorder);
    let in_use = |result: Result<_, LogError>| matches!(result, Err(LogError::InUse(of)) if of == id);
    assert!(in_use(place.store.resume(&id).map(|_| ())));
    assert!(in_use(place.store.delete(&id)));
    assert!(place.store.fold(&id).is_ok(), "looking is allowed");
    let mut other = place.begin("s");
    assert!(in_use(other.record(&two_turns().events[0])));
    assert!(other.record(&two_turns().events[1]).is_ok(), "an error comes once");
    drop(recorder);
    let (recorder, _) = place.store.resume(&id).expect("free again");
    assert!(in_use(place.store.resume(&id).map(|_| ())));
    drop(recorder);
    place.store.delete(&id).expect("deleted");
    assert!(matches!(place.store.resume(&id), Err(LogError::Unknown(_))));
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_followed() {
    let place = Place::new();
    two_turns().record(&mut place.begin("real"));
    std::os::unix::fs::symlink("real.jsonl", place.store.path(&session("linked"))).expect("a link");
    assert!(place.store.resume(&session("linked")).is_err());
    assert!(place.begin("linked").record(&two_turns().events[0]).is_err());
}

#[test]
fn sessions_are_listed_the_latest_first_without_reading_them_whole() {
    let place = Place::new();
    two_turns().record(&mut place.begin("first"));
    let mut long = Story::default();
    long.turn(1, "one").end(1, "").turn(2, "Write\na   lot").think(&"long ".repeat(40_000), &[]);
    long.record(&mut place.begin("second"));
    let aged = |id: &str, seconds: u64| {
        let file = std::fs::File::open(place.store.path(&session(id))).expect("a log");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(time).expect("set");
    };
    aged("first", 2_000);
    aged("second", 1_000);
    place.put("broken", b"no header\n");
    place.put("no.log", b"");
    let listed = place.store.list(None).expect("a list");
    let short: Vec<_> =
        listed.iter().map(|s| (s.header.session_id.as_str(), s.turns, &*s.header.title)).collect();
    assert_eq!(short, [("first", Some(2), "Read two files"), ("second", Some(2), "one")]);
    assert_eq!(listed[0].last_activity.0, 2_000_000);
    assert_eq!(place.store.list(Some("/elsewhere".as_ref())).expect("a list"), []);
    assert_eq!(place.store.newest("/work/project".as_ref()), Some(session("first")));
    assert_eq!(place.store.newest("/elsewhere".as_ref()), None);
}

#[test]
fn a_fork_stands_on_its_own() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let parent = Some(Parent { session_id: session("s"), point: None });
    let new = qwen_engine::log::LogHeader { parent, ..header("fork") };
    let (mut recorder, folded) = place.store.fork(&session("s"), None, new).expect("a fork");
    assert!(!place.store.holds(&session("fork")), "a fork that says nothing is not kept");
    let mut story = Story::default();
    story.turn(3, "And now?");
    // Whatever becomes of the parent meanwhile.
    place.store.delete(&session("s")).expect("deleted");
    story.record(&mut recorder);
    drop(recorder);
    let again = place.store.fold(&session("fork")).expect("a log");
    assert_eq!(again.messages[..6], folded.messages);
    assert_eq!(again.messages[6], Message::text(Role::User, "And now?"));
    let point = Some(folded.prompt_ids[1].as_str().into());
    assert_eq!(again.header.parent, Some(Parent { session_id: session("s"), point }), "it begins at the end");
    assert_eq!(&*again.header.title, "Read two files");
    let taken = place.store.fork(&session("fork"), None, header("fork"));
    assert!(matches!(taken, Err(LogError::Exists(_))));
}

#[test]
fn one_can_go_back_to_messages_prompts_and_checkpoints() {
    let place = Place::new();
    two_turns().record(&mut place.begin("s"));
    let cases = [
        ("msg-I look.", 2),
        ("msg-They are fine.", 4),
        ("s########1", 4),
        ("s########2", 6),
        ("uuid-1", 1),
        ("uuid-2", 5),
        ("s-1-1", 2),
        ("s-1-3", 3),
        ("s-2-1", 6),
    ];
    for (point, messages) in cases {
        let folded = place.store.fold_until(&session("s"), point).expect(point);
        assert_eq!(folded.messages.len(), messages, "{point}");
    }
    for point in ["msg-x", "s########3", "", "s-1-9"] {
        let nowhere: Result<Folded, LogError> = place.store.fold_until(&session("s"), point);
        assert!(matches!(nowhere, Err(LogError::NoSuchPoint { .. })), "{point}");
    }
}
