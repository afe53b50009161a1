//! The end of input and signals at every point of a turn that has everything in it: after every line that the worker
//! writes, before and after every piece that the model says, while each tool runs, and in place of every answer of the host.

mod play;
mod story;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::{env, fs};

use mock_model::process::Program;
use mock_model::{MockModel, Reply, Request};
use serde_json::Value;

use self::play::{Ending, Played, Point, play};
use self::story::{HELD, gates};
use self::wire::Wire;

/// As many stories at a time: most of them wait for each other's processors, and some for a clock.
const AT_ONCE: usize = 6;

/// Every point of the story in this wire.
fn points(wire: Wire) -> Vec<Point> {
    let whole = play(wire, None);
    assert_eq!(whole.ended.code, Some(0), "{}", whole.ended.stderr);
    judge(wire, Ending::Eof, &whole);
    let lines = (1..=whole.lines.len()).map(Point::Line);
    let held = gates().into_iter().chain(HELD.map(str::to_owned)).map(Point::Held);
    lines.chain(held).chain((1..=whole.questions).map(Point::Unanswered)).collect()
}

/// Ends the story at each of `cases`, and fails with all that went wrong.
fn at_each(wire: Wire, cases: Vec<(Point, Ending)>) {
    let cases = Mutex::new(cases.into_iter());
    let failures = Mutex::new(Vec::new());
    let next = || cases.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((point, ending)) = next() {
                    let tried = catch_unwind(AssertUnwindSafe(|| {
                        judge(wire, ending, &play(wire, Some((&point, ending))));
                    }));
                    if let Err(error) = tried {
                        let words = error.downcast_ref::<String>().cloned().unwrap_or_default();
                        failures.lock().unwrap().push(format!("{wire:?}, {point:?}, {ending:?}: {words}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} points: {}", failures.len(), failures.join("\n\n"));
}

/// Judges all that a worker said and left behind.
fn judge(wire: Wire, ending: Ending, played: &Played) {
    let Played { ended, lines, .. } = played;
    let shown = || ended.stdout.chars().take(20_000).collect::<String>();
    if ending == Ending::Kill {
        assert_eq!(ended.signal, Some(9), "{}", shown());
    } else {
        let code = match ending {
            Ending::Term => 143,
            Ending::Int => 130,
            _ => 0,
        };
        assert_eq!(ended.code, Some(code), "{}\n{}", ended.stderr, shown());
        let faults = wire.faults(&ended.stdout);
        assert!(faults.is_empty(), "{faults:#?}\n{}", shown());
        let open = wire.open_calls(lines);
        assert!(open.is_empty(), "{open:#?}\n{}", shown());
        each_prompt_ended_once(wire, ending, played);
    }
    continues(&played.program, ending);
}

fn each_prompt_ended_once(wire: Wire, ending: Ending, played: &Played) {
    let ends = wire.ends(&played.lines);
    let expected = if played.told { 2 } else { 0 };
    let certain = ending == Ending::Eof || played.heard || !played.told;
    let right = if certain { ends.len() == expected } else { ends.len() <= expected };
    assert!(right, "{ends:?}\n{}", played.ended.stdout);
    if !matches!(wire, Wire::Qwen | Wire::QwenChunks) {
        return;
    }
    let status = match ending {
        Ending::Term => "interrupted",
        Ending::Int => "cancelled",
        _ => "done",
    };
    for (prompt, how) in &ends {
        assert!(how == "done" || how == status, "{prompt} ended as {how}");
        assert_eq!(ends.iter().filter(|(other, _)| other == prompt).count(), 1, "{prompt}");
    }
    for prompt in ["p1", "p2"] {
        let own = |line: &&Value| line["prompt_id"] == prompt;
        let last = played.lines.iter().rfind(own);
        assert!(last.is_none_or(|last| wire.ends_turn(last)), "{prompt} ends with {last:?}");
    }
}

/// The log can be read, and the session goes on with a conversation that a model takes.
fn continues(program: &Program, ending: Ending) {
    let path = program.qwen_home_path().join("sessions/s.jsonl");
    let Ok(log) = fs::read_to_string(&path) else { return };
    let torn = ending == Ending::Kill && !log.ends_with('\n');
    for line in log.lines().take(log.lines().count() - usize::from(torn)) {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let mock = MockModel::start();
    mock.answer_with(|_: &Request| Some(Reply::text("fine")));
    let program = resumed(program, &mock);
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{log}");
    let request = mock.wait_for_request(0);
    matches_calls(request.messages());
    assert_eq!(request.last_user_text(), "and now?");
}

fn resumed(program: &Program, mock: &MockModel) -> Program {
    let fresh = Program::new(env!("CARGO_BIN_EXE_qwen")).with_model(mock);
    fresh
        .cwd(program.cwd_path())
        .env("HOME", program.home_path())
        .env("QWEN_HOME", program.qwen_home_path())
        .args(["--model", "mock", "-p", "and now?", "--resume", "s", "--output-format", "json"])
}

/// Every call is answered at once, and nothing is answered that was not called.
fn matches_calls(messages: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let place = open.iter().position(|id| **id == message["tool_call_id"]);
            open.remove(place.unwrap_or_else(|| panic!("nobody called: {message}")));
            continue;
        }
        assert!(open.is_empty(), "unanswered {open:?}: {messages:#?}");
        open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
    }
    assert!(open.is_empty(), "unanswered {open:?}: {messages:#?}");
}

#[test]
fn probe_points() {
    let wire = match env::var("WIRE").as_deref() {
        Ok("claude") => Wire::Claude,
        Ok("core") => Wire::Core,
        Ok("loom") => Wire::Loom,
        Ok("chunks") => Wire::QwenChunks,
        _ => Wire::Qwen,
    };
    let started = std::time::Instant::now();
    let points = points(wire);
    eprintln!("{} points, {:?}", points.len(), started.elapsed());
    let endings = match env::var("ENDING").as_deref() {
        Ok("term") => Ending::Term,
        Ok("int") => Ending::Int,
        Ok("kill") => Ending::Kill,
        _ => Ending::Eof,
    };
    at_each(wire, points.into_iter().map(|point| (point, endings)).collect());
    eprintln!("{:?}", started.elapsed());
}
