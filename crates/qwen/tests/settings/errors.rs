//! Settings that cannot be used end the run, in the words of its dialect, and say where the trouble is.

use crate::harness::{qwen, user, workspace, write};

#[test]
fn an_error_names_file_line_and_key_in_every_dialect() {
    for flags in [
        &[][..],
        &["--output-format", "stream-json", "--dialect", "qwen"],
        &["--output-format", "stream-chunk-json", "--dialect", "qwen"],
        &["--output-format", "stream-json", "--dialect", "claude"],
        &["--output-format", "stream-json", "--dialect", "claude-lite"],
        &["--output-format", "stream-json", "--dialect", "loom"],
        &["--output-format", "stream-json", "--dialect", "loom-export"],
        &["--output-format", "stream-json", "--dialect", "core"],
        &["--input-format", "stream-json", "--output-format", "stream-json"],
    ] {
        let program = qwen().args(["-p", "x"]).args(flags);
        user(&program, "{\n  \"model\": {\n    \"maxRetries\": \"many\"\n  }\n}");
        let ended = program.run();
        assert_eq!(ended.code, Some(52), "{flags:?}: {ended:?}");
        let file = program.qwen_home_path().join("settings.json").display().to_string();
        let place = format!("{file}, line 3, column 19");
        let mut told = vec![&ended.stderr];
        if !flags.is_empty() {
            told.push(&ended.stdout);
        }
        for text in told {
            let text = text.replace("\\\"", "\"");
            for part in
                [place.as_str(), "\"model.maxRetries\"", "expected a whole number", "found the text \"many\""]
            {
                assert!(text.contains(part), "{flags:?}: {part}: {text}");
            }
        }
    }
}

#[test]
fn every_source_is_named_in_its_errors() {
    let bad = r#"{"tools": {"sandbox": "maybe"}}"#;
    let home = qwen();
    user(&home, bad);
    let project = qwen().arg("--trust-workspace");
    workspace(&project, bad);
    let system = qwen();
    let path = system.home_path().join("s.json");
    write(&path, bad);
    let system = system.env("QWEN_CODE_SYSTEM_SETTINGS_PATH", &path);
    for (program, name, code) in [
        (home, ".qwen/settings.json, line 1, column 23", 52),
        (project, ".qwen/settings.json, line 1, column 23", 52),
        (system, "s.json, line 1, column 23", 52),
        (qwen().args(["--settings", bad]), "--settings, line 1, column 23", 52),
        (qwen().args(["--settings", "no-such-file.json"]), "no-such-file.json", 52),
        (qwen().args(["--settings", "{"]), "--settings, line 1, column 2", 52),
        (
            qwen().args(["--mcp-config", r#"{"mcpServers": {"a__b": {"command": "x"}}}"#]),
            "mcpServers.a__b",
            52,
        ),
        (qwen().args(["--mcp-config", "no-such-file.json"]), "--mcp-config", 42),
        (qwen().args(["--system-prompt-file", "no-such-file.txt"]), "--system-prompt-file", 42),
        (qwen().env("QWEN_SANDBOX", "maybe"), "QWEN_SANDBOX", 52),
        (qwen().args(["--sandbox=maybe"]), "--sandbox", 2),
        (qwen().args(["--allowed-tools", "Bash("]), "--allowed-tools", 2),
    ] {
        let ended = program.args(["-p", "x"]).run();
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        assert!(ended.stderr.contains(name), "{name}: {ended:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_one_that_is_empty_is_not() {
    let program = qwen().args(["-p", "hi", "-m", "demo"]);
    user(&program, "");
    assert_eq!(program.run().code, Some(0));
    std::fs::remove_file(program.qwen_home_path().join("settings.json")).unwrap();
    std::fs::create_dir(program.qwen_home_path().join("settings.json")).unwrap();
    let ended = program.run();
    assert_eq!(ended.code, Some(52));
    assert!(ended.stderr.contains("it is not a regular file"), "{ended:?}");
}

#[test]
fn an_unknown_key_is_a_warning_and_the_run_goes_on() {
    for flags in [&[][..], &["--output-format", "stream-json"]] {
        let program = qwen().args(["-p", "hi", "-m", "demo"]).args(flags);
        user(&program, "{\n \"permisions\": {}}");
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("settings.json:2: the key \"permisions\" is unknown"), "{ended:?}");
        assert!(ended.stderr.contains("did you mean \"permissions\"?"), "{ended:?}");
        assert!(!ended.stdout.contains("permisions"), "{ended:?}");
    }
}

#[test]
fn a_pipe_in_the_place_of_settings_is_refused_and_not_waited_for() {
    let pipe = |path: &std::path::Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    };
    let home = qwen();
    pipe(&home.qwen_home_path().join("settings.json"));
    let project = qwen().arg("--trust-workspace");
    pipe(&project.cwd_path().join(".qwen/settings.json"));
    let servers = qwen().arg("--trust-workspace");
    pipe(&servers.cwd_path().join(".mcp.json"));
    let given = qwen().args(["--settings", "pipe"]);
    pipe(&given.cwd_path().join("pipe"));
    let profile = qwen().args(["--settings-profile", "p"]);
    pipe(&profile.qwen_home_path().join("profiles/p.json"));
    for (program, name) in [
        (home, "settings.json"),
        (project, "settings.json"),
        (servers, ".mcp.json"),
        (given, "pipe"),
        (profile, "p.json"),
    ] {
        let ended = program.args(["-p", "x"]).run();
        assert_eq!(ended.code, Some(52), "{name}: {ended:?}");
        assert!(
            ended.stderr.contains(name) && ended.stderr.contains("not a regular file"),
            "{name}: {}",
            ended.stderr
        );
    }
}
