//! `qwen mcp list` and `/mcp`: how every server is.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{library, qwen, say, until_end, worker, write};

fn listed(program: &Program) -> Vec<Value> {
    let ended = program.clone().args(["mcp", "list", "--json", "--timeout", "2"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str::<Vec<Value>>(&ended.stdout).unwrap()
}

fn settings(program: &Program, settings: &Value) {
    write(program.qwen_home_path().join("settings.json"), settings.to_string());
}

#[test]
fn every_server_is_shown_with_its_state_its_transport_and_its_tools() {
    let program = qwen().env("LIBRARY_TOKEN", "hush-hush-hush");
    settings(
        &program,
        &json!({
            "mcpServers": {
                "works": library(""),
                "dies": library("die"),
                "hangs": library("hang"),
                "off": {"command": "touch", "args": ["off-was-started"], "enabled": false},
                "left-out": {"command": "touch", "args": ["left-out-was-started"]},
                "gone": {"httpUrl": "http://127.0.0.1:1/hush-hush-hush"},
            },
            "mcp": {"excluded": ["left-out"]},
        }),
    );
    write(
        program.cwd_path().join(".mcp.json"),
        json!({"mcpServers": {"theirs": {"command": "touch", "args": ["theirs-was-started"]}}}).to_string(),
    );
    let servers = listed(&program);
    let of = |name: &str| servers.iter().find(|server| server["name"] == name).unwrap();
    for (name, status, transport, tools) in [
        ("works", "connected", "stdio", 1),
        ("dies", "failed", "stdio", 0),
        ("hangs", "failed", "stdio", 0),
        ("off", "disabled", "stdio", 0),
        ("left-out", "disabled", "stdio", 0),
        ("gone", "failed", "http", 0),
        ("theirs", "untrusted", "stdio", 0),
    ] {
        let server = of(name);
        assert_eq!(
            (&server["status"], &server["transport"], &server["tools"]),
            (&json!(status), &json!(transport), &json!(tools)),
            "{server}"
        );
        assert_eq!(server["error"].is_string(), status == "failed", "{server}");
    }
    assert_eq!(of("works")["tool_names"], json!(["lend"]));
    assert!(of("dies")["error"].as_str().unwrap().contains("no license found"));
    assert!(of("hangs")["error"].as_str().unwrap().contains("within 2 s"));
    assert!(!serde_json::to_string(&servers).unwrap().contains("hush-hush"), "a secret is shown");
    for name in ["off", "left-out", "theirs"] {
        assert!(!program.cwd_path().join(format!("{name}-was-started")).exists(), "{name}");
    }
}

#[test]
fn people_read_a_table_and_scripts_can_ask_for_an_exit_code() {
    let program = qwen();
    let ended = program.clone().args(["mcp", "list"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "No MCP server is configured.\n"));
    settings(&program, &json!({"mcpServers": {"works": library("")}}));
    let well = program.clone().args(["mcp", "list", "--check"]).run();
    assert_eq!(well.code, Some(0), "{well:?}");
    assert!(well.stdout.contains("works  connected  stdio  1 tool"), "{well:?}");
    let broken = program
        .clone()
        .args(["mcp", "list", "--check", "--mcp-config"])
        .arg(json!({"bad": library("die")}).to_string())
        .run();
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.stdout.contains("bad    failed"), "{broken:?}");
    let unusable = program.args(["mcp", "list", "--settings", "{"]).run();
    assert_eq!(unusable.code, Some(52), "{unusable:?}");
}

#[test]
fn the_command_of_a_session_starts_no_server_and_shows_them_all() {
    let program = qwen();
    settings(&program, &json!({"mcpServers": {"works": library("")}, "mcp": {"excluded": ["x"]}}));
    write(
        program.cwd_path().join(".mcp.json"),
        json!({"mcpServers": {"theirs": {"command": "touch", "args": ["theirs"]}}}).to_string(),
    );
    let ended = program.clone().args(["-p", "/mcp"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("works: pending (stdio)"), "{ended:?}");
    assert!(ended.stdout.contains("theirs: untrusted (stdio)"), "{ended:?}");
    assert!(!program.cwd_path().join("starts").exists() && !program.cwd_path().join("theirs").exists());
}

#[test]
fn a_turn_tells_once_which_server_failed_and_what_was_left_out() {
    let told =
        ["The MCP server 'dies' cannot be used", "The MCP server 'odd': The tool `lend twice!` is left out"];
    let servers = json!({"mcpServers": {"dies": library("die"), "odd": library("odd")}});
    let mock = MockModel::with([Reply::text("ok"), Reply::text("one"), Reply::text("two")]);
    let program = qwen().with_model(&mock).args(["--model", "mock", "-p", "x"]);
    settings(&program, &servers);
    let ended = program.run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "ok\n"));
    for trouble in told {
        assert_eq!(ended.stderr.matches(trouble).count(), 1, "{}", ended.stderr);
    }
    let program = worker(&mock);
    settings(&program, &servers);
    let mut run = program.start();
    for expected in [1, 0] {
        say(&mut run, "x");
        let lines = Value::from(until_end(&mut run)).to_string();
        for trouble in told {
            assert_eq!(lines.matches(trouble).count().min(1), expected, "{lines}");
        }
    }
}

#[test]
fn a_claude_host_hears_why_a_server_is_missing_on_the_wire() {
    let servers = json!({"mcpServers": {"dies": library("die")}}).to_string();
    for flags in [&["--channel=SDK"][..], &["--verbose"]] {
        let mock = MockModel::with([Reply::text("ok")]);
        let program = qwen().with_model(&mock).args(["--model", "mock", "--mcp-config", &servers]);
        let program = program.args(["--input-format", "stream-json", "--output-format", "stream-json"]);
        let mut run = program.args(flags).start();
        run.write_line(json!({"type": "user", "message": {"role": "user", "content": "Hi"}}));
        let lines = run.json_until(|line| line["type"] == "result");
        assert_eq!(lines[0]["subtype"], "init", "{lines:#?}");
        let said: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == "informational").collect();
        assert_eq!(said.len(), 1, "{lines:#?}");
        assert_eq!(said[0]["level"], "warning");
        assert!(said[0]["content"].as_str().unwrap().contains("'dies' cannot be used"), "{}", said[0]);
        assert_eq!(run.finish().code, Some(0));
    }
}
