//! The hub under bad neighbours: a tenant that floods it, and a client that does not read.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Bench;
use crate::mock::Mock;
use crate::output::{CHUNK_TEXT, contains};
use crate::process::Measured;
use crate::stats::percentile;
use crate::subject::IsolatedHome;
use crate::table::Row;
use crate::worker::Worker;

const WAIT_RATIO: f64 = 2.0;
const BUFFERED_MB: f64 = 8.0;
/// How many prompts of the flooding tenant are always open.
const FLOOD: usize = 100;
/// A client that does not read is given this long to fill the hub.
const STALL: Duration = Duration::from_secs(2);

pub fn measure(bench: &Bench) -> Result<Vec<Row>, String> {
    let mut rows = flooded(bench)?;
    rows.extend(stalled(bench)?);
    Ok(rows)
}

fn prompt(tenant: &str, session: &str) -> Value {
    json!({"session_id": session, "tenant": tenant, "input": {"parts": [{"type": "text", "text": "hi"}]}})
}

/// How long new sessions of a calm tenant wait for the ends of their turns while another keeps `load` prompts
/// open.
fn waits(bench: &Bench, mock: &Mock, load: usize) -> Result<Vec<f64>, String> {
    let home = IsolatedHome::fresh()?;
    let config = home.work().join("hub.yaml");
    let limits = "worker_pool: {min_workers: 0, max_workers: 4, max_queue_per_tenant: 1000}";
    std::fs::write(&config, limits).map_err(|error| format!("cannot write a configuration: {error}"))?;
    let mut hub = Worker::start(bench.subject.hub(mock, &home, &["--config", &config.to_string_lossy()]))?;
    let mut opened = 0;
    let mut flood = |hub: &mut Worker, count: usize| -> Result<(), String> {
        for _ in 0..count {
            opened += 1;
            hub.send(&prompt("loud", &format!("l{opened}")))?;
        }
        Ok(())
    };
    flood(&mut hub, load)?;
    let mut times = Vec::new();
    for n in 0..bench.options.count(100, 3) {
        let session = format!("c{n}");
        let name = format!("\"session_id\":\"{session}\"");
        let sent = hub.send(&prompt("calm", &session))?;
        loop {
            let (line, came) = hub.read_until("an end", |line| contains(line, b"\"turn\":{\"status\":"))?;
            if contains(&line, name.as_bytes()) {
                #[expect(clippy::cast_precision_loss, reason = "times are short")]
                times.push((came - sent) as f64 / 1e6);
                break;
            }
            flood(&mut hub, 1)?;
        }
    }
    Ok(times)
}

fn flooded(bench: &Bench) -> Result<Vec<Row>, String> {
    // A turn takes some 50 ms, most of which is the model's.
    let mock = Mock::start(&["--chunks", "5", "--chunk-text", CHUNK_TEXT, "--delay-us", "10000"])?;
    let mut usual = waits(bench, &mock, 1)?;
    let mut flooded = waits(bench, &mock, FLOOD.min(bench.options.count(FLOOD, 5)))?;
    let (usual, flooded) = (percentile(&mut usual, 0.99), percentile(&mut flooded, 0.99));
    Ok(vec![
        Row::without_target("hub: a tenant's new session beside one turn of another, p99", usual, "ms"),
        Row::at_most(
            "hub: — beside a tenant that floods 100×, p99, times that",
            flooded / usual,
            "×",
            WAIT_RATIO,
        ),
    ])
}

fn stalled(bench: &Bench) -> Result<Vec<Row>, String> {
    let chunks = (bench.options.chunks * 10).to_string();
    let mock = Mock::start(&["--chunks", &chunks, "--chunk-text", CHUNK_TEXT, "--write-size", "many"])?;
    let home = IsolatedHome::fresh()?;
    let mut hub = Worker::start(bench.subject.hub(&mock, &home, &["-o", "stream-chunk-json"]))?;
    let before = hub.memory()?.pss_mb;
    for n in 0..4 {
        hub.send(&prompt("slow", &format!("s{n}")))?;
    }
    std::thread::sleep(STALL);
    let grown = (hub.memory()?.pss_mb - before).max(0.0);
    Ok(vec![Row::at_most("hub: memory for a client that does not read (PSS)", grown, "MB", BUFFERED_MB)])
}
