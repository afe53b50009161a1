//! A hub in a clean place, and what its lines mean.

use std::path::PathBuf;

use mock_model::process::{self, Program, Run};
use serde_json::{Value, json};

/// A hub whose workers use a scripted model.
pub fn hub(script: &Value) -> Program {
    let program = bare();
    let path = program.home_path().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    program.args(["--", "--model", &format!("script:{}", path.display())])
}

/// A hub with flags of its own and a scripted model.
pub fn hub_with(flags: &[&str], script: &Value) -> Program {
    let program = bare();
    let path = program.home_path().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    program.args(flags).args(["--", "--model", &format!("script:{}", path.display())])
}

/// `qwen hub` without further flags.
pub fn bare() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen")).arg("hub")
}

/// A script that answers every prompt with the same text.
pub fn says(text: &str) -> Value {
    let call = json!([{"text": text}]);
    Value::Array(vec![call; 50])
}

/// A prompt of a session.
pub fn prompt(session: &str, text: &str) -> Value {
    json!({"session_id": session, "input": {"parts": [{"type": "text", "text": text}]}})
}

/// A prompt with an id that the client chose.
pub fn named(session: &str, prompt_id: &str, text: &str) -> Value {
    let mut line = prompt(session, text);
    line["prompt_id"] = json!(prompt_id);
    line
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

/// Whether the line is the terminal record of a session.
pub fn ends(session: &str) -> impl Fn(&Value) -> bool {
    let session = session.to_owned();
    move |line| is_end(line) && line["session_id"] == session.as_str()
}

/// Reads up to the answer to a request and gives back its result or error.
#[track_caller]
pub fn answer(run: &mut Run, id: &str) -> Value {
    let lines = run.json_until(|line| line["type"] == "control_response" && line["request_id"] == id);
    let response = lines.last().unwrap()["response"].clone();
    if response["subtype"] == "success" { response["result"].clone() } else { response["error"].clone() }
}

/// The status of a turn's end.
pub fn status(end: &Value) -> &str {
    end["metadata"]["turn"]["status"].as_str().unwrap_or_default()
}

/// The pids of a process's children, by what the system says.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Kills the only worker of a hub.
#[track_caller]
pub fn kill_worker(run: &Run) {
    let workers = children(run.pid());
    assert_eq!(workers.len(), 1, "{workers:?}");
    let pid = rustix::process::Pid::from_raw(i32::try_from(workers[0]).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Waits until a process that was sent SIGSTOP has stopped.
#[track_caller]
pub fn wait_stopped(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(std::time::Instant::now() < deadline, "the process did not stop");
        std::thread::yield_now();
    }
}

/// Fails unless the checker accepts the lines as a stream of the `qwen` dialect.
#[track_caller]
pub fn passes_check(lines: &[Value]) {
    passes_check_of("qwen", lines);
}

/// Fails unless the checker accepts the lines as a stream of a dialect.
#[track_caller]
pub fn passes_check_of(dialect: &str, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let checked =
        process::qwen(env!("CARGO_BIN_EXE_qwen")).args(["check", "--dialect", dialect]).stdin(&text).run();
    assert_eq!(checked.code, Some(0), "{}{}\n{text}", checked.stdout, checked.stderr);
}

/// A configuration file for a hub.
pub fn config(program: &Program, text: &str) -> PathBuf {
    let path = program.home_path().join("hub.yaml");
    std::fs::write(&path, text).unwrap();
    path
}
