//! Recorded shapes of printed calls, each split at every character.

use std::sync::Arc;

use qwen_events::{Json, ToolSpec};

use super::form::TextCall;
use super::scanner::{Scanned, Scanner};

fn tools() -> Arc<[ToolSpec]> {
    let spec = |name: &str, properties: &str| ToolSpec {
        name: name.into(),
        description: "".into(),
        parameters: Json::trusted(format!("{{\"type\":\"object\",\"properties\":{{{properties}}}}}")),
    };
    [
        spec("read_file", r#""file_path":{"type":"string"},"limit":{"type":"integer"}"#),
        spec("run_shell_command", r#""command":{"type":"string"}"#),
        spec("todo_write", r#""todos":{"type":"array"}"#),
    ]
    .into()
}

/// Returns the text and the calls, as `name arguments`.
fn scan(pieces: &[&str]) -> (String, Vec<String>) {
    let mut scanner = Scanner::new(tools());
    let mut scanned = Vec::new();
    for piece in pieces {
        scanned.extend(scanner.push(piece));
    }
    scanned.extend(scanner.finish());
    let (mut text, mut calls) = (String::new(), Vec::new());
    for part in scanned {
        match part {
            Scanned::Text(part) => text.push_str(&part),
            Scanned::Call(TextCall { name, arguments }) => calls.push(format!("{name} {arguments}")),
        }
    }
    (text, calls)
}

/// Checks a message whole, split in two at every character, and character by character.
fn check(message: &str, text: &str, calls: &[&str]) {
    let expected = (text.to_owned(), calls.iter().map(|call| (*call).to_owned()).collect::<Vec<_>>());
    assert_eq!(scan(&[message]), expected, "{message:?}");
    for (at, _) in message.char_indices() {
        assert_eq!(scan(&[&message[..at], &message[at..]]), expected, "{message:?} split at {at}");
    }
    let letters: Vec<String> = message.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(scan(&letters), expected, "{message:?} letter by letter");
}

const READ: &str = r#"read_file {"file_path":"a"}"#;

#[test]
fn printed_calls_become_calls_and_are_not_shown() {
    for (message, text, calls) in [
        (
            "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>",
            "",
            &[READ][..],
        ),
        (
            "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"file_path\":\"a\"}}</tool_call>\n",
            "",
            &[READ],
        ),
        (
            "I look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>",
            "I look.\n",
            &[READ],
        ),
        (
            "I look. <tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>",
            "I look. ",
            &[READ],
        ),
        ("<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}", "", &[READ]),
        (
            "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>",
            "",
            &[READ, READ],
        ),
        (
            "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call><tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>",
            "",
            &[READ, READ],
        ),
        (
            "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>",
            "",
            &[READ, READ],
        ),
        (
            "<tool_call>[{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}]</tool_call>",
            "",
            &[READ],
        ),
        (
            "<tool_call>{\"name\": \"read_file\", \"parameters\": {\"file_path\": \"a\"}}</tool_call>",
            "",
            &[READ],
        ),
        (
            "<tool_call>{\"name\": \"read_file\", \"arguments\": \"{\\\"file_path\\\":\\\"a\\\"}\"}</tool_call>",
            "",
            &[READ],
        ),
        (
            "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}}</tool_call>",
            "",
            &[READ],
        ),
        ("<tool_call>{\"tool\": \"read_file\", \"input\": {\"file_path\": \"a\"}}</tool_call>", "", &[READ]),
        (
            "<tool_call>{\"tool_name\": \"read_file\", \"args\": {\"file_path\": \"a\"}}</tool_call>",
            "",
            &[READ],
        ),
        (
            "<tool_call>\n```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```\n</tool_call>",
            "",
            &[READ],
        ),
        ("<tool_call>{\"name\": \"read_file\", \"arguments\": null}</tool_call>", "", &["read_file {}"]),
        (
            "<tool_call>{\"name\": \"nothing\", \"arguments\": {\"x\": 1}}</tool_call>",
            "",
            &["nothing {\"x\":1}"],
        ),
        (
            "<tool_call>\n<function=read_file>\n<parameter=file_path>\na\n</parameter>\n</function>\n</tool_call>",
            "",
            &[READ],
        ),
        (
            "<function=read_file>\n<parameter=file_path>\na\n</parameter>\n</function>\n</tool_call>",
            "",
            &[READ],
        ),
        ("<function=read_file><parameter=file_path>a</parameter></function>", "", &[READ]),
        ("<function=read_file>\n<parameter=file_path>\na\n</parameter>\n", "", &[READ]),
        (
            "<function=read_file>\n<parameter=file_path>\n12\n</parameter>\n<parameter=limit>\n12\n</parameter>\n</function>",
            "",
            &[r#"read_file {"file_path":"12","limit":12}"#],
        ),
        (
            "<function=todo_write>\n<parameter=todos>\n[{\"content\": \"x\"}]\n</parameter>\n</function>",
            "",
            &[r#"todo_write {"todos":[{"content":"x"}]}"#],
        ),
        (
            "<function=run_shell_command>\n<parameter=command>\nls\n  echo <b>\n</parameter>\n</function>",
            "",
            &[r#"run_shell_command {"command":"ls\n  echo <b>"}"#],
        ),
        (
            "<tool_call>{\"name\": \"run_shell_command\", \"arguments\": {\"command\": \"grep '</tool_call>' \\\"a\\\"\"}}</tool_call>",
            "",
            &[r#"run_shell_command {"command":"grep '</tool_call>' \"a\""}"#],
        ),
        (
            "<tool_call>\n<function=run_shell_command>\n<parameter=command>\n<function f>\n<parameter name=\"a\">1</parameter>\n</parameter>\n</function>\n</tool_call>",
            "",
            &[r#"run_shell_command {"command":"<function f>\n<parameter name=\"a\">1</parameter>"}"#],
        ),
        (
            "<think>I look.</think><tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>",
            "<think>I look.</think>",
            &[READ],
        ),
        ("<function=read_file>{\"file_path\":\"a\"}</function>", "", &[READ]),
        (
            "<tool_call><function name=\"read_file\"><parameter name=\"file_path\">a</parameter></function></tool_call>",
            "",
            &[READ],
        ),
        (
            "<function=read_file><parameter=file_path>a</parameter></function>\n<function=read_file><parameter=file_path>a</parameter></function>",
            "",
            &[READ, READ],
        ),
        ("```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```", "", &[READ]),
        ("```\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```\n", "", &[READ]),
        (
            "I look:\n\n```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```",
            "I look:\n\n",
            &[READ],
        ),
        ("```json\n[{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}]\n```", "", &[READ]),
        (
            "```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```\n\n```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```",
            "",
            &[READ, READ],
        ),
        ("```tool_call\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```", "", &[READ]),
        (
            "Größe 🦀\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"ä🦀\"}}</tool_call>",
            "Größe 🦀\n",
            &[r#"read_file {"file_path":"ä🦀"}"#],
        ),
    ] {
        check(message, text, calls);
    }
}

#[test]
fn prose_about_tools_and_quoted_examples_stay_text() {
    for message in [
        "Models print <tool_call> tags as text.",
        "The format is `<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>`.",
        "The format is \"<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\".",
        "Write <tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call> to call it.",
        "> <tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n",
        "> It is: <tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n",
        "```xml\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {}}\n</tool_call>\n```\n",
        "```\n<function=read_file>\n</function>\n```\n",
        "For example:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}\n```\nThis reads a file.",
        "```json\n{\"name\": \"read_file\", \"version\": \"1.0\"}\n```",
        "```json\n{\"name\": \"my-package\", \"arguments\": {}}\n```",
        "```json\n{\"a\": 1}\n```\n",
        "```rust\nfn main() {}\n```\nand ```inline``` code",
        "Use <function=nothing> for that.",
        "a < b, <b>bold</b> and <tool",
        "```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\n```json\n{\"a\": 1}\n```\n",
        "An open fence:\n```json\n{\"name\": \"read_file\"",
        "",
    ] {
        check(message, message, &[]);
    }
}

#[test]
fn a_malformed_call_becomes_a_call_that_fails_with_a_hint() {
    check(
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"</tool_call>",
        "",
        &["read_file {\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\""],
    );
    check("<tool_call>{file_path: a}</tool_call>", "", &["tool_call {file_path: a}"]);
    check(
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a}}</tool_call>\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a\"}}</tool_call>",
        "",
        &["read_file {\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a}}", READ],
    );
}
