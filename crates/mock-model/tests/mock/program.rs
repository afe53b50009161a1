//! The mock as a program and its control over HTTP, as tests in other languages use them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::client::{Client, OPENAI, prompt};
use mock_model::{MockModel, Script};
use serde_json::Value;

const SCRIPT: &str = r#"[
  { "match": "weather", "steps": [ { "tool_call": { "name": "look", "arguments": { "city": "Oslo" } } } ] },
  { "steps": [ { "thought": "hm" }, { "text": "It is " }, { "gate": "half" }, { "text": "cold." },
               { "usage": { "prompt_tokens": 3, "completion_tokens": 4 } }, { "finish": "length" } ] },
  { "steps": [ { "delay_ms": 1 }, { "status": 503, "headers": { "retry-after": "2" }, "body": "busy" } ] },
  { "steps": [ { "text": "Hel" }, { "close": true } ] } ]"#;

fn control(mock: &MockModel, method: &str, path: &str, body: &str) -> Value {
    let response = Client::connect(mock).ask(method, path, body);
    assert_eq!(response.status, 200, "{}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

#[test]
fn a_script_is_played_by_match_and_then_in_order() {
    let mock = MockModel::start();
    mock.answer_with(Script::parse(SCRIPT).unwrap());
    mock.open("half");
    let mut client = Client::connect(&mock);
    let plain = client.ask("POST", OPENAI, &prompt("hello")).body;
    assert!(plain.contains("cold.") && plain.contains(r#""finish_reason":"length""#), "{plain}");
    assert!(plain.contains(r#""total_tokens":7"#), "{plain}");
    let matched = client.ask("POST", OPENAI, &prompt("the weather?")).body;
    assert!(matched.contains(r#""id":"call_1""#) && matched.contains("Oslo"), "{matched}");
    let busy = client.ask("POST", OPENAI, &prompt("the weather?"));
    assert_eq!((busy.status, busy.body.as_str()), (503, "busy"));
    client.send("POST", OPENAI, &prompt("bye"));
    assert!(client.rest().contains("Hel"));
    assert_eq!(Client::connect(&mock).ask("POST", OPENAI, &prompt("more")).status, 500);
}

#[test]
fn a_script_with_loop_starts_over_and_repeats_no_call_id() {
    let looped = r#"{"loop": true, "replies": [{"steps": [{"tool_call": {"name": "a"}}]}]}"#;
    let mock = MockModel::start();
    mock.answer_with(Script::parse(looped).unwrap());
    let mut client = Client::connect(&mock);
    for id in ["call_1", "call_2", "call_3"] {
        assert!(client.ask("POST", OPENAI, &prompt("hi")).body.contains(id));
    }
}

#[test]
fn a_wrong_script_is_refused_with_the_place() {
    let cases = [
        ("{", "not valid JSON"),
        ("{}", "array of replies"),
        ("[{}]", "reply 0 has no `steps`"),
        (r#"[{"steps":[{"text":"a"}]},{"steps":[{"text":"a"},{"tetx":"b"}]}]"#, "step 1 of reply 1"),
        (r#"[{"steps":[{"text":"a"},{"status":500}]}]"#, "one head"),
    ];
    for (script, wanted) in cases {
        let error = Script::parse(script).unwrap_err();
        assert!(error.contains(wanted), "{script}: {error}");
    }
}

#[test]
fn control_shows_requests_opens_gates_and_starts_over() {
    let mock = MockModel::start();
    control(&mock, "POST", "/control/script", SCRIPT);
    let mut client = Client::connect(&mock);
    client.send("POST", OPENAI, &prompt("hello"));
    control(&mock, "GET", "/control/reached/half", "");
    control(&mock, "POST", "/control/open/half", "");
    assert!(client.response().body.contains("cold."));
    let requests = control(&mock, "GET", "/control/requests", "");
    assert_eq!(requests[0]["body"]["messages"][0]["content"], "hello");
    assert_eq!(control(&mock, "GET", "/control/request/0", "")["headers"]["host"], "mock");
    control(&mock, "POST", "/control/reset", "");
    assert_eq!(control(&mock, "GET", "/control/requests", ""), Value::Array(Vec::new()));
    client.send("POST", OPENAI, &prompt("hello"));
    control(&mock, "GET", "/control/reached/half", "");
    drop(client);
    control(&mock, "GET", "/control/gone/0", "");
    assert_eq!(Client::connect(&mock).ask("GET", "/control/nothing", "").status, 400);
}

struct Program {
    child: Child,
    base_url: String,
}

impl Program {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mock-model"));
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let hello: Value = serde_json::from_str(&line).unwrap();
        Self { child, base_url: hello["base_url"].as_str().unwrap().to_owned() }
    }

    fn client(&self) -> Client {
        let port = self.base_url.trim_end_matches("/v1").rsplit(':').next().unwrap();
        Client::at(port.parse().unwrap())
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn the_program_floods_in_writes_of_one_or_many_until_stdin_closes() {
    for (size, most) in [("one", 502), ("many", 20)] {
        let program = Program::start(&["--chunks", "500", "--chunk-text", "tok~", "--write-size", size]);
        let mut client = program.client();
        client.send("POST", OPENAI, &prompt("hi"));
        client.head();
        let chunks: Vec<String> = std::iter::from_fn(|| client.chunk()).collect();
        assert!(chunks.len() <= most, "{size}: {}", chunks.len());
        assert_eq!(chunks.concat().matches("tok~").count(), 500);
        drop(client);
        program.end();
    }
}

#[test]
fn the_program_stamps_chunks_and_logs_requests() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.jsonl");
    let program =
        Program::start(&["--chunks", "2", "--stamp", "--delay-us", "10", "--log", log.to_str().unwrap()]);
    let body = program.client().ask("POST", OPENAI, &prompt("hi")).body;
    let stamps =
        body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let stamps =
        stamps.filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
    let stamps: Vec<u64> = stamps.map(|text| text.strip_suffix(';').unwrap().parse().unwrap()).collect();
    assert_eq!(stamps.len(), 2);
    assert!(stamps[0] < stamps[1] && stamps[1] <= mock_model::monotonic_ns());
    program.end();
    let logged: Value = serde_json::from_str(std::fs::read_to_string(&log).unwrap().trim_end()).unwrap();
    assert_eq!(logged["body"]["model"], "m");
}

#[test]
fn the_program_refuses_what_it_does_not_know() {
    let output = Command::new(env!("CARGO_BIN_EXE_mock-model")).args(["--chunkz", "1"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--chunkz 1 is nothing"));
}
