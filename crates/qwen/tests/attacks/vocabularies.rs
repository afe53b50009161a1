//! Rules hold whichever names they use and whichever names the session uses: each row is tried in both
//! vocabularies.

use serde_json::{Value, json};

use crate::harness::{Scene, each, write};
use crate::servers::{tool, with_server};
use crate::tool_names::ToolNames;

/// A rule in several spellings, the calls that it is about, and calls beside it.
struct Row {
    rules: &'static [&'static str],
    /// Tools by our names.
    covered: fn() -> Vec<(&'static str, Value)>,
    others: fn() -> Vec<(&'static str, Value)>,
}

const ROWS: &[Row] = &[
    Row {
        rules: &[
            "Bash(rm:*)",
            "Bash(rm *)",
            "run_shell_command(rm:*)",
            "run_shell_command(rm *)",
            "ShellTool(rm *)",
        ],
        covered: || {
            vec![
                ("run_shell_command", json!({ "command": "rm file" })),
                ("run_shell_command", json!({ "command": "echo a && rm -f file" })),
                ("run_shell_command", json!({ "command": "rm file", "is_background": true })),
            ]
        },
        others: || {
            vec![
                ("run_shell_command", json!({ "command": "echo rm" })),
                ("read_file", json!({ "file_path": "file" })),
            ]
        },
    },
    Row {
        rules: &["Bash", "run_shell_command", "Shell", "Bash(*)"],
        covered: || vec![("run_shell_command", json!({ "command": "echo a" }))],
        others: || vec![("write_file", json!({ "file_path": "made", "content": "x" }))],
    },
    Row {
        rules: &[
            "Read(./secrets/**)",
            "Read(/secrets/**)",
            "read_file(./secrets/**)",
            "read_file(/secrets/**)",
        ],
        covered: || {
            vec![
                ("read_file", json!({ "file_path": "secrets/key" })),
                ("read_file", json!({ "file_path": "./sub/../secrets/key", "offset": 0 })),
                ("run_shell_command", json!({ "command": "cat secrets/key" })),
                ("edit", json!({ "file_path": "secrets/key", "old_string": "the", "new_string": "a" })),
                ("write_file", json!({ "file_path": "secrets/key", "content": "x" })),
            ]
        },
        others: || {
            vec![
                ("read_file", json!({ "file_path": "sub/deep" })),
                ("grep_search", json!({ "pattern": "deep", "path": "sub" })),
                ("run_shell_command", json!({ "command": "cat sub/deep" })),
                ("write_file", json!({ "file_path": "secrets/made", "content": "x" })),
            ]
        },
    },
    Row {
        rules: &["Edit(**)", "Edit", "Edit(/**)"],
        covered: || {
            vec![
                ("write_file", json!({ "file_path": "made", "content": "x" })),
                ("edit", json!({ "file_path": "file", "old_string": "alpha", "new_string": "x" })),
                (
                    "NotebookEdit",
                    json!({ "notebook_path": "book.ipynb", "cell_id": "cell-0", "new_source": "x" }),
                ),
            ]
        },
        others: || vec![("read_file", json!({ "file_path": "file" }))],
    },
    Row {
        rules: &["Write(/sub/**)", "write_file(/sub/**)", "WriteFileTool(/sub/**)"],
        covered: || vec![("write_file", json!({ "file_path": "sub/made", "content": "x" }))],
        others: || vec![("write_file", json!({ "file_path": "made", "content": "x" }))],
    },
    Row {
        rules: &["WebFetch(domain:evil.example)", "web_fetch(domain:evil.example)"],
        covered: || vec![("web_fetch", json!({ "url": "https://evil.example/a", "prompt": "p" }))],
        others: || vec![("web_fetch", json!({ "url": "http://127.0.0.1:1/a", "prompt": "p" }))],
    },
    Row {
        rules: &["mcp__s__pay", "mcp__s__pay(*)"],
        covered: || vec![("mcp__s__pay", json!({}))],
        others: || vec![("mcp__s__look", json!({}))],
    },
    Row {
        rules: &["mcp__s", "mcp__s__*"],
        covered: || vec![("mcp__s__pay", json!({})), ("mcp__s__look", json!({}))],
        others: || vec![("read_file", json!({ "file_path": "file" }))],
    },
    Row {
        rules: &["Task", "Agent", "agent"],
        covered: || vec![("agent", json!({ "description": "d", "prompt": "p" }))],
        others: || vec![("todo_write", json!({ "todos": [{ "content": "c", "status": "pending" }] }))],
    },
];

fn scene(names: ToolNames) -> Scene {
    let scene = Scene::with_names(names);
    write(scene.here().join("secrets/key"), "the key\n");
    write(scene.here().join("book.ipynb"), r#"{"cells": [{"cell_type": "code", "source": "1"}]}"#);
    let tools = json!([tool("pay", "Pays."), tool("look", "Looks.")]);
    with_server(scene, &tools, "echo called >> {here}/called; answer looked", json!({}))
}

/// Each rule with each vocabulary.
fn cases() -> Vec<(ToolNames, &'static str, &'static Row)> {
    let rules = ROWS.iter().flat_map(|row| row.rules.iter().map(move |rule| (*rule, row)));
    rules.flat_map(|(rule, row)| ToolNames::ALL.map(|names| (names, rule, row))).collect()
}

#[test]
fn a_rule_that_forbids_holds_in_both_vocabularies_and_forbids_nothing_else() {
    each(&cases(), |(names, rule, row)| {
        let scene = scene(*names).args(["--yolo", "--sandbox=false", "--disallowed-tools", *rule]);
        let (covered, others) = ((row.covered)(), (row.others)());
        let before = scene.tree();
        let played = scene.play(&covered);
        let after = scene.tree();
        let changed = after.changed_since(&before);
        let say = |what: String| Err(format!("{names:?} {rule}: {what}"));
        if !changed.is_empty() {
            return say(format!("it changed {changed:?}"));
        }
        for (at, call) in covered.iter().enumerate() {
            let (id, result) = (format!("c{}", at + 1), played.result(&format!("c{}", at + 1)));
            // A rule for a whole tool takes it away, which is told in the same words.
            if !played.lists(&id) && !result.contains("was declined") {
                return say(format!("{call:?} is no denial: {result}"));
            }
        }
        let scene = self::scene(*names).args(["--yolo", "--sandbox=false", "--disallowed-tools", *rule]);
        let played = scene.play(&others);
        for (at, call) in others.iter().enumerate() {
            if played.lists(&format!("c{}", at + 1)) {
                return say(format!("{call:?} was denied: {}", played.result(&format!("c{}", at + 1))));
            }
        }
        Ok(())
    });
}

#[test]
fn a_rule_that_allows_holds_in_both_vocabularies_and_allows_nothing_else() {
    #[rustfmt::skip]
    let rows: &[(&[&str], (&str, Value), (&str, Value))] = &[
        (&["Bash(touch:*)", "run_shell_command(touch *)"],
            ("run_shell_command", json!({ "command": "touch made" })), ("run_shell_command", json!({ "command": "mkdir made" }))),
        (&["Edit(/sub/**)", "edit(/sub/**)"],
            ("edit", json!({ "file_path": "sub/deep", "old_string": "deep", "new_string": "x" })),
            ("edit", json!({ "file_path": "file", "old_string": "alpha", "new_string": "x" }))),
        (&["Write", "write_file"],
            ("write_file", json!({ "file_path": "made", "content": "x" })), ("run_shell_command", json!({ "command": "touch other" }))),
        (&["mcp__s__look"], ("mcp__s__look", json!({})), ("mcp__s__pay", json!({}))),
    ];
    let cases: Vec<_> = rows
        .iter()
        .flat_map(|(rules, allowed, other)| rules.iter().map(move |rule| (*rule, allowed, other)))
        .flat_map(|row| ToolNames::ALL.map(|names| (names, row)))
        .collect();
    each(&cases, |(names, (rule, allowed, other))| {
        let scene = scene(*names).args(["--sandbox=false", "--allowed-tools", *rule]);
        let played = scene.play(&[(*allowed).clone(), (*other).clone()]);
        if played.lists("c1") || !played.lists("c2") {
            return Err(format!("{names:?} {rule}: {} / {}", played.result("c1"), played.result("c2")));
        }
        Ok(())
    });
}
