//! The configuration of Claude's CLI applies to hosts of that family, by setting sources and trust.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::Value;

use crate::harness::{qwen, write};

/// A prompt in the `claude` dialect, from any host.
fn any_host(mock: &MockModel) -> Program {
    let flags = ["-p", "Hello", "--model", "mock", "--output-format", "stream-json", "--dialect", "claude"];
    qwen().with_model(mock).args(flags)
}

/// The same from a host that says that it is one of Claude's SDKs.
fn claude_host(mock: &MockModel) -> Program {
    any_host(mock).env("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
}

/// Runs a prompt and returns `system/init` with what the model was told.
fn init(program: &Program, mock: &MockModel) -> (Value, String) {
    mock.push(Reply::text("Done."));
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = ended.stdout.lines().find(|line| line.contains("\"init\"")).unwrap();
    let request = mock.requests().pop().unwrap();
    (serde_json::from_str(line).unwrap(), request.body["messages"][0]["content"].to_string())
}

#[test]
fn a_users_claude_settings_apply_to_claude_hosts_and_to_no_others() {
    let mock = MockModel::start();
    for (is_claude, style) in [(true, "Explanatory"), (false, "default")] {
        let program = if is_claude { claude_host(&mock) } else { any_host(&mock) };
        write(program.home_path().join(".claude/settings.json"), r#"{"outputStyle": "Explanatory"}"#);
        let (init, system) = init(&program, &mock);
        assert_eq!(init["output_style"], style);
        assert_eq!(system.contains("explain in two or three sentences"), is_claude, "{system}");
    }
}

#[test]
fn unsupported_keys_of_claude_settings_are_reported_in_one_line() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let program = claude_host(&mock);
    write(program.home_path().join(".claude/settings.json"), r#"{"statusLine": {}, "apiKeyHelper": "x"}"#);
    let ended = program.run();
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("statusLine")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    assert!(lines[0].contains("apiKeyHelper"), "{}", lines[0]);
}

#[test]
fn an_untrusted_folder_gives_claude_hosts_a_style_name_and_nothing_that_grants() {
    let mock = MockModel::start();
    let program = claude_host(&mock);
    let project = program.cwd_path().join(".claude");
    write(
        project.join("settings.local.json"),
        r#"{"outputStyle": "mine", "permissions": {"allow": ["Bash(touch *)"]},
            "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}"#,
    );
    write(project.join("output-styles/mine.md"), "Always answer in verse.");
    let (init, system) = init(&program, &mock);
    assert_eq!(init["output_style"], "mine");
    assert!(!system.contains("verse"), "{system}");
    assert!(!program.cwd_path().join("hooked").exists(), "a hook ran");
}

#[test]
fn a_trusted_folders_claude_settings_and_styles_count() {
    let mock = MockModel::start();
    let program = claude_host(&mock).args(["--trust-workspace"]);
    let project = program.cwd_path().join(".claude");
    write(
        project.join("settings.json"),
        r#"{"outputStyle": "mine",
            "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}"#,
    );
    write(project.join("output-styles/mine.md"), "---\nname: mine\n---\nAlways answer in verse.");
    let (init, system) = init(&program, &mock);
    assert_eq!(init["output_style"], "mine");
    assert!(system.contains("Always answer in verse."), "{system}");
    assert!(program.cwd_path().join("hooked").exists(), "the hook did not run");
}

#[test]
fn agents_of_a_project_count_where_the_host_names_it_as_a_source() {
    let mock = MockModel::start();
    for (sources, listed) in [("project", true), ("user", false)] {
        let program = claude_host(&mock).args(["--setting-sources", sources]);
        let file = program.cwd_path().join(".claude/agents/finder.md");
        write(file, "---\nname: finder\ndescription: Finds.\n---\nYou find things.");
        let (init, _) = init(&program, &mock);
        let agents = init["agents"].as_array().unwrap();
        assert_eq!(agents.iter().any(|agent| agent == "finder"), listed, "{sources}: {agents:?}");
    }
}

#[test]
fn claude_md_is_read_by_setting_sources_for_claude_hosts_and_as_a_fallback_for_others() {
    let mock = MockModel::start();
    let told = |program: Program, qwen_md: bool| {
        write(program.cwd_path().join("CLAUDE.md"), "The moon is made of cheese.");
        if qwen_md {
            write(program.cwd_path().join("QWEN.md"), "The sun is a lamp.");
        }
        let (_, system) = init(&program, &mock);
        (system.contains("cheese"), system.contains("lamp"))
    };
    assert_eq!(told(claude_host(&mock), true), (true, false), "by default");
    assert_eq!(told(claude_host(&mock).args(["--setting-sources", ""]), true), (false, false), "no source");
    assert_eq!(told(any_host(&mock), true), (false, true), "another host, beside QWEN.md");
    assert_eq!(told(any_host(&mock), false), (true, false), "another host, alone");
}

#[test]
fn claude_md_imports_the_files_that_its_lines_mention() {
    let mock = MockModel::start();
    let program = claude_host(&mock);
    write(program.cwd_path().join("CLAUDE.md"), "See @docs/moon.md for the sky.\n- not `@docs/sun.md`");
    write(program.cwd_path().join("docs/moon.md"), "The moon is made of cheese.");
    write(program.cwd_path().join("docs/sun.md"), "The sun is a lamp.");
    let (_, system) = init(&program, &mock);
    assert!(system.contains("cheese") && !system.contains("lamp"), "{system}");
    let denied = program.args(["--disallowedTools", "Read(docs/**)"]);
    let (_, system) = init(&denied, &mock);
    assert!(system.contains("See @docs/moon.md") && !system.contains("cheese"), "{system}");
}

/// A hook that leaves a file behind.
fn hook(file: &str) -> String {
    format!(
        r#""hooks": {{"UserPromptSubmit": [{{"hooks": [{{"type": "command", "command": "touch {file}"}}]}}]}}"#
    )
}

#[test]
fn hooks_can_be_switched_off_and_a_workspace_switches_off_its_own_only() {
    let on = r#"{"disableAllHooks": false}"#;
    let off = r#"{"disableAllHooks": true}"#;
    // What the user and the workspace say beside their hooks, and `--settings`; then whose hooks run.
    for (users, workspaces, given, expected) in [
        ("false", "false", "{}", (true, true)),
        ("true", "false", "{}", (false, false)),
        ("false", "true", "{}", (true, false)),
        ("false", "false", off, (false, false)),
        ("true", "false", on, (true, true)),
    ] {
        let mock = MockModel::with([Reply::text("Done.")]);
        let program = claude_host(&mock).args(["--trust-workspace", "--settings", given]);
        let of_user = format!(r#"{{"disableAllHooks": {users}, {}}}"#, hook("users"));
        let of_workspace = format!(r#"{{"disableAllHooks": {workspaces}, {}}}"#, hook("workspaces"));
        write(program.home_path().join(".claude/settings.json"), of_user);
        write(program.cwd_path().join(".claude/settings.json"), of_workspace);
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let ran = |name: &str| program.cwd_path().join(name).exists();
        assert_eq!((ran("users"), ran("workspaces")), expected, "{users} {workspaces} {given}: {ended:?}");
    }
}

#[test]
fn the_mode_that_bypasses_permissions_can_be_disabled_for_flags_settings_and_hosts() {
    let disabled = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
    let chosen =
        r#"{"permissions": {"disableBypassPermissionsMode": "disable", "defaultMode": "bypassPermissions"}}"#;
    let call = || Reply::call("c1", "Write", r#"{"file_path": "made", "content": "x"}"#);
    for flags in [
        &["--settings", disabled, "--dangerously-skip-permissions"][..],
        &["--settings", disabled, "--permission-mode", "bypassPermissions"],
        &["--settings", disabled, "--yolo"],
        &["--settings", chosen],
        &["--managed-settings", disabled, "--yolo"],
    ] {
        let mock = MockModel::with([call(), Reply::text("Done.")]);
        let program = claude_host(&mock).args(flags);
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        assert!(ended.stdout.contains(r#""permissionMode":"default""#), "{flags:?}: {ended:?}");
        assert_eq!(ended.stderr.matches("yolo (bypassPermissions) is disabled").count(), 1, "{ended:?}");
        assert!(!program.cwd_path().join("made").exists(), "{flags:?}");
    }
    let choose = r#"{"type":"control_request","request_id":"1","request":{"subtype":"set_permission_mode","mode":"bypassPermissions"}}"#;
    let prompt = r#"{"type":"user","message":{"role":"user","content":"Write it."}}"#;
    for (flags, is_refused) in
        [(&["--settings", disabled][..], true), (&["--restricted"], true), (&["--settings", "{}"], false)]
    {
        let mock = MockModel::with([call(), Reply::text("Done.")]);
        let program =
            qwen().with_model(&mock).env("CLAUDE_CODE_ENTRYPOINT", "sdk-py").args(["--model", "mock"]);
        let program =
            program.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        let program = program.args(flags).stdin(format!("{choose}\n{prompt}\n"));
        let ended = program.run();
        assert_eq!(ended.stdout.contains(r#""subtype":"error","request_id":"1""#), is_refused, "{ended:?}");
        assert_eq!(program.cwd_path().join("made").exists(), !is_refused, "{flags:?}: {ended:?}");
    }
}

/// Keys of the settings that the SDK for TypeScript declares, with a value for each that has no effect here.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("apiKeyHelper", r#""x""#),
    ("awsAuthRefresh", r#""x""#),
    ("cleanupPeriodDays", "30"),
    ("includeCoAuthoredBy", "false"),
    ("includeGitInstructions", "false"),
    ("attribution", r#"{"commit": ""}"#),
    ("availableModels", r#"["m"]"#),
    ("modelOverrides", "{}"),
    ("enableAllProjectMcpServers", "true"),
    ("enabledMcpjsonServers", r#"["a"]"#),
    ("allowedMcpServers", "[]"),
    ("deniedMcpServers", "[]"),
    ("allowManagedHooksOnly", "true"),
    ("allowManagedPermissionRulesOnly", "true"),
    ("statusLine", r#"{"type": "command", "command": "x"}"#),
    ("enabledPlugins", "{}"),
    ("extraKnownMarketplaces", "{}"),
    ("forceLoginMethod", r#""console""#),
    ("otelHeadersHelper", r#""x""#),
    ("language", r#""german""#),
    ("skipWebFetchPreflight", "true"),
    ("respectGitignore", "true"),
    ("defaultShell", r#""bash""#),
    ("alwaysThinkingEnabled", "true"),
    ("spinnerTipsEnabled", "false"),
    ("autoUpdatesChannel", r#""stable""#),
    ("plansDirectory", r#""plans""#),
    ("worktree", "{}"),
    ("skillOverrides", "{}"),
    ("fileSuggestion", "{}"),
];

#[test]
fn every_key_of_claude_settings_without_effect_is_reported_once() {
    for (key, value) in WITHOUT_EFFECT {
        for from_file in [true, false] {
            let mock = MockModel::with([Reply::text("Done.")]);
            let settings = format!(r#"{{"{key}": {value}}}"#);
            let mut program = claude_host(&mock);
            if from_file {
                write(program.home_path().join(".claude/settings.json"), settings);
            } else {
                program = program.args(["--settings", &settings]);
            }
            let ended = program.run();
            assert_eq!(ended.code, Some(0), "{key}: {ended:?}");
            let reports = ended.stderr.lines().filter(|line| line.contains(key)).count();
            assert_eq!(reports, 1, "{key}, from a file: {from_file}: {ended:?}");
        }
    }
}
