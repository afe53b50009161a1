//! Rulings 1 and 9: exactly one reply, always last, and what comes before it when a run did not end well.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, ReplyEvent, Step, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, asked, call, judged, of, shell, told, worker};

/// What goes wrong, the replies of the model, the flags; the exit code, the status and the reply that are
/// expected.
struct Case(&'static str, fn() -> Vec<Reply>, &'static [&'static str], i32, &'static str, &'static str);

fn list(text: &str, id: &str) -> Reply {
    Reply::new([
        ReplyEvent::Text(text.to_owned()).step(),
        call(id, "list_directory", &json!({ "path": "." })),
    ])
}

fn two_calls() -> Vec<Reply> {
    vec![list("one", "c1"), list("two", "c2")]
}

fn refused(status: u16) -> Vec<Reply> {
    vec![Reply::status(status, r#"{"error":{"message":"no"}}"#)]
}

#[rustfmt::skip]
const CASES: [Case; 10] = [
    Case("400", || refused(400), &[], 1, "error", ""),
    Case("401", || refused(401), &[], 41, "error", ""),
    Case("403", || refused(403), &[], 41, "error", ""),
    Case("404", || refused(404), &[], 1, "error", ""),
    Case("a stream that is cut", || vec![Reply::new([sse::text("half"), Step::Close])], &[], 1, "error", ""),
    Case("turns", two_calls, &["--max-session-turns", "1"], 53, "max_turns", "one"),
    Case("tool calls", two_calls, &["--max-tool-calls", "1"], 55, "max_tool_calls", "two"),
    Case("tokens", two_calls, &["--max-tokens-total", "15"], 55, "max_tokens", "one"),
    Case("time", || vec![Reply::text("never")], &["--max-wall-time", "0"], 55, "max_wall_time", ""),
    Case("an open question", || vec![Reply::new([shell("c1", "touch x")])], &["--ask-later"], 42, "interrupted", ""),
];

/// A line of either form in the protocol form, as far as these tests look.
fn custom(line: &Value) -> &Value {
    line.get("Custom").unwrap_or(&line["value"])
}

#[test]
fn a_run_that_did_not_end_well_says_why_and_then_replies() {
    for dialect in ["loom", "loom-export"] {
        for Case(name, replies, flags, code, status, expected_reply) in &CASES {
            let mock = MockModel::with(replies());
            let program = asked(&mock, dialect).args(*flags);
            let ended = program.run();
            assert_eq!(ended.code, Some(*code), "{name}: {ended:?}");
            let lines = judged(dialect, &ended.stdout);
            let [.., error, end, reply] = &lines[..] else { panic!("{name}: {lines:#?}") };
            assert_eq!(reply["reply"], *expected_reply, "{name}");
            assert_eq!(*custom(end), json!({ "kind": "run_end", "status": status }), "{name}");
            assert_eq!(custom(error)["kind"], "error", "{name}: {error}");
            let message = custom(error)["message"].as_str().unwrap();
            assert!(ended.stderr.contains(message), "{name}: people are told too: {}", ended.stderr);
            assert_eq!(ended.stderr.matches(message).count(), 1, "{name}: once: {}", ended.stderr);
            assert_eq!(lines.iter().filter(|line| line.get("reply").is_some()).count(), 1, "{name}");
        }
    }
}

#[test]
fn a_limit_is_called_one() {
    for dialect in ["loom", "claude-lite"] {
        let mock = MockModel::with(two_calls());
        let lines = told(&asked(&mock, dialect).args(["--max-session-turns", "1"]), dialect, 53);
        let error = lines
            .iter()
            .find_map(|line| line.get("error").or(line.get("value")).filter(|e| e["code"].is_string()));
        let error = error.unwrap_or_else(|| panic!("{lines:#?}"));
        assert_eq!((&error["type"], &error["code"]), (&json!("limit_error"), &json!("max_session_turns")));
    }
}

#[test]
fn a_failed_node_says_err_and_still_leaves_its_state() {
    let mock = MockModel::with(refused(400));
    let lines = told(&asked(&mock, "loom"), "loom", 1);
    let exit = of(&lines, "node_exit")[0];
    assert!(exit["result"]["Err"].as_str().unwrap().contains("400"), "{exit}");
    assert_eq!(exit["result"].as_object().unwrap().len(), 1);
    assert_eq!((of(&lines, "values").len(), of(&lines, "updates").len()), (1, 1));
    assert_eq!(of(&lines, "checkpoint").len(), 1, "a checkpoint at the end of a run");
}

#[test]
fn a_signal_ends_the_tool_the_node_and_the_run_in_order() {
    for (signal, code, status) in [(Signal::INT, 130, "cancelled"), (Signal::TERM, 143, "interrupted")] {
        let mock = MockModel::with([Reply::new([shell("c1", "echo started; exec sleep 600")])]);
        let mut run = asked(&mock, "loom").arg("--yolo").start();
        run.close_stdin();
        run.json_until(|line| line["type"] == "tool_output");
        run.signal(signal);
        let ended = run.wait();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let lines = judged("loom", &ended.stdout);
        let end = of(&lines, "tool_end")[0];
        assert!(end["is_error"] == true && end["call_id"] == "c1" && end["node_id"] == "run-act-1", "{end}");
        let [.., run_end, reply] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!(run_end["value"], json!({ "kind": "run_end", "status": status }));
        assert_eq!(reply["reply"], "");
        let by_the_user = lines.iter().any(|line| line["value"]["event"] == "USER_CANCELLED");
        assert_eq!(by_the_user, status == "cancelled", "only a user cancels: {status}");
    }
}

#[test]
fn an_interrupt_ends_the_run_and_the_next_one_begins_on_the_same_stream() {
    let mock = MockModel::with([Reply::new([sse::text("half"), gate("never")]), Reply::text("whole")]);
    let mut host = Host::of(&worker(&mock, "loom"), "loom");
    host.ask("one");
    let mut lines = host.run.json_until(|line| line["type"] == "message_chunk");
    host.run.write_line(json!({ "type": "control_request", "request_id": "i1", "subtype": "interrupt" }));
    lines.extend(host.turn("allow"));
    let [.., run_end, reply] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!(run_end["value"], json!({ "kind": "run_end", "status": "cancelled" }));
    assert_eq!((&reply["reply"], &reply["node_id"]), (&json!(""), &json!("run-think-1")));
    let next = host.say("two");
    assert_eq!(next[0]["event_id"].as_u64(), reply["event_id"].as_u64().map(|id| id + 1));
    assert_eq!((&next[0]["run_id"], &next.last().unwrap()["reply"]), (&json!("run-2"), &json!("whole")));
    host.leave();
}

#[test]
fn what_cannot_begin_is_an_error_an_end_and_an_empty_reply() {
    let mock = MockModel::start();
    for (flags, code) in [
        (&["--bogus"][..], 2),
        (&["--session-id", "../x"], 42),
        (&["--stream-mode", "x"], 2),
        (&["-o", "json", "-o", "stream-json"], 2),
    ] {
        let lines = told(&asked(&mock, "loom").args(flags), "loom", code);
        let [error, end, reply] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((&error["value"]["kind"], &error["event_id"]), (&json!("error"), &json!(1)));
        assert_eq!(end["value"], json!({ "kind": "run_end", "status": "error" }));
        assert_eq!(reply["reply"], "");
    }
}

#[test]
fn a_bad_line_is_one_custom_error_and_the_stream_goes_on() {
    for dialect in ["loom", "loom-export"] {
        let mock = MockModel::with([Reply::text("still here")]);
        let mut host = Host::of(&worker(&mock, dialect), dialect);
        for (bad, code) in [
            ("{broken", "invalid_json"),
            (r#"{"type":"nonsense"}"#, "unknown_type"),
            ("[1]", "not_an_object"),
        ] {
            host.run.write_line(bad);
            let line = host.run.json();
            let error = custom(&line);
            assert_eq!((&error["kind"], &error["code"]), (&json!("error"), &json!(code)), "{line}");
        }
        assert_eq!(host.say("well?").last().unwrap()["reply"], "still here");
        host.leave();
    }
}
