//! What cannot be meant: a clear error, and nothing lost.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn a_configuration_that_cannot_be_used_ends_the_start_with_its_key() {
    let cases = [
        ("worker_pool: {min_workers: 5, max_workers: 2}", "worker_pool.min_workers"),
        ("worker_pool: {max_workers: 0}", "worker_pool.max_workers"),
        ("worker_pool: {max_workers: [", "not YAML or JSON"),
        ("worker_pool: {}\n---\nworker_pool: {}\n", "2 documents"),
        ("tenants: {a.b: {}}", "tenants.a.b"),
        ("tenants: {'>': {}}", "tenants.>"),
    ];
    for (text, named) in cases {
        let program = bare();
        let path = config(&program, text);
        let ended = program.arg("--config").arg(path).run();
        assert_eq!(ended.code, Some(52), "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{text}: {}", ended.stderr);
    }
    let ended = bare().args(["--config", "/nowhere/hub.yaml"]).run();
    assert_eq!(ended.code, Some(52), "{}", ended.stderr);
    let ended = bare().args(["--dialect", "loom"]).run();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn unknown_keys_are_reported_and_ignored() {
    let program = bare();
    let path = config(&program, "worker_pool: {workers: 3}\ncolour: red\n");
    let ended = program.arg("--config").arg(path).run();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("worker_pool.workers") && ended.stderr.contains("colour"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_program_that_is_no_worker_costs_an_error_and_not_the_hub() {
    let other = r#"{"object":"chat.completion","id":"x","created":1,"model":"m","session_id":"x","choices":[],"metadata":{"protocol_version":"2.0"}}"#;
    for (program, why, told) in [
        ("/nowhere/qwen".to_owned(), "not_started", "it could not be started: "),
        ("/bin/true".to_owned(), "exit_0", "it exited with code 0"),
        ("exec sleep 1000".to_owned(), "handshake_timeout", "it wrote no handshake before the deadline"),
        (format!("echo '{other}'; exec sleep 1000"), "protocol", "protocol version '2.0'"),
        (
            "while :; do echo not a worker; done".to_owned(),
            "handshake_timeout",
            "no handshake before the deadline",
        ),
    ] {
        let hub = bare();
        let program = if program.starts_with('/') {
            program
        } else {
            let path = hub.home_path().join("worker.sh");
            crate::fault_worker::write_script(&path, &format!("#!/bin/sh\n{program}\n"));
            path.display().to_string()
        };
        // Only a program that never writes a handshake may be too slow.
        let start_timeout = if why == "handshake_timeout" { 0.3 } else { 60.0 };
        let limits = format!(
            "worker_pool: {{min_workers: 0, start_timeout: {start_timeout}, kill_after: 0.5, queue_timeout: 60}}\n"
        );
        let path = config(&hub, &limits);
        let mut run = hub.arg("--config").arg(path).args(["--binary-path", &program]).start();
        run.write_line(named("a", "p", "x"));
        let end = run.json_until(is_end).pop().unwrap();
        assert_eq!((status(&end), &end["prompt_id"]), ("error", &json!("p")), "{program}");
        let is_foreign = why == "protocol";
        let code = if is_foreign { "unsupported_protocol" } else { "worker_not_started" };
        assert_eq!(end["metadata"]["error"]["code"], code, "{program}: {why}: {end}");
        let message = end["metadata"]["error"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{program}: {message}");
        assert!(is_foreign || end["metadata"]["error"]["worker"]["reason"] == why, "{end}");
        run.write_line(request("r", "hub/status", json!({})));
        let status = answer(&mut run, "r");
        assert!(status["machines"][0]["restarts"][why].as_u64() >= Some(1), "{program}: {status}");
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_worker_that_refuses_its_flags_or_its_session_ends_the_prompt_at_once_with_its_words() {
    let mut run = hub(&says("x")).start();
    for (session, options, told) in [
        ("a", json!({"args": ["--bogus"]}), "unexpected argument '--bogus'"),
        ("b", json!({"fork_from": "nobody"}), "there is no session 'nobody'"),
    ] {
        let mut open = options;
        open["session_id"] = json!(session);
        run.write_line(request("o", "open", open));
        answer(&mut run, "o");
        run.write_line(named(session, "p", "x"));
        let end = run.json_until(ends(session)).pop().unwrap();
        let error = &end["metadata"]["error"];
        assert_eq!((status(&end), &error["code"]), ("error", &json!("worker_not_started")), "{end}");
        assert!(error["message"].as_str().unwrap().contains(told), "{end}");
    }
    run.write_line(request("s", "hub/status", json!({})));
    assert_eq!(answer(&mut run, "s")["machines"][0]["restarts"]["exit_error"], 2, "one try each");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_line_that_cannot_be_meant_costs_one_error() {
    let long = "x".repeat(10_000);
    let cases = [
        ("garbage".to_owned(), "invalid_json"),
        ("[1]".to_owned(), "not_an_object"),
        (r#"{"session_id":3,"input":{}}"#.to_owned(), "wrong_type"),
        (prompt("a/b", "x").to_string(), "invalid_session_id"),
        (prompt("..", "x").to_string(), "invalid_session_id"),
        (prompt("a\0b", "x").to_string(), "invalid_session_id"),
        (prompt("", "x").to_string(), "empty_session_id"),
        (prompt(&long, "x").to_string(), "invalid_session_id"),
        (json!({"session_id": "a", "tenant": "a.b", "input": {"parts": []}}).to_string(), "invalid_tenant"),
        (json!({"session_id": "a", "tenant": ">", "input": {"parts": []}}).to_string(), "invalid_tenant"),
    ];
    let mut run = hub(&says("Still here.")).start();
    run.json();
    for (line, code) in cases {
        run.write_line(&line);
        let answer = run.json();
        assert_eq!(answer["metadata"]["error"]["code"], code, "{answer}");
    }
    run.write_line(named("a/b", "p1", "x"));
    assert_eq!(run.json()["prompt_id"], "p1", "a refusal names its prompt");
    run.write_line(prompt("a", "x"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn what_a_worker_refuses_is_refused_and_the_next_prompt_runs() {
    let mut run = hub(&says("Fine.")).start();
    run.write_line(named("a", "p", "x"));
    run.json_until(is_end);
    run.write_line(json!({"session_id": "a", "input": {"parts": 3}}));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["param"], "input.parts");
    run.write_line(named("a", "p", "x"));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "duplicate_prompt_id");
    run.write_line(request("r", "hub/status", json!({"session_id": "a"})));
    let state = answer(&mut run, "r");
    assert_eq!((&state["turn"], &state["queued"]), (&Value::Null, &json!(0)));
    run.write_line(named("a", "q", "x"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_second_driver_of_a_session_is_told_that_it_is_in_use() {
    let mock = mock_model::MockModel::with([mock_model::Reply::new([mock_model::gate("held")])]);
    let program = bare().args(["--", "--model", "mock"]).with_model(&mock);
    let mut first = program.start();
    first.write_line(named("a", "p1", "x"));
    mock.reached("held");
    let mut second = program.start();
    second.write_line(named("a", "p2", "y"));
    let refused = second.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    let message = refused["metadata"]["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("in use") || message.contains("another process"), "{refused}");
    assert_eq!((&refused["prompt_id"], is_end(&refused)), (&json!("p2"), true), "{refused}");
    // A prompt without an id is refused with the id that its turn would have had.
    second.write_line(prompt("a", "z"));
    let refused = second.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!((&refused["prompt_id"], is_end(&refused)), (&json!("a########1"), true), "{refused}");
    let ended = second.finish();
    assert_eq!((ended.code, ended.json_lines().iter().filter(|line| is_end(line)).count()), (Some(0), 2));
    drop(first);
}

#[test]
fn a_hub_out_of_descriptors_refuses_what_it_cannot_start_and_lives() {
    let program = mock_model::process::qwen("/bin/sh");
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("ok").to_string()).unwrap();
    let path = config(&program, "worker_pool: {min_workers: 0, max_workers: 50, queue_timeout: 5}\n");
    let mut run = program
        .args(["-c", "ulimit -n 40; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_qwen"), "hub", "--config"])
        .arg(path)
        .args(["--", "--model", &format!("script:{}", script.display())])
        .start();
    for n in 0..20 {
        run.write_line(named(&format!("s{n}"), &format!("p{n}"), "x"));
    }
    let mut ends = Vec::new();
    while ends.len() < 20 {
        ends.extend(run.json_until(is_end).pop());
    }
    assert!(ends.iter().any(|end| status(end) == "done"), "{ends:#?}");
    let refused: Vec<&Value> = ends.iter().filter(|end| status(end) != "done").collect();
    assert!(refused.iter().all(|end| end["metadata"]["error"]["retryable"] == true), "{refused:#?}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn the_end_of_input_inside_a_line_ends_the_hub_well() {
    let mut run = hub(&says("Fine.")).start();
    run.write_line(prompt("a", "x"));
    run.write(br#"{"session_id":"a","inp"#);
    run.close_stdin();
    let ended = run.wait();
    assert_eq!(ended.code, Some(0));
    let lines = ended.json_lines();
    assert_eq!(lines.iter().filter(|line| is_end(line)).count(), 1);
    assert!(lines.iter().any(|line| line["metadata"]["error"]["code"] == "invalid_json"), "{}", ended.stdout);
}

#[test]
fn a_client_that_wants_another_protocol_is_told_and_the_hub_ends() {
    let mut run = hub(&says("x")).start();
    run.write_line(request("r", "initialize", json!({"protocol_version": "2.0"})));
    run.json_until(|line| line["metadata"]["error"]["code"] == "unsupported_protocol");
    assert_eq!(run.wait().code, Some(1));
}

#[test]
fn prompts_beyond_the_queue_are_refused_with_a_hint() {
    let mock = mock_model::MockModel::with([mock_model::Reply::new([mock_model::gate("held")])]);
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, max_workers: 1, max_queue_per_tenant: 2}\n");
    let mut run = program.arg("--config").arg(path).args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(named("a", "p0", "x"));
    mock.reached("held");
    for n in 1..=3 {
        run.write_line(named(&format!("s{n}"), &format!("p{n}"), "x"));
    }
    let refused = run.json_until(is_end).pop().unwrap();
    let error = &refused["metadata"]["error"];
    assert_eq!((&refused["prompt_id"], &error["code"]), (&json!("p3"), &json!("overloaded")));
    assert!(error["retry_after_ms"].as_u64().unwrap() > 0, "{error}");
    drop(run);
}

#[test]
fn a_line_for_a_worker_that_cannot_be_started_is_answered() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0}\nbinary_path: /bin/false\n");
    let mut run = program.arg("--config").arg(path).start();
    run.json();
    run.write_line(json!({"type": "command_hint_request", "session_id": "a", "text": "/c"}));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["session_id"], "a", "{refused}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_configuration_that_cannot_be_used_changes_nothing_when_it_is_read_again() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, max_workers: 3}\n");
    let mut run = program.clone().arg("--config").arg(&path).args(["--", "--model", "demo"]).start();
    run.json();
    for (text, told) in [
        ("worker_pool: {min_workers: 9, max_workers: 4}\n", "9 is more than max_workers"),
        ("worker_pool: [\n", "is not YAML or JSON"),
        ("tenants: {a.b: {}}\n", "`tenants.a.b`"),
        ("binary_path: /nowhere/qwen\n", "there is no program /nowhere/qwen"),
    ] {
        config(&program, text);
        run.signal(rustix::process::Signal::HUP);
        run.wait_for_stderr(told);
    }
    run.write_line(request("s", "hub/status", json!({})));
    assert_eq!(answer(&mut run, "s")["machines"][0]["workers"]["max"], 3);
    run.write_line(named("a", "p", "hi"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn workers_that_fail_again_and_again_are_not_started_for_a_while() {
    let program = bare().args(["--min-workers", "0", "--binary-path", "/bin/false"]);
    let mut run = program.start();
    run.json();
    let mut codes = Vec::new();
    for n in 0..3 {
        run.write_line(named("a", &format!("p{n}"), "x"));
        let end = run.json_until(is_end).pop().unwrap();
        codes.push(end["metadata"]["error"]["code"].as_str().unwrap().to_owned());
        let error = &end["metadata"]["error"];
        assert_eq!(error["worker"]["exit_code"], 1, "{end}");
        assert!(n < 2 || error["retry_after_ms"].is_u64(), "{end}");
    }
    assert_eq!(codes, ["worker_not_started", "worker_not_started", "worker_circuit_open"]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_value_that_is_not_a_tenants_name_is_refused_wherever_it_is_given() {
    let program = hub(&says("x"));
    let mut run = program.start();
    run.json();
    let long = "x".repeat(65);
    let bad = [
        json!(""),
        json!(null),
        json!(3),
        json!(["a"]),
        json!({}),
        json!(true),
        json!("a b"),
        json!(".."),
        json!("a/b"),
        json!(long),
    ];
    for tenant in bad {
        let with = |mut line: Value| {
            line["tenant"] = tenant.clone();
            line
        };
        for subtype in ["open", "initialize", "attach", "close", "hub/status", "set_model"] {
            run.write_line(with(request("r", subtype, json!({"session_id": "s"}))));
            assert_eq!(answer(&mut run, "r")["code"], "invalid_tenant", "{subtype} {tenant}");
        }
        let nested = json!({"type": "control_request", "request_id": "n", "request": {"subtype": "open", "session_id": "s", "tenant": tenant}});
        run.write_line(nested);
        let reply = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
        assert!(reply.to_string().contains("tenant's name"), "{reply}");
        run.write_line(with(named("t", "p", "x")));
        let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
        assert_eq!(refused["metadata"]["error"]["code"], "invalid_tenant", "{refused}");
        assert_eq!(refused["prompt_id"], "p", "{refused}");
    }
    assert_eq!(children(run.pid()).len(), 1, "no session was opened: only the spare runs");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn lines_that_were_sent_with_a_refused_open_do_not_open_the_session() {
    let mut run = hub(&says("x")).start();
    run.json();
    for (session, options) in [
        ("a", json!({"args": ["--resume"]})),
        ("b", json!({"cwd": "/nowhere"})),
        ("c", json!({"on_crash": "pray"})),
        ("d", json!({"tenant": ""})),
        ("e", json!({"args": "--model=x"})),
    ] {
        let mut open = request("o", "open", options);
        open["session_id"] = json!(session);
        run.write_line(open);
        run.write_line(request("i", "initialize", json!({"session_id": session})));
        run.write_line(named(session, "p", "x"));
        assert!(answer(&mut run, "o")["code"].is_string());
        assert_eq!(answer(&mut run, "i")["code"], "session_not_opened", "{session}");
        let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
        assert_eq!(refused["metadata"]["error"]["code"], "session_not_opened", "{refused}");
        assert_eq!(refused["prompt_id"], "p", "{refused}");
        run.write_line(request("o2", "open", json!({"session_id": session})));
        assert_eq!(answer(&mut run, "o2")["session_id"], session);
        run.write_line(named(session, "p", "x"));
        assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    }
    assert_eq!(run.finish().code, Some(0));
}
