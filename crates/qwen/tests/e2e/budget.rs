//! `--max-budget-usd`: prices come from the settings, the limit ends a turn like every other, and what was
//! spent is told.

use mock_model::{MockModel, Reply, ReplyEvent, Request};
use serde_json::{Value, json};

use crate::harness::{asked, judged, qwen};
use crate::wire::{self, CLAUDE, QWEN};

/// A thousandth of a dollar for each call: ten tokens in, five out.
const PRICES: &str = r#"{"model":{"prices":{"*":{"input":50,"output":100}}}}"#;

/// A model that never stops asking for the same file.
fn insatiable() -> MockModel {
    let mock = MockModel::start();
    let mut calls = 0;
    mock.answer_with(move |_: &Request| {
        calls += 1;
        Some(Reply::new([ReplyEvent::call(&format!("c{calls}"), "list_directory", r#"{"path":"."}"#).step()]))
    });
    mock
}

fn last_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn the_limit_ends_the_turn_without_a_further_model_call() {
    wire::each(&wire::all(), |wire| {
        for (limit, calls) in [("0", 0), ("0.0005", 1), ("0.0025", 3)] {
            let mock = insatiable();
            let ended =
                asked(&mock, wire).args(["--yolo", "--settings", PRICES, "--max-budget-usd", limit]).run();
            assert_eq!(ended.code, Some(55), "{limit}: {ended:?}");
            let told = judged(wire, &ended);
            assert_eq!(told.end().status, "budget", "{limit}");
            assert_eq!(mock.requests().len(), calls, "{limit}");
            assert!(ended.stderr.contains("--max-budget-usd"), "{ended:?}");
        }
    });
}

#[test]
fn what_was_spent_is_told() {
    let replies =
        || MockModel::with([Reply::call("c1", "list_directory", r#"{"path":"."}"#), Reply::text("done")]);
    let near = |value: &Value| (value.as_f64().unwrap() - 0.002).abs() < 1e-9;
    let ended = asked(&replies(), CLAUDE).args(["--yolo", "--settings", PRICES]).run();
    let result = last_line(&ended.stdout);
    assert!(near(&result["total_cost_usd"]), "{result}");
    let by_model = result["modelUsage"].as_object().unwrap();
    assert!(by_model.values().all(|model| near(&model["costUSD"])) && by_model.len() == 1, "{result}");
    let ended = asked(&replies(), QWEN).args(["--yolo", "--settings", PRICES]).run();
    let spent = &last_line(&ended.stdout)["metadata"]["turn"]["usage_by_model"];
    assert!(spent.as_object().unwrap().values().all(|model| near(&model["cost_usd"])), "{spent}");
}

#[test]
fn claude_calls_it_by_its_own_name() {
    let ended = asked(&insatiable(), CLAUDE)
        .args(["--yolo", "--settings", PRICES, "--max-budget-usd", "0.0015"])
        .run();
    let result = last_line(&ended.stdout);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_max_budget_usd"), &json!(true)));
    assert!(result["errors"][0].as_str().unwrap().contains("0.0015"), "{result}");
}

#[test]
fn the_limit_counts_all_turns_of_a_session() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let line = json!({"messages": [{"role": "user", "content": "Hello"}]}).to_string();
    let ended = qwen()
        .with_model(&mock)
        .args(["--input-format", "stream-json", "--settings", PRICES, "--max-budget-usd", "0.0015"])
        .args(QWEN.flags())
        .stdin(format!("{line}\n{line}\n{line}\n"))
        .run();
    let told = judged(QWEN, &ended);
    let statuses: Vec<&str> = told.ends.iter().map(|end| end.status.as_str()).collect();
    assert_eq!((statuses, mock.requests().len()), (vec!["done", "done", "budget"], 2));
}

#[test]
fn a_budget_for_a_model_without_a_price_is_an_error_at_the_start() {
    let mock = MockModel::with([Reply::text("ok")]);
    let ended = asked(&mock, CLAUDE).args(["--max-budget-usd", "0.01"]).run();
    assert_eq!((ended.code, mock.requests().len()), (Some(52), 0), "{ended:?}");
    assert!(ended.stderr.contains("model.prices") && ended.stderr.contains("'mock'"), "{ended:?}");
}

#[test]
fn a_limit_or_a_price_that_is_no_amount_is_refused() {
    let mock = MockModel::with([]);
    let refused = asked(&mock, QWEN).args(["--max-budget-usd", "plenty"]).run();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let negative = r#"{"model":{"prices":{"m":{"input":-1}}}}"#;
    let refused = asked(&mock, QWEN).args(["--settings", negative]).run();
    assert!(refused.code == Some(52) && refused.stderr.contains("model.prices.m"), "{refused:?}");
}
