//! The configuration of Claude's CLI applies to hosts of that family, by setting sources and trust.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::Value;

use crate::stage::{qwen, write};

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
