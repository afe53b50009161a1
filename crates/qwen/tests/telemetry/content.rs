//! What is in a trace of what was said: nothing, unless the user asks for it, and never a secret.

use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::collector::{Collector, said};
use crate::harness::{asked, qwen};

/// A turn in which every text has a word of its own.
fn telling() -> MockModel {
    let echo = json!({"command": "echo tool-says-quagga; cat none-heron", "description": "argument-ibis"});
    MockModel::with([
        Reply::call("c1", "run_shell_command", &echo.to_string()),
        Reply::text("The answer is answer-okapi."),
    ])
}

const WORDS: [&str; 5] = ["plover", "quagga", "heron", "ibis", "okapi"];

#[test]
fn prompts_stay_out_unless_asked_for() {
    let (mock, collector) = (telling(), Collector::new());
    assert_eq!(asked(&mock, &collector).arg("--yolo").run().code, Some(0));
    let sent: String = collector.exports().iter().map(|export| export.body.as_str()).collect();
    for word in WORDS {
        assert!(!sent.contains(word), "{word} in {sent}");
    }
    let (mock, collector) = (telling(), Collector::new());
    assert_eq!(asked(&mock, &collector).args(["--yolo", "--telemetry-log-prompts"]).run().code, Some(0));
    let spans = collector.spans();
    let (turn, call) = (spans.one("invoke_agent react"), spans.one("execute_tool run_shell_command"));
    for (span, key, word) in [
        (turn, "gen_ai.input.messages", "plover"),
        (turn, "gen_ai.output.messages", "okapi"),
        (call, "gen_ai.tool.call.arguments", "ibis"),
        (call, "gen_ai.tool.call.result", "quagga"),
        (spans.all("chat mock")[1], "gen_ai.output.messages", "okapi"),
    ] {
        assert!(said(span, key).as_str().unwrap().contains(word), "{key}: {span}");
    }
}

#[test]
fn errors_do_not_quote_what_was_said() {
    let (mock, collector) = (MockModel::with([]), Collector::new());
    mock.push(Reply::status(400, r#"{"error":{"message":"I do not like: Say the word plover"}}"#));
    let ended = asked(&mock, &collector).run();
    assert!(ended.code == Some(1) && ended.stderr.contains("plover"), "{ended:?}");
    let spans = collector.spans();
    assert_eq!(spans.one("invoke_agent react")["status"]["code"], 2);
    assert!(!format!("{spans:?}").contains("plover"), "{spans:?}");
}

#[test]
fn secrets_never_reach_the_collector() {
    let reveal =
        json!({"command": "echo $SOME_TOKEN sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD; cat k"});
    let collector = Collector::new();
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", &reveal.to_string()),
        Reply::text("It was hunter2-hunter2 and collector-key-zebra."),
    ]);
    let program = asked(&mock, &collector)
        .args(["--yolo", "--telemetry-log-prompts", "--append-system-prompt", "x"])
        .env("SOME_TOKEN", "hunter2-hunter2")
        .env(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-api-key=collector-key-zebra,authorization=Bearer%20other-key-gnu",
        )
        .env("OTEL_RESOURCE_ATTRIBUTES", "note=hunter2-hunter2");
    std::fs::write(program.cwd_path().join("k"), "other-key-gnu collector-key-zebra").unwrap();
    assert_eq!(program.run().code, Some(0));
    let exports = collector.exports();
    assert_eq!(exports[0].header("x-api-key"), Some("collector-key-zebra"));
    assert_eq!(exports[0].header("authorization"), Some("Bearer other-key-gnu"));
    let sent: String = exports.iter().map(|export| export.body.as_str()).collect();
    assert!(sent.contains("gen_ai.tool.call.result") && sent.contains("***"), "{sent}");
    for secret in ["hunter2", "abcdefghijklmnopqrstuvwxyz", "zebra", "gnu"] {
        assert!(!sent.contains(secret), "{secret} in {sent}");
    }
}

#[test]
fn the_collectors_keys_are_not_given_to_commands() {
    let show = json!({"command": "env | grep -c OTEL_EXPORTER_OTLP || true"}).to_string();
    for (traced, count) in [(true, "0"), (false, "2")] {
        let (mock, collector) = (
            MockModel::with([Reply::call("c1", "run_shell_command", &show), Reply::text("Done.")]),
            Collector::new(),
        );
        let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--yolo"]);
        let program = if traced { crate::harness::traced(program, &collector) } else { program };
        let program = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"]
            .iter()
            .fold(program, |program, name| program.env(name, "key=collector-key-zebra"));
        assert_eq!(program.run().code, Some(0));
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert!(told.contains(count), "{traced}: {told}");
    }
}

#[test]
fn long_texts_are_cut() {
    let mock = MockModel::with([Reply::text(&"ä".repeat(50_000))]);
    let collector = Collector::new();
    asked(&mock, &collector).arg("--telemetry-log-prompts").run();
    let spans = collector.spans();
    let text = said(spans.one("invoke_agent react"), "gen_ai.output.messages");
    let length = text.as_str().unwrap().len();
    assert!((10_000..20_000).contains(&length), "{length}");
}
