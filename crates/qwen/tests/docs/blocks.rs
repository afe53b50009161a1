//! Every block has a label that says how it is executed, and is.

use serde_json::Value;

use crate::page::{pages, root};
use crate::shell::Sandbox;

/// Labels of blocks that are shown and not executed.
const SHOWN: &[&str] = &["text", "mermaid", "markdown", "rust", "yaml", "typescript", "dockerfile"];

#[test]
fn every_block_says_how_it_is_executed() {
    for page in pages() {
        for block in &page.blocks {
            let place = format!("{}:{}", page.name, block.line);
            if let Some(test) = &block.run_by {
                assert!(root().join(test).is_file(), "{place}: no test file {test}");
                continue;
            }
            let label = block.label.split(' ').next().unwrap();
            let executed = ["sh", "console", "python", "javascript", "json", "jsonl"].contains(&label);
            assert!(executed || SHOWN.contains(&label), "{place}: the label {:?} is not known", block.label);
        }
    }
}

#[test]
fn the_commands_of_every_page_run() {
    for page in pages() {
        let script: String = page.labelled("sh").map(|block| block.text.as_str()).collect();
        let sandbox = Sandbox::new();
        if !script.is_empty() {
            let ended = sandbox.bash(&script);
            assert_eq!(ended.code, Some(0), "{}\n{script}\n{}\n{}", page.name, ended.stdout, ended.stderr);
        }
        for (label, interpreter) in [("python", "python3"), ("javascript", "node")] {
            for block in page.labelled(label) {
                let ended = sandbox.interpret(interpreter, &block.text);
                let place = format!("{}:{}", page.name, block.line);
                assert_eq!(ended.code, Some(0), "{place}\n{}\n{}", ended.stdout, ended.stderr);
            }
        }
    }
}

#[test]
fn transcripts_show_what_the_commands_print() {
    for page in pages() {
        let sandbox = Sandbox::new();
        for block in page.labelled("console") {
            for (command, expected) in transcript(&block.text) {
                let ended = sandbox.bash(&format!("{{ {command}\n}} 2>&1 || true"));
                let place = format!("{}:{}: $ {command}", page.name, block.line);
                assert!(
                    matches(&expected, &ended.stdout),
                    "{place}\nexpected:\n{expected}\nprinted:\n{}",
                    ended.stdout
                );
            }
        }
    }
}

/// The commands of a transcript, each with what it is to print. A command goes on while its lines end in `\`.
fn transcript(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), String::new()));
            continued = command.ends_with('\\');
        } else if let Some((command, expected)) = commands.last_mut() {
            if continued {
                command.push('\n');
                command.push_str(line);
                continued = line.ends_with('\\');
            } else {
                expected.push_str(line);
                expected.push('\n');
            }
        }
    }
    commands
}

/// Compares line by line, blank lines at the end aside; `…` stands for any text, alone on a line for any lines.
fn matches(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let printed: Vec<&str> = printed.trim_end().lines().collect();
    lines_match(&expected, &printed)
}

fn lines_match(expected: &[&str], printed: &[&str]) -> bool {
    match (expected, printed) {
        ([], printed) => printed.is_empty(),
        (["…", rest @ ..], printed) => (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..])),
        ([first, rest @ ..], [line, others @ ..]) => line_matches(first, line) && lines_match(rest, others),
        (_, []) => false,
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let mut rest = line;
    for (index, piece) in expected.split('…').enumerate() {
        match rest.find(piece) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    expected.ends_with('…') || rest.is_empty()
}

#[test]
fn json_in_the_pages_is_json_and_settings_are_settings() {
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.run_by.is_none()) {
            let place = format!("{}:{}", page.name, block.line);
            match block.label.split(' ').next() {
                Some("json") => {
                    let parsed = serde_json::from_str::<Value>(&block.text);
                    assert!(parsed.is_ok(), "{place}: {parsed:?}");
                }
                Some("jsonl") => {
                    for line in block.text.lines() {
                        let parsed = serde_json::from_str::<Value>(line);
                        assert!(parsed.is_ok(), "{place}: {parsed:?}: {line}");
                    }
                }
                _ => {}
            }
            if block.label == "json settings" {
                let ended = Sandbox::new().settings(&block.text);
                assert_eq!(ended.code, Some(0), "{place}: {}", ended.stderr);
                assert_eq!(ended.stderr, "", "{place}");
            }
        }
    }
}
