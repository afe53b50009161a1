//! MCP servers with a handshake (2025-06-18), without one (2026-07-28) and with both, over pipes and over
//! HTTP.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{qwen, say, until_end, worker, write};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/servers/revisions.py");
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A server over HTTP that ends with the test.
struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Configures a server called `lib`. One over HTTP runs as long as what is returned.
fn with_server(program: &Program, spoken: &str, transport: &str) -> Option<HttpServer> {
    let (config, server) = if transport == "http" {
        let mut child = Command::new("python3")
            .args([SCRIPT, spoken, transport])
            .current_dir(program.cwd_path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        (json!({"type": "http", "url": url}), Some(HttpServer(child)))
    } else {
        (json!({"command": "python3", "args": [SCRIPT, spoken, transport]}), None)
    };
    let settings = json!({"mcpServers": {"lib": config}});
    write(program.qwen_home_path().join("settings.json"), settings.to_string());
    server
}

/// The messages that the server got.
fn asked(cwd: &Path) -> Vec<Value> {
    let text = fs::read_to_string(cwd.join("asked")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn methods(asked: &[Value]) -> Vec<&str> {
    asked.iter().map(|message| message["method"].as_str().unwrap()).collect()
}

/// Runs one prompt in which the model makes one call, and returns the result that the model gets.
fn told(program: &Program, mock: &MockModel) -> String {
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    mock.requests()[1].messages().last().unwrap()["content"].to_string()
}

fn calling(tool: &str, arguments: &Value) -> (MockModel, Program) {
    let mock = MockModel::with([
        Reply::call("c1", &format!("mcp__lib__{tool}"), &arguments.to_string()),
        Reply::text("Done."),
    ]);
    let program = qwen().with_model(&mock).args(["-p", "Go: @lib:note://today", "--model", "mock", "--yolo"]);
    (mock, program)
}

#[test]
fn tools_and_resources_work_with_every_revision_over_every_transport() {
    for transport in ["stdio", "http"] {
        for (spoken, is_stateless) in [("stateless", true), ("handshake", false), ("both", false)] {
            let (mock, program) = calling("lend", &json!({"shelf": "Zürich", "title": "t"}));
            let _server = with_server(&program, spoken, transport);
            let result = told(&program, &mock);
            assert!(result.contains("Here you are: Zürich."), "{spoken} {transport}: {result}");
            let prompt = mock.requests()[0].messages().last().unwrap()["content"].to_string();
            assert!(prompt.contains("Water the plants."), "{spoken} {transport}: {prompt}");

            let asked = asked(program.cwd_path());
            let methods = methods(&asked);
            assert_eq!(methods[0], "initialize", "{spoken} {transport}");
            assert_eq!(
                methods.contains(&"server/discover"),
                is_stateless,
                "{spoken} {transport}: {methods:?}"
            );
            assert_eq!(methods.contains(&"notifications/initialized"), !is_stateless, "{methods:?}");
            for message in asked.iter().skip(1) {
                let version = &message["params"]["_meta"][VERSION];
                assert_eq!(version == "2026-07-28", is_stateless, "{spoken} {transport}: {message}");
            }
        }
    }
}

#[test]
fn requests_without_a_session_repeat_in_headers_what_the_revision_demands() {
    let (mock, program) = calling("lend", &json!({"shelf": "Zürich", "title": "t"}));
    let _server = with_server(&program, "stateless", "http");
    told(&program, &mock);
    let asked = asked(program.cwd_path());
    let call = asked.iter().find(|message| message["method"] == "tools/call").unwrap();
    let headers = &call["headers"];
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "lend"),
        ("mcp-param-shelf", "=?base64?WsO8cmljaA==?="),
        ("accept", "application/json, text/event-stream"),
    ] {
        assert_eq!(headers[name], value, "{name} in {headers}");
    }
    assert!(headers.get("mcp-session-id").is_none() && headers.get("mcp-param-title").is_none(), "{headers}");
}

#[test]
fn a_result_that_asks_for_another_attempt_gets_one_and_questions_are_refused() {
    for transport in ["stdio", "http"] {
        let (mock, program) = calling("twice", &json!({}));
        let _server = with_server(&program, "stateless", transport);
        let result = told(&program, &mock);
        assert!(result.contains("Here you are: halfway."), "{transport}: {result}");
        let asked = asked(program.cwd_path());
        let calls: Vec<&Value> = asked.iter().filter(|message| message["method"] == "tools/call").collect();
        assert_eq!(calls.len(), 2, "{transport}");
        assert_ne!(calls[0]["id"], calls[1]["id"], "{transport}");

        let (mock, program) = calling("ask", &json!({}));
        let _server = with_server(&program, "stateless", transport);
        let result = told(&program, &mock);
        assert!(result.contains("asks for elicitation/create first"), "{transport}: {result}");
    }
}

#[test]
fn tools_that_a_stateless_server_adds_are_offered_in_the_next_turn() {
    let mock = MockModel::with([
        Reply::call("c1", "mcp__lib__grow", "{}"),
        Reply::text("Done."),
        Reply::call("c2", "mcp__lib__fresh", "{}"),
        Reply::text("Done."),
    ]);
    let program = worker(&mock).arg("--yolo");
    let _server = with_server(&program, "stateless", "stdio");
    let mut run = program.start();
    for prompt in ["Grow.", "Use it."] {
        say(&mut run, prompt);
        until_end(&mut run);
    }
    let last = mock.requests()[3].messages().last().unwrap()["content"].to_string();
    assert!(last.contains("Here you are"), "{last}");
    let asked = asked(program.cwd_path());
    let listen = asked.iter().find(|message| message["method"] == "subscriptions/listen").unwrap();
    assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(methods(&asked).iter().filter(|method| **method == "tools/list").count(), 2);
    run.close_stdin();
    assert_eq!(run.finish().code, Some(0));
}
