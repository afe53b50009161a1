//! Waiting for the reset of a provider's limit: across a kill, until a cancel, and not at all if it is too long.

use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply, Step, sse};
use serde_json::{Value, json};

use super::harness::qwen;

fn limited(headers: &[(&str, &str)]) -> Reply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let body = r#"{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}"#;
    Reply::new([Step::Status(429, headers, body.to_owned())])
}

fn start(program: &Program, flags: &[&str]) -> Run {
    let mut run =
        program.clone().args(flags).args(["--dialect", "qwen", "--output-format", "stream-json"]).start();
    run.close_stdin();
    run
}

const PROMPT: &[&str] = &["-p", "Go", "--session-id", "s"];

fn is_waiting(line: &Value) -> bool {
    line["type"] == "x-qwen-session-event" && line.to_string().contains(r#""Waiting""#)
}

fn ends(line: &Value) -> bool {
    line["metadata"]["turn"].is_object()
}

#[test]
fn a_wait_of_three_seconds_survives_a_kill_and_the_turn_continues() {
    let mock = MockModel::with([limited(&[("retry-after", "3")]), limited(&[("retry-after", "1")])]);
    mock.push(Reply::text("done"));
    let program = qwen(&mock);
    let mut run = start(&program, PROMPT);
    let waiting = run.json_until(is_waiting).pop().unwrap();
    assert!(waiting.to_string().contains("Rate limit reached"), "{waiting}");
    run.signal(Signal::KILL);
    assert_eq!(run.wait().signal, Some(9));
    let mut run = start(&program, &["--resume", "s"]);
    let lines = run.json_until(ends);
    assert!(lines.iter().any(is_waiting), "the limit still holds: {lines:#?}");
    assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done");
    assert_eq!(run.wait().code, Some(0));
    let requests = mock.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests.iter().all(|request| request.last_user_text() == "Go"),
        "the prompt is sent once per request"
    );
}

#[test]
fn a_cancel_ends_the_wait() {
    let mock = MockModel::with([limited(&[("retry-after", "500")])]);
    let program = qwen(&mock);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut run = program.clone().args(flags).start();
    run.write_line(r#"{"messages":[{"role":"user","content":"Go"}]}"#);
    run.json_until(is_waiting);
    run.write_line(r#"{"type":"control/cancel"}"#);
    let end = run.json_until(ends).pop().unwrap();
    assert_eq!(end["metadata"]["turn"]["status"], "cancelled");
    run.close_stdin();
    run.wait();
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_reset_beyond_the_limit_is_an_error_at_once() {
    for headers in [
        &[("retry-after", "601")][..],
        &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "11m")],
    ] {
        let mock = MockModel::with([limited(headers)]);
        let program = qwen(&mock);
        let mut run = start(&program, PROMPT);
        let end = run.json_until(ends).pop().unwrap();
        assert_eq!(end["metadata"]["turn"]["status"], "error", "{headers:?}");
        assert!(end["metadata"]["error"]["message"].as_str().unwrap().contains("model.maxWait"), "{end}");
        run.wait();
        assert_eq!(mock.requests().len(), 1);
    }
}

#[test]
fn a_session_whose_prompt_cache_is_missed_twice_in_a_row_reports_it_once() {
    let reply = |cached: u64| {
        let details = json!({"cached_tokens": cached});
        let usage = json!({"prompt_tokens": 5000, "completion_tokens": 1, "prompt_tokens_details": details});
        Reply::new([sse::text("ok"), sse::finish("stop"), sse::usage_object(&usage), sse::done()])
    };
    let mock = MockModel::with([4000, 0, 0, 0].map(reply));
    let program = qwen(&mock);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut run = program.clone().args(flags).start();
    let mut lines = Vec::new();
    for _ in 0..4 {
        run.write_line(r#"{"messages":[{"role":"user","content":"Go"}]}"#);
        lines.push(run.json_until(ends));
    }
    let is_notice = |line: &&Value| line.to_string().contains("prompt cache was missed twice in a row");
    let counts: Vec<usize> = lines.iter().map(|turn| turn.iter().filter(is_notice).count()).collect();
    assert_eq!(counts, [0, 0, 1, 0]);
    run.close_stdin();
    assert_eq!(run.wait().code, Some(0));
}
