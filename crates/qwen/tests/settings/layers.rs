//! Which source wins.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{asked, config, qwen, user, workspace, write};

/// Every source below the flags, from the weakest to the strongest, each with how it names a model.
const LAYERS: [&str; 7] =
    ["built-in", "system defaults", "user", "workspace", "system", "environment", "--settings"];

/// The binary with the first so many of the sources naming a model.
fn with_layers(count: usize) -> Program {
    let mut program = qwen().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let model = |layer: &str| json!({"model": {"name": format!("from {layer}")}}).to_string();
    for layer in LAYERS.iter().take(count) {
        let text = model(layer);
        program = match *layer {
            "system defaults" => {
                let path = program.home_path().join("defaults.json");
                write(&path, text);
                program.env("QWEN_CODE_SYSTEM_DEFAULTS_PATH", path)
            }
            "user" => {
                user(&program, &text);
                program
            }
            "workspace" => {
                workspace(&program, &text);
                program
            }
            "system" => {
                let path = program.home_path().join("system.json");
                write(&path, text);
                program.env("QWEN_CODE_SYSTEM_SETTINGS_PATH", path)
            }
            "environment" => program.env("QWEN_MODEL", "from environment"),
            _ => program,
        };
    }
    program
}

#[test]
fn the_strongest_source_wins() {
    for count in 1..=LAYERS.len() {
        let mut program = with_layers(count);
        let layer = LAYERS[count - 1];
        program = program.args(["config", "--json", "--trust-workspace"]);
        if layer == "--settings" {
            program = program.args(["--settings", r#"{"model": {"name": "from --settings"}}"#]);
        }
        let ended = program.arg("model.name").run();
        let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        let setting = &said["settings"]["model.name"];
        assert_eq!(setting["source"], layer, "{ended:?}");
        if layer != "built-in" {
            assert_eq!(setting["value"], format!("from {layer}"));
        }
    }
}

#[test]
fn flags_beat_all_of_them() {
    let mock = MockModel::with([Reply::text("ok"), Reply::text("ok")]);
    let program = with_layers(6).with_model(&mock).args(["-p", "x", "--trust-workspace"]);
    let given = program.clone().args(["--settings", r#"{"model": "from --settings"}"#]);
    assert_eq!(given.clone().run().code, Some(0));
    assert_eq!(given.args(["--model", "from a flag"]).run().code, Some(0));
    let asked: Vec<Value> = mock.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(asked, ["from --settings", "from a flag"]);
}

#[test]
fn a_value_knows_its_file_and_line() {
    let program = qwen();
    user(&program, "{\n  // mine\n  \"model\": {\n    \"maxRetries\": 7\n  }\n}");
    let place = format!("{}:4", program.qwen_home_path().join("settings.json").display());
    assert_eq!(config(program, "model.maxRetries"), (json!(7), "user".into(), place));
}

#[test]
fn lists_of_rules_add_up_and_other_lists_do_not() {
    let program = qwen();
    user(&program, r#"{"permissions": {"allow": ["Bash(a)"]}, "model": {"fallbackModels": ["one", "two"]}}"#);
    workspace(&program, r#"{"permissions": {"allow": ["Bash(b)"]}, "model": {"fallbackModels": ["three"]}}"#);
    let ended = program.args(["config", "--json", "--trust-workspace"]).run();
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    let values: Vec<(&str, &Value)> = (said["settings"].as_object().unwrap().iter())
        .filter(|(key, setting)| key.contains('[') && setting["source"] != "built-in")
        .map(|(key, setting)| (key.as_str(), &setting["value"]))
        .collect();
    assert_eq!(
        values,
        [
            ("model.fallbackModels[0]", &json!("three")),
            ("permissions.allow[0]", &json!("Bash(a)")),
            ("permissions.allow[1]", &json!("Bash(b)")),
        ]
    );
}

#[test]
fn the_user_file_moves_with_its_variable_and_with_qwen_home() {
    let program = qwen();
    let elsewhere = program.home_path().join("elsewhere/mine.json");
    write(&elsewhere, r#"{"model": {"maxRetries": 1}}"#);
    user(&program, r#"{"model": {"maxRetries": 2}}"#);
    let moved = program.home_path().join("moved");
    write(moved.join("settings.json"), r#"{"model": {"maxRetries": 3}}"#);
    assert_eq!(config(program.clone(), "model.maxRetries").0, 2);
    assert_eq!(config(program.clone().env("QWEN_HOME", &moved), "model.maxRetries").0, 3);
    assert_eq!(config(program.env("QWEN_CODE_USER_SETTINGS_PATH", &elsewhere), "model.maxRetries").0, 1);
}

#[test]
fn sources_can_be_left_out() {
    for (sources, expected) in
        [(None, 2), (Some("user,project"), 2), (Some("user"), 1), (Some("project"), 2), (Some(""), 4)]
    {
        let program = qwen();
        user(&program, r#"{"model": {"maxRetries": 1}}"#);
        workspace(&program, r#"{"model": {"maxRetries": 2}}"#);
        let mut program = program.args(["config", "--json", "--trust-workspace"]);
        if let Some(sources) = sources {
            program = program.arg(format!("--setting-sources={sources}"));
        }
        let ended = program.arg("model.maxRetries").run();
        let said: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(said["settings"]["model.maxRetries"]["value"], expected, "{sources:?}");
    }
    let ended = qwen().args(["-p", "x", "--setting-sources", "moon"]).run();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("moon"), "{ended:?}");
}

#[test]
fn a_profile_takes_the_place_of_all_files() {
    let program = qwen();
    user(&program, r#"{"model": {"maxRetries": 1, "maxTokens": 5}}"#);
    workspace(&program, r#"{"model": {"maxRetries": 2}}"#);
    let file = program.home_path().join("part.json");
    write(&file, r#"{"model": {"maxRetries": 8, "contextWindow": 9}}"#);
    write(program.qwen_home_path().join("profiles/team.json"), r#"{"user": {"model": {"maxRetries": 6}}}"#);
    let parts = json!({"user": file, "overrides": {"model.maxRetries": 7}}).to_string();
    for (profile, expected) in [
        (r#"{"user": {"model": {"maxRetries": 5}}}"#, 5),
        (r#"{"model": {"maxRetries": 4}}"#, 4),
        ("team", 6),
        (&parts, 7),
    ] {
        let ended = program
            .clone()
            .args(["config", "--json", "--trust-workspace", "--settings-profile", profile])
            .run();
        let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        assert_eq!(said["settings"]["model.maxRetries"]["value"], expected, "{profile}");
        assert_eq!(said["settings"].get("model.maxTokens"), None, "{profile}");
    }
    let ended = program.args(["-p", "x", "--settings-profile", "no-such"]).run();
    assert_eq!(ended.code, Some(52));
    assert!(ended.stderr.contains("profiles/no-such.json"), "{ended:?}");
}

#[test]
fn settings_reach_the_model_and_the_tools() {
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", r#"{"command":"echo $FROM_SETTINGS; touch made"}"#),
        Reply::text("ok"),
    ]);
    let program = asked(&mock);
    user(
        &program,
        r#"{"model": {"name": "mine", "maxTokens": 77, "temperature": 0.5, "headers": {"x-team": "blue-team"}},
            "permissions": {"allow": ["Bash(echo *)", "Bash(touch *)"]}, "tools": {"exclude": ["glob"]},
            "env": {"FROM_SETTINGS": "hello from settings"}}"#,
    );
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(program.cwd_path().join("made").exists(), "{ended:?}");
    let request = &mock.requests()[0];
    assert_eq!((&request.body["model"], &request.body["max_tokens"]), (&json!("mine"), &json!(77)));
    assert_eq!(request.body["temperature"], 0.5);
    assert_eq!(request.header("x-team"), Some("blue-team"));
    assert!(!request.tool_names().contains(&"glob") && request.tool_names().contains(&"edit"));
    assert!(mock.requests()[1].messages().last().unwrap().to_string().contains("hello from settings"));
}

#[test]
fn the_key_comes_from_the_variable_that_the_settings_name() {
    let mock = MockModel::with([Reply::text("ok")]);
    let program =
        qwen().env("OPENAI_BASE_URL", mock.base_url()).env("TEAM_KEY_VALUE", "k-123456789").args(["-p", "x"]);
    user(&program, r#"{"model": {"apiKeyEnv": "TEAM_KEY_VALUE"}}"#);
    assert_eq!(program.run().code, Some(0));
    assert_eq!(mock.requests()[0].header("authorization"), Some("Bearer k-123456789"));
    let ended = program.env_remove("TEAM_KEY_VALUE").run();
    assert_eq!(ended.code, Some(41));
    assert!(ended.stderr.contains("TEAM_KEY_VALUE"), "{ended:?}");
}

#[test]
fn another_provider_does_not_get_the_address_and_key_of_the_configured_one() {
    let (openai, anthropic) = (MockModel::with([]), MockModel::with([Reply::text("ok")]));
    let program = qwen().args(["-p", "x", "--auth-type", "anthropic", "-m", "m"]);
    user(
        &program,
        &json!({"model": {"baseUrl": openai.base_url(), "apiKey": "openai-secret-1"}}).to_string(),
    );
    let program =
        program.env("ANTHROPIC_BASE_URL", anthropic.origin()).env("ANTHROPIC_API_KEY", "anthropic-secret");
    program.run();
    assert!(openai.requests().is_empty());
    assert_eq!(anthropic.requests()[0].header("x-api-key"), Some("anthropic-secret"));
}

#[test]
fn without_recording_nothing_is_kept() {
    for (setting, kept) in [("{}", true), (r#"{"general": {"chatRecording": false}}"#, false)] {
        let mock = MockModel::with([Reply::text("ok")]);
        let program = asked(&mock);
        user(&program, setting);
        assert_eq!(program.run().code, Some(0));
        let sessions = fs::read_dir(program.qwen_home_path().join("sessions"));
        assert_eq!(sessions.is_ok_and(|mut files| files.next().is_some()), kept, "{setting}");
    }
}

#[test]
fn config_shows_what_the_flags_of_a_run_say_before_and_behind_it() {
    for flags in [
        &["--model", "one", "--yolo", "config"][..],
        &["--model", "one", "--yolo", "config", "model"],
        &["config", "--model", "one", "--yolo"],
        &["config", "model.name", "--model", "one"],
    ] {
        let program = qwen();
        user(&program, r#"{"model": {"name": "two"}}"#);
        let ended = program.args(flags).run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        let line = ended.stdout.lines().find(|line| line.starts_with("model.name")).unwrap();
        assert!(line.contains("one") && line.contains("--model"), "{flags:?}: {line}");
    }
    let ended = qwen().args(["--model", "demo", "config", "server"]).run();
    assert!(ended.stdout.contains("demo model"), "words that are no key are a prompt: {ended:?}");
}

#[test]
fn config_shows_everything_but_secrets() {
    let program = qwen().env("OPENAI_API_KEY", "key-in-the-environment");
    user(
        &program,
        r#"{"model": {"headers": {"authorization": "Bearer header-secret"}, "proxy": "http://bob:proxy-pass9@proxy.example:3128"}, "env": {"A": "env-secret"},
            "mcpServers": {"s": {"command": "x", "env": {"T": "server-secret"}, "args": ["--token=ghp_16C7e42F292c6912E7710c838347Ae178B4a"]}},
            "modle": {}}"#,
    );
    for flags in [&["config"][..], &["config", "--json"]] {
        let ended = program.clone().args(flags).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for secret in [
            "key-in-the-environment",
            "header-secret",
            "env-secret",
            "server-secret",
            "16C7e42F",
            "proxy-pass9",
        ] {
            assert!(!ended.stdout.contains(secret), "{secret}: {}", ended.stdout);
        }
        for shown in ["model.apiKey", "OPENAI_API_KEY", "***", "settings.json:1", "modle", "not trusted"] {
            assert!(ended.stdout.contains(shown), "{shown}: {}", ended.stdout);
        }
    }
    let ended = qwen().args(["config", "modle"]).run();
    assert_eq!(ended.code, Some(42));
    assert!(ended.stderr.contains("did you mean 'model'?"), "{ended:?}");
}
