//! A hub in between: one trace from the host to the tool, and metrics.

use mock_model::process::{self, Program};
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::collector::Collector;
use crate::harness::{SPAN, TRACE, assert_below, ends_turn, traceparent};

fn hub(mock: &MockModel, collector: &Collector) -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .with_model(mock)
        .args(["hub", "--telemetry", "--telemetry-otlp-endpoint", &collector.endpoint()])
        .args(["--", "--model", "mock", "--yolo"])
}

fn prompt(more: &Value) -> Value {
    let mut line = json!({"session_id": "a", "input": {"parts": [{"type": "text", "text": "go"}]}});
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    line
}

#[test]
fn one_trace_goes_from_the_host_through_the_hub_to_the_model_and_the_tool() {
    let call = Reply::call("c1", "run_shell_command", r#"{"command":"true"}"#);
    let (mock, collector) = (MockModel::with([call, Reply::text("Hi.")]), Collector::new());
    let mut run = hub(&mock, &collector).start();
    run.write_line(prompt(&json!({"prompt_id": "p", "tenant": "red", "traceparent": traceparent("01")})));
    run.json_until(ends_turn);
    assert_eq!(run.finish().code, Some(0));
    let spans = collector.spans();
    let hub = spans.one("hub turn");
    assert_eq!((&hub["traceId"], &hub["parentSpanId"]), (&json!(TRACE), &json!(SPAN)), "{hub}");
    let text = hub.to_string();
    for attribute in ["qwen.status", "qwen.prompt_id", "qwen.tenant", "session.id", "dispatched"] {
        assert!(text.contains(attribute), "{attribute}: {text}");
    }
    let turn = spans.one("invoke_agent react");
    assert_below(turn, hub);
    assert_below(spans.all("chat mock")[0], turn);
    assert_below(spans.one("execute_tool run_shell_command"), turn);
    assert!(mock.requests()[0].header("traceparent").unwrap().contains(TRACE));
}

#[test]
fn a_cancelled_turn_is_a_failed_span_below_the_span_in_its_metadata() {
    let half = Reply::new([mock_model::sse::text("Half"), mock_model::gate("held")]);
    let (mock, collector) = (MockModel::with([half]), Collector::new());
    let mut run = hub(&mock, &collector).start();
    run.write_line(prompt(&json!({"settings": {}, "metadata": {"traceparent": traceparent("01")}})));
    mock.reached("held");
    run.write_line(json!({"type": "control/cancel", "session_id": "a"}));
    run.json_until(ends_turn);
    assert_eq!(run.finish().code, Some(0));
    let spans = collector.spans();
    let hub = spans.one("hub turn");
    assert_eq!((&hub["parentSpanId"], &hub["status"]["code"]), (&json!(SPAN), &json!(2)), "{hub}");
    assert_eq!(hub["status"]["message"], "cancelled");
}

#[test]
fn metrics_are_exported_at_the_end_at_the_latest() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let mut run = hub(&mock, &collector).start();
    run.write_line(prompt(&json!({})));
    run.json_until(ends_turn);
    assert_eq!(run.finish().code, Some(0));
    let exports = collector.exports();
    let metrics = exports.iter().rfind(|export| export.path == "/v1/metrics").unwrap();
    let body: Value = serde_json::from_str(&metrics.body).unwrap();
    let all = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| all.iter().find(|metric| metric["name"] == name).unwrap();
    assert_eq!(named("qwen_hub_turns_total")["sum"]["dataPoints"][0]["asInt"], "1");
    assert_eq!(named("qwen_hub_turn_seconds")["histogram"]["dataPoints"][0]["count"], "1");
    let tokens = &named("qwen_hub_tokens_total")["sum"]["dataPoints"];
    assert_eq!(tokens[0]["attributes"][0]["value"]["stringValue"], "prompt");
    assert!(named("qwen_hub_workers")["gauge"]["dataPoints"].is_array());
}

#[test]
fn a_hub_without_telemetry_exports_nothing_and_leaves_the_context_as_it_is() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let mut run = process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .with_model(&mock)
        .args(["hub", "--no-telemetry", "--telemetry-otlp-endpoint", &collector.endpoint()])
        .args(["--", "--model", "mock"])
        .start();
    run.write_line(prompt(&json!({"traceparent": traceparent("01")})));
    run.json_until(ends_turn);
    assert_eq!(run.finish().code, Some(0));
    assert!(collector.exports().is_empty());
}
