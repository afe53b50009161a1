//! A session whose hub died, or that two hubs want: one terminal record for every turn, and one owner.

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::*;

fn hub_of(mock: &MockModel, flags: &[&str]) -> Program {
    bare().args(flags).args(["--", "--model", "mock", "--yolo"]).with_model(mock)
}

/// A hub whose lines are numbered.
fn numbered(program: &Program) -> Run {
    let mut run = program.start();
    run.write_line(request("seq", "initialize", json!({"sequence": true})));
    assert_eq!(answer(&mut run, "seq")["sequence"], true);
    run
}

/// A model that never answers its first request.
fn silent() -> MockModel {
    MockModel::with([Reply::new([gate("held")]), Reply::text("Hello.")])
}

/// Kills a hub in the turn `p1` of the session `s`, before that turn had a line.
fn killed_in_a_turn(program: &Program, mock: &MockModel) {
    let mut run = numbered(program);
    run.write_line(named("s", "p1", "go"));
    mock.reached("held");
    run.signal(Signal::KILL);
    let lines: Vec<Value> =
        std::iter::from_fn(|| run.line()).map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["seq"].is_null()), "{lines:#?}");
}

fn numbers(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["seq"].as_u64()).collect()
}

fn ends_of(lines: &[Value]) -> Vec<(&str, &str)> {
    let ends = lines.iter().filter(|line| is_end(line));
    ends.map(|line| (line["prompt_id"].as_str().unwrap(), status(line))).collect()
}

#[test]
fn a_turn_of_a_dead_hub_that_had_no_line_yet_is_ended_for_whoever_attaches() {
    for (format, object) in
        [("stream-json", "chat.completion"), ("stream-chunk-json", "chat.completion.chunk")]
    {
        let mock = silent();
        let program = hub_of(&mock, &["--output-format", format]);
        killed_in_a_turn(&program, &mock);
        let mut run = numbered(&program);
        run.write_line(request("at", "attach", json!({"session_id": "s", "after": 0})));
        let mut lines = run.json_until(is_end);
        assert_eq!(lines.last().unwrap()["object"], object, "in the format of the stream");
        run.write_line(named("s", "p2", "again"));
        lines.extend(run.json_until(is_end));
        assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
        let numbers = numbers(&lines);
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn the_next_prompt_is_preceded_by_the_end_of_the_turn_that_a_dead_hub_left() {
    let mock = silent();
    let program = hub_of(&mock, &["--min-workers", "1"]);
    killed_in_a_turn(&program, &mock);
    let mut run = numbered(&program);
    // A worker that is ready at once must not be given the prompt before that.
    loop {
        run.write_line(request("w", "hub/status", json!({})));
        if answer(&mut run, "w")["machines"][0]["workers"]["warm"] == 1 {
            break;
        }
    }
    run.write_line(named("s", "p2", "again"));
    let lines = run.json_until(|line| is_end(line) && line["prompt_id"] == "p2");
    assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_prompt_that_is_sent_again_to_the_successor_of_a_dead_hub_has_one_end_and_is_not_run_again() {
    for is_numbered in [true, false] {
        let mock = silent();
        let program = hub_of(&mock, &["--min-workers", "0"]);
        killed_in_a_turn(&program, &mock);
        let mut run = if is_numbered { numbered(&program) } else { program.start() };
        let mut again = named("s", "p1", "go");
        again["resend"] = json!(true);
        run.write_line(again);
        run.write_line(named("s", "p2", "go on"));
        let lines = run.json_until(|line| is_end(line) && line["prompt_id"] == "p2");
        assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")], "{is_numbered}");
        let end = lines.iter().find(|line| is_end(line)).unwrap();
        assert_eq!(end["session_id"], "s", "{end}");
        assert_eq!(mock.requests().len(), 2, "p1 of the dead hub, and p2");
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_second_driver_is_refused_and_leaves_the_numbers_of_the_first_alone() {
    let mock =
        MockModel::with([Reply::new([gate("held"), sse::text("Hello."), sse::finish("stop"), sse::done()])]);
    let program = hub_of(&mock, &["--min-workers", "0"]);
    let mut first = numbered(&program);
    first.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let mut second = numbered(&program);
    second.write_line(named("s", "p2", "me too"));
    // What is answered meanwhile has no number either, and is not lost.
    second.write_line(json!({"type": "control/cancel", "session_id": "s", "prompt_id": "none"}));
    let refused = second.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "session_in_use", "{refused}");
    assert_eq!((&refused["prompt_id"], &refused["seq"]), (&json!("p2"), &Value::Null), "{refused}");
    let ended = second.finish();
    assert_eq!(ended.code, Some(0));
    let answered = ended.json_lines().into_iter().find(|line| line["type"] == "result/cancel");
    assert!(answered.is_some_and(|line| line["seq"].is_null()), "{}", ended.stdout);
    mock.open("held");
    let lines = first.json_until(is_end);
    assert_eq!(ends_of(&lines), [("p1", "done")]);
    let numbers = numbers(&lines);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(first.finish().code, Some(0));
}

#[test]
fn a_turn_that_was_taken_over_starts_no_tool_any_more() {
    let call = json!({"command": "touch ran"}).to_string();
    let mock = MockModel::with([Reply::new([
        gate("held"),
        sse::call(0, "c1", "run_shell_command", &call),
        sse::finish("tool_calls"),
        sse::done(),
    ])]);
    let program = hub_of(&mock, &["--min-workers", "0"]);
    let mut first = numbered(&program);
    first.write_line(named("s", "p1", "go"));
    mock.reached("held");
    let mut second = numbered(&program);
    second.write_line(request("at", "attach", json!({"session_id": "s", "after": 0, "takeover": true})));
    assert_eq!(ends_of(&second.json_until(is_end)), [("p1", "interrupted")]);
    mock.open("held");
    let told = first.json_until(is_end).pop().unwrap();
    assert_eq!(
        (status(&told), &told["metadata"]["error"]["code"]),
        ("interrupted", &json!("session_taken_over"))
    );
    for run in [first, second] {
        assert_eq!(run.finish().code, Some(0));
    }
    assert!(!program.cwd_path().join("ran").exists(), "the tool ran");
}

#[test]
fn numbers_that_were_turned_off_go_on_where_they_stopped() {
    let mut run = hub(&says("Hi.")).start();
    let mut last = 0;
    for (n, on) in [true, false, true].into_iter().enumerate() {
        let id = format!("i{n}");
        run.write_line(request(&id, "initialize", json!({"session_id": "a", "sequence": on})));
        let mut lines = run.json_until(|line| line["request_id"] == *id);
        run.write_line(prompt("a", "x"));
        lines.extend(run.json_until(is_end));
        assert_eq!(status(lines.last().unwrap()), "done");
        if on {
            let seen = numbers(&lines);
            assert_eq!(seen, (last + 1..=last + seen.len() as u64).collect::<Vec<_>>(), "{lines:#?}");
            last += seen.len() as u64;
        } else {
            assert_eq!(numbers(&lines), [0; 0]);
        }
    }
    assert_eq!(run.finish().code, Some(0));
}

/// Places in a turn at which something is open: in the middle of a message, and in a tool.
const PLACES: [&str; 2] = ["message", "tool"];

const FORMATS: [&str; 2] = ["stream-json", "stream-chunk-json"];

/// A model that stops in the middle of a message, or calls a tool that does not end, and answers what comes
/// then.
fn stops_in(place: &str) -> MockModel {
    let first = match place {
        "message" => Reply::new([sse::text("Half"), gate("held")]),
        _ => Reply::call("c1", "run_shell_command", r#"{"command":"sleep 1000"}"#),
    };
    MockModel::with([first, Reply::text("Whole.")])
}

/// Starts the turn `p1` and reads up to the place. The lines.
fn run_to(run: &mut Run, mock: &MockModel, place: &str, format: &str, prompt: &Value) -> Vec<Value> {
    run.write_line(prompt);
    match (place, format) {
        ("tool", _) => run.json_until(|line| line["status"] == "executing"),
        (_, "stream-json") => {
            mock.reached("held");
            Vec::new()
        }
        _ => run.json_until(|line| line["choices"][0]["delta"]["content"] == "Half"),
    }
}

#[test]
fn the_stream_of_a_turn_whose_worker_died_passes_the_checker() {
    for (place, format) in PLACES.into_iter().flat_map(|place| FORMATS.map(|format| (place, format))) {
        let mock = stops_in(place);
        let mut run = hub_of(&mock, &["--min-workers", "0", "--output-format", format]).start();
        let mut lines = run_to(&mut run, &mock, place, format, &named("s", "p1", "go"));
        kill_worker(&run);
        lines.extend(run.json_until(is_end));
        run.write_line(named("s", "p2", "again"));
        lines.extend(run.json_until(is_end));
        assert_eq!(ends_of(&lines), [("p1", "interrupted"), ("p2", "done")], "{place} {format}");
        passes_check(&lines);
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn the_stream_of_a_turn_that_was_run_again_passes_the_checker() {
    for format in FORMATS {
        let mock = stops_in("message");
        let mut run = hub_of(&mock, &["--min-workers", "0", "--output-format", format]).start();
        let mut safe = named("s", "p1", "go");
        safe["retry"] = json!("safe");
        let mut lines = run_to(&mut run, &mock, "message", format, &safe);
        kill_worker(&run);
        lines.extend(run.json_until(is_end));
        assert_eq!(ends_of(&lines), [("p1", "done")], "{format}");
        passes_check(&lines);
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn the_stream_of_a_turn_whose_hub_died_passes_the_checker_with_what_its_successor_adds() {
    for (place, format) in PLACES.into_iter().flat_map(|place| FORMATS.map(|format| (place, format))) {
        let mock = stops_in(place);
        let program = hub_of(&mock, &["--min-workers", "0", "--output-format", format]);
        let mut run = program.start();
        run.write_line(request("seq", "initialize", json!({"sequence": true})));
        let mut lines = run.json_until(|line| line["request_id"] == "seq");
        lines.extend(run_to(&mut run, &mock, place, format, &named("s", "p1", "go")));
        run.signal(Signal::KILL);
        lines.extend(std::iter::from_fn(|| run.line()).map(|line| serde_json::from_str(&line).unwrap()));
        let last = numbers(&lines).last().copied().unwrap_or(0);
        let mut next = numbered(&program);
        next.write_line(request("at", "attach", json!({"session_id": "s", "after": last})));
        lines.extend(next.json_until(is_end));
        assert_eq!(ends_of(&lines), [("p1", "interrupted")], "{place} {format}");
        passes_check(&lines);
        assert_eq!(next.finish().code, Some(0));
    }
}

#[test]
fn the_stream_of_a_successor_passes_the_checker_alone_although_its_client_had_half_a_message() {
    for (place, format) in PLACES.into_iter().flat_map(|place| FORMATS.map(|format| (place, format))) {
        let mock = stops_in(place);
        let program = hub_of(&mock, &["--min-workers", "0", "--output-format", format]);
        let mut run = program.start();
        run.write_line(request("seq", "initialize", json!({"sequence": true})));
        run.json_until(|line| line["request_id"] == "seq");
        let mut lines = run_to(&mut run, &mock, place, format, &named("s", "p1", "go"));
        run.signal(Signal::KILL);
        lines.extend(std::iter::from_fn(|| run.line()).map(|line| serde_json::from_str(&line).unwrap()));
        let last = numbers(&lines).last().copied().unwrap_or(0);
        // From every line on that the client may have had.
        for after in 0..=last {
            let mut next = program.start();
            next.write_line(request("seq", "initialize", json!({"sequence": true})));
            next.write_line(request("at", "attach", json!({"session_id": "s", "after": after})));
            let mut alone = next.json_until(is_end);
            next.write_line(named("s", &format!("q{after}"), "again"));
            alone.extend(next.json_until(is_end));
            passes_check(&alone);
            assert_eq!(next.finish().code, Some(0), "{place} {format} {after}");
        }
    }
}

#[test]
fn a_message_that_its_worker_left_open_is_ended_in_the_claude_dialect_too() {
    let mock = stops_in("message");
    let flags = ["--dialect", "claude", "--", "--model", "mock", "--yolo", "--include-partial-messages"];
    let mut run = bare().args(flags).with_model(&mock).start();
    let say =
        |text: &str| json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": text}});
    let is_result = |line: &Value| line["type"] == "result";
    run.write_line(say("go"));
    let mut lines = run.json_until(|line| line["event"]["delta"]["text"] == "Half");
    kill_worker(&run);
    lines.extend(run.json_until(is_result));
    run.write_line(say("again"));
    lines.extend(run.json_until(is_result));
    let of = |kind: &str| lines.iter().filter(|line| line["event"]["type"] == kind).count();
    assert_eq!((of("content_block_start"), of("content_block_stop")), (2, 2), "{lines:#?}");
    passes_check_of("claude", &lines);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn of_two_hubs_that_race_for_a_new_session_one_has_it_and_the_other_refuses_each_prompt() {
    let held = Reply::new([gate("held"), sse::text("One."), sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([held, Reply::text("Two.")]);
    let program = hub_of(&mock, &["--min-workers", "1"]);
    let (told, ended) = std::sync::mpsc::channel();
    let mut hubs: Vec<_> = (0..2).map(|_| numbered(&program)).collect();
    for run in &mut hubs {
        run.write_line(prompt("s", "one"));
        run.write_line(named("s", "p2", "two"));
    }
    for mut run in hubs {
        let told = told.clone();
        std::thread::spawn(move || {
            let mut lines = run.json_until(is_end);
            lines.extend(run.json_until(is_end));
            told.send((lines, run.finish().code)).unwrap();
        });
    }
    // The loser ends while the winner waits for the model.
    let (lost, code) = ended.recv_timeout(mock_model::WAIT_LIMIT).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(ends_of(&lost), [("s########1", "error"), ("p2", "error")], "{lost:#?}");
    for end in lost.iter().filter(|line| is_end(line)) {
        assert_eq!(end["metadata"]["error"]["code"], "session_in_use", "{end}");
        assert!(end["seq"].is_null(), "the numbers are the winner's: {end}");
    }
    mock.open("held");
    let (won, code) = ended.recv_timeout(mock_model::WAIT_LIMIT).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(ends_of(&won), [("s########1", "done"), ("p2", "done")], "{won:#?}");
    let numbers = numbers(&won);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}
