//! The flags that the SDKs of Qwen Code and Claude give.

use mock_model::{MockModel, Reply};

use crate::harness::{asked, qwen, write};

/// Everything that the two pages of reference list, as their programs write it.
const QWEN_SDK: &[&str] = &[
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--channel=SDK",
    "--model",
    "m",
    "--system-prompt",
    "- be brief",
    "--append-system-prompt",
    "",
    "--approval-mode",
    "auto",
    "--max-session-turns",
    "-1",
    "--core-tools",
    "edit,read_file",
    "--exclude-tools",
    "edit",
    "--allowed-tools",
    "Bash(git log a,b),Read",
    "--auth-type",
    "openai",
    "--include-partial-messages",
    "--session-id",
    "3f0a4f34-0000-4000-8000-000000000000",
    "--max-tool-calls",
    "5",
    "--max-subagent-depth",
    "2",
    "--include-directories",
    "/tmp,/usr",
    "--extensions",
    "a,b",
    "--allowed-mcp-server-names",
    "x",
    "--fallback-model",
    "a,b",
    "--insecure",
    "--worktree",
    "--disabled-slash-commands",
    "a,b",
    "--safe-mode",
    "--no-chat-recording",
    "--openai-logging",
    "--openai-logging-dir",
    "/tmp",
    "--sandbox-image",
    "i",
    "--json-schema",
    "{}",
    "--json-fd",
    "9",
    "--json-file",
    "f",
    "--input-file",
    "f",
    "--sandbox-session-id",
    "s",
    "--max-wall-time",
    "5m",
    "--debug",
    "--bare",
    "--telemetry",
    "--telemetry-target",
    "local",
    "--telemetry-otlp-endpoint",
    "http://127.0.0.1:1",
    "--telemetry-otlp-protocol",
    "grpc",
    "--telemetry-log-prompts",
    "--telemetry-outfile",
    "f",
    "--experimental-lsp",
    "--output-style",
    "s",
    "--screen-reader",
];

const CLAUDE_SDK: &[&str] = &[
    "--output-format",
    "stream-json",
    "--verbose",
    "--input-format",
    "stream-json",
    "--allowedTools",
    "Bash,Read",
    "--disallowedTools",
    "WebSearch",
    "--tools",
    "default",
    "--permission-prompt-tool",
    "stdio",
    "--permission-mode",
    "acceptEdits",
    "--max-turns",
    "3",
    "--max-budget-usd",
    "1.5",
    "--task-budget",
    "7",
    "--model",
    "claude-sonnet-4",
    "--fallback-model",
    "n",
    "--betas",
    "b",
    "--thinking",
    "adaptive",
    "--max-thinking-tokens",
    "10",
    "--thinking-display",
    "summarized",
    "--effort",
    "high",
    "--json-schema",
    "{\"type\":\"object\"}",
    "--session-id",
    "3f0a4f34-0000-4000-8000-000000000001",
    "--resume-drops-turn",
    "--session-mirror",
    "--no-session-persistence",
    "--settings",
    "{\"permissions\":{\"allow\":[\"Bash(ls:*)\"]}}",
    "--setting-sources=",
    "--add-dir",
    "/tmp",
    "--add-dir",
    "/usr",
    "--mcp-config",
    "{\"mcpServers\":{}}",
    "--strict-mcp-config",
    "--plugin-dir",
    "p",
    "--include-partial-messages",
    "--include-hook-events",
    "--replay-user-messages",
    "--system-prompt",
    "",
    "--append-system-prompt",
    "more",
    "--allow-dangerously-skip-permissions",
    "--await-initialize",
    "--debug",
    "--debug-file",
    "f",
    "--agent",
    "react",
];

#[test]
fn everything_that_the_sdks_may_give_is_accepted() {
    let ignored_options = ["--bare", "--experimental-lsp", "--output-style"];
    for (flags, noted) in [(QWEN_SDK, &ignored_options[..]), (CLAUDE_SDK, &["--betas", "--task-budget"])] {
        let mock = MockModel::with([Reply::call("c1", "structured_output", r#"{"value":{}}"#)]);
        let line = r#"{"type":"user","session_id":"","message":{"role":"user","content":"Hello"},"parent_tool_use_id":null}"#;
        let ended = qwen().with_model(&mock).args(flags).stdin(format!("{line}\n")).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(mock.requests().len(), 1, "{ended:?}");
        // What changes nothing is said, once each, and only to people.
        let notes: Vec<&str> =
            ended.stderr.lines().filter(|line| line.contains("changes nothing here")).collect();
        for flag in noted {
            let about = notes.iter().filter(|note| note.starts_with(&format!("qwen: {flag} ")));
            assert_eq!(about.count(), 1, "{flag}: {notes:?}");
        }
        for flag in ["--model", "--effort", "--debug", "--thinking-display"] {
            assert!(!notes.iter().any(|note| note.contains(&format!("{flag} "))), "{flag}: {notes:?}");
        }
        assert!(!ended.stdout.contains("changes nothing"), "{ended:?}");
    }
}

#[test]
fn flags_without_effect_are_not_in_the_help() {
    let help = qwen().arg("--help").run().stdout;
    for flag in ["--bare", "--experimental-lsp", "--output-style", "--worktree"] {
        assert!(!help.contains(flag), "{flag}");
    }
    for flag in ["--settings", "--trust-workspace", "--allowed-tools", "--sandbox", "--betas"] {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn both_forms_of_a_flag_and_all_spellings_of_a_list_mean_the_same() {
    for flags in [
        &["--tools", "edit,read_file"][..],
        &["--tools=edit,read_file"],
        &["--core-tools", "EditTool, ReadFile"],
        &["--tools=Edit,Read", "--exclude-tools", "glob"],
    ] {
        let mock = MockModel::with([Reply::text("ok")]);
        let ended = asked(&mock).args(flags).run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        let mut names = mock.requests()[0].tool_names().join(",");
        names = names.replace("read_file,edit", "edit,read_file");
        assert_eq!(names, "edit,read_file", "{flags:?}");
    }
    let mock = MockModel::with([Reply::text("ok")]);
    assert_eq!(asked(&mock).args(["--tools", ""]).run().code, Some(0));
    assert!(mock.requests()[0].tool_names().is_empty());
}

#[test]
fn added_directories_are_part_of_the_workspace() {
    let call =
        |path: &str| Reply::call("c1", "read_file", &serde_json::json!({"file_path": path}).to_string());
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("notes.txt");
    write(&file, "words from afar");
    for (flags, seen) in [
        (vec![], false),
        (vec!["--add-dir".to_owned(), outside.path().display().to_string()], true),
        (vec![format!("--include-directories=/usr,{}", outside.path().display())], true),
    ] {
        let mock = MockModel::with([call(&file.display().to_string()), Reply::text("ok")]);
        let ended = asked(&mock).args(&flags).run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        let back = mock.requests()[1].messages().last().unwrap().to_string();
        assert_eq!(back.contains("words from afar"), seen, "{flags:?}: {back}");
    }
    let mock = MockModel::with([Reply::text("ok")]);
    let ended = asked(&mock).args(["--add-dir", "/no/such/dir"]).run();
    assert!(ended.code == Some(0) && ended.stderr.contains("/no/such/dir"), "{ended:?}");
}

#[test]
fn an_added_directory_may_have_a_comma_in_its_name() {
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().join("a,b");
    let file = directory.join("notes.txt");
    std::fs::create_dir(&directory).unwrap();
    write(&file, "words from afar");
    let call = serde_json::json!({"file_path": file}).to_string();
    let mock = MockModel::with([Reply::call("c1", "read_file", &call), Reply::text("ok")]);
    let ended = asked(&mock).args(["--add-dir", &directory.display().to_string()]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let back = mock.requests()[1].messages().last().unwrap().to_string();
    assert!(back.contains("words from afar"), "{back}");
}

#[test]
fn a_sandbox_may_be_asked_for_bare_or_with_a_word() {
    for flags in [&["--sandbox=false"][..], &["--sandbox", "false"], &["--no-sandbox"], &["-s", "false"]] {
        let call = Reply::call("c1", "run_shell_command", r#"{"command":"echo done > made"}"#);
        let mock = MockModel::with([call, Reply::text("ok")]);
        let program = asked(&mock).arg("--yolo").args(flags);
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        assert!(program.cwd_path().join("made").exists(), "{flags:?}");
    }
}

#[test]
fn a_log_for_debugging_goes_to_its_file_and_never_to_standard_output() {
    for (path, kept) in [("debug.log", true), ("/dev/stdout", false), ("/nowhere/at/all.log", false)] {
        let mock = MockModel::with([Reply::text("ok")]);
        let program = asked(&mock).args(["--output-format", "stream-json", "--debug-file", path]);
        let place = program.cwd_path().to_owned();
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains("[DEBUG]") && !ended.stderr.contains("[DEBUG]"), "{ended:?}");
        assert_eq!(ended.stderr.contains(&format!("--debug-file {path}: ")), !kept, "{ended:?}");
        if kept {
            let log = std::fs::read_to_string(place.join(path)).unwrap();
            let logged = log.lines().filter(|line| line.contains("[DEBUG] out ")).count();
            assert_eq!(logged, ended.stdout.lines().count(), "{log}");
        }
    }
}

#[test]
fn a_plugin_displaces_no_server_of_the_settings_and_heeds_which_are_wanted() {
    let servers =
        r#"{"mcpServers":{"known":{"command":"plugins"},"barred":{"command":"x"},"new":{"command":"y"}}}"#;
    let mock = MockModel::with([Reply::text("ok")]);
    let program = asked(&mock).args(["--plugin-dir", "plugin", "--dialect", "claude"]);
    write(program.cwd_path().join("plugin/.mcp.json"), servers);
    let own = r#"{"mcpServers":{"known":{"command":"own"}},"mcp":{"excluded":["barred"]}}"#;
    let ended = program.args(["--settings", own]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let init: serde_json::Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    let names: Vec<&str> = init["mcp_servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["known", "new"], "{init}");
    assert!(ended.stderr.contains("an MCP server 'known' already"), "{ended:?}");
}
