//! "Control Requests and Responses": the channel both ways, in both forms.

use std::path::Path;

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{Host, each_format, echo, is_error, openai, worker};

fn write(id: &str, file: &str) -> Reply {
    let arguments = json!({"file_path": file, "content": "x"}).to_string();
    Reply::call(id, "write_file", &arguments)
}

/// A host that is being asked whether `a.txt` may be written.
fn asked(format: &str) -> (MockModel, Host, Value) {
    let mock = MockModel::with([write("c1", "a.txt"), Reply::text("I see.")]);
    let mut host = Host::with(&mock, format);
    host.send(json!({"session_id": "s", "prompt_id": "s########8", "input": {"parts": [{"text": "write"}]}}));
    let question = host.question();
    (mock, host, question)
}

fn file(host: &Host) -> bool {
    Path::new(host.program.cwd_path()).join("a.txt").exists()
}

#[test]
fn a_permission_question_has_the_fields_of_the_table() {
    each_format(|format| {
        let (_mock, mut host, question) = asked(format);
        assert_eq!(
            (&question["type"], &question["subtype"]),
            (&json!("control_request"), &json!("can_use_tool"))
        );
        assert!(!question["request_id"].as_str().unwrap().is_empty());
        assert_eq!((&question["session_id"], &question["prompt_id"]), (&json!("s"), &json!("s########8")));
        assert_eq!(
            question["tool"],
            json!({"name": "write_file", "arguments": {"file_path": "a.txt", "content": "x"}})
        );
        assert!(!question["metadata"]["reason"].as_str().unwrap().is_empty());
        host.answer(&question, json!({"behavior": "approve", "message": "Allowed to execute."}));
        assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "done");
        assert!(file(&host));
        host.leave();
    });
}

#[test]
fn every_word_for_yes_and_no_is_understood() {
    for (behavior, written) in [
        ("approve", true),
        ("allow", true),
        ("deny", false),
        ("reject", false),
        ("ask", false),
        ("perhaps", false),
    ] {
        let (_mock, mut host, question) = asked("stream-json");
        host.answer(&question, json!({"behavior": behavior}));
        let end = host.turn().pop().unwrap();
        assert_eq!(file(&host), written, "{behavior}");
        let denials = end["metadata"]["turn"]["permission_denials"].as_array().unwrap().len();
        assert_eq!(denials, usize::from(!written), "{behavior}: {end}");
        host.leave();
    }
}

#[test]
fn an_answer_in_the_nested_form_counts_too() {
    each_format(|format| {
        let (_mock, mut host, question) = asked(format);
        let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
        host.send(json!({"type": "control_response", "response": response}));
        host.turn();
        assert!(file(&host));
        host.leave();
    });
}

#[test]
fn a_failed_callback_falls_back_to_no_and_is_told_in_control_errors() {
    each_format(|format| {
        let (mock, mut host, question) = asked(format);
        host.send(json!({"type": "control_response", "request_id": question["request_id"],
            "response": {"subtype": "error", "error": {"message": "the callback crashed", "retryable": true}}}));
        let end = host.turn().pop().unwrap();
        let turn = &end["metadata"]["turn"];
        assert_eq!(turn["permission_denials"].as_array().unwrap().len(), 1, "{turn}");
        let error = &turn["control_errors"][0];
        assert!(error["message"].as_str().unwrap().contains("the callback crashed"), "{turn}");
        assert_eq!(error["retryable"], true, "{turn}");
        assert!(!file(&host));
        let told = mock.wait_for_request(1).messages().last().unwrap()["content"].to_string();
        assert!(told.contains("the host could not decide") && !told.contains("crashed"), "{told}");
        host.leave();
    });
}

#[test]
fn a_malformed_answer_is_no_at_once() {
    let answers = [
        json!({"subtype": "success", "result": {}}),
        json!({"subtype": "success", "result": "yes"}),
        json!({"subtype": "success", "result": {"behavior": 7}}),
        json!({"subtype": "success", "result": {"behavior": "allow", "updatedInput": "x"}}),
        json!({"subtype": "wat"}),
        json!({}),
        json!("allow"),
        Value::Null,
    ];
    for answer in answers {
        let (_mock, mut host, question) = asked("stream-json");
        host.send(
            json!({"type": "control_response", "request_id": question["request_id"], "response": answer}),
        );
        let end = host.turn().pop().unwrap();
        let turn = &end["metadata"]["turn"];
        assert_eq!(turn["permission_denials"].as_array().unwrap().len(), 1, "{answer}: {turn}");
        assert_eq!(turn["control_errors"].as_array().unwrap().len(), 1, "{answer}: {turn}");
        assert!(!file(&host), "{answer}");
        host.leave();
    }
}

#[test]
fn an_answer_that_is_no_proper_json_is_no_at_once_too() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (result, code) in [
        (r#"{"behavior":"allow","behavior":"allow"}"#.to_owned(), "duplicate_key"),
        (r#"{"behavior":"allow","message":"\ud800"}"#.to_owned(), "lone_surrogate"),
        (format!(r#"{{"behavior":"allow","x":{deep}}}"#), "too_deep"),
    ] {
        let (_mock, mut host, question) = asked("stream-json");
        let id = &question["request_id"];
        host.send(format!(
            r#"{{"type":"control_response","request_id":{id},"response":{{"subtype":"success","result":{result}}}}}"#
        ));
        let end = host.turn().pop().unwrap();
        assert!(!file(&host), "{code}");
        assert_eq!(end["metadata"]["control_errors"][0]["code"], code, "{end}");
        assert_eq!(end["metadata"]["turn"]["permission_denials"].as_array().unwrap().len(), 1, "{end}");
        host.leave();
    }
}

#[test]
fn late_double_and_foreign_answers_are_reported_and_the_question_stands() {
    each_format(|format| {
        let (_mock, mut host, question) = asked(format);
        let foreign = json!({"request_id": "nobody-asked"});
        host.answer(&foreign, json!({"behavior": "allow"}));
        assert_eq!(host.until(is_error)["metadata"]["error"]["param"], "request_id");
        host.answer(&question, json!({"behavior": "deny"}));
        host.answer(&question, json!({"behavior": "allow"}));
        let lines = host.turn();
        let twice = lines.iter().filter(|line| is_error(line)).count();
        host.answer(&question, json!({"behavior": "allow"}));
        if twice == 0 {
            host.until(is_error);
        }
        host.until(is_error);
        assert!(!file(&host), "the first answer counts");
        host.leave();
    });
}

#[test]
fn a_question_that_nobody_answers_is_denied_at_its_deadline_and_taken_back() {
    each_format(|format| {
        let mock = MockModel::with([write("c1", "a.txt"), Reply::text("I see.")]);
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"timeout": {"canUseTool": 20}}));
        host.send(openai("write"));
        let question = host.question();
        let lines = host.turn();
        let withdrawn = lines.iter().find(|line| line["type"] == "control_cancel_request").unwrap();
        assert_eq!(withdrawn["request_id"], question["request_id"]);
        let turn = &lines.last().unwrap()["metadata"]["turn"];
        let error = &turn["control_errors"][0];
        assert!(
            error["message"].as_str().unwrap().contains("control time-out"),
            "the time-out is named: {turn}"
        );
        assert_eq!(turn["permission_denials"].as_array().unwrap().len(), 1);
        host.answer(&question, json!({"behavior": "allow"}));
        host.until(is_error);
        assert!(!file(&host), "the denial stands");
        host.leave();
    });
}

#[test]
fn a_rule_or_mode_that_covers_an_open_question_settles_it() {
    for change in [
        json!({"subtype": "set_permission_mode", "mode": "auto-edit"}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"allow": ["Edit"]}}}),
    ] {
        let (_mock, mut host, question) = asked("stream-json");
        let mut request = json!({"type": "control_request", "request_id": "change"});
        request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        host.send(request);
        let lines = host.turn();
        let withdrawn = lines.iter().any(|line| {
            line["type"] == "control_cancel_request" && line["request_id"] == question["request_id"]
        });
        assert!(withdrawn, "{change}: {lines:#?}");
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done");
        assert!(file(&host), "{change}");
        host.leave();
    }
}

#[test]
fn a_hook_callback_names_its_function_and_its_answer_is_obeyed() {
    each_format(|format| {
        let mock = MockModel::with([write("c1", "a.txt"), Reply::text("I see.")]);
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        host.ask(
            "initialize",
            json!({"hooks": {"PreToolUse": [{"matcher": "write_file", "hookCallbackIds": ["h1"]}]}}),
        );
        host.send(openai("write"));
        let question = host.question();
        assert_eq!((&question["subtype"], &question["callback_id"]), (&json!("hook_callback"), &json!("h1")));
        assert_eq!(question["input"]["tool_name"], "write_file", "{question}");
        host.answer(&question, json!({"decision": "block", "reason": "not now"}));
        host.turn();
        assert!(!file(&host));
        assert!(mock.wait_for_request(1).body.to_string().contains("not now"));
        host.leave();
    });
}

#[test]
fn mcp_messages_carry_json_rpc_to_a_server_in_the_host() {
    each_format(|format| {
        let mock =
            MockModel::with([Reply::call("c1", "mcp__calc__add", r#"{"a":1,"b":2}"#), Reply::text("3.")]);
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        host.ask("initialize", json!({"sdkMcpServers": ["calc"]}));
        host.send(openai("add"));
        let mut methods = Vec::new();
        let lines = loop {
            let lines = host
                .run
                .json_until(|line| line["type"] == "control_request" || line["metadata"]["turn"].is_object());
            let line = lines.last().unwrap().clone();
            if line["type"] != "control_request" {
                break lines;
            }
            assert_eq!((&line["subtype"], &line["server_name"]), (&json!("mcp_message"), &json!("calc")));
            let message = &line["message"];
            let method = message["method"].as_str().unwrap().to_owned();
            let result = match method.as_str() {
                "initialize" => {
                    json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "calc", "version": "1"}})
                }
                "tools/list" => {
                    json!({"tools": [{"name": "add", "description": "adds", "inputSchema": {"type": "object"}}]})
                }
                "tools/call" => json!({"content": [{"type": "text", "text": "3"}]}),
                _ => json!({}),
            };
            methods.push(method);
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            host.answer(&line, json!({"mcp_response": answer}));
        };
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done", "{lines:#?}");
        for method in ["initialize", "tools/list", "tools/call"] {
            assert!(methods.iter().any(|told| told == method), "{methods:?}");
        }
        let results = mock.wait_for_request(1).messages().last().unwrap()["content"].to_string();
        assert!(results.contains('3'), "{results}");
        host.leave();
    });
}

#[test]
fn control_never_enters_the_conversation() {
    each_format(|format| {
        let (mock, mut host, question) = asked(format);
        host.answer(&question, json!({"behavior": "approve", "message": "Allowed to execute."}));
        host.turn();
        host.ask("set_model", json!({"model": "other"}));
        host.say("next");
        let body = mock.requests().last().unwrap().body["messages"].to_string();
        for word in ["control_request", "can_use_tool", "Allowed to execute", "set_model"] {
            assert!(!body.contains(word), "{word}: {body}");
        }
        host.leave();
    });
}

#[test]
fn every_subtype_is_answered_once_in_the_form_that_it_came_in() {
    let known = [
        ("initialize", json!({})),
        ("set_model", json!({"model": "other"})),
        ("set_permission_mode", json!({"mode": "plan"})),
        ("set_effort", json!({"effort": "high"})),
        ("supported_commands", json!({})),
        ("mcp_status", json!({})),
        ("mcp_server_status", json!({})),
        ("get_context_usage", json!({})),
        ("get_available_models", json!({})),
        ("get_usage_info", json!({})),
        ("continue_last_turn", json!({})),
        ("interrupt", json!({})),
    ];
    let refused = [
        ("mcp_reconnect", json!({"serverName": "nobody"})),
        ("mcp_toggle", json!({"serverName": "nobody", "enabled": true})),
        ("mcp_message", json!({"server_name": "nobody", "message": {"jsonrpc": "2.0", "method": "x"}})),
        ("rewind_files", json!({"user_message_id": "nobody"})),
        ("stop_task", json!({"task_id": "nobody"})),
        ("no_such_subtype", json!({})),
        ("set_permission_mode", json!({"mode": "wild"})),
        ("set_permission_mode", json!({})),
    ];
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let mut count = 0;
        for (cases, outcome) in [(&known[..], "success"), (&refused[..], "error")] {
            for (subtype, fields) in cases {
                let flat = host.ask(subtype, fields.clone());
                assert_eq!(flat["subtype"], outcome, "{subtype}: {flat}");
                if outcome == "error" {
                    assert!(
                        flat["error"]["message"].is_string() && flat["error"]["retryable"].is_boolean(),
                        "{flat}"
                    );
                }
                let mut request = fields.clone();
                request["subtype"] = (*subtype).into();
                host.send(json!({"type": "control_request", "request_id": format!("n-{count}"), "request": request}));
                let nested = host.until(|line| line["type"] == "control_response");
                assert_eq!(nested["response"]["request_id"], format!("n-{count}"), "{subtype}: {nested}");
                assert_eq!(nested["response"]["subtype"], outcome, "{subtype}: {nested}");
                count += 1;
            }
        }
        host.ask("set_permission_mode", json!({"mode": "default"}));
        host.is_well();
        let lines = host.leave();
        let answers = lines.iter().filter(|line| line["type"] == "control_response").count();
        assert_eq!(answers, 2 * (known.len() + refused.len()) + 1);
    });
}

#[test]
fn end_session_is_answered_and_ends_the_worker_with_every_prompt_accounted_for() {
    each_format(|format| {
        let mock = MockModel::with([Reply::new([mock_model::sse::text("half"), mock_model::gate("never")])]);
        let mut host = Host::with(&mock, format);
        for id in ["p1", "p2"] {
            host.send(crate::harness::chat(id, id));
        }
        mock.reached("never");
        host.ask("end_session", json!({}));
        let lines = host.ended(0);
        let ends: Vec<(&Value, &Value)> = lines
            .iter()
            .filter(|line| crate::harness::ends_turn(line))
            .map(|line| (&line["prompt_id"], &line["metadata"]["turn"]["status"]))
            .collect();
        assert_eq!(ends, [(&json!("p1"), &json!("cancelled")), (&json!("p2"), &json!("cancelled"))]);
    });
}

#[test]
fn what_a_hook_hears_before_the_turn_starts_is_of_the_turn_s_session() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"hooks": {"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]}}));
        host.send(crate::harness::chat("p1", "go"));
        let question = host.question();
        assert_eq!((&question["session_id"], &question["prompt_id"]), (&json!("s"), &json!("p1")));
        host.send(json!({"type": "control/cancel"}));
        let lines = host.turn();
        let withdrawn = lines.iter().find(|line| line["type"] == "control_cancel_request").unwrap();
        assert_eq!(withdrawn["session_id"], "s", "{withdrawn}");
        host.leave();
    });
}

#[test]
fn a_hook_that_is_not_answered_in_its_time_is_taken_back_and_told() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let hooks = json!({"UserPromptSubmit": [{"hookCallbackIds": ["h"], "timeout": 0.02}]});
        host.ask("initialize", json!({"hooks": hooks}));
        host.send(crate::harness::chat("p1", "go"));
        let question = host.question();
        let lines = host.turn();
        let withdrawn = lines.iter().find(|line| line["type"] == "control_cancel_request").unwrap();
        assert_eq!(withdrawn["request_id"], question["request_id"]);
        let turn = &lines.last().unwrap()["metadata"]["turn"];
        assert_eq!(turn["status"], "done", "a hook that is silent holds nothing up");
        let error = &turn["control_errors"][0];
        assert!(error["message"].as_str().unwrap().contains("control time-out"), "{turn}");
        assert_eq!(error["retryable"], true, "{turn}");
        host.answer(&question, json!({"decision": "block"}));
        host.until(is_error);
        host.leave();
    });
}

#[test]
fn a_server_in_the_host_that_is_silent_holds_up_a_turn_no_longer_than_its_deadline() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"sdkMcpServers": ["calc"], "timeout": {"canUseTool": 20}}));
        host.send(crate::harness::chat("p1", "go"));
        let question = host.question();
        assert_eq!(question["subtype"], "mcp_message");
        let lines = host.turn();
        let withdrawn = lines.iter().find(|line| line["type"] == "control_cancel_request").unwrap();
        assert_eq!(withdrawn["request_id"], question["request_id"]);
        let turn = &lines.last().unwrap()["metadata"]["turn"];
        assert_eq!(turn["status"], "done", "{turn}");
        assert!(
            turn["control_errors"][0]["message"].as_str().unwrap().contains("control time-out"),
            "{turn}"
        );
        host.leave();
    });
}
