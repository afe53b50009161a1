//! Conversations that outgrow the model's window, between turns and in the middle of one.

use mock_model::process::{Program, Signal};
use mock_model::{MockModel, Reply, ReplyEvent, Request, gate};

use crate::harness::{DIALECTS, conversation, done, exports_well, qwen, speaks_well};

const SUMMARY: &str = "SUMMARY: the user wants files";

/// What servers say about a conversation that is too long for them.
const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 1000 tokens. However, your messages resulted in 1200 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;

fn is_for_summary(request: &Request) -> bool {
    request.messages().iter().any(|message| message["content"].to_string().contains("The conversation:"))
}

/// A call of a tool, in an answer that took so many tokens.
fn call(id: &str, tokens: u64) -> Reply {
    let call = ReplyEvent::call(id, "list_directory", r#"{"path":"."}"#).step();
    Reply::new([call, ReplyEvent::Usage { input: tokens, output: 5 }.step()])
}

/// A model with a window of 1000 tokens that calls a tool `rounds` times, each call with `tokens`, and then
/// answers.
fn busy(rounds: usize, tokens: u64) -> MockModel {
    let mock = MockModel::start();
    let mut calls = 0;
    mock.answer_with(move |request: &Request| {
        if is_for_summary(request) {
            return Some(Reply::text(SUMMARY));
        }
        calls += 1;
        Some(if calls <= rounds { call(&format!("c{calls}"), tokens) } else { Reply::text("all listed") })
    });
    mock
}

fn small(mock: &MockModel) -> Program {
    qwen(mock).args(["--yolo", "--settings", r#"{"model":{"contextWindow":1000}}"#])
}

#[test]
fn in_the_middle_of_a_turn_older_messages_give_way_to_a_summary() {
    for dialect in DIALECTS {
        let mock = busy(2, 900);
        let program = small(&mock);
        let ended = speaks_well(&program, &["-p", "list files", "--session-id", "s1"], dialect);
        assert!(ended.stdout.contains("all listed"), "{dialect}: {}", ended.stdout);
        let requests = mock.requests();
        let summaries = requests.iter().filter(|request| is_for_summary(request)).count();
        assert_eq!((requests.len(), summaries), (4, 1), "{dialect}");
        // Every call has its result (the stage looks), the prompt stands as it was said.
        let told = conversation(&requests[2]);
        assert!(told[0].contains(SUMMARY) && told[2].starts_with("user: list files"), "{dialect}: {told:#?}");
        exports_well(&program, "s1");
        done(&program, &["--resume", "s1", "-p", "and now?"]);
        let told = conversation(mock.requests().last().unwrap());
        assert!(told[0].contains(SUMMARY), "{dialect}: what was replaced stays so: {told:#?}");
    }
}

#[test]
fn readers_are_told_how_much_room_was_made() {
    let cases = [
        ("qwen", r#""ChatCompressed""#, "original_tokens"),
        ("claude", r#""compact_boundary""#, "pre_tokens"),
        ("core", r#""chat_compressed""#, "originalTokenCount"),
        ("loom", "ChatCompressed", "original_tokens"),
    ];
    for (dialect, event, field) in cases {
        let ended = speaks_well(&small(&busy(1, 900)), &["-p", "list files"], dialect);
        let line = ended.stdout.lines().find(|line| line.contains(event));
        assert!(line.is_some_and(|line| line.contains(field)), "{dialect}: {}", ended.stdout);
    }
}

#[test]
fn a_summary_that_does_not_help_is_not_made_before_every_call() {
    let mock = busy(8, 990);
    done(&small(&mock), &["-p", "list files"]);
    let summaries = mock.requests().iter().filter(|request| is_for_summary(request)).count();
    assert!((1..=4).contains(&summaries), "{summaries}");
}

#[test]
fn a_turn_well_within_the_window_is_left_alone() {
    let mock = busy(3, 200);
    done(&small(&mock), &["-p", "list files"]);
    assert_eq!(mock.requests().len(), 4);
}

#[test]
fn a_context_overflow_causes_one_compaction_and_one_retry() {
    let replies = [call("c1", 10), Reply::status(400, TOO_LONG), Reply::text(SUMMARY), Reply::text("done")];
    let mock = MockModel::with(replies);
    let ended = done(&qwen(&mock).arg("--yolo"), &["-p", "list files"]);
    assert_eq!(ended.stdout.trim(), "done");
    let told = conversation(&mock.requests()[3]);
    assert!(told[0].contains(SUMMARY), "{told:#?}");
}

#[test]
fn a_second_context_overflow_ends_the_turn_with_advice() {
    for first in [None, Some(call("c1", 10))] {
        let replies = first.iter().cloned().chain([
            Reply::status(400, TOO_LONG),
            Reply::text(SUMMARY),
            Reply::status(400, TOO_LONG),
        ]);
        let mock = MockModel::with(replies);
        let ended = qwen(&mock).args(["--yolo", "-p", "list files"]).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("maximum context length"), "{}", ended.stderr);
        assert!(ended.stderr.contains("larger window"), "{}", ended.stderr);
        // A single prompt has nothing that could be summarized.
        assert_eq!(mock.requests().len(), if first.is_some() { 4 } else { 1 });
    }
}

#[test]
fn a_summary_that_fails_or_is_empty_leaves_the_conversation_as_it_is() {
    let bad = [Reply::text(""), Reply::text("  \n"), Reply::status(400, r#"{"error":{"message":"no"}}"#)];
    for summary in bad {
        let mock = MockModel::with([call("c1", 900), summary, Reply::text("done")]);
        let ended = done(&small(&mock), &["-p", "list files"]);
        assert_eq!(ended.stdout.trim(), "done");
        let told = conversation(mock.requests().last().unwrap());
        assert_eq!(told[0], "user: list files");
        assert_eq!(told[1], "assistant: [c1]");
    }
}

#[test]
fn a_resumed_conversation_that_is_nearly_too_long_gives_way_before_the_first_call() {
    let mock = MockModel::with([Reply::text(&"word ".repeat(800)), Reply::text(SUMMARY), Reply::text("yes")]);
    let program = small(&mock);
    done(&program, &["--session-id", "s1", "-p", "talk"]);
    done(&program, &["--resume", "s1", "-p", "still there?"]);
    let told = conversation(mock.requests().last().unwrap());
    assert!(told[0].contains(SUMMARY) && told[2] == "user: still there?", "{told:#?}");
}

#[test]
fn a_model_that_goes_in_circles_is_told_once_and_not_stopped() {
    let circling = |changing: bool| {
        let mock = MockModel::start();
        let mut calls = 0;
        mock.answer_with(move |_: &Request| {
            calls += 1;
            let arguments = format!(r#"{{"path":".","ignore":["{}"]}}"#, if changing { calls } else { 0 });
            Some(match calls {
                ..=13 => Reply::call(&format!("c{calls}"), "list_directory", &arguments),
                _ => Reply::text("done"),
            })
        });
        let flags = ["-p", "go", "--yolo"];
        speaks_well(&qwen(&mock), &flags, "qwen").stdout.matches(r#""LoopDetected""#).count()
    };
    assert_eq!((circling(false), circling(true)), (1, 0));
}

#[test]
fn a_process_that_is_killed_while_a_summary_is_written_leaves_a_turn_that_goes_on() {
    let replies = [call("c1", 900), Reply::new([gate("held")]), Reply::text("done")];
    let mock = MockModel::with(replies);
    let program = small(&mock);
    let mut run = program.clone().args(["-p", "list files", "--session-id", "s1"]).start();
    run.close_stdin();
    mock.reached("held");
    run.signal(Signal::KILL);
    assert_eq!(run.wait().signal, Some(9));
    let ended = done(&program, &["--resume", "s1"]);
    assert_eq!(ended.stdout.trim(), "done");
    let told = conversation(mock.requests().last().unwrap());
    assert_eq!(told[0], "user: list files", "nothing was replaced: {told:#?}");
    exports_well(&program, "s1");
}

#[test]
fn an_anthropic_model_that_has_too_much_is_asked_once_more_with_a_summary() {
    let too_long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    let replies = [call("c1", 10), Reply::status(400, too_long), Reply::text(SUMMARY), Reply::text("done")];
    let mock = MockModel::with(replies);
    let program = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .env("ANTHROPIC_BASE_URL", mock.origin())
        .env("ANTHROPIC_API_KEY", "k")
        .args(["--auth-type", "anthropic", "--model", "mock", "--yolo"]);
    let ended = done(&program, &["-p", "list files"]);
    assert_eq!(ended.stdout.trim(), "done");
    let requests = mock.requests();
    let roles: Vec<&str> =
        requests[3].messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles[..3], ["user", "assistant", "user"], "{roles:?}");
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "roles take turns: {roles:?}");
}
