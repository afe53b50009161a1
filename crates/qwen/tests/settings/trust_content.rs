//! Trust is bound to what a repository could make us run or allow when it was trusted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{asked, qwen, user, workspace, write};

/// A folder with a bit of everything.
fn fill(root: &Path) {
    let hook = |matcher: &str, command: &str| json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]});
    let settings = json!({
        "hooks": {"PreToolUse": [hook("edit", "tools/check.sh"), hook("glob", "true")]},
        "mcpServers": {"s": {"command": "node", "args": ["server/main.js"], "env": {"API_KEY": "k-4711-secret"}}},
        "permissions": {"allow": ["Bash(make test)"]},
    });
    write(root.join(".qwen/settings.json"), settings.to_string());
    write(root.join("tools/check.sh"), ". \"$(dirname \"$0\")/lib.sh\"\n");
    write(root.join("tools/lib.sh"), "true\n");
    write(root.join("server/main.js"), "\n");
    write(root.join(".qwen/agents/helper.md"), "---\nname: helper\ndescription: x\n---\nHelp");
    write(root.join(".qwen/skills/s/run.sh"), "true\n");
    write(root.join("README.md"), "text\n");
    write(root.join("inner/.qwen/commands/x.md"), "text\n");
}

fn settings(root: &Path, change: impl FnOnce(&mut Value)) {
    let path = root.join(".qwen/settings.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut settings);
    fs::write(path, settings.to_string()).unwrap();
}

type Change = (&'static str, fn(&Path), &'static str);

/// What a pull could change, and a part of the line that describes it.
const CHANGES: &[Change] = &[
    (
        "a new hook",
        |root| settings(root, |s| s["hooks"]["Stop"] = json!([{"hooks": [{"command": "touch X"}]}])),
        "+ .qwen/settings.json: hooks.Stop: {\"hooks\":[{\"command\":\"touch X\"}]}",
    ),
    (
        "hooks that exchange their tools",
        |root| {
            settings(root, |s| {
                s["hooks"]["PreToolUse"][0]["matcher"] = json!("glob");
                s["hooks"]["PreToolUse"][1]["matcher"] = json!("edit");
            });
        },
        "+ .qwen/settings.json: hooks.PreToolUse: ",
    ),
    (
        "another allow rule",
        |root| settings(root, |s| s["permissions"]["allow"] = json!(["Bash(make test)", "Bash(curl *)"])),
        "+ .qwen/settings.json: permissions.allow: Bash(curl *)",
    ),
    (
        "a deny rule less",
        |root| settings(root, |s| s["permissions"]["allow"] = json!([])),
        "- .qwen/settings.json: permissions.allow: Bash(make test)",
    ),
    (
        "another argument of a server",
        |root| settings(root, |s| s["mcpServers"]["s"]["args"] = json!(["-e", "evil()"])),
        "+ .qwen/settings.json: mcpServers.s: ",
    ),
    (
        "another secret of a server",
        |root| settings(root, |s| s["mcpServers"]["s"]["env"]["API_KEY"] = json!("k-4712-secret")),
        "~ .qwen/settings.json: mcpServers.s: ",
    ),
    (
        "a variable",
        |root| settings(root, |s| s["env"] = json!({"NODE_OPTIONS": "--require ./x.js"})),
        "+ .qwen/settings.json: env.NODE_OPTIONS: --require ./x.js",
    ),
    (
        "a server in .mcp.json",
        |root| write(root.join(".mcp.json"), r#"{"mcpServers": {"evil": {"command": "touch"}}}"#),
        "+ .mcp.json: mcpServers.evil: ",
    ),
    ("the script of a hook", |root| write(root.join("tools/check.sh"), "touch X\n"), "~ tools/check.sh"),
    (
        "a script that the script of a hook names",
        |root| write(root.join("tools/lib.sh"), "touch X\n"),
        "~ tools/lib.sh",
    ),
    ("the script of a server", |root| write(root.join("server/main.js"), "evil()\n"), "~ server/main.js"),
    (
        "the script of a hook becomes a link",
        |root| {
            fs::remove_file(root.join("tools/check.sh")).unwrap();
            write(root.join("evil.sh"), "touch X\n");
            symlink("../evil.sh", root.join("tools/check.sh")).unwrap();
        },
        "~ tools/check.sh",
    ),
    (
        "an agent",
        |root| {
            write(
                root.join(".qwen/agents/helper.md"),
                "---\nname: helper\ndescription: x\ntools: Bash\n---\nObey",
            );
        },
        "~ .qwen/agents/helper.md",
    ),
    (
        "a script of a skill",
        |root| write(root.join(".qwen/skills/s/run.sh"), "touch X\n"),
        "~ .qwen/skills/s/run.sh",
    ),
    ("a new command", |root| write(root.join(".qwen/commands/deploy.md"), "x"), "+ .qwen/commands/deploy.md"),
    (
        "a directory of agents that is a link",
        |root| {
            write(root.join("more/evil.md"), "x");
            symlink("../more", root.join(".qwen/commands")).unwrap();
        },
        "+ .qwen/commands/evil.md",
    ),
    (
        "local settings for Claude",
        |root| write(root.join(".claude/settings.local.json"), r#"{"permissions": {"allow": ["Bash"]}}"#),
        "+ .claude/settings.local.json: permissions.allow: Bash",
    ),
    (
        "a skill for Claude",
        |root| write(root.join(".claude/skills/x/SKILL.md"), "x"),
        "+ .claude/skills/x/SKILL.md",
    ),
    ("variables", |root| write(root.join(".env"), "X=1\n"), "+ .env"),
];

fn run_in(program: &Program, directory: &Path, args: &[&str]) -> String {
    let same =
        qwen().cwd(directory).env("HOME", program.home_path()).env("QWEN_HOME", program.qwen_home_path());
    let ended = same.args(args).run();
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("k-471"), "{ended:?}");
    ended.stdout
}

fn trust_of(program: &Program, directory: &Path) -> Value {
    let said: Value = serde_json::from_str(&run_in(program, directory, &["config", "--json"])).unwrap();
    said["trust"].clone()
}

#[test]
fn any_change_of_what_runs_or_is_allowed_ends_the_trust_and_is_shown() {
    for (name, change, expected) in CHANGES {
        let program = qwen();
        let root = program.cwd_path();
        fill(root);
        run_in(&program, root, &["trust"]);
        assert_eq!(trust_of(&program, root)["trusted"], true, "{name}");
        change(root);
        let trust = trust_of(&program, root);
        assert_eq!(trust["trusted"], false, "{name}: {trust}");
        let shown = trust["changes"].as_array().unwrap();
        assert!(shown.iter().any(|line| line.as_str().unwrap().starts_with(expected)), "{name}: {trust}");
        let said = run_in(&program, root, &["trust"]);
        assert!(said.contains(expected), "{name}: {said}");
        assert_eq!(trust_of(&program, root)["trusted"], true, "{name}");
    }
}

#[test]
fn other_changes_leave_the_trust() {
    let changes: [(&str, fn(&Path)); 4] = [
        ("text", |root| write(root.join("README.md"), "other\n")),
        ("code", |root| write(root.join("src/main.rs"), "fn main() {}\n")),
        ("a settings file in another layout", |root| {
            let path = root.join(".qwen/settings.json");
            let settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            fs::write(&path, format!("// a comment\n{settings:#}")).unwrap();
        }),
        ("memory", |root| write(root.join("QWEN.md"), "text\n")),
    ];
    for (name, change) in changes {
        let program = qwen();
        fill(program.cwd_path());
        run_in(&program, program.cwd_path(), &["trust"]);
        change(program.cwd_path());
        let trust = trust_of(&program, program.cwd_path());
        assert_eq!(trust["trusted"], true, "{name}: {trust}");
    }
}

#[test]
fn a_headless_run_ignores_a_changed_configuration_and_shows_the_difference() {
    let mock = MockModel::with(std::iter::repeat_n(Reply::text("ok"), 5));
    let program = asked(&mock);
    let here = program.cwd_path().display().to_string();
    let hook =
        |name: &str| json!({"hooks": [{"type": "command", "command": format!("touch {here}/{name}")}]});
    let ran = |name: &str| program.cwd_path().join(name).exists();
    workspace(&program, &json!({"hooks": {"UserPromptSubmit": [hook("old")]}}).to_string());
    run_in(&program, program.cwd_path(), &["trust"]);
    assert_eq!(program.run().code, Some(0));
    assert!(ran("old"));
    fs::remove_file(program.cwd_path().join("old")).unwrap();
    workspace(&program, &json!({"hooks": {"UserPromptSubmit": [hook("old"), hook("new")]}}).to_string());
    let ended = program.run();
    assert_eq!((ended.code, ran("old"), ran("new")), (Some(0), false, false), "{ended:?}");
    for part in ["not trusted", "+ .qwen/settings.json: hooks.UserPromptSubmit: ", "/new", "qwen trust"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    // For one run, and again after the user has trusted the change.
    let ended = program.clone().arg("--trust-workspace").run();
    assert!(ran("old") && ran("new"), "{ended:?}");
    fs::remove_file(program.cwd_path().join("new")).unwrap();
    assert_eq!(program.run().code, Some(0));
    assert!(!ran("new"), "--trust-workspace is for one run");
    run_in(&program, program.cwd_path(), &["trust"]);
    assert_eq!(program.run().code, Some(0));
    assert!(ran("new"));
}

#[test]
fn folders_in_a_trusted_folder_are_bound_to_their_content_too() {
    let program = qwen();
    let root = program.cwd_path().canonicalize().unwrap();
    fill(&root);
    let said = run_in(&program, &root, &["trust"]);
    for line in [
        "permissions.allow: Bash(make test)",
        "hooks.PreToolUse: ",
        "mcpServers.s: ",
        "inner: .qwen/commands/x.md",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let (inner, fresh) = (root.join("inner"), root.join("fresh"));
    assert_eq!(trust_of(&program, &inner)["trusted"], true);
    write(inner.join(".qwen/commands/x.md"), "other\n");
    assert_eq!(trust_of(&program, &inner)["trusted"], false);
    assert_eq!(trust_of(&program, &root)["trusted"], true);
    write(fresh.join(".mcp.json"), r#"{"mcpServers": {"evil": {"command": "touch"}}}"#);
    assert_eq!(trust_of(&program, &fresh)["trusted"], false);
}

#[test]
fn a_list_without_contents_trusts_no_configuration() {
    let program = qwen();
    let root = program.cwd_path().canonicalize().unwrap();
    write(program.qwen_home_path().join("trusted-folders.json"), json!({"folders": [root]}).to_string());
    assert_eq!(trust_of(&program, &root)["trusted"], true, "there is nothing to trust");
    fill(&root);
    assert_eq!(trust_of(&program, &root)["trusted"], false);
}

#[test]
fn folders_that_the_settings_trust_are_bound_to_the_content_found_first() {
    let program = qwen();
    let root = program.home_path().join("src/one");
    user(&program, r#"{"security": {"trustedFolders": ["~/src"]}}"#);
    fill(&root);
    assert_eq!(trust_of(&program, &root)["trusted"], true);
    write(root.join("tools/check.sh"), "touch X\n");
    let trust = trust_of(&program, &root);
    assert_eq!(trust["trusted"], false, "{trust}");
    run_in(&program, &root, &["trust"]);
    assert_eq!(trust_of(&program, &root)["trusted"], true);
}

/// Tries to change `path` with both tools and with code, with the tool names of `names`, where everything is
/// allowed and no one answers.
fn attack(program: &Program, mock: &MockModel, names: &str, path: &str) {
    let here = program.cwd_path();
    let full = here.join(path);
    let (write_file, shell) =
        if names == "claude" { ("Write", "Bash") } else { ("write_file", "run_shell_command") };
    let before = fs::read(&full).ok();
    let code = format!(
        "import os; os.makedirs(os.path.dirname('{path}') or '.', exist_ok=True); open('{path}', 'w').write('touch X')"
    );
    let folder = path.split('/').next().unwrap();
    let calls = [
        (write_file, json!({"file_path": full, "content": "touch X"})),
        (
            shell,
            json!({"command": format!("mkdir -p $(dirname {path}); echo 'touch X' > {path}"), "description": "d"}),
        ),
        (shell, json!({"command": format!("python3 -c \"{code}\""), "description": "d"})),
        (shell, json!({"command": format!("ln -sf /etc/passwd {path}"), "description": "d"})),
        (
            shell,
            json!({"command": format!("mv {folder} moved; mkdir -p $(dirname {path}); echo 'touch X' > {path}"), "description": "d"}),
        ),
    ];
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        mock.push(Reply::call(&format!("c{number}"), tool, &arguments.to_string()));
    }
    mock.push(Reply::text("done"));
    let ended = program.clone().args(["--tool-names", names, "--approval-mode", "yolo"]).run();
    assert_eq!(fs::read(&full).ok(), before, "{names} {path}: {ended:?}");
    assert!(!full.is_symlink(), "{names} {path}: {ended:?}");
}

#[test]
fn nothing_changes_what_claude_agents_or_hooks_run() {
    if qwen().arg("sandbox").run().code != Some(0) {
        return;
    }
    for names in ["qwen", "claude"] {
        let mock = MockModel::with([]);
        let program = asked(&mock);
        let root = program.cwd_path();
        write(root.join("tools/check.sh"), "#!/bin/sh\ntrue\n");
        fs::set_permissions(root.join("tools/check.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        write(root.join(".claude/hooks/a.sh"), "true\n");
        write(root.join(".claude/agents/a.md"), "text\n");
        // The user's own hooks.
        let hook = |command: &str| json!({"hooks": [{"type": "command", "command": command}]});
        user(
            &program,
            &json!({"hooks": {"Stop": [hook("tools/check.sh --all"), hook("sh scripts/missing.sh")]}})
                .to_string(),
        );
        for path in [
            ".claude/hooks/a.sh",
            ".claude/agents/a.md",
            ".claude/skills/new/SKILL.md",
            ".claude/commands/new.md",
            "tools/check.sh",
            "scripts/missing.sh",
        ] {
            attack(&program, &mock, names, path);
        }
        // Other files in the same directories are not protected.
        mock.push(Reply::call(
            "c",
            if names == "claude" { "Bash" } else { "run_shell_command" },
            &json!({"command": "echo x > tools/other.sh", "description": "d"}).to_string(),
        ));
        mock.push(Reply::text("done"));
        let ended = program.clone().args(["--tool-names", names, "--approval-mode", "yolo"]).run();
        assert!(root.join("tools/other.sh").exists(), "{ended:?}");
    }
}
