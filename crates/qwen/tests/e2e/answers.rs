//! Answers that reach the output limit or are refused, and what a resumed session has spent.

use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{asked, judged, qwen};
use crate::wire::{self, CLAUDE, QWEN};

/// A reply with a text that ends for this reason.
fn ending(text: &str, finish: &str) -> Reply {
    Reply::new([ReplyEvent::Text(text.into()).step(), ReplyEvent::Finish(finish.into()).step()])
}

fn last_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn an_answer_that_reaches_the_models_limit_is_continued_as_one_message() {
    wire::each(&wire::all(), |wire| {
        let mock =
            MockModel::with([ending("one, ", "length"), ending("two, ", "length"), ending("three", "stop")]);
        let ended = asked(&mock, wire).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!((told.end().status.as_str(), told.text.as_str()), ("done", "one, two, three"));
        assert_eq!(told.end().tokens, (30, 15), "the tokens of all three calls count");
        let requests = mock.requests();
        assert_eq!(requests.len(), 3);
        let last = requests[2].body["messages"].as_array().unwrap();
        let texts: Vec<&Value> = last.iter().rev().take(2).map(|message| &message["content"]).collect();
        assert!(texts[0].to_string().contains("Continue exactly where it stopped"), "{texts:?}");
        assert!(texts[1].to_string().contains("two, "), "{texts:?}");
    });
}

#[test]
fn an_answer_is_continued_three_times_at_most_and_then_reported_as_cut_off() {
    let cut = || MockModel::with((1..9).map(|n| ending(&format!("part {n} "), "length")));
    let mock = cut();
    let ended = asked(&mock, QWEN).run();
    let end = last_line(&ended.stdout);
    assert_eq!(end["choices"][0]["finish_reason"], "length", "{end}");
    assert_eq!(end["choices"][0]["message"]["content"], "part 1 part 2 part 3 part 4 ");
    assert_eq!(mock.requests().len(), 4);
    let ended = asked(&cut(), CLAUDE).run();
    let result = last_line(&ended.stdout);
    assert_eq!(
        (&result["stop_reason"], &result["is_error"]),
        (&json!("max_tokens"), &json!(true)),
        "{result}"
    );
}

#[test]
fn an_answer_that_reaches_a_limit_of_the_user_or_contains_a_call_is_not_continued() {
    let mock = MockModel::with([ending("one, ", "length"), ending("two", "stop")]);
    let ended = asked(&mock, QWEN).args(["--settings", r#"{"model":{"maxTokens":5}}"#]).run();
    assert_eq!(last_line(&ended.stdout)["choices"][0]["finish_reason"], "length");
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_refusal_is_not_a_success() {
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([ending("I would", "content_filter"), Reply::text("never asked")]);
        let ended = asked(&mock, wire).run();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(judged(wire, &ended).end().status, "error");
        assert_eq!(mock.requests().len(), 1);
    });
    let refused = || MockModel::with([ending("I would", "content_filter")]);
    let result = last_line(&asked(&refused(), CLAUDE).run().stdout);
    assert_eq!((&result["stop_reason"], &result["is_error"]), (&json!("refusal"), &json!(true)), "{result}");
    let end = last_line(&asked(&refused(), QWEN).run().stdout);
    assert_eq!(end["choices"][0]["finish_reason"], "content_filter", "{end}");
    assert_eq!(end["metadata"]["error"]["code"], "content_filter", "{end}");
}

#[test]
fn usage_and_cost_continue_after_a_resume() {
    let prices = r#"{"model":{"prices":{"*":{"input":50,"output":100}}}}"#;
    let run = |program: mock_model::process::Program, flags: &[&str]| {
        let ended = program.args(["--settings", prices]).args(flags).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        last_line(&ended.stdout)
    };
    let mock = MockModel::with((1..5).map(|n| Reply::text(&n.to_string())));
    let home = tempfile::tempdir().unwrap();
    let start = || asked(&mock, CLAUDE).env("QWEN_HOME", home.path());
    let id = "11111111-1111-4111-8111-111111111111";
    let first = run(start(), &["--session-id", id]);
    let second = run(start(), &["--resume", id]);
    let near = |line: &Value, cost: f64| (line["total_cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9;
    assert!(near(&first, 0.001) && near(&second, 0.002), "{first}\n{second}");
    let by_model = |line: &Value| line["modelUsage"].as_object().unwrap().values().next().unwrap().clone();
    assert_eq!(by_model(&second)["inputTokens"], 20, "{second}");
    assert_eq!(second["usage"]["input_tokens"], 10, "the turn's own tokens: {second}");
    let fork = run(start(), &["--resume", id, "--fork-session"]);
    assert!(near(&fork, 0.001), "a fork has its own expenses: {fork}");
}

#[test]
fn a_claude_model_thinks_as_with_the_vendors_program() {
    let sent = |model: &str, flags: &[&str]| {
        let mock = MockModel::with([Reply::text("ok")]);
        let program = qwen().env("ANTHROPIC_BASE_URL", mock.origin()).env("ANTHROPIC_API_KEY", "k");
        let ended = program.args(["-p", "x", "--model", model]).args(CLAUDE.flags()).args(flags).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        mock.requests()[0].body.clone()
    };
    let adaptive = json!({"type": "adaptive"});
    let body = sent("claude-opus-4-6", &[]);
    assert_eq!((&body["thinking"], &body["max_tokens"]), (&adaptive, &json!(128_000)));
    assert_eq!(sent("claude-opus-4-6", &["--max-thinking-tokens", "5000"])["thinking"], adaptive);
    assert_eq!(
        sent("claude-opus-4-6", &["--max-thinking-tokens", "0"])["thinking"],
        json!({"type": "disabled"})
    );
    assert_eq!(sent("claude-opus-5-5", &["--max-thinking-tokens", "0"])["thinking"], adaptive);
    let low = sent("claude-opus-4-6", &["--effort", "low"]);
    assert_eq!((&low["thinking"], &low["output_config"]["effort"]), (&adaptive, &json!("low")));
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(sent("claude-sonnet-4-5", &[])["thinking"], budget(31_999));
    assert_eq!(sent("claude-sonnet-4-5", &["--max-thinking-tokens", "5000"])["thinking"], budget(5000));
}
