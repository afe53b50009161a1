//! `docs/terminal-parity.md` names every action of the terminal and every command.

use std::collections::BTreeSet;
use std::path::Path;

use mock_model::process::Program;
use qwen_tui::input::KeyAction;

/// The first column of the table below a heading.
fn column(text: &str, heading: &str) -> BTreeSet<String> {
    let section = text.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

#[test]
fn every_action_and_every_command_has_its_structured_counterpart() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal-parity.md");
    let text = std::fs::read_to_string(path).unwrap();
    let actions: BTreeSet<String> = KeyAction::ALL.iter().map(|action| action.name().to_owned()).collect();
    assert_eq!(column(&text, "## Actions"), actions);
    let request = r#"{"type":"control_request","request_id":"r","subtype":"supported_commands"}"#;
    let worker = Program::new(env!("CARGO_BIN_EXE_qwen"))
        .args(["--input-format", "stream-json", "--model", "demo"])
        .stdin(format!("{request}\n"))
        .run();
    let answer = worker.json_lines().into_iter().find(|line| line["type"] == "control_response");
    let answer = answer.unwrap_or_else(|| panic!("{worker:?}"));
    let listed = answer["response"]["result"]["commands"].as_array();
    let commands: BTreeSet<String> =
        listed.unwrap().iter().map(|command| format!("/{}", command["name"].as_str().unwrap())).collect();
    assert_eq!(column(&text, "## Commands"), commands);
}
