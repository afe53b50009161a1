//! Tools whose schemas exceed the budget are listed by name, found by `tool_search` and callable from then on.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{Host, chat};

/// Sixty tools of about two kilobytes each.
fn many_tools() -> Value {
    let tool = |n: usize| {
        json!({"type": "function", "function": {
            "name": format!("operation_{n}"),
            "description": format!("Performs operation number {n} on the stock. {}", "It is described at length. ".repeat(60)),
            "parameters": {"type": "object", "properties": {"amount": {"type": "integer", "description": "x".repeat(200)}}},
        }})
    };
    (0..60).map(tool).collect()
}

fn ask(text: &str) -> Value {
    let mut prompt = chat("p1", text);
    prompt["options"] = json!({"tools": many_tools()});
    prompt
}

#[test]
fn sixty_large_tools_cost_six_kilobytes_until_they_are_used() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut host = Host::with(&mock, "stream-json");
    host.send(chat("p0", "Hello"));
    host.turn();
    host.send(ask("Hello"));
    host.turn();
    let size = |n: usize| mock.requests()[n].full_body()["tools"].to_string().len();
    assert!(size(1) - size(0) <= 6 * 1024, "{} and {}", size(0), size(1));
    let search = mock.requests()[1].full_body()["tools"].to_string();
    assert!(search.contains("operation_0: ") && search.contains("operation_59: "), "each is listed");
    assert!(!mock.requests()[1].tool_names().contains(&"operation_59"));
    host.leave();
}

#[test]
fn a_deferred_tool_is_found_and_called_in_two_requests() {
    let mock = MockModel::with([
        Reply::call("c1", "tool_search", r#"{"query":"operation_42"}"#),
        Reply::call("c2", "operation_42", r#"{"amount":3}"#),
        Reply::text("done"),
    ]);
    let mut host = Host::with(&mock, "stream-json");
    host.send(ask("Use it"));
    host.until(|line| line.to_string().contains("c2") && line["choices"][0]["finish_reason"] == "tool_calls");
    host.send(json!({"session_id": "s", "prompt_id": "p1", "continuation": true, "tool_call_id": "c2",
        "input": {"origin": "tool_response", "parts": [{"type": "function_response",
            "function_response": {"id": "c2", "name": "operation_42", "response": {"output": "three"}}}]}}));
    host.turn();
    let requests = mock.requests();
    assert_eq!(requests[1].tool_names().last(), Some(&"operation_42"), "it is offered in full");
    let [before, after] = [0, 1].map(|n| requests[n].full_body()["tools"].as_array().unwrap().clone());
    assert_eq!(after[..before.len()], before, "loading a tool changes no schema before it");
    let results: Vec<&Value> =
        requests[2].messages().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results[1]["content"], "three");
    host.leave();
}

#[test]
fn a_deferred_tool_can_be_called_by_its_name_and_few_tools_are_not_deferred() {
    let mock =
        MockModel::with([Reply::call("c1", "operation_7", r#"{"amount":"many"}"#), Reply::text("done")]);
    let mut host = Host::with(&mock, "stream-json");
    host.send(ask("Use it"));
    host.turn();
    let requests = mock.requests();
    assert_eq!(requests[1].tool_names().last(), Some(&"operation_7"));
    host.leave();

    let mock = MockModel::with([Reply::text("done")]);
    let mut host = Host::with(&mock, "stream-json");
    let mut prompt = chat("p1", "Hello");
    prompt["options"] = json!({"tools": [many_tools()[0].clone()]});
    host.send(prompt);
    host.turn();
    assert!(mock.requests()[0].tool_names().contains(&"operation_0"));
    assert!(!mock.requests()[0].tool_names().contains(&"tool_search"));
    host.leave();
}
