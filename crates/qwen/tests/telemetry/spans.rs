//! Which spans there are, and what they say.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::collector::{Collector, Spans, said};
use crate::harness::{asked, assert_below, ends_turn, prompt, qwen, traced, worker, write};

fn lists(arguments: &Value) -> MockModel {
    MockModel::with([
        Reply::call("call_1", "list_directory", &arguments.to_string()),
        Reply::text("There is nothing."),
    ])
}

#[test]
fn a_turn_is_one_span_with_its_calls_below_it() {
    let (mock, collector) = (lists(&json!({"path": "."})), Collector::new());
    let ended = asked(&mock, &collector).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let spans = collector.spans();
    assert_eq!(
        spans.names(),
        ["chat mock", "chat mock", "execute_tool list_directory", "invoke_agent react"]
    );
    let turn = spans.one("invoke_agent react");
    assert_eq!(turn["parentSpanId"], Value::Null);
    for span in &spans.0 {
        if span["name"] != turn["name"] {
            assert_below(span, turn);
        }
        let number = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(number("startTimeUnixNano") <= number("endTimeUnixNano"), "{span}");
        assert!(number("startTimeUnixNano") > 1_600_000_000_000_000_000, "{span}");
        assert_eq!(span["status"], Value::Null, "{span}");
        let session = said(span, "session.id");
        assert!(session.as_str().is_some_and(|id| !id.is_empty()), "{span}");
        assert_eq!(said(span, "gen_ai.conversation.id"), session);
    }
    let export = &collector.exports()[0];
    assert_eq!(export.path, "/v1/traces");
    assert_eq!(export.header("content-type"), Some("application/json"));
}

#[test]
fn spans_say_what_the_conventions_have_names_for() {
    let (mock, collector) = (lists(&json!({"path": "."})), Collector::new());
    asked(&mock, &collector).run();
    let spans = collector.spans();
    let turn = spans.one("invoke_agent react");
    assert_eq!(said(turn, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(said(turn, "gen_ai.agent.name"), "react");
    assert_eq!(said(turn, "gen_ai.request.model"), "mock");
    assert_eq!(said(turn, "qwen.status"), "done");
    assert_eq!((said(turn, "qwen.model_calls"), said(turn, "qwen.tool_calls")), (json!(2), json!(1)));
    assert_eq!(turn["kind"], 1);
    let mut tokens = 0;
    for call in spans.all("chat mock") {
        assert_eq!(call["kind"], 3);
        assert_eq!(said(call, "gen_ai.operation.name"), "chat");
        assert_eq!(said(call, "gen_ai.provider.name"), "openai");
        assert_eq!(said(call, "gen_ai.request.model"), "mock");
        assert!(said(call, "gen_ai.response.model").is_string(), "{call}");
        assert_eq!(said(call, "server.address"), "127.0.0.1");
        assert_eq!(said(call, "server.port"), mock.port());
        tokens += said(call, "gen_ai.usage.output_tokens").as_i64().unwrap();
        assert!(said(call, "gen_ai.usage.input_tokens").as_i64().unwrap() > 0, "{call}");
    }
    assert_eq!(said(turn, "gen_ai.usage.output_tokens"), tokens);
    let reasons: Vec<Value> =
        spans.all("chat mock").iter().map(|call| said(call, "gen_ai.response.finish_reasons")).collect();
    assert_eq!(reasons, [json!(["tool_calls"]), json!(["stop"])]);
    let tool = spans.one("execute_tool list_directory");
    assert_eq!(said(tool, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(said(tool, "gen_ai.tool.name"), "list_directory");
    assert_eq!(said(tool, "gen_ai.tool.call.id"), "call_1");
    assert_eq!(said(tool, "gen_ai.tool.type"), "function");
    let marks: Vec<&Value> = tool["events"].as_array().unwrap().iter().map(|mark| &mark["name"]).collect();
    assert_eq!(marks, ["permission.decision", "tool.start"]);
}

#[test]
fn a_failed_span_has_its_cause() {
    let failing = MockModel::with([
        Reply::call("c1", "read_file", &json!({"file_path": "none.txt"}).to_string()),
        Reply::call("c2", "write_file", &json!({"file_path": "a", "content": "b"}).to_string()),
        Reply::status(401, r#"{"error":{"message":"bad key"}}"#),
    ]);
    let collector = Collector::new();
    let ended = asked(&failing, &collector).run();
    assert_eq!(ended.code, Some(41), "{ended:?}");
    let spans = collector.spans();
    let cause = |span: &Value| {
        (said(span, "error.type"), span["status"]["code"].clone(), span["status"]["message"].clone())
    };
    let missing = spans.one("execute_tool read_file");
    assert_eq!(cause(missing), (json!("file_not_found"), json!(2), json!("file_not_found")));
    let refused = spans.one("execute_tool write_file");
    assert_eq!(cause(refused).0, "permission_denied");
    let call = spans.all("chat mock")[2];
    let turn = spans.one("invoke_agent react");
    assert_eq!(cause(call), cause(turn));
    assert_eq!(cause(turn).1, 2);
    assert!(cause(turn).2.as_str().unwrap().contains("HTTP 401"), "{turn}");
    assert_eq!(said(turn, "qwen.permission_denials"), 1);
}

#[test]
fn a_call_that_was_tried_again_is_one_span_that_tells_it() {
    let mock = MockModel::with([Reply::status(500, "{}"), Reply::text("Hello.")]);
    let collector = Collector::new();
    let program = asked(&mock, &collector);
    assert_eq!(program.run().code, Some(0));
    let spans = collector.spans();
    let call = spans.one("chat mock");
    assert_eq!(call["events"][0]["name"], "retry", "{call}");
    assert_eq!(call["status"], Value::Null);
}

#[test]
fn a_sub_agent_is_below_the_call_that_started_it() {
    let task = json!({"description": "look", "prompt": "Look around", "subagent_type": "explore"});
    let mock = MockModel::with([
        Reply::call("outer", "agent", &task.to_string()),
        Reply::call("inner", "list_directory", &json!({"path": "."}).to_string()),
        Reply::text("Nothing there."),
        Reply::text("It is empty."),
    ]);
    let collector = Collector::new();
    let program = asked(&mock, &collector).arg("--yolo");
    write(
        program.qwen_home_path().join("agents/explore.md"),
        "---\nname: explore\ndescription: Looks around.\n---\nYou look around.\n",
    );
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spans = collector.spans();
    let (turn, call) = (spans.one("invoke_agent react"), spans.one("execute_tool agent"));
    let agent = spans.one("invoke_agent explore");
    assert_below(call, turn);
    assert_below(agent, call);
    assert_below(spans.one("execute_tool list_directory"), agent);
    let below = |outer: &Value| {
        spans.all("chat mock").iter().filter(|chat| chat["parentSpanId"] == outer["spanId"]).count()
    };
    assert_eq!((below(turn), below(agent)), (2, 2));
    assert_eq!(said(agent, "gen_ai.agent.name"), "explore");
}

#[test]
fn a_question_about_a_call_is_a_span_below_it() {
    let mock = MockModel::with([
        Reply::call("c1", "write_file", &json!({"file_path": "a.txt", "content": "b"}).to_string()),
        Reply::text("Done."),
    ]);
    let collector = Collector::new();
    let mut run = worker(&mock, &collector).start();
    run.write_line(prompt("Write it"));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    run.write_line(json!({"type": "control_response", "response": response}));
    run.json_until(ends_turn);
    run.finish();
    let spans = collector.spans();
    assert_below(spans.one("ask_permission"), spans.one("execute_tool write_file"));
    assert_eq!(spans.one("execute_tool write_file")["status"], Value::Null);
}

#[test]
fn hooks_are_spans_below_what_they_are_about() {
    let (mock, collector) = (lists(&json!({"path": "."})), Collector::new());
    let program = asked(&mock, &collector);
    let hook = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
    let settings = json!({"hooks": {"UserPromptSubmit": hook, "PostToolUse": hook}});
    write(program.qwen_home_path().join("settings.json"), settings.to_string());
    assert_eq!(program.run().code, Some(0));
    let spans = collector.spans();
    assert_below(spans.one("hook UserPromptSubmit"), spans.one("invoke_agent react"));
    assert_below(spans.one("hook PostToolUse"), spans.one("execute_tool list_directory"));
}

#[test]
fn thoughts_are_traced_as_any_turn_is() {
    for (agent, model, problem, mark) in [
        ("tot", "oracle:game24?q=1&p=1&seed=1", "4 9 10 13", "tot.expand"),
        ("got", "oracle:sort?seed=1", "Sort ascending: 5 3 1 9 2 8 7 6", "got.plan"),
    ] {
        let collector = Collector::new();
        let program = qwen().args(["-p", problem, "--agent", agent, "--model", model]);
        let ended = traced(program, &collector).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let spans = collector.spans();
        let turn = spans.one(&format!("invoke_agent {agent}"));
        let marks = turn["events"].as_array().unwrap();
        assert!(marks.iter().any(|found| found["name"] == mark), "{turn}");
        let calls: Vec<&Value> =
            spans.0.iter().filter(|span| said(span, "gen_ai.operation.name") == "chat").collect();
        assert_eq!(said(turn, "qwen.model_calls"), calls.len());
        for call in calls {
            assert_below(call, turn);
        }
    }
}

#[test]
fn every_dialect_is_traced_alike() {
    for dialect in ["qwen", "claude", "claude-lite", "loom", "loom-export", "core"] {
        let (mock, collector) = (lists(&json!({"path": "."})), Collector::new());
        let ended = asked(&mock, &collector).args(["--dialect", dialect]).run();
        assert_eq!(ended.code, Some(0), "{dialect}: {ended:?}");
        let names = collector.spans();
        let expected = ["chat mock", "chat mock", "execute_tool list_directory", "invoke_agent react"];
        assert_eq!(names.names(), expected, "{dialect}");
    }
}

#[test]
fn a_file_takes_a_line_for_each_batch_and_belongs_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let mock = lists(&json!({"path": "."}));
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--telemetry"]);
    let ended = program.clone().args(["--telemetry-outfile", "traces.jsonl"]).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let path = program.cwd_path().join("traces.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert_eq!(Spans::read(text.lines()).0.len(), 4);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
