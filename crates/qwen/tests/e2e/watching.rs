//! A search can be watched: drawn in place on a terminal, told in lines elsewhere, and shown again from a
//! recording.

use mock_model::process::Ended;

use crate::harness::qwen;
use crate::terminal::{Screen, terminal};
use crate::wire::STREAMS;

const TREE: [&str; 6] = ["-p", "4 9 10 13", "--agent", "tot", "--model", "oracle:game24?q=0.3&p=0.7&seed=3"];
const GRAPH: [&str; 6] =
    ["-p", "Sort ascending: 5 3 9 1 7 2 8 4 6", "--agent", "got", "--model", "oracle:sort?seed=3"];

/// What standard error shows of a run, on a terminal of 24 lines and 80 columns.
fn drawn(flags: &[&str], variables: &[(&str, &str)]) -> (Ended, String) {
    let (err, err_end): (Screen, _) = terminal();
    let mut program = qwen().args(flags).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    for (name, value) in variables {
        program = program.env(name, value);
    }
    let mut run = program.start_onto(std::process::Stdio::null(), std::process::Stdio::from(err_end));
    run.close_stdin();
    let ended = run.wait();
    (ended, err.all())
}

#[test]
fn on_a_terminal_the_thoughts_are_drawn_in_place_and_never_higher_than_it_is() {
    for flags in [TREE, GRAPH] {
        let (ended, shown) = drawn(&flags, &[]);
        assert_eq!(ended.code, Some(0), "{shown}");
        // Each drawing begins where the one before began.
        let drawings: Vec<&str> = shown.split("\u{1b}[J").skip(1).collect();
        assert!(drawings.len() > 3, "{shown}");
        for pair in drawings.windows(2) {
            let lines = pair[0].matches('\n').count();
            assert!((1..24).contains(&lines), "{lines} lines: {}", pair[0]);
            assert!(pair[0].contains(&format!("\u{1b}[{lines}A")), "{lines} lines: {:?}", pair[0]);
        }
        let last = drawings.last().unwrap();
        assert!(last.contains("└─") && last.contains("1.00") && last.contains("thoughts ·"), "{last}");
    }
}

#[test]
fn no_color_takes_the_colours_and_leaves_the_drawing() {
    let (_, shown) = drawn(&TREE, &[("NO_COLOR", "1")]);
    let drawings: Vec<&str> = shown.split("\u{1b}[J").skip(1).collect();
    assert!(drawings.last().unwrap().contains("★ 1.00"), "{shown}");
    assert!(
        !drawings[..drawings.len() - 1]
            .iter()
            .any(|drawing| drawing.contains('m') && drawing.contains("\u{1b}[3")),
        "{shown:?}"
    );
}

#[test]
fn without_a_terminal_the_steps_are_told_in_lines_and_the_answer_stays_alone() {
    let ended = qwen().args(TREE).run();
    assert_eq!(ended.stdout, "(13 - 9) * (10 - 4) = 24\n");
    assert!(
        ended.stderr.contains("├─") && ended.stderr.contains("scores ") && !ended.stderr.contains('\u{1b}'),
        "{}",
        ended.stderr
    );
    let ended = qwen().args(GRAPH).run();
    assert_eq!(ended.stdout, "1 2 3 4 5 6 7 8 9\n");
    assert!(
        ended.stderr.contains("◇") && ended.stderr.contains("○ sort") && ended.stderr.contains("● sort"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_recording_in_any_dialect_shows_the_thoughts_and_becomes_a_picture() {
    for wire in STREAMS {
        for (flags, thought) in [(TREE, "13 - 9 = 4"), (GRAPH, "sort-best")] {
            let recorded = qwen().args(flags).args(wire.flags()).run();
            assert_eq!(recorded.code, Some(0), "{wire:?}: {}", recorded.stderr);
            let program = qwen().stdin(&recorded.stdout);
            let shown = program.clone().args(["view", "--dialect", wire.dialect]).run();
            assert!(shown.stdout.contains(thought), "{wire:?}: {}", shown.stdout);
            let drawn = program.args(["view", "--dialect", wire.dialect, "--svg", "picture.svg"]).run();
            assert_eq!((drawn.code, drawn.stdout.as_str()), (Some(0), ""), "{wire:?}: {}", drawn.stderr);
        }
    }
}

#[test]
fn a_picture_is_one_document_with_every_thought() {
    let recorded = qwen().args(GRAPH).arg("--json").run();
    let ended = qwen().stdin(&recorded.stdout).args(["view", "--svg", "-"]).run();
    let svg = ended.stdout;
    assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"), "{svg}");
    let planned = recorded.json_lines().iter().find_map(|line| line["node_count"].as_u64()).unwrap();
    assert_eq!(svg.matches("<g>").count() as u64, planned);
    assert!(svg.matches("<path").count() > 1, "{svg}");
    let nothing = qwen().args(["-p", "x", "--model", "demo", "--json"]).run();
    let ended = qwen().stdin(&nothing.stdout).args(["view", "--svg", "x.svg"]).run();
    assert_eq!(ended.code, Some(42));
    assert!(ended.stderr.contains("could be drawn"), "{}", ended.stderr);
}

/// Two sessions with two nodes each, all of which write at the same time.
fn interleaved() -> Vec<String> {
    let mut lines = Vec::new();
    let mut numbers = [0, 0];
    let mut put = |session: usize, node: Option<&str>, body: serde_json::Value| {
        numbers[session] += 1;
        let mut line = body;
        line["session_id"] = format!("session-{session}").into();
        line["event_id"] = numbers[session].into();
        if let Some(node) = node {
            line["node_id"] = format!("run-{node}-1").into();
        }
        lines.push(line.to_string());
    };
    for session in [0, 1] {
        put(session, None, serde_json::json!({ "type": "run_start", "run_id": "run-1" }));
        for node in ["left", "right"] {
            put(session, Some(node), serde_json::json!({ "type": "node_enter", "id": node }));
        }
    }
    for number in 0..12 {
        for (session, node) in [(0, "left"), (1, "left"), (0, "right"), (1, "right")] {
            let content = format!("{node}{session}-{number} ");
            let body = serde_json::json!({ "type": "message_chunk", "id": node, "content": content });
            put(session, Some(node), body);
        }
    }
    for session in [0, 1] {
        for node in ["left", "right"] {
            put(session, Some(node), serde_json::json!({ "type": "node_exit", "id": node, "result": "Ok" }));
        }
        put(session, None, serde_json::json!({ "reply": "" }));
    }
    lines
}

#[test]
fn sessions_and_nodes_that_write_at_the_same_time_are_merged_from_a_file_and_from_a_slow_pipe() {
    let lines = interleaved();
    let program = qwen().args(["view", "--dialect", "loom"]);
    let path = program.cwd_path().join("interleaved.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let from_file = program.clone().arg("interleaved.jsonl").run();
    assert_eq!(from_file.code, Some(0), "{}", from_file.stderr);
    let shown = &from_file.stdout;
    for (session, node) in [(0, "left"), (0, "right"), (1, "left"), (1, "right")] {
        let whole: String = (0..12).map(|number| format!("{node}{session}-{number} ")).collect();
        assert!(shown.contains(whole.trim_end()), "{node} of session {session}: {shown}");
    }
    let headers = shown.lines().filter(|line| line.starts_with("── session-")).count();
    assert!(headers <= 8, "a header for each block and not for each token: {shown}");
    assert!(!shown.contains("not understood"), "{shown}");
    // Line by line, each in a write of its own.
    let mut run = program.start();
    for line in &lines {
        run.write_line(line);
    }
    run.close_stdin();
    let live = run.finish();
    assert_eq!(live.stdout, *shown);
}
