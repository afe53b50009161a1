//! Tables of tools and commands, generated from what the binary reports.
//!
//! `QWEN_BLESS=1 cargo test -p qwen --test docs generated` writes them between the markers of their pages.

use std::fmt::Write;
use std::fs;

use mock_model::{MockModel, Reply, process};
use serde_json::Value;

use crate::page::root;

/// Compares the part of a page between two markers with what it should be, or rewrites it.
#[track_caller]
pub fn keep_generated(page: &str, begin: &str, end: &str, expected: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{page}: no marker {begin}"));
    let (current, after) = rest.split_once(end).unwrap_or_else(|| panic!("{page}: no marker {end}"));
    let expected = format!("\n\n{}\n\n", expected.trim());
    if std::env::var_os("QWEN_BLESS").is_some() {
        fs::write(&path, format!("{before}{begin}{expected}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(current, expected, "{page}: run QWEN_BLESS=1 cargo test -p qwen --test docs generated");
}

#[test]
fn the_table_of_tools_is_what_the_model_is_offered() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let ended = process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .with_model(&mock)
        .args(["-p", "Hello", "--model", "mock"])
        .run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let request = &mock.requests()[0];
    let mut page = String::new();
    for tool in request.body["tools"].as_array().unwrap() {
        let tool = &tool["function"];
        let described = tool["description"].as_str().unwrap().split('\n').next().unwrap();
        writeln!(page, "### `{}`\n{described}\n", tool["name"].as_str().unwrap()).unwrap();
        let parameters = &tool["parameters"];
        let required: Vec<&str> =
            parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        writeln!(page, "| argument | type | required | meaning |\n|---|---|---|---|").unwrap();
        for (name, argument) in parameters["properties"].as_object().unwrap() {
            let needed = if required.contains(&name.as_str()) { "yes" } else { "" };
            let kind = argument["type"].as_str().unwrap_or("any JSON");
            let meaning = argument["description"].as_str().unwrap_or_default().replace('|', "\\|");
            writeln!(page, "| `{name}` | {kind} | {needed} | {meaning} |").unwrap();
        }
        page.push('\n');
    }
    keep_generated("docs/tools.md", "<!-- tools -->", "<!-- end of tools -->", &page);
}

#[test]
fn the_table_of_commands_is_what_help_lists() {
    let mut page = String::from("| command | arguments | what it does |\n|---|---|---|\n");
    let request = r#"{"type":"control_request","request_id":"1","subtype":"supported_commands"}"#;
    let ended = process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .args(["--input-format", "stream-json", "--output-format", "stream-json", "--model", "demo"])
        .stdin(format!("{request}\n"))
        .run();
    let answer = ended.stdout.lines().find(|line| line.contains("control_response")).unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let commands = answer["response"]["result"]["commands"].as_array().unwrap_or_else(|| panic!("{answer}"));
    for command in commands {
        let text = |key: &str| command[key].as_str().unwrap_or_default().replace('|', "\\|");
        let arguments = text("argumentHint");
        let arguments = if arguments.is_empty() { arguments } else { format!("`{arguments}`") };
        writeln!(page, "| `/{}` | {arguments} | {} |", text("name"), text("description")).unwrap();
    }
    keep_generated("docs/commands.md", "<!-- commands -->", "<!-- end of commands -->", &page);
}
