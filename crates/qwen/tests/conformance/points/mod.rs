//! The end of input and signals at every point of a turn that has everything in it: after every line that the
//! worker writes, before every piece that the model says, while each tool runs, and in place of every answer
//! of the host.

mod judge;
mod play;
mod story;
mod wire;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, Step, gate, sse};
use serde_json::{Value, json};

use self::judge::judge;
use self::play::{Ending, Point, play};
use self::story::{HELD, gates};
use self::wire::Wire;
use crate::harness::{CLAUDE, Host, chat, echo, is_error, worker};

/// So many workers at a time: more than there are processors, because some wait for others.
const AT_ONCE: usize = 4;

/// Does something about each of `cases`, and fails with all that went wrong.
fn at_each<T: Debug + Send>(cases: Vec<T>, check: impl Fn(&T) + Sync) {
    let cases = Mutex::new(cases.into_iter());
    let failures = Mutex::new(Vec::new());
    let next = || cases.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    if let Err(error) = catch_unwind(AssertUnwindSafe(|| check(&case))) {
                        let words = error.downcast_ref::<String>().cloned().unwrap_or_default();
                        failures.lock().unwrap().push(format!("{case:?}: {words}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n\n"));
}

/// Every point of the story, as it is told in this wire without an end.
fn points(wire: Wire) -> Vec<Point> {
    let whole = play(wire, None);
    judge(wire, Ending::Eof, &whole);
    let lines = (1..=whole.lines.len()).map(Point::Line);
    let held = gates().into_iter().chain(HELD.map(str::to_owned)).map(Point::Held);
    lines.chain(held).chain((1..=whole.questions).map(Point::Unanswered)).collect()
}

fn ended_at(wire: Wire, cases: Vec<(Point, Ending)>) {
    at_each(cases, |(point, ending)| judge(wire, *ending, &play(wire, Some((point, *ending)))));
}

/// Each ending in turn, over every `step`-th point.
fn in_turn(wire: Wire, endings: &[Ending], step: usize) {
    let points = points(wire).into_iter().step_by(step);
    ended_at(wire, points.zip(endings.iter().copied().cycle()).collect());
}

#[test]
fn at_every_point_the_end_of_input_lets_every_prompt_come_to_its_end() {
    let at = |point| (point, Ending::Eof);
    ended_at(Wire::QwenChunks, points(Wire::QwenChunks).into_iter().map(at).collect());
}

#[test]
fn at_every_point_sigterm_ends_every_prompt_once() {
    let at = |point| (point, Ending::Term);
    ended_at(Wire::QwenChunks, points(Wire::QwenChunks).into_iter().map(at).collect());
}

#[test]
fn at_every_point_ctrl_c_and_sigterm_behind_the_end_of_input_do_too_and_a_kill_loses_nothing() {
    in_turn(Wire::QwenChunks, &[Ending::Kill, Ending::Int, Ending::EofTerm], 1);
}

#[test]
fn whole_messages_are_no_different() {
    in_turn(Wire::Qwen, &[Ending::Term, Ending::Eof, Ending::Kill, Ending::EofTerm, Ending::Int], 2);
}

#[test]
fn in_claude_every_point_has_its_end_too() {
    in_turn(Wire::Claude, &[Ending::Term, Ending::Eof, Ending::Int, Ending::Kill, Ending::EofTerm], 2);
}

#[test]
fn in_other_dialects_points_have_their_end_too() {
    in_turn(Wire::Core, &[Ending::Term, Ending::Eof, Ending::Int, Ending::Kill], 3);
    in_turn(Wire::Loom, &[Ending::Term, Ending::Eof, Ending::Int, Ending::Kill], 5);
}

/// Lines of input whose every part can be the last that comes.
fn lines_of_input() -> [Value; 3] {
    [
        chat("p1", "\u{e9} \u{1f600}"),
        json!({"type": "control_request", "request_id": "r", "subtype": "mcp_status"}),
        json!({"type": "heartbeat_request", "interval_ms": 1000}),
    ]
}

#[test]
fn input_that_ends_within_a_line_is_one_error_whatever_the_byte() {
    let mut cases = Vec::new();
    for format in ["stream-json", CLAUDE] {
        for line in lines_of_input() {
            let line = line.to_string();
            let step = if format == CLAUDE { 4 } else { 1 };
            cases.extend((1..line.len()).step_by(step).map(|end| (format, line.clone(), end)));
        }
    }
    let mock = echo();
    at_each(cases, |(format, line, end)| {
        let ended = worker(&mock, format).stdin(&line.as_bytes()[..*end]).run();
        let lines = ended.json_lines();
        let errors = lines.iter().filter(|line| is_error(line)).count();
        // A greeting comes before it in one dialect.
        let others = usize::from(*format != CLAUDE);
        assert_eq!((ended.code, errors, lines.len()), (Some(0), 1, errors + others), "{ended:?}");
    });
}

#[test]
fn input_that_ends_within_a_line_ends_no_turn_that_runs() {
    let half = r#"{"session_id":"s","prompt_id":"p2","inp"#;
    for (signal, code, status) in [(None, 0, "done"), (Some(Signal::TERM), 143, "interrupted")] {
        let steps = [sse::text("half"), gate("held"), sse::text("."), sse::finish("stop"), sse::done()];
        let mock = MockModel::with([Reply::new(steps)]);
        let mut host = Host::with(&mock, "stream-json");
        host.send(chat("p1", "go"));
        mock.reached("held");
        host.run.write(half.as_bytes());
        host.run.close_stdin();
        host.until(is_error);
        match signal {
            Some(signal) => host.run.signal(signal),
            None => mock.open("held"),
        }
        let lines = host.ended(code);
        assert_eq!(lines.iter().filter(|line| is_error(line)).count(), 1, "{lines:#?}");
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], status);
    }
}

#[test]
fn a_signal_while_the_next_attempt_is_waited_for_ends_the_turn_at_once() {
    for broken in [
        vec![Step::Head, Step::Close],
        vec![Step::Status(503, vec![("retry-after".to_owned(), "60".to_owned())], "busy".to_owned())],
    ] {
        let mock = MockModel::with([Reply::new(broken)]);
        mock.answer_with(|_: &mock_model::Request| Some(Reply::new([gate("never")])));
        let mut host = Host::with(&mock, "stream-json");
        host.send(chat("p1", "go"));
        host.until(|line| line["event"] == "Retry");
        let lines = host.signalled(Signal::TERM, 143);
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "interrupted");
    }
}

#[test]
fn a_long_queue_is_ended_whole_before_the_worker_must_be_gone() {
    const PROMPTS: usize = 1_000;
    let mock = MockModel::with([Reply::new([gate("held")])]);
    let mut host = Host::with(&mock, "stream-json");
    let prompts: String = (1..=PROMPTS).map(|n| format!("{}\n", chat(&format!("p{n}"), "go"))).collect();
    host.run.write(prompts.as_bytes());
    host.send(json!({"type": "heartbeat_request"}));
    host.until(|line| line["type"] == "result/heartbeat");
    mock.reached("held");
    let lines = host.signalled(Signal::TERM, 143);
    let ended = lines.iter().filter(|line| line["metadata"]["turn"]["status"] == "interrupted");
    let expected = (1..=PROMPTS).map(|n| format!("p{n}"));
    let ended: Vec<&str> = ended.map(|line| line["prompt_id"].as_str().unwrap()).collect();
    assert!(ended.iter().copied().eq(expected), "{} of {PROMPTS}: {ended:?}", ended.len());
}
