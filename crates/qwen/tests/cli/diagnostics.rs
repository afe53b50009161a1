//! `--verbose`, `--log-format json`, `--debug` and `--debug-file`.

use std::fs;

use mock_model::{MockModel, Reply};
use serde_json::Value;

use crate::harness::{looking, qwen};

#[test]
fn verbose_prints_a_line_for_each_step() {
    let ended = qwen().with_model(&looking()).args(["-p", "look", "--model", "mock", "--verbose"]).run();
    assert_eq!(ended.stdout, "There is nothing.\n");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines[0], "qwen: model mock: 10 tokens in, 5 out, calls list_directory");
    assert_eq!(lines[1], "Let me look.");
    assert!(lines[2].starts_with(r#"qwen: list_directory {"path":"."}: success in "#), "{ended:?}");
    assert_eq!(lines[3], "qwen: model mock: 10 tokens in, 5 out");
    assert!(lines[4].starts_with("qwen: session "), "{ended:?}");
    assert_eq!(lines.len(), 5, "{ended:?}");
}

#[test]
fn log_format_json_prints_every_step_as_a_json_line() {
    for format in ["text", "stream-json"] {
        let flags = ["-p", "look", "--model", "mock", "-o", format, "--log-format", "json"];
        let ended = qwen().with_model(&looking()).args(flags).run();
        let lines: Vec<Value> =
            ended.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        let expected: &[&str] = match format {
            "text" => &["model_call", "narration", "tool_call", "model_call", "turn_end"],
            _ => &["model_call", "tool_call", "model_call"],
        };
        assert_eq!(events, expected, "{ended:?}");
        let tool = &lines[events.iter().position(|event| *event == "tool_call").unwrap()];
        assert_eq!((&tool["tool"], &tool["status"]), (&"list_directory".into(), &"success".into()));
        assert!(lines.iter().all(|line| line["time"].is_string() && line["level"].is_string()));
    }
}

#[test]
fn warnings_at_start_are_json_lines_too() {
    let flags = ["-p", "x", "--model", "mock", "--log-format", "json", "--bare"];
    let ended = qwen().with_model(&MockModel::with([Reply::text("Hi")])).args(flags).run();
    let first: Value = serde_json::from_str(ended.stderr.lines().next().unwrap()).unwrap();
    assert!(first["message"].as_str().unwrap().contains("--bare"), "{ended:?}");
}

#[test]
fn errors_are_json_lines_too() {
    let mock = MockModel::with([Reply::status(400, "no")]);
    for flags in [&["--model", "mock"][..], &["--model", "demo", "--session-id", "../x"]] {
        let ended = qwen().with_model(&mock).args(["-p", "x", "--log-format", "json"]).args(flags).run();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        for line in ended.stderr.lines() {
            let line: Value = serde_json::from_str(line).expect(line);
            assert!(line["level"].is_string(), "{ended:?}");
        }
    }
}

#[test]
fn debug_logs_events_and_model_requests_without_secrets_in_every_mode() {
    for format in ["text", "json", "stream-json"] {
        for to_file in [false, true] {
            let mock = looking();
            let program = qwen()
                .with_model(&mock)
                .env("SOME_API_KEY", "very-secret-value")
                .args(["-p", "look at very-secret-value", "--model", "mock", "-o", format])
                .arg(if to_file { "--debug-file=debug.log" } else { "--debug" });
            let ended = program.run();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let log = if to_file {
                fs::read_to_string(program.cwd_path().join("debug.log")).unwrap()
            } else {
                ended.stderr.clone()
            };
            assert_eq!(log.matches("[DEBUG] model request {\"model\":\"mock\"").count(), 2, "{log}");
            assert!(log.contains("[DEBUG] out {") && log.contains("list_directory"), "{log}");
            assert!(!log.contains("very-secret-value"), "{log}");
            assert!(!ended.stdout.contains("[DEBUG]"), "{ended:?}");
        }
    }
}

#[test]
fn without_these_flags_nothing_is_logged() {
    let flags = ["-p", "look", "--model", "mock", "-o", "stream-json"];
    let ended = qwen().with_model(&looking()).args(flags).run();
    assert_eq!(ended.stderr, "");
}

#[test]
fn doctor_lists_every_check_even_if_the_settings_are_unusable() {
    let program = qwen();
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(program.qwen_home_path().join("settings.json"), "{ not json").unwrap();
    let ended = program.args(["doctor"]).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["settings", "server", "model", "tool", "sandbox", "mcp", "disk"], "{ended:?}");
    assert!(ended.stdout.contains("skipped"), "{ended:?}");
}
