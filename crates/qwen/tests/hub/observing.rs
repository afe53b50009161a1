//! What an operator sees: metrics, state, logs and records.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, mkfifoat};
use serde_json::{Value, json};

use crate::harness::*;

fn get(socket: &std::path::Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn metrics_and_state_are_offered_on_request() {
    let program = bare();
    let socket = program.home_path().join("hub.sock");
    let address = format!("unix:{}", socket.display());
    let mut run = hub_with(&["--metrics", &address], &says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    let metrics = get(&socket, "/metrics");
    for line in [
        "qwen_hub_turns_total 1",
        "qwen_hub_sessions_total 1",
        "qwen_hub_workers{state=\"idle\"} 1",
        "qwen_hub_turn_seconds_count 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let state = get(&socket, "/status");
    let state: Value = serde_json::from_str(state.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(state["sessions"], 1);
    let shown = bare().args(["--status", "--metrics", &address]).run();
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("1 idle") && shown.stdout.contains("1 sessions"), "{}", shown.stdout);
    assert_eq!(run.finish().code, Some(0));
    let refused = bare().args(["--metrics", "192.0.2.1:9"]).run();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("loopback"), "{}", refused.stderr);
}

#[test]
fn every_message_is_recorded_where_that_is_asked_for() {
    let program = bare();
    let directory = program.home_path().join("records");
    let mut run = hub_with(&["--record-dir", directory.to_str().unwrap()], &says("Hi.")).start();
    run.write_line(named("a", "p1", "x"));
    let lines = run.json_until(is_end);
    assert_eq!(run.finish().code, Some(0));
    let read = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(read("a.in.jsonl"), [named("a", "p1", "x")]);
    assert_eq!(read("a.out.jsonl"), lines[1..]);
    let replay = |flags: &[&str]| {
        let ended = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
            .args(["sessions", "replay", "a", "--record-dir", directory.to_str().unwrap(), "--speed", "1000"])
            .args(flags)
            .run();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.json_lines()
    };
    assert_eq!(replay(&[]), lines[1..], "what the client saw");
    assert_eq!(replay(&["--end"]), [lines.last().unwrap().clone()]);
    let both = replay(&["--both"]);
    assert_eq!(both.len(), lines.len());
    assert_eq!((&both[0]["direction"], &both[0]["line"]), (&json!("in"), &named("a", "p1", "x")));
    assert!(both[1..].iter().all(|message| message["direction"] == "out" && message["at"].is_u64()));
    let ended = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .args(["sessions", "replay", "nobody", "--record-dir", directory.to_str().unwrap()])
        .run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
}

#[test]
fn a_changed_configuration_is_read_again_on_sighup() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, max_workers: 1}\n");
    let mut run = program.arg("--config").arg(&path).args(["--", "--model", "demo"]).start();
    run.json();
    let max = |run: &mut mock_model::process::Run| {
        run.write_line(request("r", "hub/status", json!({})));
        answer(run, "r")["machines"][0]["workers"]["max"].clone()
    };
    assert_eq!(max(&mut run), 1);
    std::fs::write(
        &path,
        "worker_pool: {min_workers: 0, max_workers: 3}\nevents: {max_bytes: 1000}\ncolour: red\n",
    )
    .unwrap();
    run.signal(rustix::process::Signal::HUP);
    run.wait_for_stderr("`events` changes only with the next start");
    while max(&mut run) != 3 {}
    run.wait_for_stderr("unknown key `colour`");
    std::fs::write(&path, "worker_pool: {max_workers: none}\n").unwrap();
    run.signal(rustix::process::Signal::HUP);
    run.wait_for_stderr("the former configuration stays");
    assert_eq!(max(&mut run), 3);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn new_sessions_use_the_worker_flags_profiles_and_tenants_of_a_configuration_that_was_read_again() {
    let program = bare();
    let written = |text: &str| {
        let path = program.home_path().join(format!("{text}.json"));
        std::fs::write(&path, says(text).to_string()).unwrap();
        format!("script:{}", path.display())
    };
    let (old, new) = (written("old"), written("new"));
    let text = |model: &str, tenant: &str| {
        format!(
            "worker_pool: {{min_workers: 1}}\nworker_args: [--model, '{model}']\ntenants: {{{tenant}: {{}}}}\n"
        )
    };
    let path = config(&program, &text(&old, "red"));
    let mut run = program.clone().arg("--config").arg(&path).start();
    let said = |run: &mut mock_model::process::Run, session: &str, tenant: &str| {
        let mut line = prompt(session, "x");
        if !tenant.is_empty() {
            line["tenant"] = json!(tenant);
        }
        run.write_line(line);
        let end = run.json_until(|line| is_end(line) || line["metadata"]["error"].is_object()).pop().unwrap();
        let error = end["metadata"]["error"]["code"].as_str();
        error.or(end["choices"][0]["message"]["content"].as_str()).unwrap().to_owned()
    };
    assert_eq!(said(&mut run, "a", ""), "old");
    assert_eq!(said(&mut run, "b", "blue"), "unknown_tenant");
    std::fs::write(&path, format!("{}colour: red\n", text(&new, "blue"))).unwrap();
    run.signal(rustix::process::Signal::HUP);
    run.wait_for_stderr("unknown key `colour`");
    assert_eq!(said(&mut run, "c", ""), "new");
    assert_eq!(said(&mut run, "b", "blue"), "new");
    assert_eq!(said(&mut run, "d", "red"), "unknown_tenant");
    assert_eq!(said(&mut run, "a", ""), "old", "a session that was open keeps what it began with");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_idle_worker_that_uses_too_much_memory_is_replaced_and_its_session_goes_on() {
    let program = bare();
    let text = "worker_pool: {min_workers: 0, max_worker_memory: 1, health_check_interval: 0.05}\n";
    let path = config(&program, text);
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("ok").to_string()).unwrap();
    let model = format!("script:{}", script.display());
    let mut run = program.arg("--config").arg(path).args(["--", "--model", &model]).start();
    run.write_line(named("a", "p1", "x"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    loop {
        run.write_line(request("r", "hub/status", json!({})));
        if answer(&mut run, "r")["machines"][0]["restarts"]["memory"].is_u64() {
            break;
        }
    }
    run.write_line(named("a", "p2", "y"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn limits_of_the_configuration_hold_in_a_worker() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, max_open_files: 77}\n");
    let script = json!([[{"tool_call": {"name": "run_shell_command", "arguments": {"command": "ulimit -n"}}}], [{"text": "ok"}]]);
    let file = program.home_path().join("s.json");
    std::fs::write(&file, script.to_string()).unwrap();
    let model = format!("script:{}", file.display());
    let mut run = program
        .arg("--config")
        .arg(path)
        .args(["--", "--model", &model, "--yolo", "--sandbox=false"])
        .start();
    run.write_line(prompt("a", "x"));
    let lines = run.json_until(is_end);
    assert!(lines.iter().any(|line| line.to_string().contains("77")), "{lines:#?}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn logs_name_workers_and_the_reason_of_every_exit() {
    let program = bare();
    let text = "settings_profile: {overrides: {context.fileName: secret-7c1e.md}}\ncolour: red\n";
    let path = config(&program, text);
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("Hi.").to_string()).unwrap();
    let model = format!("script:{}", script.display());
    let flags = ["--log-format", "json", "--", "--model", &model];
    let mut run = program.arg("--config").arg(path).args(flags).start();
    run.write_line(prompt("a", "look\n around"));
    run.json_until(is_end);
    let ended = run.finish();
    assert!(ended.stderr.contains("context.fileName"), "the profile is named: {}", ended.stderr);
    assert!(!ended.stderr.contains("secret-7c1e"), "and its values are not: {}", ended.stderr);
    let records: Vec<Value> = ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for record in &records {
        assert!(record["time"].is_string() && record["level"].is_string(), "{record}");
    }
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    assert!(!of("worker_start").is_empty(), "{}", ended.stderr);
    assert!(
        of("worker_exit").iter().any(|record| record["reason"] == "exit_0" && record["session_id"] == "a"),
        "{}",
        ended.stderr
    );
    let turns = of("turn_end");
    assert_eq!(turns.len(), 1, "{}", ended.stderr);
    assert_eq!((&turns[0]["session_id"], &turns[0]["status"]), (&json!("a"), &json!("done")));
    assert!(turns[0]["duration_ms"].is_u64() && turns[0]["prompt_id"].is_string());
    assert_eq!(turns[0]["command"], "look around");
}

#[test]
fn a_reader_of_the_log_that_stops_reading_does_not_hold_the_hub_up() {
    let program = mock_model::process::qwen("/bin/sh");
    let worker = crate::fault_worker::script(&program, "mid_token", "stderr_flood");
    let log = program.home_path().join("log");
    mkfifoat(rustix::fs::CWD, &log, Mode::RUSR | Mode::WUSR).unwrap();
    // The hub's standard error is a pipe that nobody reads.
    let mut run = program
        .args(["-c", "exec 2<>\"$1\"; shift; exec \"$@\"", "sh"])
        .arg(&log)
        .args([
            env!("CARGO_BIN_EXE_qwen"),
            "hub",
            "--log-format",
            "json",
            "--min-workers",
            "0",
            "--binary-path",
        ])
        .arg(&worker)
        .start();
    run.write_line(named("a", "p", "x"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_profile_of_a_killed_hub_is_removed_by_the_next_one() {
    let program = bare();
    let profiles = program.qwen_home_path().join("hub/profiles");
    // No worker is being started at the moment of the kill, so that nothing else holds the lock of the
    // directory.
    let program = program.args(["--min-workers", "0", "--", "--model", "demo"]);
    let mut run = program.start();
    let profile = json!({"overrides": {"model.maxRetries": 1}});
    run.write_line(request("o", "open", json!({"session_id": "a", "settings_profile": profile})));
    answer(&mut run, "o");
    run.signal(rustix::process::Signal::KILL);
    while run.line().is_some() {}
    assert_eq!(std::fs::read_dir(&profiles).unwrap().count(), 1);
    // One that has no profile itself.
    let next = program.run();
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert_eq!(std::fs::read_dir(&profiles).unwrap().count(), 0);
}
