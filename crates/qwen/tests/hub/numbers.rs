//! Numbered lines: attach, and what a client is told that asks for too much.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn a_numbered_line_differs_only_by_its_first_key() {
    let mut run = hub(&says("Hi.")).start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    run.write_line(prompt("a", "x"));
    let mut text = String::new();
    loop {
        let line = run.line().unwrap();
        text.push_str(&line);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert!(line.starts_with(&format!("{{\"seq\":{},", value["seq"])), "{line}");
        if is_end(&value) {
            break;
        }
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn who_attaches_gets_every_line_behind_a_number_once() {
    let mut run = hub(&says("Hi.")).start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    run.write_line(prompt("a", "x"));
    let first: Vec<Value> = run.json_until(is_end);
    run.write_line(prompt("a", "y"));
    let second = run.json_until(is_end);
    let all: Vec<Value> = first.into_iter().chain(second).collect();
    for after in [0, 1, all.len() - 1, all.len()] {
        run.write_line(request("at", "attach", json!({"session_id": "a", "after": after})));
        assert_eq!(answer(&mut run, "at")["last"], all.len());
        let again: Vec<Value> = (after..all.len()).map(|_| run.json()).collect();
        assert_eq!(again, all[after..]);
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_answer_about_the_hub_has_the_form_of_its_request() {
    let mut run = hub(&says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    for (subtype, after) in [("hub/status", 0), ("attach", 0), ("attach", 99), ("attach", -1), ("close", 0)] {
        let body = json!({"subtype": subtype, "session_id": "a", "after": after});
        run.write_line(json!({"type": "control_request", "request_id": "r", "request": body}));
        let answer = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
        assert_eq!(answer["response"]["request_id"], "r", "{subtype} {after}: {answer}");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn an_open_question_is_asked_again_of_whoever_attaches() {
    let script = json!([[{"tool_call": {"name": "run_shell_command", "arguments": {"command": "touch x"}}}], [{"text": "ok"}]]);
    let mut run = hub(&script).start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    run.write_line(prompt("a", "x"));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    run.write_line(request("at", "attach", json!({"session_id": "a", "after": question["seq"]})));
    answer(&mut run, "at");
    assert_eq!(run.json(), question);
    run.write_line(
        json!({"type": "control_response", "request_id": question["request_id"], "session_id": "a",
        "response": {"subtype": "success", "result": {"behavior": "deny"}}}),
    );
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_number_that_was_never_given_out_or_is_none_is_refused() {
    let mut run = hub(&says("Hi.")).start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    run.write_line(prompt("a", "x"));
    let last = run.json_until(is_end).pop().unwrap()["seq"].as_u64().unwrap();
    for (after, code) in
        [(json!(last + 1), "after_in_future"), (json!(-1), "invalid_after"), (json!("x"), "invalid_after")]
    {
        run.write_line(request("at", "attach", json!({"session_id": "a", "after": after})));
        assert_eq!(answer(&mut run, "at")["code"], code, "{after}");
    }
    run.write_line(prompt("a", "y"));
    assert_eq!(
        status(&run.json_until(is_end).pop().unwrap()),
        "done",
        "the session is none the worse for it"
    );
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_number_that_is_no_longer_kept_is_refused_with_the_oldest_that_is() {
    let program = bare();
    let path = config(&program, "events: {max_bytes: 4000}\n");
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("A text of some length, so that little of it is kept.").to_string())
        .unwrap();
    let model = format!("script:{}", script.display());
    let mut run = program.arg("--config").arg(path).args(["--", "--model", &model]).start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    let mut last = 0;
    for _ in 0..12 {
        run.write_line(prompt("a", "x"));
        last = run.json_until(is_end).pop().unwrap()["seq"].as_u64().unwrap();
    }
    run.write_line(request("at", "attach", json!({"session_id": "a", "after": 0})));
    let refused = answer(&mut run, "at");
    assert_eq!(refused["code"], "after_too_old", "{refused}");
    let oldest = refused["oldest"].as_u64().unwrap();
    assert!(oldest > 1 && oldest <= last, "{refused}");
    run.write_line(request("at", "attach", json!({"session_id": "a", "after": oldest - 1})));
    assert_eq!(answer(&mut run, "at")["last"], last);
    assert_eq!(run.json()["seq"], oldest);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_store_that_is_full_costs_numbers_and_no_line_until_it_has_room_again() {
    let script = says(&"word ".repeat(4000));
    let program = mock_model::process::qwen("/bin/sh");
    let path = program.home_path().join("s.json");
    std::fs::write(&path, script.to_string()).unwrap();
    // Files of at most 4 kB: writing more fails as on a full disk.
    let mut run = program
        .args([
            "-c",
            "trap '' XFSZ; ulimit -Sf 8; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_qwen"),
            "hub",
            "--",
        ])
        .args(["--model", &format!("script:{}", path.display())])
        .start();
    run.write_line(request("r", "initialize", json!({"sequence": true})));
    answer(&mut run, "r");
    run.write_line(named("a", "p", "x"));
    let lines = run.json_until(is_end);
    assert_eq!(status(lines.last().unwrap()), "done", "{lines:#?}");
    assert!(lines.iter().any(|line| line["metadata"]["error"]["code"] == "store_failed"), "{lines:#?}");
    // With room again, numbers go on behind the last line that was stored.
    let pid = rustix::process::Pid::from_raw(i32::try_from(run.pid()).unwrap());
    let usual = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, usual).unwrap();
    run.write_line(request("at", "attach", json!({"session_id": "a", "after": 0})));
    let stored = answer(&mut run, "at")["last"].as_u64().unwrap();
    for number in 1..=stored {
        assert_eq!(run.json()["seq"], number);
    }
    run.write_line(request("i", "interrupt", json!({"session_id": "a"})));
    assert_eq!(run.json()["seq"], stored + 1);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn numbers_go_on_where_the_former_hub_stopped() {
    let program = hub(&says("Hi."));
    let mut last = 0;
    for round in 0..3 {
        let mut run = program.start();
        run.write_line(request("r", "initialize", json!({"sequence": true})));
        answer(&mut run, "r");
        run.write_line(prompt("a", "x"));
        for line in run.json_until(is_end) {
            last += 1;
            assert_eq!(line["seq"], last, "{round}: {line}");
        }
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn a_hub_whose_session_was_taken_over_is_refused_by_the_store() {
    let program = hub(&says("Hi."));
    let mut runs = [program.start(), program.start()];
    for run in &mut runs {
        run.write_line(request("r", "initialize", json!({"sequence": true})));
        answer(run, "r");
    }
    runs[0].write_line(prompt("a", "x"));
    let last = runs[0].json_until(is_end).pop().unwrap()["seq"].as_u64().unwrap();
    runs[1].write_line(request("at", "attach", json!({"session_id": "a", "after": 0, "takeover": true})));
    assert_eq!(answer(&mut runs[1], "at")["last"], last);
    let again = (0..last).map(|_| runs[1].json()["seq"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(again, (1..=last).collect::<Vec<_>>());
    // The first hub does not know yet; what it says next is refused, and it says so.
    runs[0].write_line(named("a", "late", "y"));
    let told = runs[0].json_until(is_end).pop().unwrap();
    assert_eq!((status(&told), &told["prompt_id"]), ("interrupted", &json!("late")), "{told}");
    assert_eq!(told["metadata"]["error"]["code"], "session_taken_over");
    for run in runs {
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn the_end_of_the_last_turn_can_be_asked_of_the_log() {
    let program = hub(&says("Hi."));
    let mut run = program.start();
    run.write_line(named("a", "p1", "x"));
    let end = run.json_until(is_end).pop().unwrap();
    assert_eq!(run.finish().code, Some(0));
    let asked = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .env("QWEN_HOME", program.qwen_home_path())
        .args(["sessions", "replay", "a", "--end"])
        .run();
    let told = asked.json_lines().pop().unwrap();
    assert_eq!((&told["prompt_id"], status(&told)), (&end["prompt_id"], "done"));
    assert_eq!(told["choices"], end["choices"]);
}
