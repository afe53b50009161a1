//! What a model, a host or an earlier process may send and must not get away with.

use std::collections::HashMap;

use mock_model::{MockModel, Reply, Request, gate, sse};
use serde_json::{Value, json};

use crate::harness::{CLAUDE, FORMATS, Host, chat, echo, ends_turn, is_error, passes_check_in, qwen, worker};

/// Arguments that two readers could understand differently, or that no reader could use.
fn ambiguous() -> [(&'static str, String); 5] {
    let deep = format!(r#"{{"command":"touch evil","x":{}1{}}}"#, "[".repeat(300), "]".repeat(300));
    [
        ("a key twice", r#"{"command":"touch harmless","command":"touch evil"}"#.to_owned()),
        ("an escaped key twice", r#"{"command":"touch harmless","c\u006fmmand":"touch evil"}"#.to_owned()),
        ("a lone surrogate", r#"{"command":"touch evil","description":"\ud800"}"#.to_owned()),
        ("300 levels", deep),
        ("1e400", r#"{"command":"touch evil","timeout":1e400}"#.to_owned()),
    ]
}

#[test]
fn arguments_that_two_readers_could_understand_differently_are_tool_errors() {
    for format in [FORMATS[0], FORMATS[1], CLAUDE] {
        for (name, arguments) in ambiguous() {
            let mock = echo();
            mock.push(Reply::call("c1", "run_shell_command", &arguments));
            let mut program = worker(&mock, format).args(["--approval-mode", "yolo"]);
            if format == CLAUDE {
                program = program.arg("--include-partial-messages");
            }
            let cwd = program.cwd_path().to_owned();
            let mut host = Host::start_in(program, format);
            if format == CLAUDE {
                host.send(json!({"type": "user", "message": {"role": "user", "content": "go"}}));
            } else {
                host.send(chat("p1", "go"));
            }
            let lines = host.turn();
            let result = mock.requests()[1].body["messages"].to_string();
            assert!(result.contains("must be one JSON object"), "{format}, {name}: {result}");
            for file in ["harmless", "evil"] {
                assert!(!cwd.join(file).exists(), "{format}, {name}: nothing ran");
            }
            assert!(ends_turn(lines.last().unwrap()), "{format}, {name}");
            host.leave();
        }
    }
}

#[test]
fn arguments_that_have_one_meaning_run_as_they_are_written() {
    let mock = echo();
    let arguments = r#"{"command":"touch fine", "timeout":1e4,"description":"\ud83d\ude00"}"#;
    mock.push(Reply::call("c1", "run_shell_command", arguments));
    let program = worker(&mock, FORMATS[0]).args(["--approval-mode", "yolo"]);
    let cwd = program.cwd_path().to_owned();
    let mut host = Host::start(program);
    host.send(chat("p1", "go"));
    host.turn();
    assert!(cwd.join("fine").exists());
    host.leave();
}

#[test]
fn every_kind_of_mismatch_counts_as_an_attempt_at_the_result() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    for (name, arguments) in [
        ("unknown names", r#"{"n":1,"other":2}"#),
        ("missing fields", "{}"),
        ("wrong types", r#"{"n":"one"}"#),
        ("no JSON", r#"{"n":"#),
        ("a key twice", r#"{"n":1,"n":2}"#),
    ] {
        let mock = MockModel::start();
        let call = arguments.to_owned();
        mock.answer_with(move |_: &Request| Some(Reply::call("c", "structured_output", &call)));
        let flags = ["-p", "go", "--model", "mock", "--json-schema", schema, "--output-format", "json"];
        let ended = qwen().with_model(&mock).args(flags).run();
        assert_eq!(mock.requests().len(), 5, "{name}");
        assert!(ended.stdout.contains("max_structured_output_retries"), "{name}: {}", ended.stdout);
    }
}

#[test]
fn an_unsupported_version_in_the_middle_of_a_turn_leaves_one_terminal_record() {
    for dialect in ["qwen", "claude", "claude-lite", "loom", "core"] {
        let mock = echo();
        mock.push(Reply::new([sse::text("slow"), gate("never")]));
        let flags = ["--dialect", dialect, "--input-format", "stream-json", "--output-format", "stream-json"];
        let program = qwen().with_model(&mock).args(flags).args(["--model", "mock"]);
        let mut run = program.start();
        run.write_line(json!({"type": "user", "message": {"role": "user", "content": "go"}}));
        mock.reached("never");
        run.write_line(json!({"type": "control_request", "request_id": "r", "protocol_version": "9.0", "subtype": "interrupt"}));
        let ended = run.wait();
        assert_eq!(ended.code, Some(1), "{dialect}: {}", ended.stdout);
        assert!(
            ended.stdout.contains("unsupported_protocol") || ended.stdout.contains("protocol version"),
            "{dialect}: {}",
            ended.stdout
        );
        passes_check_in(dialect, &ended.stdout);
    }
}

#[test]
fn a_worker_that_was_given_a_session_is_bound_to_it() {
    let mock = echo();
    let owner = worker(&mock, FORMATS[0]);
    let program =
        |flag: &str| worker(&mock, FORMATS[0]).env("QWEN_HOME", owner.qwen_home_path()).args([flag, "mine"]);
    for flag in ["--session-id", "--resume"] {
        let mut host = Host::start(program(flag));
        host.send(chat(&format!("other {flag}"), "go"));
        assert_eq!(host.until(is_error)["metadata"]["error"]["code"], "unknown_session", "{flag}");
        let mut own = chat(&format!("own {flag}"), "go");
        own["session_id"] = json!("mine");
        host.send(own);
        assert_eq!(host.turn().pop().unwrap()["session_id"], "mine", "{flag}");
        let ids = ["_new", "mine"].map(|id| {
            let mut prompt = chat(&format!("{id} {flag}"), "go");
            prompt["session_id"] = json!(id);
            host.send(prompt);
            host.turn().pop().unwrap()["session_id"].as_str().unwrap().to_owned()
        });
        assert!(
            ids[0] != "mine" && ids[1] == "mine",
            "{flag}: after a new session its own is there: {ids:?}"
        );
        host.leave();
    }
    let mut host = Host::start(worker(&mock, FORMATS[0]));
    host.send(chat("p1", "go"));
    assert_eq!(
        host.turn().pop().unwrap()["session_id"],
        "s",
        "a worker that was given none adopts the first"
    );
    host.leave();
}

#[test]
fn an_answer_from_before_a_crash_matches_no_question_after_the_resume() {
    let mock = echo();
    let owner = worker(&mock, FORMATS[0]);
    let program = || worker(&mock, FORMATS[0]).env("QWEN_HOME", owner.qwen_home_path());
    let ask = |host: &mut Host, prompt_id: &str| {
        mock.push(Reply::call("c1", "write_file", r#"{"file_path":"a","content":"x"}"#));
        host.send(chat(prompt_id, "go"));
        host.question()
    };
    let mut host = Host::start(program());
    let before = ask(&mut host, "p1");
    host.run.signal(mock_model::process::Signal::KILL);
    drop(host);
    let mut host = Host::start(program().args(["--resume", "s"]));
    let after = ask(&mut host, "p2");
    assert_ne!(before["request_id"], after["request_id"]);
    host.answer(&before, json!({"behavior": "allow"}));
    assert_eq!(host.until(is_error)["metadata"]["error"]["code"], "unknown_request_id");
    host.answer(&after, json!({"behavior": "deny"}));
    host.turn();
    host.leave();
}

#[test]
fn a_thought_that_the_limit_of_nodes_cuts_off_starts_once_and_ends_once() {
    for limit in ["3", "4", "5", "6", "8"] {
        let flags = ["--agent", "agot", "--dialect", "loom", "--output-format", "stream-json"];
        let ended = qwen()
            .args([
                "-p",
                "Solve a task of size 24",
                "--model",
                "oracle:capacity?cap=4",
                "--got-max-nodes",
                limit,
            ])
            .args(flags)
            .run();
        let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
        for line in ended.json_lines() {
            let kind = line["type"].as_str().unwrap_or_default().to_owned();
            let id =
                |line: &Value| line["id"].as_str().or(line["node"].as_str()).unwrap_or_default().to_owned();
            match kind.as_str() {
                "got_node_start" => counts.entry(id(&line)).or_default().0 += 1,
                "got_node_complete" | "got_node_failed" => counts.entry(id(&line)).or_default().1 += 1,
                _ => {}
            }
        }
        assert!(!counts.is_empty(), "{limit}: {}", ended.stdout);
        for (id, (starts, ends)) in counts {
            assert!(starts <= 1 && ends == 1, "{limit}: '{id}' starts {starts} times and ends {ends} times");
        }
        passes_check_in("loom", &ended.stdout);
    }
}
