//! Tools that the host runs: the turn pauses, the host answers, the turn goes on; and whatever the host does
//! instead, the conversation stays one that the model takes.

use mock_model::process::{Program, Run};
use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{judged, qwen};
use crate::wire::{self, QWEN, QWEN_CHUNK, STREAMS, Wire};

fn worker(mock: &MockModel, wire: Wire) -> Program {
    qwen().with_model(mock).args(["--input-format", "stream-json"]).args(wire.flags())
}

fn tools() -> Value {
    json!([{"type": "function", "function": {
        "name": "get_weather", "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }}])
}

fn ask(prompt_id: &str, text: &str) -> String {
    json!({"session_id": "s", "prompt_id": prompt_id,
           "input": {"origin": "user", "parts": [{"type": "text", "text": text}]},
           "options": {"tools": tools()}})
    .to_string()
}

fn answers(prompt_id: &str, results: &[(&str, &str)]) -> String {
    let part = |(id, text): &(&str, &str)| {
        json!({"type": "function_response",
               "function_response": {"id": id, "name": "get_weather", "response": {"output": text}}})
    };
    let parts: Vec<Value> = results.iter().map(part).collect();
    json!({"session_id": "s", "prompt_id": prompt_id, "continuation": true, "tool_call_id": results[0].0,
           "input": {"origin": "tool_response", "parts": parts}})
    .to_string()
}

fn weather(id: &str) -> Reply {
    Reply::call(id, "get_weather", r#"{"city":"Oslo"}"#)
}

/// Reads until the turn pauses.
#[track_caller]
fn paused(run: &mut Run) -> Vec<Value> {
    run.json_until(|line| line["choices"][0]["finish_reason"] == "tool_calls")
}

/// Reads the turn's terminal record.
#[track_caller]
fn end(run: &mut Run) -> Value {
    run.json_until(|line| line["metadata"]["turn"].is_object()).pop().unwrap()
}

fn status(end: &Value) -> &str {
    end["metadata"]["turn"]["status"].as_str().unwrap()
}

/// The results that a request to the model brings: call and text.
fn results(mock: &MockModel, request: usize) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let request = &mock.requests()[request];
    let tools = request.messages().iter().filter(|message| message["role"] == "tool");
    tools.map(|message| (text(&message["tool_call_id"]), text(&message["content"]))).collect()
}

/// Every call in a request has exactly one result, right behind it.
#[track_caller]
fn assert_valid(mock: &MockModel, request: usize) {
    let request = mock.requests()[request].clone();
    let mut open: Vec<String> = Vec::new();
    for message in request.messages() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap().to_owned();
            assert!(open.contains(&id), "a result without its call: {:#?}", request.messages());
            open.retain(|call| *call != id);
        } else {
            assert!(open.is_empty(), "calls without results {open:?}: {:#?}", request.messages());
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_turn_pauses_for_the_host_and_goes_on_with_its_answer() {
    for wire in [QWEN, QWEN_CHUNK] {
        let mock = MockModel::with([weather("h1"), Reply::text("It is cold.")]);
        let mut run = worker(&mock, wire).start();
        run.write_line(ask("p1", "Weather?"));
        let lines = paused(&mut run);
        assert!(lines.iter().any(|line| line.to_string().contains("h1")), "{lines:#?}");
        assert!(lines.iter().all(|line| line["metadata"]["turn"].is_null()), "a pause is no end");
        run.write_line(answers("p1", &[("h1", "-3 °C")]));
        let end = end(&mut run);
        assert_eq!((status(&end), &end["prompt_id"]), ("done", &json!("p1")));
        assert_eq!(results(&mock, 1), [("h1".to_owned(), "-3 °C".to_owned())]);
        assert!(mock.requests()[0].tool_names().contains(&"get_weather"));
        let ended = run.finish();
        assert_eq!(ended.code, Some(0));
        assert_eq!(judged(wire, &ended).errors, Vec::<String>::new());
    }
}

#[test]
fn every_dialect_shows_the_call_and_its_result() {
    wire::each(&STREAMS, |wire| {
        let mock = MockModel::with([weather("h1"), Reply::text("It is cold.")]);
        let mut run = worker(&mock, wire).start();
        run.write_line(ask("p1", "Weather?"));
        // The first line of any dialect that shows the start of the call comes before the call waits, or
        // after.
        run.json_until(|line| {
            let text = line.to_string();
            text.contains("h1")
                && (text.contains("Oslo") || text.contains("executing"))
                && !text.contains("content_block_")
                && !text.contains("chat.completion.chunk")
        });
        run.write_line(answers("p1", &[("h1", "-3 °C")]));
        mock.wait_for_request(1);
        let ended = run.finish();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(told.errors, Vec::<String>::new(), "{}", ended.stdout);
        assert_eq!(told.ends.iter().map(|end| end.status.as_str()).collect::<Vec<_>>(), ["done"]);
    });
}

#[test]
fn several_calls_are_answered_together_or_one_by_one_beside_our_own() {
    let both = || {
        Reply::new([
            ReplyEvent::call("h1", "get_weather", r#"{"city":"Oslo"}"#).step(),
            ReplyEvent::call("b1", "list_directory", r#"{"path":"."}"#).step(),
            ReplyEvent::call("h2", "get_weather", r#"{"city":"Rome"}"#).step(),
        ])
    };
    for together in [true, false] {
        let mock = MockModel::with([both(), Reply::text("done")]);
        let mut run = worker(&mock, QWEN).start();
        run.write_line(ask("p1", "Weather?"));
        paused(&mut run);
        if together {
            run.write_line(answers("p1", &[("h2", "warm"), ("h1", "cold")]));
        } else {
            run.write_line(answers("p1", &[("h2", "warm")]));
            run.write_line(json!({"type": "heartbeat_request", "session_id": "s"}).to_string());
            run.json_until(|line| line["type"] == "result/heartbeat");
            assert_eq!(mock.requests().len(), 1, "one answer is missing");
            run.write_line(answers("p1", &[("h1", "cold")]));
        }
        assert_eq!(status(&end(&mut run)), "done");
        let back = results(&mock, 1);
        let ids: Vec<&str> = back.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["h1", "b1", "h2"], "in the order of the calls");
        assert_eq!((back[0].1.as_str(), back[2].1.as_str()), ("cold", "warm"));
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn an_answer_to_nothing_costs_one_error_and_changes_nothing() {
    let mock = MockModel::with([weather("h1"), Reply::text("done")]);
    let mut run = worker(&mock, QWEN).start();
    let error = |run: &mut Run| -> String {
        let line = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
        assert!(line["metadata"]["turn"].is_null(), "{line}");
        line["metadata"]["error"]["code"].as_str().unwrap().to_owned()
    };
    run.write_line(answers("p0", &[("h0", "early")]));
    assert_eq!(error(&mut run), "unknown_tool_call", "before any turn");
    run.write_line(ask("p1", "Weather?"));
    paused(&mut run);
    run.write_line(answers("p1", &[("h9", "foreign")]));
    assert_eq!(error(&mut run), "unknown_tool_call");
    run.write_line(answers("p9", &[("h1", "of another turn")]));
    assert_eq!(error(&mut run), "unknown_tool_call");
    run.write_line(answers("p1", &[("h1", "first"), ("h1", "second")]));
    assert_eq!(error(&mut run), "unknown_tool_call", "given twice");
    assert_eq!(status(&end(&mut run)), "done");
    run.write_line(answers("p1", &[("h1", "late")]));
    assert_eq!(error(&mut run), "unknown_tool_call", "after the turn");
    assert_eq!(results(&mock, 1), [("h1".to_owned(), "first".to_owned())]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_failure_of_the_host_is_told_to_the_model() {
    let mock = MockModel::with([weather("h1"), Reply::text("done")]);
    let mut run = worker(&mock, QWEN).start();
    run.write_line(ask("p1", "Weather?"));
    paused(&mut run);
    let failed = json!({"session_id": "s", "prompt_id": "p1",
        "input": {"origin": "tool_response", "parts": [
            {"functionResponse": {"id": "h1", "response": {"error": "no network"}}}]}});
    run.write_line(failed.to_string());
    assert_eq!(status(&end(&mut run)), "done");
    assert_eq!(results(&mock, 1), [("h1".to_owned(), "no network".to_owned())]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn the_extended_fields_of_an_answer_count_in_its_input_too() {
    let mock = MockModel::with([weather("h1"), Reply::text("done")]);
    let mut run = worker(&mock, QWEN).start();
    run.write_line(ask("p1", "Weather?"));
    paused(&mut run);
    let answer = json!({"session_id": "s", "prompt_id": "p1",
        "input": {"origin": "tool_response", "tool_call_id": "h1", "continuation": true,
            "parts": [{"type": "text", "text": "rain"}]}});
    run.write_line(answer.to_string());
    assert_eq!(status(&end(&mut run)), "done");
    assert_eq!(results(&mock, 1), [("h1".to_owned(), "rain".to_owned())]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_cancel_or_a_new_prompt_ends_the_pause_and_leaves_a_valid_conversation() {
    let cancel = json!({"type": "control/cancel", "session_id": "s", "reason": "escape"}).to_string();
    for (line, expected) in [(cancel, "cancelled"), (ask("p2", "Never mind."), "interrupted")] {
        let mock = MockModel::with([weather("h1"), Reply::text("fine")]);
        let mut run = worker(&mock, QWEN).start();
        run.write_line(ask("p1", "Weather?"));
        paused(&mut run);
        // The pause begins once the call is shown to be under way.
        run.json_until(|line| line["type"] == "x-qwen-tool-display" && line["status"] == "executing");
        run.write_line(json!({"type": "heartbeat_request", "session_id": "s"}).to_string());
        run.json_until(|line| line["type"] == "result/heartbeat");
        run.write_line(&line);
        let first = end(&mut run);
        assert_eq!((status(&first), &first["prompt_id"]), (expected, &json!("p1")));
        if expected == "cancelled" {
            run.write_line(ask("p2", "Never mind."));
        }
        assert_eq!(status(&end(&mut run)), "done");
        assert_valid(&mock, 1);
        let ended = run.finish();
        assert_eq!(ended.code, Some(0));
        judged(QWEN, &ended);
    }
}

#[test]
fn a_paused_turn_survives_the_end_of_its_process() {
    for kill in [true, false] {
        let mock = MockModel::with([weather("h1"), Reply::text("It is cold.")]);
        let program = worker(&mock, QWEN).arg("--session-id").arg("s");
        let mut run = program.start();
        run.write_line(ask("p1", "Weather?"));
        paused(&mut run);
        run.json_until(|line| line["type"] == "x-qwen-tool-display" && line["status"] == "executing");
        if kill {
            run.signal(mock_model::process::Signal::KILL);
            run.wait();
        } else {
            let ended = run.finish();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let told = judged(QWEN, &ended);
            let end = told.end();
            assert_eq!(end.status, "interrupted", "the process ends the turn that it cannot finish");
            assert!(end.error.as_ref().is_some_and(|error| error.contains("input ended")), "{end:?}");
            let exit = told.lines.iter().find(|line| line["source"] == "system").unwrap();
            assert_eq!(exit["exit_code"], 0, "as the process does");
        }
        let again = worker(&mock, QWEN).cwd(program.cwd_path());
        let again = again.env("QWEN_HOME", program.qwen_home_path()).arg("--resume").arg("s");
        let mut run = again.start();
        run.write_line(answers("p1", &[("h1", "-3 °C")]));
        let end = end(&mut run);
        assert_eq!((status(&end), &end["prompt_id"]), ("done", &json!("p1")), "{end}");
        assert_eq!(results(&mock, 1), [("h1".to_owned(), "-3 °C".to_owned())]);
        assert!(mock.requests()[1].tool_names().contains(&"get_weather"), "the tools are remembered");
        assert_eq!(run.finish().code, Some(0));
    }
}

#[test]
fn what_the_rules_forbid_stays_forbidden_though_the_host_would_run_it() {
    let mock = MockModel::with([weather("h1"), Reply::text("done")]);
    let settings = r#"{"permissions":{"deny":["get_weather"]}}"#;
    let mut run = worker(&mock, QWEN).args(["--settings", settings]).start();
    run.write_line(ask("p1", "Weather?"));
    let end = end(&mut run);
    assert_eq!(end["metadata"]["turn"]["permission_denials"][0]["tool_name"], "get_weather", "{end}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_host_that_keeps_no_state_may_send_the_whole_conversation_back() {
    let mock = MockModel::with([weather("h1"), Reply::text("It is cold.")]);
    let mut run = worker(&mock, QWEN).start();
    let user = json!({"role": "user", "content": "Weather?"});
    run.write_line(json!({"messages": [user], "tools": tools()}).to_string());
    paused(&mut run);
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "h1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "h1", "content": "-3 °C"});
    run.write_line(json!({"messages": [user, call, result], "tools": tools()}).to_string());
    assert_eq!(status(&end(&mut run)), "done");
    assert_eq!(results(&mock, 1), [("h1".to_owned(), "-3 °C".to_owned())]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_cancel_while_our_own_tool_runs_leaves_a_valid_conversation() {
    let calls = Reply::new([
        ReplyEvent::call("b1", "run_shell_command", r#"{"command":"echo begun; sleep 60"}"#).step(),
        ReplyEvent::call("b2", "list_directory", r#"{"path":"."}"#).step(),
    ]);
    let mock = MockModel::with([calls, Reply::text("fine")]);
    let mut run = worker(&mock, QWEN).arg("--yolo").start();
    run.write_line(ask("p1", "Sleep."));
    run.json_until(|line| {
        line["type"] == "x-qwen-terminal" && line["text"].as_str().unwrap_or("").contains("begun")
    });
    run.write_line(json!({"type": "control/cancel", "session_id": "s", "reason": "escape"}).to_string());
    assert_eq!(status(&end(&mut run)), "cancelled");
    run.write_line(ask("p2", "Go on."));
    assert_eq!(status(&end(&mut run)), "done");
    assert_valid(&mock, 1);
    assert_eq!(results(&mock, 1).len(), 2);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn claudes_own_tool_result_is_an_answer_too() {
    let mock = MockModel::with([weather("h1"), Reply::text("It is cold.")]);
    let mut run = worker(&mock, wire::CLAUDE).start();
    run.write_line(ask("p1", "Weather?"));
    run.json_until(|line| line["type"] == "assistant" && line.to_string().contains("h1"));
    let result = json!({"type": "tool_result", "tool_use_id": "h1", "content": "-3 °C"});
    run.write_line(json!({"type": "user", "message": {"role": "user", "content": [result]}}).to_string());
    let end = run.json_until(|line| line["type"] == "result").pop().unwrap();
    assert_eq!(end["result"], "It is cold.", "{end}");
    assert_eq!(results(&mock, 1), [("h1".to_owned(), "-3 °C".to_owned())]);
    judged(wire::CLAUDE, &run.finish());
}

/// A turn with one host tool of this schema, which the model calls with these arguments and, if refused,
/// ends.
fn call_with(parameters: &Value, arguments: &str) -> (MockModel, Run) {
    let mock = MockModel::with([Reply::call("c1", "store", arguments), Reply::text("ok")]);
    let mut run = worker(&mock, QWEN).start();
    let tool = json!({"type": "function", "function": {"name": "store", "parameters": parameters}});
    run.write_line(json!({"session_id": "s", "prompt_id": "p", "options": {"tools": [tool]},
                          "input": {"origin": "user", "parts": [{"type": "text", "text": "store it"}]}}));
    (mock, run)
}

#[test]
fn a_call_that_satisfies_its_schema_reaches_the_host_and_another_one_goes_back_to_the_model() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let scores = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let patterned = json!({"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": false});
    let nested = json!({"type": "object", "properties": {"in": {"type": "object", "properties": {"k": {}},
        "additionalProperties": {"type": "boolean"}}}});
    for (schema, arguments, problem) in [
        (&open, r#"{"b":1}"#, None),
        (&scores, r#"{"ann":3,"bo":4}"#, None),
        (&scores, r#"{"ann":"3"}"#, Some("`/ann` must be of type integer, not string")),
        (&patterned, r#"{"x_a":1}"#, None),
        (&patterned, r#"{"y":1}"#, Some("must not have the property \"y\"")),
        (&nested, r#"{"in":{"k":1,"other":true}}"#, None),
        (&nested, r#"{"in":{"other":1}}"#, Some("`/in/other` must be of type boolean")),
    ] {
        let (mock, mut run) = call_with(schema, arguments);
        match problem {
            None => {
                paused(&mut run);
                run.write_line(
                    json!({"session_id": "s", "prompt_id": "p", "continuation": true, "tool_call_id": "c1",
                           "input": {"origin": "tool_response", "parts": [{"type": "function_response",
                           "function_response": {"id": "c1", "name": "store", "response": {"output": "stored"}}}]}}),
                );
                assert_eq!(status(&end(&mut run)), "done");
                assert_eq!(results(&mock, 1), [("c1".to_owned(), "stored".to_owned())], "{arguments}");
            }
            Some(problem) => {
                assert_eq!(status(&end(&mut run)), "done");
                let results = results(&mock, 1);
                assert!(results[0].1.contains(problem), "{arguments}: {results:?}");
            }
        }
        run.close_stdin();
        assert_eq!(run.wait().code, Some(0));
    }
}

#[test]
fn what_a_host_tools_schema_says_beyond_the_supported_keywords_is_reported_when_it_is_declared() {
    let schema =
        json!({"type": "object", "properties": {"a": {"pattern": "^(?!x)"}}, "unevaluatedProperties": false});
    let (_mock, mut run) = call_with(&schema, r#"{"a":"x","more":1}"#);
    let lines = paused(&mut run);
    let warned = lines.iter().any(|line| {
        line["type"] == "x-qwen-terminal"
            && line["text"].as_str().is_some_and(|text| text.contains("`store`"))
    });
    assert!(warned, "{lines:?}");
    run.close_stdin();
    run.finish();
}
