//! Traces that go on from a program to the next: from the host to us, and from us to models and commands.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::collector::Collector;
use crate::harness::{SPAN, TRACE, asked, ends_turn, prompt, qwen, traceparent, worker};

fn turns(collector: &Collector) -> Vec<(Value, Value)> {
    let spans = collector.spans();
    let turns = spans.all("invoke_agent react");
    turns.iter().map(|turn| (turn["traceId"].clone(), turn["parentSpanId"].clone())).collect()
}

#[test]
fn the_hosts_span_is_the_parent() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let program =
        asked(&mock, &collector).env("TRACEPARENT", traceparent("01")).env("TRACESTATE", "vendor=1");
    assert_eq!(program.run().code, Some(0));
    assert_eq!(turns(&collector), [(json!(TRACE), json!(SPAN))]);
    let spans = collector.spans();
    assert!(
        spans.0.iter().all(|span| span["traceId"] == TRACE && span["traceState"] == "vendor=1"),
        "{spans:?}"
    );
}

#[test]
fn a_request_may_name_the_span_that_it_belongs_to() {
    let collector = Collector::new();
    let mock = MockModel::with((0..5).map(|_| Reply::text("Hi.")));
    let mut run = worker(&mock, &collector).env("TRACEPARENT", traceparent("01")).start();
    let other = "11111111111111111111111111111111";
    let named = |span: &str| format!("00-{other}-{span}-01");
    let with = |mut line: Value, at: &[&str], value: String| {
        let place = at.iter().fold(&mut line, |place, key| &mut place[*key]);
        place["traceparent"] = value.into();
        line
    };
    let lines = [
        with(prompt("top"), &[], named("000000000000000a")),
        with(prompt("metadata"), &["metadata"], named("000000000000000b")),
        with(json!({"input": {"parts": "options"}}), &["options"], named("000000000000000c")),
        with(
            json!({"type": "user", "message": {"role": "user", "content": "user"}}),
            &[],
            named("000000000000000d"),
        ),
        prompt("none"),
    ];
    for line in &lines {
        run.write_line(line);
        run.json_until(ends_turn);
    }
    run.finish();
    let expected = [
        (other, "000000000000000a"),
        (other, "000000000000000b"),
        (other, "000000000000000c"),
        (other, "000000000000000d"),
        (TRACE, SPAN),
    ];
    assert_eq!(turns(&collector), expected.map(|(trace, span)| (json!(trace), json!(span))));
}

#[test]
fn a_trace_that_nobody_keeps_is_not_sent_and_goes_on_unkept() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let ended = asked(&mock, &collector).env("TRACEPARENT", traceparent("00")).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(collector.exports().len(), 0);
    let requests = mock.requests();
    let sent = requests[0].header("traceparent").unwrap();
    assert!(sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00"), "{sent}");
}

#[test]
fn a_malformed_context_is_said_once_and_ignored() {
    for bad in ["", "garbage", &"00-".repeat(100), "00-00000000000000000000000000000000-b7ad6b7169203331-01"]
    {
        let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
        let ended = asked(&mock, &collector).env("TRACEPARENT", bad).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), usize::from(!bad.is_empty()), "{ended:?}");
        assert_eq!(ended.stderr.contains("malformed"), !bad.is_empty(), "{ended:?}");
        let turns = turns(&collector);
        assert_eq!(turns[0].1, Value::Null, "a new trace");
    }
    // A request's own costs no more, whatever it is.
    let collector = Collector::new();
    let mock = MockModel::with((0..2).map(|_| Reply::text("Hi.")));
    let mut run = worker(&mock, &collector).start();
    for bad in [json!(7), json!("x")] {
        let mut line = prompt("x");
        line["traceparent"] = bad;
        run.write_line(line);
        let lines = run.json_until(ends_turn);
        assert!(lines.iter().all(|line| line["metadata"]["error"].is_null()), "{lines:?}");
    }
    let ended = run.finish();
    assert_eq!(ended.stderr.matches("malformed").count(), 1, "{ended:?}");
    assert_eq!(turns(&collector).len(), 2);
}

#[test]
fn a_model_is_told_which_span_calls_it() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    asked(&mock, &collector).run();
    let spans = collector.spans();
    let call = spans.one("chat mock");
    let [trace, span] = ["traceId", "spanId"].map(|key| call[key].as_str().unwrap());
    let requests = mock.requests();
    assert_eq!(requests[0].header("traceparent"), Some(format!("00-{trace}-{span}-01").as_str()));
}

#[test]
fn a_command_is_told_which_span_it_belongs_to() {
    let show = json!({"command": "echo \"<$TRACEPARENT|$TRACESTATE>\""}).to_string();
    let told = |program: mock_model::process::Program, mock: &MockModel| {
        let ended = program.args(["--yolo"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let requests = mock.requests();
        let text = requests[1].messages().last().unwrap()["content"].to_string();
        text.split(['<', '>']).nth(1).unwrap().to_owned()
    };
    let calls = || MockModel::with([Reply::call("c1", "run_shell_command", &show), Reply::text("Done.")]);
    let (mock, collector) = (calls(), Collector::new());
    let said = told(asked(&mock, &collector).env("TRACESTATE", "stale=1"), &mock);
    let spans = collector.spans();
    let call = spans.one("execute_tool run_shell_command");
    let [trace, span] = ["traceId", "spanId"].map(|key| call[key].as_str().unwrap());
    assert_eq!(said, format!("00-{trace}-{span}-01|"));
    // Without traces of our own, the host's context is passed on as it is.
    let mock = calls();
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock"]);
    let said = told(program.env("TRACEPARENT", traceparent("01")), &mock);
    assert_eq!(said, format!("{}|", traceparent("01")));
    assert_eq!(mock.requests()[0].header("traceparent"), None);
}

#[test]
fn the_tools_of_servers_are_told_which_span_they_belong_to() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/servers/library.py");
    let servers = json!({"mcpServers": {"library": {"command": "python3", "args": [script]}}}).to_string();
    let calls = || MockModel::with([Reply::call("c1", "mcp__library__lend", "{}"), Reply::text("Done.")]);
    let told = |program: mock_model::process::Program| -> Value {
        let ended = program.clone().args(["--yolo", "--sandbox=off", "--mcp-config", &servers]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&std::fs::read_to_string(program.cwd_path().join("called")).unwrap()).unwrap()
    };
    let (mock, collector) = (calls(), Collector::new());
    let meta =
        told(asked(&mock, &collector).env("TRACEPARENT", traceparent("01")).env("TRACESTATE", "vendor=1"));
    let spans = collector.spans();
    let span = spans.one("execute_tool mcp__library__lend")["spanId"].as_str().unwrap().to_owned();
    assert_eq!(
        (&meta["traceparent"], &meta["tracestate"]),
        (&json!(format!("00-{TRACE}-{span}-01")), &json!("vendor=1"))
    );
    let mock = calls();
    let meta = told(qwen().with_model(&mock).args(["-p", "x", "--model", "mock"]));
    assert_eq!((&meta["traceparent"], &meta["progressToken"].is_u64()), (&Value::Null, &true), "{meta}");
}

#[test]
fn a_hook_that_is_a_command_is_told_which_span_it_belongs_to() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let command = "echo \"$TRACEPARENT|$TRACESTATE\" > told";
    let hooks =
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}});
    let program =
        asked(&mock, &collector).env("TRACESTATE", "stale=1").args(["--settings", &hooks.to_string()]);
    assert_eq!(program.run().code, Some(0));
    let spans = collector.spans();
    let hook = spans.one("hook UserPromptSubmit");
    let [trace, span] = ["traceId", "spanId"].map(|key| hook[key].as_str().unwrap());
    let told = std::fs::read_to_string(program.cwd_path().join("told")).unwrap();
    assert_eq!(told.trim(), format!("00-{trace}-{span}-01|"));
}
