//! Valid settings are read, and invalid ones are reported with their position.

use super::*;

fn read(text: &str) -> Result<(Settings, Vec<String>), ErrorInfo> {
    let document = parse(text, Layer::User, "/home/u/.qwen/settings.json")?;
    Ok((settings(&document.root)?, document.warnings))
}

#[test]
fn an_error_names_file_line_key_and_what_was_expected() {
    #[rustfmt::skip]
    let cases = [
        ("{\n \"model\": {\"maxRetries\": \"many\"}}", "line 2, column 26: \"model.maxRetries\": ", "expected a whole number, not negative, found the text \"many\""),
        ("{\"model\": {\"maxRetries\": -1}}", "line 1, column 26: \"model.maxRetries\": ", "expected a whole number, not negative, found -1"),
        ("{\"model\": 7}", "line 1, column 11: \"model\": ", "expected an object, found 7"),
        ("{\"model\": []}", "\"model\": ", "expected an object, found a list"),
        ("{\"model\": {\"name\": true}}", "\"model.name\": ", "expected a text, found true"),
        ("{\"model\": {\"connectTimeout\": \"soon\"}}", "\"model.connectTimeout\": ", "expected a number of seconds, or a time like \"90s\" or \"5m\", found the text \"soon\""),
        ("{\"tools\": {\"sandbox\": 3}}", "\"tools.sandbox\": ", "expected \"auto\", true or false, found 3"),
        ("{\"permissions\": {\"defaultMode\": \"wild\"}}", "\"permissions.defaultMode\": ", "\"dontAsk\", \"auto-edit\" or \"yolo\", found the text \"wild\""),
        ("{\"permissions\": {\"allow\": \"Bash\"}}", "\"permissions.allow\": ", "expected a list, found the text \"Bash\""),
        ("{\"permissions\": {\"allow\":\n [\"Bash\", 7]}}", "line 2, column 11: \"permissions.allow[1]\": ", "expected a text, found 7"),
        ("{\"permissions\": {\"deny\": [\"Bash(\"]}}", "\"permissions.deny\": ", "parenthesis"),
        ("{\"mcpServers\": {\"a__b\": {\"command\": \"x\"}}}", "\"mcpServers.a__b\": ", "must not contain `__`"),
        ("{\"mcpServers\": {\"a\": {}}}", "\"mcpServers.a\": ", "it needs `command`"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"y\"}}}", "\"mcpServers.a.args\": ", "expected a list"),
        ("{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"magic\"}]}]}}", "\"hooks.PreToolUse[0].hooks[0].type\": ", "expected \"command\" or \"http\", found the text \"magic\""),
        ("{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"http\"}]}]}}", "\"hooks.PreToolUse\": ", "expected \"url\""),
        ("{\"output\": {\"dialect\": \"klingon\"}}", "\"output.dialect\": ", "\"claude-lite\""),
        ("[]", "settings.json:1", "must be an object"),
        ("{\"model\" 1}", "line 1, column 10: ", "':' after the key"),
    ];
    for (text, place, words) in cases {
        let error = read(text).err().unwrap_or_else(|| panic!("{text} was read"));
        assert_eq!(error.exit_code(), 52);
        assert!(error.message.contains("/home/u/.qwen/settings.json"), "{error}");
        assert!(error.message.contains(place) && error.message.contains(words), "{text}\n{error}");
    }
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_known_one() {
    let (_, warnings) = read(
        "{\"$schema\": \"x\", \"//\": \"note\",\n \"modle\": {},\n \"model\": {\"nmae\": \"x\", \"quantumFlux\": 1},\n \"hooks\": {\"PreTolUse\": []}}",
    )
    .unwrap();
    assert_eq!(
        warnings,
        [
            "/home/u/.qwen/settings.json:2: the key \"modle\" is unknown and ignored; did you mean \"model\"?",
            "/home/u/.qwen/settings.json:3: the key \"model.nmae\" is unknown and ignored; did you mean \"model.name\"?",
            "/home/u/.qwen/settings.json:3: the key \"model.quantumFlux\" is unknown and ignored",
            "/home/u/.qwen/settings.json:4: the key \"hooks.PreTolUse\" is unknown and ignored; did you mean \"hooks.PreToolUse\"?",
        ]
    );
}

#[test]
fn everything_that_may_stand_in_a_file_is_read() {
    let (settings, warnings) = read(
        r#"{
          // A comment
          "model": {"name": "m", "baseUrl": "http://h/v1", "apiKeyEnv": "K", "maxRetries": 1, "connectTimeout": 2.5,
                    "firstTokenTimeout": "2m", "stallTimeout": 3, "contextWindow": 9, "fallbackModels": ["a"], "maxTokens": 7},
          "output": {"dialect": "loom", "format": "json"},
          "permissions": {"allow": ["Bash(git log *)"], "ask": ["Edit"], "deny": ["Read(~/.ssh/**)"], "defaultMode": "acceptEdits"},
          "tools": {"sandbox": "auto", "core": ["edit"], "allowed": ["Read"], "exclude": ["shell"],
                    "shell": {"timeoutMs": 5, "outputLimit": 6}, "webFetch": {"allowPrivateHosts": ["localhost:80"]}},
          "mcpServers": {"s": {"command": "c", "args": ["a"], "env": {"E": "v"}, "cwd": "/", "timeout": 1, "trust": false,
                               "includeTools": ["t"], "excludeTools": []},
                         "h": {"httpUrl": "http://h", "headers": {"X": "y"}}},
          "mcp": {"allowed": ["s"], "excluded": []},
          "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "c", "timeout": 5, "onFailure": "block"},
                                                                  {"type": "http", "url": "http://h"}]}]},
          "agent": {"name": "tot", "tot": {"search": "bfs", "breadth": 1, "proposals": 2, "depth": 3, "samples": 4, "threshold": 0.5},
                    "got": {"maxNodes": 5}, "maxSubagentDepth": 2, "adaptive": true, "parallel": 3},
          "limits": {"maxSessionTurns": -1, "maxTurns": 1, "maxToolCalls": 2, "maxWallTime": "5m", "maxTokensTotal": 3},
          "general": {"chatRecording": false}, "telemetry": {"enabled": false},
          "security": {"trustedFolders": ["~/src"]},
          "context": {"fileName": "AGENTS.md", "includeDirectories": ["/x"], "maxFileSize": 1},
          "slashCommands": {"disabled": ["copy"]}, "env": {"A": "b"},
        }"#,
    )
    .unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(settings.model.connect_timeout, Some(std::time::Duration::from_millis(2500)));
    assert_eq!(settings.model.first_token_timeout, Some(std::time::Duration::from_secs(120)));
    assert_eq!(settings.permissions.default_mode, Some(qwen_permissions::Mode::AutoEdit));
    assert_eq!(&*settings.permissions.allow[0].origin, "/home/u/.qwen/settings.json:6");
    assert_eq!(settings.tools.sandbox, Some(Sandbox::Auto));
    assert_eq!(settings.context.file_name, ["AGENTS.md"]);
    assert_eq!(settings.hooks.pre_tool_use[0].value.hooks[0].on_failure, OnFailure::Block);
    assert_eq!(settings.limits.max_wall_time, Some(std::time::Duration::from_secs(300)));
}

#[test]
fn the_keys_of_other_programs_are_understood() {
    let (settings, warnings) = read(
        r#"{"model": "opus", "approvalMode": "plan", "allowedTools": ["Bash(ls:*)"], "permissions": {"additionalDirectories": ["/d"]},
            "security": {"auth": {"selectedType": "anthropic", "apiKey": "k", "baseUrl": "http://b"}}, "fallbackModel": "f"}"#,
    )
    .unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(settings.model.name.as_deref(), Some("opus"));
    assert_eq!(settings.model.auth_type.as_deref(), Some("anthropic"));
    assert_eq!(settings.model.api_key.as_deref(), Some("k"));
    assert_eq!(settings.model.base_url.as_deref(), Some("http://b"));
    assert_eq!(settings.model.fallback_models.as_deref(), Some(&["f".to_owned()][..]));
    assert_eq!(settings.permissions.default_mode, Some(qwen_permissions::Mode::Plan));
    assert_eq!(settings.permissions.allow[0].value, "Bash(ls:*)");
    assert_eq!(settings.context.include_directories, ["/d"]);
}

#[test]
fn null_is_as_good_as_nothing() {
    let (settings, warnings) = read(r#"{"model": null, "tools": {"core": null, "sandbox": null}}"#).unwrap();
    assert_eq!((settings, warnings), (Settings::default(), Vec::new()));
}

#[test]
fn the_committed_schema_is_that_of_the_settings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/settings.json");
    let fresh = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("QWEN_BLESS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == fresh,
        "schemas/settings.json has drifted; run the tests with QWEN_BLESS=1 and commit it"
    );
}
