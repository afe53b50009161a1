//! What switches traces on and off, and says where they go.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::collector::Collector;
use crate::harness::{qwen, write};

fn plain(mock: &MockModel) -> Program {
    qwen().with_model(mock).args(["-p", "x", "--model", "mock"])
}

fn hello() -> MockModel {
    MockModel::with([Reply::text("Hi.")])
}

#[test]
fn there_are_no_traces_unless_somebody_wants_them() {
    let here =
        |collector: &Collector| json!({"telemetry": {"enabled": true, "otlpEndpoint": collector.endpoint()}});
    let on = ["--telemetry"];
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], bool, bool);
    let cases: &[Case<'_>] = &[
        (&[], &[], false, false),
        (&[], &[], true, true),
        (&on, &[], false, true),
        (&["--telemetry=false"], &[], true, false),
        (&["--no-telemetry"], &[], true, false),
        (&on, &[("OTEL_SDK_DISABLED", "true")], true, false),
        (&on, &[("OTEL_TRACES_EXPORTER", "none")], true, false),
        (&[], &[("QWEN_TELEMETRY_ENABLED", "1")], false, true),
        (&[], &[("CLAUDE_CODE_ENABLE_TELEMETRY", "1")], false, true),
        (&[], &[("QWEN_TELEMETRY_ENABLED", "false")], true, false),
    ];
    for (flags, vars, by_settings, sent) in cases {
        let (mock, collector) = (hello(), Collector::new());
        let endpoint = collector.endpoint();
        let program = plain(&mock).args(*flags).env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
        let program = vars.iter().fold(program, |program, (name, value)| program.env(name, value));
        if *by_settings {
            write(program.qwen_home_path().join("settings.json"), here(&collector).to_string());
        }
        let ended = program.run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{flags:?} {vars:?}: {ended:?}");
        assert_eq!(!collector.exports().is_empty(), *sent, "{flags:?} {vars:?} {by_settings}");
        assert_eq!(mock.requests()[0].header("traceparent").is_some(), *sent);
    }
}

#[test]
fn the_more_particular_place_wins() {
    let names = ["flag", "traces", "all", "setting"];
    for first in 0..names.len() {
        let collectors = [(); 4].map(|()| Collector::new());
        let [flag, traces, all, setting] = collectors.each_ref().map(Collector::endpoint);
        let mock = hello();
        let mut program = plain(&mock).arg("--telemetry");
        if first == 0 {
            program = program.args(["--telemetry-otlp-endpoint", &flag]);
        }
        if first <= 1 {
            program = program.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{traces}/exactly/here"));
        }
        if first <= 2 {
            program = program.env("OTEL_EXPORTER_OTLP_ENDPOINT", all);
        }
        let settings = json!({"telemetry": {"otlpEndpoint": setting}});
        write(program.qwen_home_path().join("settings.json"), settings.to_string());
        assert_eq!(program.run().code, Some(0));
        let reached: Vec<&str> = names
            .iter()
            .zip(&collectors)
            .filter(|(_, collector)| !collector.exports().is_empty())
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(reached, [names[first]]);
        let path = if first == 1 { "/exactly/here" } else { "/v1/traces" };
        assert_eq!(collectors[first].exports()[0].path, path);
    }
}

#[test]
fn the_resource_names_the_service() {
    let (mock, collector) = (hello(), Collector::new());
    let program = crate::harness::traced(plain(&mock), &collector)
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,team=a%20b")
        .env("OTEL_SERVICE_NAME", "our-agent");
    assert_eq!(program.run().code, Some(0));
    let body: Value = serde_json::from_str(&collector.exports()[0].body).unwrap();
    let resource = &body["resourceSpans"][0]["resource"];
    let said = |key: &str| crate::collector::said(resource, key);
    assert_eq!(said("service.name"), "our-agent");
    assert_eq!(said("service.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!((said("deployment.environment.name"), said("team")), (json!("test"), json!("a b")));
}

#[test]
fn a_workspace_cannot_switch_traces_on_or_move_them() {
    for trusted in [true, false] {
        let (mock, collector, theirs) = (hello(), Collector::new(), Collector::new());
        let workspace = json!({
            "telemetry": {"enabled": true, "otlpEndpoint": theirs.endpoint(), "logPrompts": true, "outfile": "f"},
            "env": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": theirs.endpoint(), "QWEN_TELEMETRY_ENABLED": "1",
                    "OTEL_LOG_USER_PROMPTS": "1", "TRACEPARENT": "x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"},
        });
        let program = plain(&mock);
        let program = if trusted { program.arg("--trust-workspace") } else { program };
        write(program.cwd_path().join(".qwen/settings.json"), workspace.to_string());
        assert_eq!(program.run().code, Some(0));
        assert_eq!(theirs.exports().len(), 0);
        mock.push(Reply::text("Hi."));
        assert_eq!(crate::harness::traced(program, &collector).run().code, Some(0));
        assert_eq!(theirs.exports().len(), 0);
        let export = &collector.exports()[0];
        assert!(!export.body.contains("gen_ai.input.messages"), "{export:?}");
        assert_eq!(export.header("a"), None);
    }
}

#[test]
fn an_unsupported_protocol_is_reported() {
    let (mock, collector) = (hello(), Collector::new());
    let program = crate::harness::traced(plain(&mock), &collector);
    let ended = program.args(["--telemetry-target", "gcp", "--telemetry-otlp-protocol", "grpc"]).run();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(0), 2), "{ended:?}");
    assert!(ended.stderr.contains("'gcp'") && ended.stderr.contains("4318"), "{ended:?}");
    assert_eq!(collector.exports().len(), 1);
}
