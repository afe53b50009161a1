//! Hubs and their bus.

use mock_model::bus::BusServers;
use mock_model::process::{self, Program};
use mock_model::{MockModel, WAIT_LIMIT};
use serde_json::{Value, json};

/// `qwen` in a clean directory, which represents a machine: it shares nothing with other programs but the bus.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
}

/// Starts servers and creates the streams.
#[track_caller]
pub fn bus(count: usize) -> BusServers {
    let servers = BusServers::start(count);
    // On a busy machine several servers need longer than a process to agree on a leader.
    let deadline = std::time::Instant::now() + 4 * WAIT_LIMIT;
    loop {
        let replicas = count.to_string();
        let made = qwen().args(["bus", "init", "--bus", &servers.url(), "--replicas", &replicas]).run();
        if made.code == Some(0) {
            return servers;
        }
        assert!(std::time::Instant::now() < deadline, "{}", made.stderr);
    }
}

/// A hub with its workers on a separate machine.
pub fn hub(servers: &BusServers, mock: &MockModel) -> Program {
    let args =
        ["hub", "--local", "--bus", &servers.url(), "--min-workers", "0", "--", "--model", "mock", "--yolo"];
    qwen().args(args).with_model(mock)
}

/// A prompt with an id that the client chose.
pub fn named(session: &str, prompt_id: &str, text: &str) -> Value {
    json!({"session_id": session, "prompt_id": prompt_id, "input": {"parts": [{"type": "text", "text": text}]}})
}

/// A control request.
#[expect(clippy::needless_pass_by_value, reason = "callers write the keys in place")]
pub fn request(id: &str, subtype: &str, further: Value) -> Value {
    let mut line = json!({"type": "control_request", "request_id": id, "subtype": subtype});
    for (key, value) in further.as_object().unwrap() {
        line[key] = value.clone();
    }
    line
}

/// Whether the line is a terminal record.
pub fn is_end(line: &Value) -> bool {
    line["metadata"]["turn"].is_object()
}

/// Whether the line is the terminal record of a prompt.
pub fn ends(prompt_id: &str) -> impl Fn(&Value) -> bool {
    let prompt_id = prompt_id.to_owned();
    move |line| is_end(line) && line["prompt_id"] == prompt_id.as_str()
}

/// The status of a turn's end.
pub fn status(end: &Value) -> &str {
    end["metadata"]["turn"]["status"].as_str().unwrap_or_default()
}

/// Prompt and status of every terminal record.
pub fn ends_of(lines: &[Value]) -> Vec<(&str, &str)> {
    let ends = lines.iter().filter(|line| is_end(line));
    ends.map(|line| (line["prompt_id"].as_str().unwrap_or_default(), status(line))).collect()
}

/// Fails unless the numbered lines are numbered from `first` without gaps and repeats.
#[track_caller]
pub fn follow_from(first: u64, lines: &[Value]) -> u64 {
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    let last = first + numbers.len() as u64;
    assert_eq!(numbers, (first..last).collect::<Vec<_>>(), "{lines:#?}");
    last
}

/// The pids of a process's children.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Kills the only worker of a process.
#[track_caller]
pub fn kill_worker(pid: u32) {
    let workers = children(pid);
    assert_eq!(workers.len(), 1, "{workers:?}");
    let pid = rustix::process::Pid::from_raw(i32::try_from(workers[0]).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
