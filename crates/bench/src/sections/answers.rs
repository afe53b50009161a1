//! How soon a worker that is busy with a turn answers other requests.

use serde_json::{Value, json};

use crate::Bench;
use crate::mock::Mock;
use crate::output::contains;
use crate::stats::percentile;
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const P99_MS: f64 = 50.0;
const SAMPLES: usize = 200;
/// A chunk every so many microseconds, for longer than anything here takes.
const SLOW: [&str; 6] = ["--chunks", "100000", "--delay-us", "5000", "--chunk-text", "word "];

/// What a worker may be busy with.
struct Busy {
    name: &'static str,
    mock: Mock,
    /// What the line contains that shows it to be under way.
    sign: &'static [u8],
}

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let touch = json!({ "name": "run_shell_command", "arguments": { "command": "touch made" } });
    let states = [
        Busy { name: "a slow stream", mock: Mock::start(&SLOW)?, sign: b"word " },
        Busy {
            name: "a pending permission question",
            mock: Mock::scripted(&[json!([{ "tool_call": touch }])])?,
            sign: b"\"can_use_tool\"",
        },
    ];
    let samples = bench.options.count(SAMPLES, 5);
    let mut rows = Vec::new();
    for busy in &states {
        let home = IsolatedHome::fresh()?;
        let mut command = bench.subject.worker(&busy.mock, &home);
        command.args(["--output-format", "stream-chunk-json"]);
        let mut worker = Worker::start(command)?;
        let mut row = |what: &str, mut took: Vec<f64>| {
            let title = format!("{what} during {}: p99", busy.name);
            rows.push(Row::at_most(title, percentile(&mut took, 0.99), "ms", P99_MS));
        };
        worker.ask("work")?;
        worker.read_until(busy.name, |line| contains(line, busy.sign))?;
        for question in questions() {
            let took = (0..samples).map(|n| time(&mut worker, question, n));
            row(question.0, took.collect::<Result<_, _>>()?);
        }
        let mut took = Vec::new();
        for n in 0..samples {
            took.push(interrupt(&mut worker, n)?);
            worker.ask("work on")?;
            worker.read_until(busy.name, |line| contains(line, busy.sign))?;
        }
        row("interrupt", took);
    }
    Ok(rows)
}

/// Something that is asked: what it is called, how it is asked under an id, and what the line contains that
/// answers it.
type Question = (&'static str, fn(&str) -> Value, &'static [u8]);

fn questions() -> [Question; 3] {
    let hint = |id: &str| json!({ "type": "command_hint_request", "prompt_id": id, "trigger": "slash", "text": "/c", "cursor": 2 });
    [
        ("hint", hint, b"result/command_hint"),
        ("heartbeat", |_| json!({ "type": "heartbeat_request" }), b"result/heartbeat"),
        (
            "set_model",
            |id| control(id, &json!({ "subtype": "set_model", "model": "m" })),
            b"control_response",
        ),
    ]
}

fn control(id: &str, request: &Value) -> Value {
    json!({ "type": "control_request", "request_id": id, "request": request })
}

/// Milliseconds from the `n`th request to its answer.
fn time(worker: &mut Worker, (what, ask, answer): Question, n: usize) -> Result<f64, String> {
    let id = format!("{what}-{n}");
    let question = ask(&id);
    // An answer carries the id of its request.
    let id = if question.to_string().contains(&id) { format!("\"{id}\"") } else { String::new() };
    let asked = worker.send(&question)?;
    let answers = |line: &[u8]| contains(line, answer) && (id.is_empty() || contains(line, id.as_bytes()));
    let (_, answered) = worker.read_until(what, answers)?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few digits")]
    let ms = answered.saturating_sub(asked) as f64 / 1e6;
    Ok(ms)
}

/// Interrupts the turn, and waits for its end too.
fn interrupt(worker: &mut Worker, n: usize) -> Result<f64, String> {
    let ask: fn(&str) -> Value = |id| control(id, &json!({ "subtype": "interrupt" }));
    let took = time(worker, ("interrupt", ask, b"control_response"), n)?;
    worker.turn_end()?;
    Ok(took)
}
