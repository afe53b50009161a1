//! What the checker says about streams that were broken on purpose.

use qwen_dialects::check::rules::{self, Example, RULES};
use qwen_dialects::check::{Finding, Level, Mode};
use qwen_dialects::{Dialect, Format};

use crate::checked::{LONGEST, check};
use crate::files::{Stream, read, streams};

/// One way to break a stream. Lines are named by a text that is in them.
#[derive(Debug, Clone, Copy)]
enum Break {
    /// The line is missing.
    Drop(&'static str),
    /// The line is there twice.
    Twice(&'static str),
    /// The line and the one after it changed places.
    Swap(&'static str),
    /// The line, and everything after it, is missing.
    CutBefore(&'static str),
    /// Everything after the line is missing.
    CutAfter(&'static str),
    /// In the line, one text stands in the place of another.
    Change(&'static str, &'static str),
    /// The line is cut in half.
    Half(&'static str),
    /// Another line stands before the line.
    Insert(&'static str, &'static str),
    /// A byte that is no UTF-8 stands before the text.
    Garble(&'static str),
    /// The line is longer than any reader takes in.
    Overgrow(&'static str),
    /// The last newline is missing.
    Unended,
}

use Break::{Change, CutAfter, CutBefore, Drop, Garble, Half, Insert, Overgrow, Swap, Twice, Unended};

impl Break {
    fn apply(self, whole: &str) -> Vec<u8> {
        let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        let at = |mark| lines.iter().position(|line| line.contains(mark)).expect(mark);
        match self {
            Drop(mark) => drop(lines.remove(at(mark))),
            Twice(mark) => {
                let at = at(mark);
                lines.insert(at, lines[at].clone());
            }
            Swap(mark) => {
                let at = at(mark);
                lines.swap(at, at + 1);
            }
            CutBefore(mark) => lines.truncate(at(mark)),
            CutAfter(mark) => lines.truncate(at(mark) + 1),
            Change(mark, other) => {
                let at = at(mark);
                lines[at] = lines[at].replacen(mark, other, 1);
            }
            Half(mark) => {
                let at = at(mark);
                let kept = half(&lines[at]).len();
                lines[at].truncate(kept);
            }
            Insert(mark, other) => lines.insert(at(mark), other.to_owned()),
            Garble(mark) => {
                let mut bytes = whole.as_bytes().to_vec();
                bytes.insert(whole.find(mark).expect(mark), 0xff);
                return bytes;
            }
            Overgrow(mark) => {
                let at = at(mark);
                lines[at].push_str(&" ".repeat(LONGEST));
            }
            Unended => return whole.trim_end().as_bytes().to_vec(),
        }
        joined(&lines).into_bytes()
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

fn half(line: &str) -> &str {
    let middle = (0..=line.len() / 2).rfind(|at| line.is_char_boundary(*at)).unwrap_or(0);
    &line[..middle]
}

/// The file, what is done to it, and the rule that it then breaks.
const BROKEN: &[(&str, Break, &str)] = &[
    // loom
    ("one-tool/loom.jsonl", Drop(r#""run_start""#), "run-start"),
    ("one-tool/loom.jsonl", Drop(r#""node_enter""#), "node"),
    ("one-tool/loom.jsonl", Drop(r#""node_exit""#), "node"),
    ("one-tool/loom.jsonl", Drop(r#""message_chunk""#), "event-id-gap"),
    ("one-tool/loom.jsonl", Drop(r#""content":"a greeting.""#), "reply-text"),
    ("one-tool/loom.jsonl", Drop(r#""tool_start""#), "tool"),
    ("one-tool/loom.jsonl", Drop(r#""tool_end""#), "tool"),
    ("one-tool/loom.jsonl", Drop(r#""reply""#), "no-terminal"),
    ("one-tool/loom.jsonl", Twice(r#""reply""#), "one-terminal"),
    ("one-tool/loom.jsonl", Twice(r#""reply""#), "event-id"),
    ("one-tool/loom.jsonl", Twice(r#""tool_end""#), "tool"),
    ("one-tool/loom.jsonl", Twice(r#""tool_start""#), "tool"),
    ("one-tool/loom.jsonl", Swap(r#""node_exit""#), "state"),
    ("one-tool/loom.jsonl", Swap(r#""type":"values""#), "state"),
    ("one-tool/loom.jsonl", Swap(r#""message_chunk""#), "event-id"),
    ("one-tool/loom.jsonl", Swap(r#""run_start""#), "run-start"),
    ("one-tool/loom.jsonl", Swap(r#""event":"Finished""#), "event-id"),
    ("one-tool/loom.jsonl", CutAfter(r#""node_exit""#), "no-terminal"),
    ("one-tool/loom.jsonl", Change(r#""event_id":5,"#, r#""event_id":4,"#), "event-id"),
    ("one-tool/loom.jsonl", Change(r#""event_id":5,"#, r#""event_id":-5,"#), "shape"),
    ("one-tool/loom.jsonl", Change(r#""event_id":1,"#, r#""event_id":0,"#), "event-id-gap"),
    (
        "one-tool/loom.jsonl",
        Change(r#""run-think-1","event_id":3"#, r#""run-think-9","event_id":3"#),
        "node-id",
    ),
    ("one-tool/loom.jsonl", Change(r#""total_tokens":1111"#, r#""total_tokens":1112"#), "usage"),
    ("one-tool/loom.jsonl", Change(r#""type":"usage""#, r#""type":"usages""#), "unknown-type"),
    ("one-tool/loom.jsonl", Change(r#""content":"Let me look.","#, ""), "shape"),
    (
        "one-tool/loom.jsonl",
        Change(r#""arguments":{"file_path":"main.py"}"#, r#""arguments":"main.py""#),
        "shape",
    ),
    ("one-tool/loom.jsonl", Change(r#""timestamp":"2025"#, r#""timestamp":"the year 2025"#), "timestamp"),
    ("one-tool/loom.jsonl", Half(r#""tool_end""#), "json"),
    ("cancel-in-text/loom.jsonl", Change(r#""reply":"""#, r#""reply":"Once upon a time""#), "reply-text"),
    ("cancel-in-text/loom.jsonl", Drop(r#""run_end""#), "reply-text"),
    ("cancel-in-text/loom.jsonl", Swap(r#""USER_CANCELLED""#), "run-end"),
    ("tot/loom.jsonl", Change(r#""scores":[0.5,"#, r#""scores":["#), "thoughts"),
    ("tot/loom.jsonl", Change(r#""chosen":2"#, r#""chosen":3"#), "thoughts"),
    ("tot/loom.jsonl", Drop(r#""type":"tot_expand""#), "thoughts"),
    ("got/loom.jsonl", Twice(r#""type":"got_node_start","id":"sort-1""#), "thoughts"),
    ("got/loom.jsonl", Twice(r#""type":"got_node_complete","id":"sort-1""#), "thoughts"),
    ("got/loom.jsonl", Change(r#""node_count":4"#, r#""node_count":5"#), "thoughts"),
    ("got/loom.jsonl", Drop(r#""type":"got_node_start","id":"sort-1""#), "thoughts"),
    ("got/loom.jsonl", Change(r#""node_id":"sort-1","#, ""), "shape"),
    ("two-turns/loom.jsonl", Drop(r#""run_id":"run-2""#), "after-terminal"),
    ("two-turns/loom.jsonl", Drop(r#""reply":"It prints"#), "no-terminal"),
    // loom-export
    ("one-tool/loom-export.jsonl", Drop("RunStart"), "run-start"),
    ("one-tool/loom-export.jsonl", Drop("TaskStart"), "node"),
    ("one-tool/loom-export.jsonl", Drop("TaskEnd"), "node"),
    ("one-tool/loom-export.jsonl", Drop(r#""content":"a greeting.""#), "reply-text"),
    ("one-tool/loom-export.jsonl", Drop("ToolStart"), "tool"),
    ("one-tool/loom-export.jsonl", Drop("ToolEnd"), "tool"),
    ("one-tool/loom-export.jsonl", Twice(r#"{"reply""#), "one-terminal"),
    ("one-tool/loom-export.jsonl", CutBefore(r#"{"reply""#), "no-terminal"),
    ("one-tool/loom-export.jsonl", Swap("TaskEnd"), "state"),
    ("one-tool/loom-export.jsonl", Change("TaskEnd", "TaskEnded"), "unknown-type"),
    ("one-tool/loom-export.jsonl", Change(r#"{"RunStart""#, r#"{"event_id":1,"RunStart""#), "shape"),
    // claude
    ("one-tool/claude.jsonl", Drop(r#""subtype":"init""#), "init"),
    ("one-tool/claude.jsonl", Drop(r#""type":"tool_use""#), "tool"),
    ("one-tool/claude.jsonl", Drop(r#""type":"tool_result""#), "tool"),
    ("one-tool/claude.jsonl", Drop(r#""text":"It prints"#), "reply-text"),
    ("one-tool/claude.jsonl", Drop(r#""type":"result""#), "no-terminal"),
    ("one-tool/claude.jsonl", Twice(r#""type":"result""#), "one-terminal"),
    ("one-tool/claude.jsonl", Twice(r#""type":"result""#), "uuid"),
    ("one-tool/claude.jsonl", Swap(r#""text":"It prints"#), "after-terminal"),
    ("one-tool/claude.jsonl", Swap(r#""type":"tool_use""#), "tool"),
    ("one-tool/claude.jsonl", CutAfter(r#""subtype":"init""#), "no-terminal"),
    ("one-tool/claude.jsonl", Change(r#""subtype":"success""#, r#""subtype":"triumph""#), "shape"),
    (
        "one-tool/claude.jsonl",
        Change(r#""is_error":false,"duration_ms""#, r#""is_error":"no","duration_ms""#),
        "shape",
    ),
    ("one-tool/claude.jsonl", Change(r#""result":"It prints a greeting.","#, ""), "shape"),
    ("one-tool/claude.jsonl", Change(r#""input":{"file_path":"main.py"}"#, r#""input":null"#), "shape"),
    ("one-tool/claude.jsonl", Change(r#""type":"user""#, r#""type":"usher""#), "unknown-type"),
    ("max-turns/claude.jsonl", Change(r#""errors":["#, r#""oops":["#), "shape"),
    ("two-turns/claude.jsonl", Drop(r#""type":"result""#), "no-terminal"),
    ("one-tool/claude.partial.jsonl", Drop(r#""type":"message_start""#), "message"),
    ("one-tool/claude.partial.jsonl", Drop(r#""type":"message_stop""#), "message"),
    ("one-tool/claude.partial.jsonl", Drop(r#""type":"content_block_start""#), "block"),
    ("one-tool/claude.partial.jsonl", Drop(r#""type":"content_block_stop""#), "block"),
    ("one-tool/claude.partial.jsonl", Drop(r#""text_delta","text":"It prints "#), "pieces"),
    ("one-tool/claude.partial.jsonl", Swap(r#""type":"content_block_start""#), "block"),
    ("one-tool/claude.partial.jsonl", Change(r#""text_delta""#, r#""thinking_delta""#), "block"),
    ("one-tool/claude.partial.jsonl", Change(r#""index":1"#, r#""index":2"#), "block"),
    ("one-tool/claude.partial.jsonl", Drop(r#""state":"idle""#), "session-state"),
    ("one-tool/claude.partial.jsonl", Swap(r#""type":"result""#), "session-state"),
    ("one-tool/claude.partial.jsonl", CutBefore(r#""type":"result""#), "no-terminal"),
    // claude-lite
    ("one-tool/claude-lite.jsonl", Drop(r#""message_start""#), "message-start"),
    ("one-tool/claude-lite.jsonl", Drop(r#""tool_call""#), "tool"),
    ("one-tool/claude-lite.jsonl", Drop(r#""tool_result""#), "tool"),
    ("one-tool/claude-lite.jsonl", Drop(r#""message_stop""#), "no-terminal"),
    ("one-tool/claude-lite.jsonl", Twice(r#""message_stop""#), "one-terminal"),
    ("one-tool/claude-lite.jsonl", Swap(r#""a greeting.""#), "after-terminal"),
    ("one-tool/claude-lite.jsonl", Swap(r#""tool_call""#), "tool"),
    ("one-tool/claude-lite.jsonl", Change(r#""reason":"stop_turn""#, r#""reason":"whim""#), "shape"),
    (
        "one-tool/claude-lite.jsonl",
        Change(r#""content_block_delta""#, r#""content_block_epsilon""#),
        "unknown-type",
    ),
    ("two-turns/claude-lite.jsonl", Drop(r#""message_stop""#), "no-terminal"),
    // qwen
    ("one-tool/qwen.jsonl", Drop(r#""protocol_version""#), "handshake"),
    ("one-tool/qwen.jsonl", Swap(r#""protocol_version""#), "handshake"),
    ("one-tool/qwen.jsonl", Drop(r#""status":"executing""#), "tool"),
    ("one-tool/qwen.jsonl", Drop(r#""status":"success""#), "tool"),
    ("one-tool/qwen.jsonl", Swap(r#""status":"executing""#), "tool"),
    ("one-tool/qwen.jsonl", Drop(r#""turn":{"#), "no-terminal"),
    ("one-tool/qwen.jsonl", Twice(r#""turn":{"#), "one-terminal"),
    ("one-tool/qwen.jsonl", Swap(r#""exit_code":0"#), "after-terminal"),
    ("one-tool/qwen.jsonl", CutAfter(r#""status":"executing""#), "no-terminal"),
    ("one-tool/qwen.jsonl", Change(r#""status":"done""#, r#""status":"fine""#), "shape"),
    ("one-tool/qwen.jsonl", Change(r#""status":"executing""#, r#""status":"running""#), "shape"),
    ("one-tool/qwen.jsonl", Change(r#""total_tokens":1111"#, r#""total_tokens":1"#), "usage"),
    ("one-tool/qwen.jsonl", Change(r#""prompt_tokens":1100"#, r#""prompt_tokens":-1"#), "shape"),
    (
        "one-tool/qwen.jsonl",
        Change(r#","prompt_id":"session-123########1","status":"pending""#, r#","status":"pending""#),
        "envelope",
    ),
    (
        "one-tool/qwen.jsonl",
        Change(
            r#""id":"chatcmpl-session-123","created":1739430000,"model":"qwen-coder","session_id":"session-123","prompt_id""#,
            r#""id":"chatcmpl-other","created":1739430000,"model":"qwen-coder","session_id":"session-123","prompt_id""#,
        ),
        "envelope",
    ),
    (
        "one-tool/qwen.jsonl",
        Change(r#""finish_reason":"tool_calls""#, r#""finish_reason":"stop""#),
        "finish-reason",
    ),
    ("one-tool/qwen.jsonl", Change(r#""finish_reason":"tool_calls""#, r#""finish_reason":"whim""#), "shape"),
    ("one-tool/qwen.jsonl", Change(r#"{\"file_path\":\"main.py\"}"#, "main.py"), "arguments"),
    ("one-tool/qwen.jsonl", Change("x-qwen-terminal", "x-qwen-teletype"), "unknown-type"),
    (
        "one-tool/qwen.jsonl",
        Insert(r#""exit_code":0"#, r#"{"error":{"message":"no","type":"internal_error"}}"#),
        "after-terminal",
    ),
    ("parallel-tools/qwen.jsonl", Change(r#"{"offset":0,"#, r#"{"offset":999,"#), "offsets"),
    ("one-tool/qwen.stream-chunk-json.jsonl", Drop(r#"{"role":"assistant"}"#), "role"),
    ("one-tool/qwen.stream-chunk-json.jsonl", Drop(r#""finish_reason":"tool_calls""#), "role"),
    ("one-tool/qwen.stream-chunk-json.jsonl", Swap(r#"{"role":"assistant"}"#), "role"),
    ("one-tool/qwen.stream-chunk-json.jsonl", Twice(r#""turn":{"#), "one-terminal"),
    ("one-tool/qwen.stream-chunk-json.jsonl", CutBefore(r#""turn":{"#), "no-terminal"),
    (
        "one-tool/qwen.stream-chunk-json.jsonl",
        Change(
            r#""object":"chat.completion.chunk","id":"chatcmpl-session-123","created":1739430000,"model":"qwen-coder","session_id":"session-123","prompt_id":"session-123########1","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]"#,
            r#""object":"chat.completion","id":"chatcmpl-session-123","created":1739430000,"model":"qwen-coder","session_id":"session-123","prompt_id":"session-123########1","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]"#,
        ),
        "format",
    ),
    // acp
    ("one-tool/acp.jsonl", Drop(r#""sessionUpdate":"tool_call","#), "tool"),
    ("one-tool/acp.jsonl", Drop(r#""status":"completed""#), "tool"),
    ("one-tool/acp.jsonl", Twice(r#""status":"completed""#), "tool"),
    ("one-tool/acp.jsonl", Drop(r#""stopReason""#), "no-terminal"),
    ("one-tool/acp.jsonl", Twice(r#""stopReason""#), "one-terminal"),
    ("one-tool/acp.jsonl", Change(r#""end_turn""#, r#""whim""#), "shape"),
    ("one-tool/acp.jsonl", Change(r#""status":"in_progress""#, r#""status":"running""#), "shape"),
    ("one-tool/acp.jsonl", Change("agent_message_chunk", "agent_message_crumb"), "unknown-type"),
    ("one-tool/acp.jsonl", Change("session/update", "session/upgrade"), "unknown-type"),
    // core
    ("one-tool/core.jsonl", Drop(r#""tool_call_request""#), "tool"),
    ("one-tool/core.jsonl", Drop(r#""tool_call_response""#), "tool"),
    ("one-tool/core.jsonl", Drop(r#""finished""#), "no-terminal"),
    ("one-tool/core.jsonl", Twice(r#""finished""#), "one-terminal"),
    ("one-tool/core.jsonl", Swap(r#""a greeting.""#), "no-terminal"),
    ("one-tool/core.jsonl", Swap(r#""tool_call_request""#), "tool"),
    ("one-tool/core.jsonl", Change(r#""args":{"file_path":"main.py"}"#, r#""args":[]"#), "shape"),
    ("one-tool/core.jsonl", Change(r#""type":"finished""#, r#""type":"over""#), "unknown-type"),
    // documents
    (
        "one-tool/loom.json.jsonl",
        Change(r#""reply":"It prints a greeting.""#, r#""reply":"It does not""#),
        "reply-text",
    ),
    ("one-tool/loom.json.jsonl", Change(r#""type":"usage""#, r#""type":"usages""#), "unknown-type"),
    ("one-tool/claude-lite.json.jsonl", Change(r#""message_stop""#, r#""message_halt""#), "no-terminal"),
    ("one-tool/core.json.jsonl", Change(r#""type":"finished""#, r#""type":"warning""#), "no-terminal"),
    ("one-tool/claude.json.jsonl", Change(r#""subtype":"success""#, r#""subtype":"triumph""#), "shape"),
    ("one-tool/qwen.json.jsonl", Change(r#""status":"done""#, r#""status":"fine""#), "shape"),
    // rules that the specifications and the design page set for a dialect
    (
        "one-tool/qwen.jsonl",
        Change(
            r#""choices":[],"#,
            r#""choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"#,
        ),
        "handshake",
    ),
    ("one-tool/qwen.jsonl", Change(r#""capabilities":["#, r#""abilities":["#), "handshake"),
    ("one-tool/qwen.jsonl", Change(r#""output_format":"#, r#""out_format":"#), "handshake"),
    (
        "one-tool/qwen.jsonl",
        Change(r#""source":"tool","text":""#, r#""source":"tool","text":"\u001b[1m"#),
        "terminal-text",
    ),
    ("one-tool/qwen.stream-chunk-json.jsonl", Drop(r#""tool_calls":[{"index":0,"id""#), "tool"),
    (
        "one-tool/claude.jsonl",
        Insert(r#""type":"result""#, r#"{"type":"user","message":{"role":"user","content":"Hi"}}"#),
        "envelope",
    ),
    ("thought/claude.jsonl", Change(r#","signature":"""#, ""), "signature"),
    ("one-tool/claude.jsonl", Change(r#""total_cost_usd":0.0,"usage":"#, r#""no_usage":"#), "usage"),
    (
        "sub-agent/claude.jsonl",
        Change(r#""parent_tool_use_id":""#, r#""parent_tool_use_id":"not-"#),
        "parent",
    ),
    (
        "one-tool/claude.partial.jsonl",
        Change(r#""partial_json":"{\"file_path""#, r#""partial_json":"{\"path""#),
        "pieces",
    ),
    (
        "one-tool/loom.jsonl",
        Change(
            r#""type":"updates","id":"think","state":{"#,
            r#""type":"updates","id":"think","state":{"a":1,"#,
        ),
        "state",
    ),
    ("tot/loom.jsonl", Drop(r#""tot_expand""#), "thoughts"),
    ("got/loom.jsonl", Twice(r#""got_node_complete""#), "thoughts"),
    // every dialect
    ("plain-answer/claude.jsonl", Insert(r#""type":"result""#, "nonsense"), "json"),
    ("plain-answer/claude.jsonl", Insert(r#""type":"result""#, "[1,2]"), "json"),
    ("plain-answer/claude.jsonl", Insert(r#""type":"result""#, ""), "empty-line"),
    (
        "plain-answer/claude.jsonl",
        Change(r#"{"type":"result","#, r#"{"type":"result","type":"result","#),
        "json-text",
    ),
    ("plain-answer/claude.jsonl", Change(r#""result":"Hello"#, r#""result":"\ud83eHello"#), "json"),
    ("plain-answer/claude.jsonl", Garble("Hello"), "utf-8"),
    ("plain-answer/claude.jsonl", Overgrow(r#""type":"result""#), "too-long"),
    ("plain-answer/claude.jsonl", Unended, "no-newline"),
];

#[test]
fn each_break_is_found_by_its_rule() {
    for (path, how, rule) in BROKEN {
        let whole = String::from_utf8(read(path)).unwrap();
        let broken = how.apply(&whole);
        assert_ne!(whole.as_bytes(), broken, "{path}: {how:?} changes nothing");
        let found = check(None, Mode::Stream, &broken);
        assert!(
            found.iter().any(|finding| finding.rule == *rule),
            "{path}: {how:?} is not {rule} but {found:#?}"
        );
    }
}

/// The table on the page: for each rule how many mutations of the corpus break it, and how many of them are
/// found.
#[test]
fn the_page_tells_how_many_mutations_of_each_rule_are_caught() {
    let page = std::fs::read_to_string(crate::files::root().join("../docs/stream-rules.md")).unwrap();
    let mut table = String::from("| rule | mutations | caught |\n|---|---|---|\n");
    let (mut all, mut all_caught) = (0, 0);
    for rule in RULES {
        let mut streams: Vec<(Option<Dialect>, Vec<u8>)> = BROKEN
            .iter()
            .filter(|(_, _, name)| *name == rule.name)
            .map(|(path, how, _)| (None, how.apply(&String::from_utf8(read(path)).unwrap())))
            .collect();
        if let Example::Lines(dialect, lines) = rule.example {
            let stream: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
            streams.push((Some(dialect), stream.into_bytes()));
        }
        let is_caught = |(dialect, stream): &(Option<Dialect>, Vec<u8>)| {
            let found = check(*dialect, Mode::Stream, stream);
            found.iter().any(|finding| finding.rule == rule.name)
        };
        let (mutations, caught) = (streams.len(), streams.iter().filter(|stream| is_caught(stream)).count());
        assert!(mutations > 0, "no mutation breaks {}", rule.name);
        table += &format!("| `{}` | {mutations} | {caught} |\n", rule.name);
        all += mutations;
        all_caught += caught;
    }
    table += &format!("| all | {all} | {all_caught} |\n");
    assert_eq!(all, all_caught);
    assert!(page.contains(&table), "docs/stream-rules.md needs this table:\n{table}");
}

#[test]
fn a_stream_that_is_cut_off_anywhere_is_not_whole() {
    // What a document cut off leaves is another document, or none; and what is about the session needs no
    // turn.
    let is_stream = |stream: &&Stream| {
        stream.variant.format != Format::Json && stream.bytes.len() < 100_000 && stream.trace != "side-lines"
    };
    for stream in streams().iter().filter(is_stream) {
        let lines: Vec<&[u8]> = stream.bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for kept in 0..lines.len() {
            // A cut between two turns leaves a whole stream, and so does one before the first.
            if kept > 0 && (is_terminal(lines[kept - 1]) || kept == 1 && is_handshake(lines[0])) {
                continue;
            }
            let found = check(Some(stream.variant.dialect), Mode::Stream, &lines[..kept].concat());
            assert!(found.iter().any(is_error), "the first {kept} lines of {}", stream.path);
        }
    }
}

#[test]
fn a_line_that_is_cut_in_half_costs_one_line_and_checking_goes_on() {
    for stream in streams().iter().filter(|stream| stream.bytes.len() < 100_000) {
        let whole = String::from_utf8(stream.bytes.clone()).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for at in 0..lines.len() {
            let mut broken: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            broken[at].truncate(half(lines[at]).len());
            let found = check(Some(stream.variant.dialect), Mode::Stream, joined(&broken).as_bytes());
            let unreadable: Vec<u64> =
                found.iter().filter(|finding| finding.rule == "json").map(|finding| finding.line).collect();
            assert_eq!(unreadable, [at as u64 + 1], "line {} of {}", at + 1, stream.path);
        }
    }
}

#[test]
fn the_last_newline_may_be_missing() {
    for stream in streams().iter().filter(|stream| stream.bytes.len() < 100_000) {
        let cut = &stream.bytes[..stream.bytes.len() - 1];
        let rules: Vec<&str> = check(None, Mode::Stream, cut).iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["no-newline"], "{}", stream.path);
    }
}

fn is_error(finding: &Finding) -> bool {
    finding.level == Level::Error
}

fn contains(line: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(line).contains(text)
}

/// True for the first line of a worker.
fn is_handshake(line: &[u8]) -> bool {
    contains(line, "protocol_version") || contains(line, "_qwen/ready")
}

fn is_terminal(line: &[u8]) -> bool {
    let marks = [r#""reply":"#, r#""type":"message_stop","stop_reason""#, r#""turn":{"status""#];
    let acp = [r#""result":{"stopReason":"#, r#","error":{"code":"#];
    let core = [r#"{"type":"finished""#, r#"{"type":"error","value""#, r#"{"type":"user_cancelled""#];
    marks.iter().chain(&acp).chain(&core).any(|mark| contains(line, mark))
        || contains(line, r#""type":"result","subtype""#)
        || contains(line, r#""state":"idle""#)
}

#[test]
fn every_documented_rule_is_broken_by_its_example_and_named_on_the_page() {
    let page = std::fs::read_to_string(crate::files::root().join("../docs/stream-rules.md")).unwrap();
    for rule in RULES {
        assert!(
            page.contains(&format!("`{}`", rule.name)),
            "docs/stream-rules.md does not name {}",
            rule.name
        );
        let Example::Lines(dialect, lines) = rule.example else { continue };
        let stream: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
        let found = check(Some(dialect), Mode::Stream, stream.as_bytes());
        let broken = found.iter().find(|finding| finding.rule == rule.name);
        assert_eq!(broken.map(|finding| finding.level), Some(rule.level), "{}: {found:#?}", rule.name);
    }
    for (path, how, name) in BROKEN {
        assert!(rules::rule(name).is_some(), "{path}: {how:?}: {name} is not explained");
    }
}

/// The value with its keys in reverse order; at the top, with a further field.
fn reordered(value: &serde_json::Value, extended: bool) -> String {
    match value {
        serde_json::Value::Object(fields) => {
            let field = |(name, value): (&String, &serde_json::Value)| {
                format!("{}:{}", serde_json::Value::from(name.as_str()), reordered(value, false))
            };
            let further = extended.then(|| r#""x_further":{"a":[1]}"#.to_owned());
            let parts: Vec<String> = further.into_iter().chain(fields.iter().rev().map(field)).collect();
            format!("{{{}}}", parts.join(","))
        }
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| reordered(item, false)).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// A stream in which each line has a further field and its keys in another order, still UTF-8 and as long as
/// a line may be.
fn harmlessly_changed(whole: &str) -> String {
    let line = |line: &str| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["x_further"] = serde_json::json!({ "text": "ß → 🙂", "list": [1, null] });
        reordered(&value, false) + "\n"
    };
    whole.lines().map(line).collect()
}

#[test]
fn every_rule_has_mutations_that_break_it_and_additions_that_do_not() {
    for rule in RULES {
        let mutated = BROKEN.iter().filter(|(_, _, name)| *name == rule.name).map(|(path, ..)| *path);
        // In the export form, and in documents, the only keys say what a line is.
        let is_open = |path: &&str| !path.contains("loom-export") && !path.contains(".json.");
        let mut paths: Vec<&str> = mutated.filter(is_open).collect();
        // A rule that only its example breaks.
        if let (true, Example::Lines(dialect, _)) = (paths.is_empty(), rule.example) {
            paths.push(match dialect {
                Dialect::Claude => "one-tool/claude.jsonl",
                Dialect::Loom | Dialect::LoomExport => "one-tool/loom.jsonl",
                _ => "one-tool/qwen.jsonl",
            });
        }
        assert!(!paths.is_empty(), "{} has no mutation", rule.name);
        paths.dedup();
        for path in paths {
            let changed = harmlessly_changed(&String::from_utf8(read(path)).unwrap());
            let found = check(None, Mode::Stream, changed.as_bytes());
            assert!(found.is_empty(), "{}: {path}: {found:#?}", rule.name);
        }
    }
}

#[test]
fn neither_the_order_of_keys_nor_further_fields_are_wrong() {
    for stream in streams().iter().filter(|stream| stream.bytes.len() < 100_000) {
        let whole = String::from_utf8(stream.bytes.clone()).unwrap();
        // In the export form, and in documents, the only keys say what a line is.
        let closed = stream.variant.dialect == Dialect::LoomExport || stream.variant.format == Format::Json;
        for extended in [false, !closed] {
            let line = |line: &str| reordered(&serde_json::from_str(line).unwrap(), extended) + "\n";
            let changed: String = whole.lines().map(line).collect();
            for dialect in [Some(stream.variant.dialect), None] {
                let found = check(dialect, Mode::Stream, changed.as_bytes());
                assert!(found.is_empty(), "{} {dialect:?} {extended}: {found:#?}", stream.path);
            }
        }
    }
}

#[test]
fn what_the_vendors_own_cli_and_api_write_is_accepted() {
    let stream = String::from_utf8(read("thought/claude.jsonl")).unwrap();
    for line in [
        r#"{"type":"system","subtype":"files_persisted","files":[],"uuid":"x","session_id":"session-123"}"#,
        r#"{"type":"system","subtype":"status","status":"compacting","uuid":"x","session_id":"session-123"}"#,
        r#"{"type":"system","subtype":"task_updated","task_id":"t","patch":{"description":"d"},"uuid":"x","session_id":"session-123"}"#,
        r#"{"type":"auth_status","isAuthenticating":false,"output":[],"uuid":"y","session_id":"session-123"}"#,
        r#"{"type":"assistant","uuid":"z","session_id":"session-123","parent_tool_use_id":null,"message":{"id":"v","type":"message","role":"assistant","model":"m","content":[{"type":"server_tool_use","id":"q","name":"web_search","input":{}}],"usage":{"output_tokens":3}}}"#,
        r#"{"message":{"content":[{"data":"d","type":"redacted_thinking"}],"usage":{"output_tokens":3},"id":"v","role":"assistant","model":"m"},"uuid":"z","session_id":"session-123","parent_tool_use_id":null,"type":"assistant"}"#,
    ] {
        let at = stream.find('\n').unwrap() + 1;
        let changed = format!("{}{line}\n{}", &stream[..at], &stream[at..]);
        let found = check(None, Mode::Stream, changed.as_bytes());
        assert!(found.is_empty(), "{line}: {found:#?}");
    }
    for line in [
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","uuid":"x","session_id":"s"}"#,
        r#"{"type":"system","subtype":"init","cwd":"/","tools":[],"mcp_servers":[],"model":"m","uuid":"x","session_id":"s"}"#,
    ] {
        let found = check(Some(Dialect::Claude), Mode::Fragment, format!("{line}\n").as_bytes());
        assert!(found.is_empty(), "{line}: {found:#?}");
    }
}
