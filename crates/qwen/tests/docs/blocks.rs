//! Every block has a label that says how it is executed, and is.

use serde_json::Value;

use crate::page::{Block, Page, pages, root};
use crate::shell::Sandbox;

/// Labels of blocks that are executed here, by their whole text.
const EXECUTED: &[&str] = &[
    "sh",
    "console",
    "python",
    "javascript",
    "json",
    "json settings",
    "jsonl",
    "yaml hub",
    "markdown command",
    "markdown agent",
];
/// Labels of figures.
const FIGURES: &[&str] = &["text", "mermaid"];

#[test]
fn every_block_is_executed_or_a_figure() {
    for page in pages() {
        for block in &page.blocks {
            let place = format!("{}:{}", page.name, block.line);
            if let Some(test) = &block.run_by {
                assert!(root().join(test).is_file(), "{place}: no test file {test}");
                continue;
            }
            let label = block.label.as_str();
            let is_corpus = label.starts_with("jsonl corpus:");
            let is_known = is_corpus || EXECUTED.contains(&label) || FIGURES.contains(&label);
            assert!(is_known, "{place}: the label {label:?} is not known");
            if FIGURES.contains(&label) {
                let is_code = |line: &str| line.starts_with(['$', '{']) || line.starts_with("qwen ");
                assert!(!block.text.lines().any(is_code), "{place}: a figure, but it looks like code");
            }
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

/// Compares line by line, blank lines at the end aside; `…` stands for any text, alone on a line for any
/// lines.
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
fn configurations_of_the_hub_are_read_by_the_hub() {
    for (page, block) in labelled("yaml hub") {
        let ended = Sandbox::new().hub(&block.text);
        assert_eq!(ended.code, Some(0), "{page}:{}: {ended:?}", block.line);
        assert!(!ended.stderr.contains("unknown"), "{page}:{}: {ended:?}", block.line);
        let ended = Sandbox::new().hub(&format!("{}mistyped_key: 1\n", block.text));
        assert!(
            ended.stderr.contains("mistyped_key"),
            "a key that the hub does not know is reported: {ended:?}"
        );
    }
}

#[test]
fn the_definitions_in_the_pages_are_used_as_they_are_printed() {
    for (page, block) in labelled("markdown command") {
        let sandbox = Sandbox::new();
        sandbox.define("commands/shown.md", &block.text);
        let ended = sandbox.bash("qwen -q -p '/shown the tests'");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{page}:{}", block.line);
        let (_, body) = block.text.trim_start_matches("---").split_once("---\n").unwrap();
        let prompt = sandbox.last_prompt();
        assert!(prompt.contains(body.trim().replace("$ARGUMENTS", "the tests").as_str()), "{page}: {prompt}");
    }
    for (page, block) in labelled("markdown agent") {
        let sandbox = Sandbox::new();
        sandbox.define("agents/shown.md", &block.text);
        let ended = sandbox.bash("qwen -p /agents");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{page}:{}", block.line);
        for key in ["name: ", "description: "] {
            let value = block.text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            assert!(ended.stdout.contains(value), "{page}:{}: {}", block.line, ended.stdout);
        }
    }
}

/// All blocks of one label, with the names of their pages.
fn labelled(label: &str) -> Vec<(String, Block)> {
    let of = |page: Page| {
        let name = page.name;
        page.blocks.into_iter().map(move |block| (name.clone(), block))
    };
    pages().into_iter().flat_map(of).filter(|(_, block)| block.label == label).collect()
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
