//! What the host may read off and set over the control channel, in both forms.

use mock_model::process::Run;
use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::qwen;
use crate::wire::{CLAUDE, QWEN, Wire};

fn start(mock: &MockModel, wire: Wire, flags: &[&str]) -> Run {
    let program = qwen().with_model(mock).args(["--input-format", "stream-json", "--model", "mock"]);
    program.args(wire.flags()).args(flags).start()
}

fn say(run: &mut Run, text: &str) {
    run.write_line(json!({"messages": [{"role": "user", "content": text}]}).to_string());
    run.json_until(|line| line["metadata"]["turn"].is_object() || line["type"] == "result");
}

/// Asks on the control channel, in the flat form and in the nested one, and returns both answers.
fn ask(run: &mut Run, request: &Value) -> [Value; 2] {
    let mut flat = request.clone();
    flat["type"] = "control_request".into();
    flat["request_id"] = "flat".into();
    let nested = json!({"type": "control_request", "request_id": "nested", "request": request});
    [flat, nested].map(|line| {
        run.write_line(line.to_string());
        let answer = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
        let response = &answer["response"];
        let result = [&response["result"], &response["response"], &response["error"]];
        result.into_iter().find(|value| !value.is_null()).unwrap().clone()
    })
}

#[test]
fn the_context_is_as_full_as_the_last_call_says_and_an_estimate_says_that_it_is_one() {
    let counted = |input, output| {
        Reply::new([ReplyEvent::Text("ok".to_owned()).step(), ReplyEvent::Usage { input, output }.step()])
    };
    let call = Reply::new([
        ReplyEvent::call("c1", "list_directory", r#"{"path":"."}"#).step(),
        ReplyEvent::Usage { input: 1000, output: 10 }.step(),
    ]);
    for wire in [QWEN, CLAUDE] {
        let mock = MockModel::with([call.clone(), counted(7000, 50)]);
        let settings = r#"{"model":{"contextWindow":10000}}"#;
        let mut run = start(&mock, wire, &["--settings", settings]);
        let [before, _] = ask(&mut run, &json!({"subtype": "get_context_usage"}));
        assert_eq!((&before["totalTokens"], &before["contextWindowSize"]), (&json!(0), &json!(10000)));
        say(&mut run, "Hello");
        for usage in ask(&mut run, &json!({"subtype": "get_context_usage", "show_details": true})) {
            assert_eq!(
                (&usage["totalTokens"], &usage["estimated"]),
                (&json!(7050), &json!(false)),
                "{usage}"
            );
            assert_eq!((&usage["percentage"], &usage["maxTokens"]), (&json!(70), &json!(10000)));
            assert_eq!(usage["breakdown"]["freeSpace"], 2950);
            assert_eq!(usage["breakdown"]["currentTier"], "warn");
            let total: u64 =
                usage["categories"].as_array().unwrap().iter().map(|c| c["tokens"].as_u64().unwrap()).sum();
            assert_eq!(total, 10000, "the categories are the whole window: {usage}");
            assert!(usage["builtinTools"].as_array().unwrap().iter().any(|tool| tool["name"] == "read_file"));
        }
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn what_was_spent_is_told_by_model_and_a_bad_range_is_an_error() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut run = start(&mock, QWEN, &[]);
    say(&mut run, "Hello");
    say(&mut run, "Hello");
    for info in ask(&mut run, &json!({"subtype": "get_usage_info", "range": "week"})) {
        let summary = &info["summary"];
        assert_eq!((&summary["requests"], &summary["totalTokens"]), (&json!(2), &json!(30)), "{info}");
        assert_eq!((&info["range"], &info["models"][0]["requests"]), (&json!("week"), &json!(2)), "{info}");
        assert!(info["generatedAt"].as_str().unwrap().starts_with("20"), "{info}");
    }
    for error in ask(&mut run, &json!({"subtype": "get_usage_info", "range": "century"})) {
        assert!(error.to_string().contains("century"), "{error}");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn the_models_are_those_that_can_be_chosen() {
    let mock = MockModel::with([]);
    let mut run = start(&mock, QWEN, &["--fallback-model", "second,third"]);
    for answer in ask(&mut run, &json!({"subtype": "get_available_models"})) {
        let ids: Vec<&str> =
            answer["models"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["mock", "second", "third"]);
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn effort_reaches_the_next_call() {
    let mock = MockModel::with([Reply::text("ok")]);
    let mut run = start(&mock, QWEN, &[]);
    for answer in ask(&mut run, &json!({"subtype": "set_effort", "effort": "high"})) {
        assert_eq!((&answer["effort"], &answer["applied"]), (&json!("high"), &json!(true)), "{answer}");
        assert!(answer["override"].is_null());
    }
    say(&mut run, "Hello");
    assert_eq!(mock.requests()[0].body["reasoning_effort"], "high");
    for answer in ask(&mut run, &json!({"subtype": "continue_last_turn"})) {
        assert_eq!((&answer["accepted"], &answer["interruption"]), (&json!(false), &json!("none")));
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_command_in_the_background_is_stopped_at_the_hosts_wish() {
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", r#"{"command":"sleep 600","is_background":true}"#),
        Reply::text("started"),
    ]);
    let mut run = start(&mock, CLAUDE, &["--permission-mode", "bypassPermissions"]);
    say(&mut run, "Sleep");
    let request = |id: &str| {
        json!({"type": "control_request", "request_id": id,
               "request": {"subtype": "stop_task", "task_id": id}})
        .to_string()
    };
    run.write_line(request("shell-9"));
    let refused = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
    assert_eq!(refused["response"]["subtype"], "error", "{refused}");
    run.write_line(request("shell-1"));
    let taken = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
    assert_eq!(taken["response"]["subtype"], "success", "{taken}");
    let updated = run.json_until(|line| line["subtype"] == "task_updated").pop().unwrap();
    assert_eq!((&updated["task_id"], &updated["patch"]["status"]), (&json!("shell-1"), &json!("killed")));
    assert_eq!(run.finish().code, Some(0));
}
