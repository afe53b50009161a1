//! Sessions through the hub: what works with one worker works with many.

use mock_model::process::{wait_gone, wait_marked_gone};
use mock_model::{MockModel, Reply, gate, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn the_hub_greets_like_a_worker_and_ends_with_its_input() {
    let mut run = hub(&says("Hello.")).start();
    let first = run.json();
    assert_eq!(first["metadata"]["protocol_version"], "1.0");
    assert_eq!(first["choices"], json!([]));
    let ended = run.finish();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

/// A table that grows under way makes the session wait that needs the next descriptor.
#[test]
fn the_table_of_descriptors_has_room_for_all_workers_from_the_start() {
    let mut run =
        bare().args(["--min-workers", "0", "--max-workers", "100", "--", "--model", "demo"]).start();
    run.json();
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    assert!(size.trim().parse::<u64>().unwrap() > 600, "{size}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn sessions_run_beside_each_other_and_keep_apart() {
    let script = json!([{"match": "one", "steps": [{"text": "first"}]}, {"match": "two", "steps": [{"text": "second"}]}]);
    let mut run = hub(&script).start();
    run.write_line(prompt("a", "one"));
    run.write_line(prompt("b", "two"));
    run.close_stdin();
    let ended = run.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.json_lines();
    for (session, text) in [("a", "first"), ("b", "second")] {
        let ends: Vec<&Value> =
            lines.iter().filter(|line| is_end(line) && line["session_id"] == session).collect();
        assert_eq!(ends.len(), 1, "{}", ended.stdout);
        assert_eq!(ends[0]["choices"][0]["message"]["content"], text);
    }
    passes_check(&lines);
}

#[test]
fn close_withdraws_queued_prompts_before_it_cancels_the_turn() {
    let mock =
        MockModel::with([Reply::new([sse::text("Working"), gate("never")]), Reply::text("must not run")]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(named("a", "p1", "one"));
    mock.reached("never");
    run.write_line(named("a", "p2", "two"));
    run.write_line(named("a", "p3", "three"));
    run.write_line(request("c", "close", json!({"session_id": "a"})));
    run.json_until(|line| line["request_id"] == "c");
    let lines = run.finish().json_lines();
    let ends: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| is_end(line))
        .map(|end| (end["prompt_id"].as_str().unwrap(), status(end)))
        .collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert!(ends.iter().all(|(_, status)| *status == "cancelled"), "{ends:?}");
    assert_eq!(mock.requests().len(), 1, "the queued prompts reached the model");
}

#[test]
fn a_line_without_a_session_belongs_to_the_session_of_the_handshake() {
    let mut run = hub(&says("Fine.")).start();
    let greeting = run.json();
    run.write_line(json!({"model": "x", "messages": [{"role": "user", "content": "Hello"}]}));
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!(end["session_id"], greeting["session_id"]);
    run.write_line(json!({"session_id": "_new", "input": {"parts": [{"type": "text", "text": "x"}]}}));
    let other = run.json_until(is_end).pop().unwrap();
    assert_ne!(other["session_id"], greeting["session_id"]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_session_remembers_its_conversation_even_when_its_worker_was_given_back() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    // One slot: the second session takes the worker of the first.
    let program = bare().args(["--max-workers", "1", "--", "--model", "mock"]).with_model(&mock);
    let mut run = program.start();
    for (session, text) in [("a", "first"), ("b", "zebra"), ("a", "again")] {
        run.write_line(prompt(session, text));
        let end = run.json_until(is_end).pop().unwrap();
        assert_eq!((status(&end), &end["session_id"]), ("done", &json!(session)));
    }
    let asked = &mock.requests()[2];
    let said: Vec<String> = asked.messages().iter().map(|message| message["content"].to_string()).collect();
    assert!(
        said.iter().any(|text| text.contains("first")) && said.iter().any(|text| text.contains("one")),
        "{said:?}"
    );
    assert!(!said.iter().any(|text| text.contains("zebra")), "{said:?}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn options_of_a_session_are_its_own() {
    let program = bare();
    let dir = program.home_path().join("elsewhere");
    std::fs::create_dir(&dir).unwrap();
    let script = program.home_path().join("s.json");
    std::fs::write(&script, r#"[[{"tool_call":{"name":"run_shell_command","arguments":{"command":"pwd; echo $COLOUR"}}}],[{"text":"ok"}]]"#).unwrap();
    let mut run = program.start();
    let args = json!(["--yolo", "--model", format!("script:{}", script.display())]);
    let open = json!({"session_id": "a", "cwd": dir, "args": args, "env": {"COLOUR": "green"}});
    run.write_line(request("r1", "open", open.clone()));
    assert_eq!(answer(&mut run, "r1")["session_id"], "a");
    run.write_line(request("r2", "open", open));
    assert_eq!(answer(&mut run, "r2")["code"], "duplicate_session");
    run.write_line(prompt("a", "go"));
    let lines = run.json_until(is_end);
    let shown: String = lines.iter().map(Value::to_string).collect();
    assert!(shown.contains("elsewhere") && shown.contains("green"), "{shown}");
    run.write_line(request("r3", "open", json!({"session_id": "b", "args": ["--output-format", "text"]})));
    assert_eq!(answer(&mut run, "r3")["code"], "invalid_args");
    run.write_line(request("r4", "open", json!({"session_id": "b", "cwd": "/nowhere/at/all"})));
    assert_eq!(answer(&mut run, "r4")["code"], "no_working_directory");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn questions_are_answered_by_session_and_by_no_other() {
    let call = |id: &str| Reply::call(id, "run_shell_command", r#"{"command":"touch done"}"#);
    let mock = MockModel::with([call("c1"), call("c2"), Reply::text("ok"), Reply::text("ok")]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(prompt("a", "go"));
    run.write_line(prompt("b", "go"));
    let is_question = |line: &Value| line["type"] == "control_request";
    let mut questions = Vec::new();
    while questions.len() < 2 {
        questions.push(run.json_until(is_question).pop().unwrap());
    }
    let session = |n: usize| questions[n]["session_id"].as_str().unwrap().to_owned();
    assert_ne!(session(0), session(1));
    let reply = |id: &Value, session: Option<&str>| {
        let mut line = json!({"type": "control_response", "request_id": id,
            "response": {"subtype": "success", "result": {"behavior": "allow"}}});
        if let Some(session) = session {
            line["session_id"] = json!(session);
        }
        line
    };
    run.write_line(reply(&json!("nobody-asked"), None));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "unknown_request_id");
    run.write_line(reply(&questions[0]["request_id"], Some("c")));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "foreign_answer");
    for (n, question) in questions.iter().enumerate() {
        run.write_line(reply(&question["request_id"], Some(&session(n))));
        let end = run.json_until(is_end).pop().unwrap();
        assert_eq!((status(&end), end["session_id"].as_str()), ("done", Some(&*session(n))));
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_running_turn_can_be_cancelled_and_a_waiting_prompt_withdrawn() {
    let mock = MockModel::with([Reply::new([sse::text("Half"), mock_model::gate("held")])]);
    let mut run = bare().args(["--max-workers", "1", "--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(named("a", "p1", "go"));
    mock.reached("held");
    // No slot is left for this one.
    run.write_line(named("b", "p2", "go"));
    run.write_line(json!({"type": "control/cancel", "session_id": "b", "prompt_id": "p2"}));
    let withdrawn = run.json_until(ends("b")).pop().unwrap();
    assert_eq!((status(&withdrawn), &withdrawn["prompt_id"]), ("cancelled", &json!("p2")));
    run.write_line(json!({"type": "control/cancel", "session_id": "a"}));
    let cancelled = run.json_until(ends("a")).pop().unwrap();
    assert_eq!((status(&cancelled), &cancelled["prompt_id"]), ("cancelled", &json!("p1")));
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_closed_session_is_gone_and_can_be_taken_up_again() {
    let mock =
        MockModel::with([Reply::new([sse::text("Half"), mock_model::gate("held")]), Reply::text("Again.")]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(prompt("a", "go"));
    mock.reached("held");
    run.write_line(request("r1", "close", json!({"session_id": "a"})));
    let end = run.json_until(ends("a")).pop().unwrap();
    assert_eq!(status(&end), "cancelled");
    assert_eq!(answer(&mut run, "r1")["closed"], true);
    run.write_line(prompt("a", "more"));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "session_closed");
    run.write_line(request("r2", "close", json!({"session_id": "a"})));
    assert_eq!(answer(&mut run, "r2")["code"], "unknown_session");
    run.write_line(request("r3", "open", json!({"session_id": "a"})));
    answer(&mut run, "r3");
    run.write_line(prompt("a", "more"));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn the_state_of_the_hub_can_be_asked_for() {
    let program = hub_with(&["--min-workers", "2", "--max-workers", "7"], &says("Hi."));
    let mut run = program.start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    run.write_line(request("r1", "hub/status", json!({})));
    let status = answer(&mut run, "r1");
    assert_eq!(status["hub"]["draining"], false);
    assert_eq!(status["sessions"], 1);
    let machine = &status["machines"][0];
    assert_eq!(
        (&machine["name"], &machine["workers"]["idle"], &machine["workers"]["max"]),
        (&json!("local"), &json!(1), &json!(7))
    );
    run.write_line(request("r2", "hub/status", json!({"session_id": "a"})));
    let session = answer(&mut run, "r2");
    assert!(
        session["owner"].is_string() && session["turn"].is_null() && session["seq"].as_u64().unwrap() > 0,
        "{session}"
    );
    run.write_line(request("r3", "hub/status", json!({"session_id": "nobody"})));
    assert_eq!(answer(&mut run, "r3")["code"], "unknown_session");
    assert_eq!(run.finish().code, Some(0));
    let mut next = program.start();
    next.write_line(request("r4", "hub/status", json!({})));
    let again = answer(&mut next, "r4");
    assert_eq!(again["hub"]["id"], status["hub"]["id"], "it survives a restart");
    assert_ne!(again["hub"]["incarnation"], status["hub"]["incarnation"]);
    assert_eq!(next.finish().code, Some(0));
}

#[test]
fn a_terminated_hub_finishes_its_turns_and_takes_no_more() {
    let mock = MockModel::with([Reply::new([
        sse::text("Half"),
        mock_model::gate("held"),
        sse::text(" and half."),
        sse::finish("stop"),
        sse::done(),
    ])]);
    let mut run = bare().args(["--", "--model", "mock"]).with_model(&mock).start();
    run.write_line(prompt("a", "go"));
    mock.reached("held");
    run.signal(Signal::TERM);
    let refused = loop {
        run.write_line(named("b", "late", "go"));
        let lines = run.json_until(|line| is_end(line) || line["type"] == "result/heartbeat");
        if let Some(end) = lines.into_iter().find(is_end) {
            break end;
        }
    };
    assert_eq!(refused["metadata"]["error"]["code"], "draining");
    mock.open("held");
    let end = run.json_until(ends("a")).pop().unwrap();
    assert_eq!((status(&end), &end["choices"][0]["message"]["content"]), ("done", &json!("Half and half.")));
    let ended = run.wait();
    assert_eq!(ended.code, Some(143));
}

#[test]
fn nothing_outlives_a_hub_that_is_killed() {
    let mark = format!("HUB_MARK={:016x}", fastrand::u64(..));
    let (name, value) = mark.split_once('=').unwrap();
    let call = Reply::call(
        "c1",
        "run_shell_command",
        r#"{"command":"sleep 1000 & setsid sleep 1000 & sleep 1000"}"#,
    );
    let mock = MockModel::with([call]);
    let program = bare()
        .args(["--min-workers", "3", "--", "--model", "mock", "--yolo"])
        .with_model(&mock)
        .env(name, value);
    let mut run = program.start();
    run.write_line(prompt("a", "go"));
    run.json_until(|line| line["type"] == "x-qwen-tool-display" && line["status"] == "executing");
    let workers = children(run.pid());
    assert!(workers.len() >= 2, "{workers:?}");
    run.signal(Signal::KILL);
    for worker in workers {
        wait_gone(worker);
    }
    wait_marked_gone(&mark);
}

#[test]
fn a_client_of_the_claude_dialect_sees_one_worker() {
    let program = bare();
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("Bonjour.").to_string()).unwrap();
    let model = format!("script:{}", script.display());
    // The flags that such a client gives a worker stand behind `--` as they are.
    let flags = [
        "--dialect",
        "claude",
        "--",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--model",
        &model,
    ];
    let mut run = program.args(flags).start();
    run.write_line(
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}}),
    );
    let first = run.json();
    assert_eq!(
        (&first["type"], &first["response"]["request_id"]),
        (&json!("control_response"), &json!("r1"))
    );
    run.write_line(
        json!({"type": "user", "session_id": "", "message": {"role": "user", "content": "hello"}}),
    );
    let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
    assert_eq!((&end["subtype"], &end["result"]), (&json!("success"), &json!("Bonjour.")));
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn under_the_name_qwen_hub_a_client_of_one_worker_notices_no_difference() {
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("qwen-hub");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_qwen"), &link).unwrap();
    let flags = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
    let mock =
        MockModel::with([Reply::text("Bonjour."), Reply::new([sse::text("x"), mock_model::gate("held")])]);
    let program = mock_model::process::qwen(&link).with_model(&mock).args(flags);
    let mut run = program.clone().args(["--model", "mock"]).start();
    run.write_line(
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}}),
    );
    assert_eq!(run.json()["response"]["request_id"], "r1");
    let user = |text: &str| json!({"type": "user", "session_id": "any thing", "message": {"role": "user", "content": text}});
    run.write_line(user("hello"));
    let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
    assert_eq!((&end["subtype"], &end["result"]), (&json!("success"), &json!("Bonjour.")));
    run.write_line(user("more"));
    mock.reached("held");
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code, Some(143), "a signal ends it at once, as it does a worker");
    let init = json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}});
    let ended = program.args(["--no-such-flag"]).stdin(init.to_string() + "\n").run();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--no-such-flag"), "{}", ended.stderr);
}

#[test]
fn a_session_that_no_spare_fits_takes_the_slot_of_a_spare() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 1, max_workers: 1, queue_timeout: 20}\n");
    let mut run = program.arg("--config").arg(path).args(["--", "--model", "demo"]).start();
    run.write_line(request("o", "open", json!({"session_id": "a", "args": ["--max-turns", "5"]})));
    run.write_line(named("a", "p", "Look around"));
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!((status(&end), &end["prompt_id"]), ("done", &json!("p")), "{end}");
}

#[test]
fn a_drain_that_takes_too_long_lets_every_turn_end_by_itself() {
    let call = |id: &str| Reply::call(id, "run_shell_command", r#"{"command":"echo up; sleep 600"}"#);
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, drain_timeout: 0}\n");
    let mock = MockModel::with((0..4).map(|n| call(&format!("c{n}"))));
    let flags = ["--", "--model", "mock", "--yolo", "--sandbox=false"];
    let mut run = program.arg("--config").arg(path).args(flags).with_model(&mock).start();
    for session in ["a", "b", "c", "d"] {
        run.write_line(prompt(session, "go"));
        run.json_until(|line| line["type"] == "x-qwen-terminal" && line["text"] == "up\n");
    }
    run.signal(Signal::TERM);
    let ended = run.wait();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    let codes: Vec<Value> = ended
        .json_lines()
        .iter()
        .filter(|line| is_end(line))
        .map(|end| end["metadata"]["error"]["code"].clone())
        .collect();
    assert_eq!(codes, ["interrupted"; 4], "each worker was told once and wrote the end of its turn");
}
