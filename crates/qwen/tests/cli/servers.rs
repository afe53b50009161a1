//! `qwen models`, `qwen doctor`, the manual page, the version and the environment in the system prompt.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate};
use serde_json::Value;

use crate::stage::qwen;

/// A server that answers every request with a list of models, and its address.
fn model_server(names: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let data: Vec<Value> = names.iter().map(|name| serde_json::json!({"id": name})).collect();
    let body = serde_json::json!({"object": "list", "data": data}).to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn models_lists_what_the_server_offers_and_marks_the_configured_one() {
    let address = model_server(&["small", "large"]);
    let program = qwen().env("OPENAI_BASE_URL", address).env("OPENAI_API_KEY", "k");
    let ended = program.clone().args(["models", "--model", "large"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "  small\n* large\n"), "{ended:?}");
    let ended = program.clone().args(["models", "--json"]).run();
    let models: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(models[0]["id"], "small");
    let ended = qwen().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").args(["models"]).run();
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert!(ended.stderr.contains("127.0.0.1:1/v1/models"), "{ended:?}");
}

#[test]
fn doctor_checks_everything_that_a_run_needs() {
    let ended = qwen().args(["doctor", "--model", "demo"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for check in ["settings", "model", "sandbox", "mcp", "disk"] {
        assert!(ended.stdout.lines().any(|line| line.starts_with(check)), "{check}: {ended:?}");
    }
    let ended = qwen().args(["doctor", "--json"]).run();
    assert_eq!(ended.code, Some(1), "no model is configured: {ended:?}");
    let checks: Value = serde_json::from_str(&ended.stdout).unwrap();
    let model = checks.as_array().unwrap().iter().find(|check| check["check"] == "model").unwrap();
    assert_eq!(model["status"], "failed", "{checks}");
}

#[test]
fn the_manual_page_and_help_describe_every_flag_under_a_heading() {
    let help = qwen().args(["--help"]).run().stdout;
    for heading in ["Input and output:", "Permissions:", "Limits:", "Model:", "Sessions:", "Diagnostics:"] {
        assert!(help.lines().any(|line| line == heading), "{heading}\n{help}");
    }
    let page = qwen().args(["man"]).run().stdout;
    assert!(page.starts_with(".TH QWEN 1") && page.contains(".SH EXIT STATUS"), "{page}");
    for flag in ["approval\\-mode", "output\\-last\\-message", "fail\\-on\\-denied", "no\\-stdin"] {
        assert!(page.contains(flag), "{flag}\n{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(qwen().args(["completions", shell]).run().stdout.contains("doctor"), "{shell}");
    }
}

#[test]
fn the_version_can_be_read_by_programs() {
    let text = qwen().args(["--version"]).run().stdout;
    assert!(text.starts_with("qwen ") && text.lines().count() == 1, "{text}");
    for flags in [["--version", "--json"], ["--json", "--version"]] {
        let document: Value = serde_json::from_str(&qwen().args(flags).run().stdout).unwrap();
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["protocol_version"], "1.0");
    }
}

#[test]
fn the_system_prompt_ends_with_date_platform_shell_and_git_branch() {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program =
        qwen().with_model(&mock).env("SHELL", "/bin/zsh").args(["-p", "x", "--model", "mock", "-q"]);
    let init = std::process::Command::new("git")
        .args(["init", "-q", "-b", "topic"])
        .current_dir(program.cwd_path())
        .status();
    assert!(init.unwrap().success());
    assert_eq!(program.run().code, Some(0));
    let request = &mock.requests()[0];
    let system = request.messages()[0]["content"].as_str().unwrap().to_owned();
    let environment =
        system.split("Environment at the start of the session:").nth(1).expect("an environment");
    for part in
        ["- date: 20", "- platform: linux", "/bin/zsh", "- git: branch topic", "- working directory: "]
    {
        assert!(environment.contains(part), "{part}: {system}");
    }
    let size = request.body.to_string().len();
    assert!(size < 14 * 1024, "the first request has {size} bytes");
}

#[test]
fn a_closed_terminal_still_gets_its_terminal_record() {
    let mock = MockModel::with([Reply::new([gate("never")])]);
    let flags = ["-p", "x", "--model", "mock", "--output-format", "stream-json", "--dialect", "qwen"];
    let mut run = qwen().with_model(&mock).args(flags).start();
    run.close_stdin();
    mock.reached("never");
    run.signal(Signal::HUP);
    let ended = run.wait();
    let last = ended.json_lines().pop().unwrap();
    assert_eq!(last["metadata"]["turn"]["status"], "interrupted", "{ended:?}");
}
