//! The hub: what it adds to one worker that is driven directly, and how many sessions it carries.

use std::time::Duration;

use mock_model::monotonic_ns;
use serde_json::{Value, json};

use crate::Bench;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, contains};
use crate::process::Measured;
use crate::stats::percentile;
use crate::subject::IsolatedHome;
use crate::table::{Row, grouped};
use crate::worker::Worker;

const CHUNK_US: f64 = 1.5;
const NUMBERED_US: f64 = 3.0;
const ADDED_US: f64 = 30.0;
const CONTROL_MS: f64 = 1.0;
const WARM_MS: f64 = 2.0;
const COLD_MS: f64 = 10.0;
const START_MS: f64 = 500.0;
const SESSIONS: usize = 1000;
const MEMORY_MB: f64 = 40.0;
const REST: Duration = Duration::from_secs(2);
/// Pairs of a worker and a hub whose round trips are compared, and the heartbeats of each.
const PAIRS: usize = 20;
const BEATS: usize = 200;
const NEW_SESSIONS: usize = 200;
/// Between two new sessions.
const PAUSE: Duration = Duration::from_millis(50);

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mut rows = relay(bench)?;
    rows.extend(round_trips(bench)?);
    rows.extend(new_sessions(bench)?);
    rows.extend(live_sessions(bench)?);
    rows.extend(start(bench)?);
    Ok(rows)
}

fn prompt(session: &str) -> Value {
    json!({"session_id": session, "input": {"parts": [{"type": "text", "text": "hi"}]}})
}

fn number(hub: &mut Worker) -> Result<(), String> {
    hub.send(
        &json!({"type": "control_request", "request_id": "i", "subtype": "initialize", "sequence": true}),
    )?;
    hub.read_until("numbers", |line| contains(line, b"\"sequence\":true")).map(drop)
}

/// Processor time of the hub for each chunk that it relays.
fn relay(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = bench.options.chunks;
    let mut rows = Vec::new();
    for (numbered, target) in [(false, CHUNK_US), (true, NUMBERED_US)] {
        let mock = Mock::start(&[
            "--chunks",
            &chunks.to_string(),
            "--chunk-text",
            CHUNK_TEXT,
            "--write-size",
            "many",
        ])?;
        let home = IsolatedHome::fresh()?;
        let mut hub = Worker::start(bench.subject.hub(&mock, &home, &["-o", "stream-chunk-json"]))?;
        if numbered {
            number(&mut hub)?;
        }
        let before = hub.cpu_ns()?;
        hub.send(&prompt("a"))?;
        hub.turn_end()?;
        #[expect(clippy::cast_precision_loss, reason = "times and counts are small")]
        let each = (hub.cpu_ns()? - before) as f64 / 1e3 / chunks as f64;
        let how = if numbered { ", numbered" } else { "" };
        rows.push(Row::at_most(format!("hub: processor time a relayed chunk{how}"), each, "µs", target));
    }
    Ok(rows)
}

/// A heartbeat and its answer, in microseconds.
fn beat(worker: &mut Worker, request: &Value) -> Result<f64, String> {
    let sent = worker.send(request)?;
    let (_, came) = worker.read_until("a heartbeat", |line| contains(line, b"result/heartbeat"))?;
    #[expect(clippy::cast_precision_loss, reason = "times are short")]
    let took = (came - sent) as f64 / 1e3;
    Ok(took)
}

/// A heartbeat to a session's worker and back, with and without the hub in between. On which processors the
/// system places the processes changes the figures severalfold and lasts, so there are many pairs of
/// processes.
fn round_trips(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let (mut direct, mut through, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.options.count(PAIRS, 2) {
        let home = IsolatedHome::fresh()?;
        let mut worker = Worker::start(bench.subject.worker(&mock, &home))?;
        let mut hub = Worker::start(bench.subject.hub(&mock, &home, &["--min-workers", "0"]))?;
        for (program, session) in [(&mut worker, "d"), (&mut hub, "h")] {
            program.send(&prompt(session))?;
            program.turn_end()?;
        }
        let beat_of = |session: &str| json!({"type": "heartbeat_request", "session_id": session});
        let (direct_beat, hub_beat) = (beat_of("d"), beat_of("h"));
        // Alternately, so that other load affects both equally.
        for _ in 0..bench.options.count(BEATS, 25) {
            let (without, with) = (beat(&mut worker, &direct_beat)?, beat(&mut hub, &hub_beat)?);
            direct.push(without);
            through.push(with);
            added.push((with - without) / 2.0);
        }
    }
    Ok(vec![
        Row::at_most("hub: added to an event one way, p50", percentile(&mut added, 0.5), "µs", ADDED_US),
        Row::without_target("— p90", percentile(&mut added, 0.9), "µs"),
        Row::at_most("hub: control round trip, p99", percentile(&mut through, 0.99) / 1e3, "ms", CONTROL_MS),
        Row::without_target("— of one worker directly, p99", percentile(&mut direct, 0.99) / 1e3, "ms"),
    ])
}

/// From the prompt of a new session until its first request has reached the model, in milliseconds. The rest
/// of the turn is the same with and without a hub.
fn first_request(mock: &Mock, worker: &mut Worker, session: &str) -> Result<f64, String> {
    mock.reset()?;
    // The spares are there again, and the former worker has ended.
    std::thread::sleep(PAUSE);
    let sent = worker.send(&prompt(session))?;
    worker.turn_end()?;
    #[expect(clippy::cast_precision_loss, reason = "times are short")]
    let took = mock.last_arrival_ns()?.saturating_sub(sent) as f64 / 1e6;
    Ok(took)
}

/// New sessions on spares and without.
fn new_sessions(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let homes = [IsolatedHome::fresh()?, IsolatedHome::fresh()?, IsolatedHome::fresh()?];
    let hub = |home, spares| {
        let flags = ["--min-workers", spares, "--max-workers", "1000"];
        Worker::start(bench.subject.hub(&mock, home, &flags))
    };
    let (mut warm_hub, mut cold_hub) = (hub(&homes[1], "4")?, hub(&homes[2], "0")?);
    let (mut direct, mut warm, mut cold) = (Vec::new(), Vec::new(), Vec::new());
    // Alternately, so that other load affects all equally.
    for n in 0..bench.options.count(NEW_SESSIONS, 5) {
        // The first turn of a worker costs more than the next ones, with and without a hub.
        let mut worker = Worker::start(bench.subject.worker(&mock, &homes[0]))?;
        direct.push(first_request(&mock, &mut worker, &format!("direct-{n}"))?);
        drop(worker);
        warm.push(first_request(&mock, &mut warm_hub, &format!("warm-{n}"))?);
        cold.push(first_request(&mock, &mut cold_hub, &format!("cold-{n}"))?);
    }
    let (middle, last) = (percentile(&mut direct, 0.5), percentile(&mut direct, 0.99));
    let mut rows = vec![
        Row::without_target("first prompt of a fresh worker to its request, directly, p50", middle, "ms"),
        Row::without_target("— p99", last, "ms"),
    ];
    for (name, mut times, target) in [("warm", warm, WARM_MS), ("cold", cold, COLD_MS)] {
        let title = format!("hub: new session, {name}");
        let (middle, slow) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        rows.extend([
            Row::without_target(format!("{title}: prompt to request, p50"), middle, "ms"),
            Row::without_target("— p99", slow, "ms"),
            Row::at_most(
                format!("{title}: added to a fresh worker, p99"),
                (slow - last).max(0.0),
                "ms",
                target,
            ),
        ]);
    }
    Ok(rows)
}

/// Many sessions that live at once.
fn live_sessions(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let mut rows = Vec::new();
    let home = IsolatedHome::fresh()?;
    let count = bench.options.count(SESSIONS, 20);
    let limit = count.to_string();
    let mut hub =
        Worker::start(bench.subject.hub(&mock, &home, &["--min-workers", "0", "--max-workers", &limit]))?;
    let began = monotonic_ns();
    for n in 0..count {
        hub.send(&prompt(&format!("s{n}")))?;
        hub.turn_end()?;
    }
    #[expect(clippy::cast_precision_loss, reason = "times are short")]
    let took = (monotonic_ns() - began) as f64 / 1e9;
    let title = format!("hub: {} live sessions", grouped(count as u64));
    rows.push(Row::at_most(
        format!("{title}: memory of the hub (PSS)"),
        hub.memory()?.pss_mb,
        "MB",
        MEMORY_MB,
    ));
    rows.push(Row::without_target(format!("{title}: one turn each, one after the other"), took, "s"));
    let before = hub.cpu_ns()?;
    std::thread::sleep(REST);
    #[expect(clippy::cast_precision_loss, reason = "times are short")]
    let rested = (hub.cpu_ns()? - before) as f64 / 1e3;
    rows.push(Row::without_target(
        format!("{title}: processor time of the hub in {} s of rest", REST.as_secs()),
        rested,
        "µs",
    ));
    Ok(rows)
}

/// How long a full pool takes to be ready.
fn start(bench: &Bench) -> Result<Vec<Row>, String> {
    let mock = Mock::start(&["--chunks", "1", "--chunk-text", CHUNK_TEXT])?;
    let home = IsolatedHome::fresh()?;
    let began = monotonic_ns();
    let mut hub =
        Worker::start(bench.subject.hub(&mock, &home, &["--min-workers", "50", "--max-workers", "50"]))?;
    loop {
        hub.send(&json!({"type": "control_request", "request_id": "s", "subtype": "hub/status"}))?;
        let (line, came) = hub.read_until("the state", |line| contains(line, b"\"machines\""))?;
        if contains(&line, b"\"warm\":50") {
            #[expect(clippy::cast_precision_loss, reason = "times are short")]
            let took = (came - began) as f64 / 1e6;
            return Ok(vec![Row::at_most("hub: 50 workers ready", took, "ms", START_MS)]);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
