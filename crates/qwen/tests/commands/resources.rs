//! `@server:uri`: resources of MCP servers in prompts and in hints.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::{ask, library, qwen, say, until_end, worker, write};

fn with_library(program: Program, mode: &str) -> Program {
    write(
        program.qwen_home_path().join("settings.json"),
        json!({"mcpServers": {"lib": library(mode)}}).to_string(),
    );
    program
}

fn asked(mock: &MockModel, prompt: &str) -> Program {
    with_library(qwen().with_model(mock).args(["-p", prompt, "--model", "mock"]), "")
}

#[test]
fn a_resource_that_a_prompt_names_goes_to_the_model_with_it() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("what is in @lib:note://today?", &["the resource lib:note://today", "Water the plants."], &[]),
        ("@\"lib:note://today\"", &["Water the plants."], &[]),
        ("look: @lib:pic://dot", &["image_url", "data:image/png;base64,iVBORw0KGgo="], &[]),
        ("@lib:note://long", &["(cut after 262144 of 300000 bytes)"], &[]),
        ("@lib:note://secret", &["The key is"], &["sk-ant-api03"]),
        ("@lib:note://nothing", &["lib:note://nothing was not read", "Resource not found"], &[]),
        ("@other:note://today and me@lib:note://today", &[], &["Water", "---"]),
    ];
    for (prompt, with, without) in cases {
        let mock = MockModel::with([Reply::text("I see.")]);
        let ended = asked(&mock, prompt).run();
        assert_eq!(ended.code, Some(0), "{prompt}: {ended:?}");
        let told = mock.requests()[0].messages().last().unwrap()["content"].to_string();
        assert!(with.iter().all(|piece| told.contains(piece)), "{prompt}: {}", &told[..told.len().min(600)]);
        assert!(
            without.iter().all(|piece| !told.contains(piece)),
            "{prompt}: {}",
            &told[..told.len().min(600)]
        );
    }
}

#[test]
fn what_cannot_be_read_is_told_to_people_too() {
    for (mode, flags, why) in [
        ("", &[][..], "Resource not found"),
        ("die", &[], "no license found"),
        ("", &["--exclude-tools", "mcp__lib"], "forbids it"),
    ] {
        let mock = MockModel::with([Reply::text("I see.")]);
        let program =
            qwen().with_model(&mock).args(["-p", "@lib:note://nothing", "--model", "mock"]).args(flags);
        let ended = with_library(program, mode).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = mock.requests()[0].messages().last().unwrap()["content"].to_string();
        assert!(told.contains("was not read") && told.contains(why), "{told}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn hints_offer_the_resources_of_servers_that_are_connected_and_start_none() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let program = with_library(worker(&mock), "");
    let mut run = program.start();
    let hint = json!({"type": "command_hint_request", "trigger": "at", "text": "see @lib:note"});
    let hinted = |run: &mut mock_model::process::Run| {
        run.write_line(&hint);
        let answer = run.json_until(|line| line["type"] == "result/command_hint").pop().unwrap();
        answer["suggestions"].to_string()
    };
    assert!(!hinted(&mut run).contains("note://today"));
    assert!(!program.cwd_path().join("starts").exists(), "a hint started a server");
    say(&mut run, "hello");
    until_end(&mut run);
    let offered = hinted(&mut run);
    assert!(offered.contains("lib:note://today") && offered.contains("A resource"), "{offered}");
}

#[test]
fn a_server_that_hangs_keeps_nobody_from_being_answered_or_cancelled() {
    let mock = MockModel::with([]);
    let mut run = with_library(worker(&mock), "hang").start();
    say(&mut run, "@lib:note://today");
    let models = ask(&mut run, &json!({"subtype": "get_available_models"}));
    assert_eq!(models["subtype"], "success", "{models}");
    run.write_line(
        json!({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}}),
    );
    let lines = until_end(&mut run);
    assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "cancelled", "{lines:?}");
    assert!(mock.requests().is_empty());
}
