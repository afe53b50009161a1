//! Programs that are not workers, or break before their handshake. Each costs its own session an error that
//! names the cause; the hub continues to serve other sessions and ends with its input.

use mock_model::process::wait_marked_gone;
use serde_json::{Value, json};

use crate::fault_worker::write_script;
use crate::harness::*;

const HALF: &str =
    r#"{"object":"chat.completion","id":"x","created":1,"model":"m","choices":[],"metadata":{"protocol_ver"#;

/// The kinds of broken worker: a name, what its script does, and what the error contains.
fn kinds() -> Vec<(&'static str, String, &'static str)> {
    let stay = "exec sleep 1000";
    let no_handshake = "it wrote no handshake before the deadline";
    let handshake = |version: &str| {
        format!(
            r#"{{"object":"chat.completion","id":"x","created":1,"model":"m","session_id":"x","choices":[],"metadata":{{"protocol_version":{version}}}}}"#
        )
    };
    vec![
        ("silent", stay.to_owned(), no_handshake),
        ("deaf", format!("trap '' TERM INT HUP; exec 0</dev/null; {stay}"), no_handshake),
        ("exits", "exit 0".to_owned(), "it exited with code 0"),
        ("fails", "echo 'qwen: no luck' >&2; exit 3".to_owned(), "it exited with code 3: qwen: no luck"),
        ("not_found", "exec /nowhere/qwen".to_owned(), "it exited with code 127"),
        ("segfaults", "kill -SEGV $$".to_owned(), "signal 11 killed it"),
        ("killed", "kill -KILL $$".to_owned(), "signal 9 killed it"),
        ("stopped", "kill -STOP $$".to_owned(), no_handshake),
        ("garbage", format!("echo Hello, I am not a worker; {stay}"), "Hello, I am not a worker"),
        ("garbage_and_exit", "echo Hello; exit 1".to_owned(), "it exited with code 1: qwen: its first line"),
        ("flood", "while :; do echo not a worker; done".to_owned(), no_handshake),
        ("binary", format!("head -c 4096 /dev/zero; {stay}"), no_handshake),
        ("long_line", format!("head -c 3000000 /dev/zero | tr '\\0' x; {stay}"), no_handshake),
        ("half_a_handshake", format!("printf '%s' '{HALF}'; {stay}"), no_handshake),
        ("half_a_handshake_and_exit", format!("printf '%s' '{HALF}'; exit 1"), "it exited with code 1"),
        ("array", format!("echo '[1,2]'; {stay}"), "[1,2]"),
        ("other_object", format!("echo '{{\"hello\":1}}'; {stay}"), "{\"hello\":1}"),
        ("other_version", format!("echo '{}'; {stay}", handshake("\"9.1\"")), "protocol version '9.1'"),
        ("wrong_type", format!("echo '{}'; {stay}", handshake("7")), no_handshake),
        ("closes_stdout", format!("exec 1>&-; {stay}"), "it closed its standard output"),
        ("closes_all", format!("exec 0<&- 1>&- 2>&-; {stay}"), "it closed its standard output"),
        ("stderr_flood", "while :; do echo oops >&2; done".to_owned(), no_handshake),
        ("fatal", "echo '{\"error\":{\"message\":\"no way\",\"type\":\"t\"}}'; exit 2".to_owned(), "no way"),
        (
            "fatal_and_stay",
            "echo '{\"error\":{\"message\":\"no way\",\"type\":\"t\"}}'; cat >/dev/null; exit 2".to_owned(),
            "no way",
        ),
        ("background_child", format!("sleep 1000 & {stay}"), no_handshake),
    ]
}

/// A hub whose workers are sound unless `BROKEN` names a kind. Returns the program and the mark of its processes.
fn hub_of_kinds(flags: &[&str]) -> (mock_model::process::Program, String) {
    let program = bare();
    let real = env!("CARGO_BIN_EXE_qwen");
    let cases: String = kinds().iter().map(|(name, text, _)| format!("{name}) {text} ;;\n")).collect();
    let script = format!("#!/bin/sh\ncase \"$BROKEN\" in\n'') exec '{real}' \"$@\" ;;\n{cases}esac\n");
    let worker = program.home_path().join("worker.sh");
    write_script(&worker, &script);
    let limits = "worker_pool: {min_workers: 0, start_timeout: 1, kill_after: 0.5}\n";
    let path = config(&program, &format!("{limits}binary_path: {}\n", worker.display()));
    let mark = format!("BROKEN_MARK={:016x}", fastrand::u64(..));
    let (name, value) = mark.split_once('=').unwrap();
    let program = program.env(name, value).arg("--config").arg(path).args(flags);
    (program.args(["--", "--model", "demo"]), mark)
}

#[test]
fn every_kind_of_broken_worker_costs_its_session_an_error_that_names_the_cause() {
    assert!(kinds().len() >= 20);
    let (program, mark) = hub_of_kinds(&[]);
    let mut run = program.start();
    run.json();
    for (name, _, told) in kinds() {
        let env = json!({"BROKEN": name});
        run.write_line(request("o", "open", json!({"session_id": name, "env": env})));
        answer(&mut run, "o");
        run.write_line(named(name, "p", "x"));
        // Another session is served meanwhile.
        run.write_line(named("sound", &format!("p-{name}"), "hi"));
        let mut ends: Vec<Value> = Vec::new();
        while ends.len() < 2 {
            ends.push(run.json_until(is_end).pop().unwrap());
        }
        let of = |session: &str| ends.iter().find(|end| end["session_id"] == session).unwrap();
        assert_eq!(status(of("sound")), "done", "{name}: {ends:#?}");
        let end = of(name);
        let error = &end["metadata"]["error"];
        assert_eq!((status(end), &end["prompt_id"]), ("error", &json!("p")), "{name}: {end}");
        let code = if name == "other_version" { "unsupported_protocol" } else { "worker_not_started" };
        assert_eq!(error["code"], code, "{name}: {end}");
        assert!(error["message"].as_str().unwrap().contains(told), "{name}: {end}");
        // Requests are answered with the cause too.
        run.write_line(request("m", "set_model", json!({"session_id": name, "model": "x"})));
        let refused = answer(&mut run, "m");
        assert!([json!(code), json!("worker_circuit_open")].contains(&refused["code"]), "{name}: {refused}");
    }
    assert_eq!(run.finish().code, Some(0));
    wait_marked_gone(&mark);
}

#[test]
fn the_end_of_input_ends_a_hub_whose_spares_and_sessions_never_start() {
    let (program, mark) = hub_of_kinds(&["--min-workers", "2"]);
    let mut run = program.env("BROKEN", "deaf").start();
    run.json();
    run.write_line(named("a", "p", "x"));
    run.close_stdin();
    let ended = run.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let end = ended.json_lines().into_iter().find(is_end).unwrap();
    assert_eq!(end["metadata"]["error"]["code"], "worker_not_started", "{end}");
    wait_marked_gone(&mark);
}

#[test]
fn a_silent_worker_of_the_claude_dialect_costs_an_error_too() {
    let (program, mark) = hub_of_kinds(&["--dialect", "claude"]);
    let mut run = program.start();
    for kind in ["silent", "garbage", "exits", "deaf"] {
        let env = json!({"BROKEN": kind});
        run.write_line(request("o", "open", json!({"session_id": kind, "env": env})));
        run.json_until(|line| line["type"] == "control_response");
        run.write_line(
            json!({"type": "user", "session_id": kind, "message": {"role": "user", "content": "x"}}),
        );
        let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
        assert_eq!(end["error_code"], "worker_not_started", "{kind}: {end}");
        assert_eq!(end["session_id"], kind);
    }
    run.write_line(json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": "x"}}));
    let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
    assert_eq!((&end["subtype"], &end["session_id"]), (&json!("success"), &json!("s")), "{end}");
    assert_eq!(run.finish().code, Some(0));
    wait_marked_gone(&mark);
}

#[test]
fn a_program_that_cannot_be_executed_is_named() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let not_executable = write("plain", "#!/bin/sh\n");
    let no_interpreter = place.path().join("no-interpreter");
    write_script(&no_interpreter, "#!/nowhere/sh\n");
    for path in [not_executable, no_interpreter, place.path().to_owned(), place.path().join("nowhere")] {
        let program = bare().args(["--min-workers", "0", "--binary-path"]).arg(&path);
        let mut run = program.start();
        run.json();
        run.write_line(named("a", "p", "x"));
        let end = run.json_until(is_end).pop().unwrap();
        let error = &end["metadata"]["error"];
        assert_eq!(error["code"], "worker_not_started", "{end}");
        assert_eq!(error["worker"]["reason"], "not_started", "{end}");
        assert_eq!(run.finish().code, Some(0));
    }
}
