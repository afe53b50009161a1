//! `--stream-mode`: each word, their combinations, and what no mode may hide.

use std::collections::BTreeSet;

use mock_model::{MockModel, Reply};
use serde_json::Value;

use crate::harness::{asked, nesting, searching, told, toolmaker};

/// A mode and the types that belong to it.
const MODES: [(&str, &[&str]); 7] = [
    ("values", &["values"]),
    ("updates", &["updates"]),
    // Thoughts belong to the model's messages.
    ("messages", &["message_chunk", "usage", "custom"]),
    ("custom", &["custom"]),
    ("checkpoints", &["checkpoint"]),
    ("tasks", &["run_start", "node_enter", "node_exit"]),
    ("tools", &["tool_call_chunk", "tool_call", "tool_start", "tool_output", "tool_end"]),
];

fn kinds(lines: &[Value]) -> BTreeSet<&str> {
    lines.iter().filter_map(|line| line["type"].as_str()).collect()
}

fn narrowed(modes: &[&str]) -> Vec<Value> {
    let flags = modes.iter().flat_map(|modes| ["--stream-mode", modes]);
    told(&asked(&toolmaker(), "loom").arg("--yolo").args(flags), "loom", 0)
}

#[test]
fn each_mode_writes_its_events_and_the_reply_numbered_without_a_gap() {
    for (mode, expected) in MODES {
        let lines = narrowed(&[mode]);
        assert_eq!(kinds(&lines), expected.iter().copied().collect(), "{mode}");
        assert_eq!(lines.last().unwrap()["reply"], "Done.", "{mode}");
        let ids: Vec<u64> = lines.iter().map(|line| line["event_id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (1..=lines.len() as u64).collect::<Vec<_>>(), "{mode}");
    }
}

#[test]
fn a_type_is_a_mode_too() {
    // `qwen check` would miss the other half of a pair such as `node_enter` and `node_exit`.
    let lines_of = |modes: &str| -> Vec<Value> {
        let ended = asked(&toolmaker(), "loom").args(["--yolo", "--stream-mode", modes]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = narrowed(&[]);
    for kind in kinds(&all) {
        let mut lines = lines_of(kind);
        assert_eq!(lines.pop().unwrap()["reply"], "Done.", "{kind}");
        assert_eq!(kinds(&lines), BTreeSet::from([kind]));
        assert_eq!(lines.len(), all.iter().filter(|line| line["type"] == kind).count(), "{kind}");
    }
    let expected = BTreeSet::from(["checkpoint", "node_enter", "tool_end"]);
    assert_eq!(kinds(&lines_of("node_enter,tool_end,checkpoint")), expected);
}

#[test]
fn modes_can_be_combined_with_commas_spaces_and_several_flags() {
    for spelling in [
        &["values,checkpoints"][..],
        &["values, checkpoints"],
        &["values", "checkpoints"],
        &["checkpoints,values,values"],
    ] {
        assert_eq!(kinds(&narrowed(spelling)), BTreeSet::from(["checkpoint", "values"]), "{spelling:?}");
    }
    for (first, of_first) in MODES {
        for (second, of_second) in MODES {
            let expected: BTreeSet<&str> = of_first.iter().chain(of_second).copied().collect();
            assert_eq!(kinds(&narrowed(&[&format!("{first},{second}")])), expected, "{first},{second}");
        }
    }
}

#[test]
fn debug_writes_everything() {
    let plain = narrowed(&[]);
    assert_eq!(kinds(&narrowed(&["debug"])), kinds(&plain));
    assert_eq!(kinds(&narrowed(&["values,debug"])), kinds(&plain));
}

#[test]
fn steps_of_thinking_belong_to_the_tasks() {
    let search = told(&searching("loom").args(["--stream-mode", "tasks"]), "loom", 0);
    let expected = ["run_start", "node_enter", "node_exit", "tot_expand", "tot_evaluate", "tot_backtrack"];
    assert_eq!(kinds(&search), BTreeSet::from(expected));
    let graph = told(&nesting("loom").args(["--stream-mode", "tasks"]), "loom", 0);
    let expected = [
        "run_start",
        "node_enter",
        "node_exit",
        "got_plan",
        "got_node_start",
        "got_node_complete",
        "got_expand",
    ];
    assert_eq!(kinds(&graph), BTreeSet::from(expected));
}

#[test]
fn no_mode_hides_that_a_run_failed() {
    for (mode, _) in MODES {
        let mock = MockModel::with([Reply::status(400, "{}")]);
        let lines = told(&asked(&mock, "loom").args(["--stream-mode", mode]), "loom", 1);
        let [.., error, end, reply] = &lines[..] else { panic!("{mode}: {lines:#?}") };
        assert_eq!((&error["value"]["kind"], &end["value"]["status"]), (&"error".into(), &"error".into()));
        assert_eq!(reply["reply"], "", "{mode}");
    }
}

#[test]
fn the_export_form_is_narrowed_alike_and_other_dialects_are_not() {
    let lines = told(
        &asked(&toolmaker(), "loom-export").args(["--yolo", "--stream-mode", "tools"]),
        "loom-export",
        0,
    );
    let keys: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.as_object()?.keys().next()).map(String::as_str).collect();
    let expected = ["ToolCall", "ToolCallChunk", "ToolEnd", "ToolOutput", "ToolStart", "reply"];
    assert_eq!(keys, BTreeSet::from(expected));
    for dialect in ["core", "claude-lite"] {
        let count =
            |flags: &[&str]| told(&asked(&toolmaker(), dialect).arg("--yolo").args(flags), dialect, 0).len();
        assert_eq!(count(&["--stream-mode", "values"]), count(&[]), "{dialect}");
    }
}
