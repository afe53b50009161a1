//! Limits end a turn with its cause, what there is, the exit code, and without a further model call.

use mock_model::process::wait_marked_gone;
use mock_model::{MockModel, Reply, ReplyEvent, Request, gate, sse};

use crate::fifo::Fifo;
use crate::harness::{asked, judged};
use crate::stream_content::StreamContent;
use crate::wire::{self, Wire};

/// A model that never stops asking for the same file.
fn insatiable() -> MockModel {
    let mock = MockModel::start();
    let mut calls = 0;
    mock.answer_with(move |_: &Request| {
        calls += 1;
        Some(Reply::new([
            ReplyEvent::Text(format!("try {calls} ")).step(),
            ReplyEvent::call(&format!("c{calls}"), "list_directory", r#"{"path":"."}"#).step(),
        ]))
    });
    mock
}

#[track_caller]
fn check(
    wire: Wire,
    mock: &MockModel,
    flags: &[&str],
    status: &str,
    code: i32,
    calls: usize,
) -> StreamContent {
    let ended = asked(mock, wire).arg("--yolo").args(flags).run();
    assert_eq!(ended.code, Some(code), "{flags:?}: {ended:?}");
    let told = judged(wire, &ended);
    let end = told.end();
    assert_eq!(end.status, status, "{flags:?}");
    let error = end.error.clone().unwrap_or_default();
    assert!(error.contains(flags[0]), "{flags:?}: the error names the flag: {error:?}");
    assert!(ended.stderr.contains(flags[0]), "{flags:?}: people are told: {:?}", ended.stderr);
    assert_eq!(told.errors, Vec::<String>::new(), "{flags:?}: one error");
    assert_eq!(mock.requests().len(), calls, "{flags:?}: model calls");
    told
}

/// Whether calls and their results are shown.
fn shows_calls(wire: Wire) -> bool {
    !(wire.is_document() && matches!(wire.dialect, "qwen" | "claude"))
}

#[test]
fn model_calls() {
    wire::each(&wire::all(), |wire| {
        for flag in ["--max-session-turns", "--max-turns"] {
            for limit in ["0", "1", "3"] {
                let calls = limit.parse().unwrap();
                let told = check(wire, &insatiable(), &[flag, limit], "max_turns", 53, calls);
                assert_eq!(
                    told.end().tokens,
                    (10 * calls as u64, 5 * calls as u64),
                    "what was spent is told"
                );
                if shows_calls(wire) {
                    assert_eq!(
                        (told.calls.len(), told.results.len()),
                        (calls, calls),
                        "every call has its result"
                    );
                }
            }
        }
    });
}

#[test]
fn no_limit_is_a_negative_one() {
    for flag in ["--max-session-turns", "--max-turns", "--max-tool-calls"] {
        for spelling in [vec![format!("{flag}=-1")], vec![flag.to_owned(), "-1".to_owned()]] {
            let mock = MockModel::with([
                Reply::call("c1", "list_directory", r#"{"path":"."}"#),
                Reply::text("done"),
            ]);
            let ended = asked(&mock, wire::LITE).arg("--yolo").args(&spelling).run();
            assert_eq!(ended.code, Some(0), "{spelling:?}: {ended:?}");
        }
    }
}

#[test]
fn tool_calls() {
    wire::each(&wire::all(), |wire| {
        let told = check(wire, &insatiable(), &["--max-tool-calls", "2"], "max_tool_calls", 55, 3);
        if shows_calls(wire) {
            let failed: Vec<bool> = told.results.iter().map(|result| result.is_error).collect();
            assert_eq!(failed, [false, false, true], "two run, the third is answered without running");
        }
        check(wire, &insatiable(), &["--max-tool-calls", "0"], "max_tool_calls", 55, 1);
    });
}

#[test]
fn tool_calls_of_one_message() {
    wire::each(&wire::all(), |wire| {
        let three =
            ["c1", "c2", "c3"].map(|id| ReplyEvent::call(id, "list_directory", r#"{"path":"."}"#).step());
        let mock = MockModel::with([Reply::new(three)]);
        let told = check(wire, &mock, &["--max-tool-calls", "2"], "max_tool_calls", 55, 1);
        if shows_calls(wire) {
            let mut results: Vec<(&str, bool)> =
                told.results.iter().map(|result| (result.id.as_str(), result.is_error)).collect();
            results.sort_unstable();
            assert_eq!(results, [("c1", false), ("c2", false), ("c3", true)]);
        }
    });
}

#[test]
fn tokens() {
    wire::each(&wire::all(), |wire| {
        // Each call costs fifteen.
        check(wire, &insatiable(), &["--max-tokens-total", "15"], "max_tokens", 55, 1);
        check(wire, &insatiable(), &["--max-tokens-total", "31"], "max_tokens", 55, 3);
        check(wire, &insatiable(), &["--max-tokens-total", "0"], "max_tokens", 55, 0);
    });
}

#[test]
fn an_answer_within_the_limits_is_simply_done() {
    wire::each(&wire::all(), |wire| {
        let mock =
            MockModel::with([Reply::call("c1", "list_directory", r#"{"path":"."}"#), Reply::text("done")]);
        let exact = ["--max-session-turns=2", "--max-turns=2", "--max-tool-calls=1", "--max-tokens-total=30"];
        let ended = asked(&mock, wire).args(exact).args(["--max-wall-time", "1h", "--yolo"]).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        assert_eq!(judged(wire, &ended).end().status, "done");
    });
}

#[test]
fn time_while_the_model_speaks() {
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
        let told = check(wire, &mock, &["--max-wall-time", "3"], "max_wall_time", 55, 1);
        mock.client_gone(0);
        if !wire.is_document() {
            assert_eq!(told.text, "one", "what there is");
        }
    });
}

#[test]
fn time_while_a_tool_runs() {
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::start();
        let mark = format!("out-of-time-{}-{wire:?}", std::process::id());
        let program = asked(&mock, wire).args(["--yolo", "--max-wall-time", "3s"]).env("E2E_MARK", &mark);
        let hold = Fifo::new(&program, "hold");
        let call = serde_json::json!({ "command": format!("cat {hold}") }).to_string();
        mock.push(Reply::call("c1", "run_shell_command", &call));
        let ended = program.run();
        assert_eq!(ended.code, Some(55), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(told.end().status, "max_wall_time");
        wait_marked_gone(&mark);
        if shows_calls(wire) {
            assert_eq!((told.results.len(), told.results[0].is_error), (1, true));
        }
    });
}
