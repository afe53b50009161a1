//! Everything at once: what is asked while a turn streams, waits for an answer or for a tool is answered
//! meanwhile.

use mock_model::{MockModel, Reply, ReplyEvent, Request, Step, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, each_format, echo, ends_turn, in_host_hook, openai, worker};

/// A worker that is busy, and stays so.
type Busy = fn(&str) -> (MockModel, Host);

const BUSY: [(&str, Busy); 4] = [
    ("a slow stream", |format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("slow"), gate("never")]));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "go"));
        mock.reached("never");
        (mock, host)
    }),
    ("a permission question", |format| {
        let mock = echo();
        mock.push(Reply::call("c1", "write_file", r#"{"file_path":"a","content":"x"}"#));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "go"));
        host.question();
        (mock, host)
    }),
    ("a hook callback", in_host_hook),
    ("a message to a server in the host", |format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"sdkMcpServers": ["calc"]}));
        host.send(chat("p1", "go"));
        host.question();
        (mock, host)
    }),
];

#[test]
fn requests_are_answered_while_the_turn_is_busy_and_an_interrupt_ends_it() {
    each_format(|format| {
        for (name, busy) in BUSY {
            let (_mock, mut host) = busy(format);
            host.send(json!({"type": "heartbeat_request"}));
            assert_eq!(host.until(|line| line["type"] == "result/heartbeat")["status"], "ok", "{name}");
            host.send(json!({"type": "command_hint_request", "trigger": "slash", "text": "/c"}));
            assert_eq!(host.until(|line| line["type"] == "result/command_hint")["status"], "ok", "{name}");
            for (subtype, fields) in [
                ("set_model", json!({"model": "other"})),
                ("set_permission_mode", json!({"mode": "plan"})),
                ("get_context_usage", json!({})),
                ("mcp_status", json!({})),
                ("supported_commands", json!({})),
            ] {
                assert_eq!(host.ask(subtype, fields)["subtype"], "success", "{name}: {subtype}");
            }
            host.send(openai("/help"));
            host.until(|line| line["type"] == "result/command");
            assert_eq!(host.ask("interrupt", json!({}))["subtype"], "success", "{name}");
            let end = host.turn().pop().unwrap();
            assert_eq!(end["metadata"]["turn"]["status"], "cancelled", "{name}");
            let lines = host.leave();
            let asked = |kind: &str| {
                let ids =
                    lines.iter().filter(|line| line["type"] == kind).map(|line| line["request_id"].clone());
                ids.filter(|id| id.as_str().is_some_and(|id| !id.starts_with("ask-"))).collect::<Vec<Value>>()
            };
            assert_eq!(
                asked("control_request"),
                asked("control_cancel_request"),
                "{name}: what was asked is taken back"
            );
        }
    });
}

#[test]
fn any_number_of_requests_may_be_open_and_each_is_answered_once_in_order() {
    each_format(|format| {
        let (_mock, mut host) = (BUSY[1].1)(format);
        let mut burst = String::new();
        for n in 0..300 {
            let id = format!("r{n}");
            let request = match n % 3 {
                0 => json!({"type": "control_request", "request_id": id, "subtype": "get_available_models"}),
                1 => {
                    json!({"type": "control_request", "request_id": id, "request": {"subtype": "mcp_status"}})
                }
                _ => json!({"type": "control_request", "request_id": id, "subtype": "nonsense"}),
            };
            burst.push_str(&format!("{request}\n"));
        }
        host.run.write(burst.as_bytes());
        let id = |line: &Value| {
            let id = line["request_id"].as_str().or(line["response"]["request_id"].as_str());
            id.filter(|_| line["type"] == "control_response").map(str::to_owned)
        };
        let lines = host.run.json_until(|line| id(line).as_deref() == Some("r299"));
        let answered: Vec<String> = lines.iter().filter_map(id).collect();
        assert_eq!(answered, (0..300).map(|n| format!("r{n}")).collect::<Vec<_>>());
        host.send(json!({"type": "control/cancel"}));
        host.turn();
        host.leave();
    });
}

#[test]
fn the_questions_of_a_message_are_asked_in_the_order_of_its_calls() {
    each_format(|format| {
        let write = |n: usize| {
            let arguments = json!({"file_path": format!("f{n}"), "content": "x"}).to_string();
            ReplyEvent::call(&format!("c{n}"), "write_file", &arguments).step()
        };
        let mock = MockModel::with([Reply::new((0..5).map(write)), Reply::text("done")]);
        let mut host = Host::with(&mock, format);
        host.send(openai("write them"));
        for n in 0..5 {
            let question = host.question();
            assert_eq!(question["tool"]["arguments"]["file_path"], format!("f{n}"), "{question}");
            let behavior = if n == 1 || n == 4 { "deny" } else { "approve" };
            host.answer(&question, json!({"behavior": behavior}));
        }
        let end = host.turn().pop().unwrap();
        let written: Vec<bool> =
            (0..5).map(|n| host.program.cwd_path().join(format!("f{n}")).exists()).collect();
        assert_eq!(written, [true, false, true, true, false]);
        assert_eq!(end["metadata"]["turn"]["permission_denials"].as_array().unwrap().len(), 2);
        host.leave();
    });
}

#[test]
fn several_questions_are_open_at_once_and_each_answer_finds_its_own() {
    each_format(|format| {
        let outside = |n: usize| format!("/etc/of-agent-{n}");
        let mock = MockModel::start();
        mock.answer_with(move |request: &Request| {
            let prompt = request.last_user_text();
            let has_results = request.messages().iter().any(|message| message["role"] == "tool");
            let number = (0..4).find(|n| prompt.contains(&format!("agent {n}")));
            Some(match (number, has_results) {
                (_, true) => Reply::text("done"),
                (Some(n), false) => {
                    Reply::call(&format!("r{n}"), "read_file", &json!({"file_path": outside(n)}).to_string())
                }
                (None, false) => Reply::new((0..4).map(|n| {
                    let arguments = json!({"description": "look", "prompt": format!("You are agent {n}"),
                        "subagent_type": "explore"});
                    ReplyEvent::call(&format!("c{n}"), "agent", &arguments.to_string()).step()
                })),
            })
        });
        let mut host = Host::with(&mock, format);
        host.send(openai("read them"));
        let questions: Vec<Value> = (0..4).map(|_| host.question()).collect();
        for question in questions.iter().rev() {
            let file = question["tool"]["arguments"]["file_path"].as_str().unwrap();
            let behavior = if file == outside(1) { "deny" } else { "approve" };
            host.answer(question, json!({"behavior": behavior}));
        }
        let end = host.turn().pop().unwrap();
        let denials = end["metadata"]["turn"]["permission_denials"].as_array().unwrap();
        assert_eq!(denials.len(), 1, "{denials:?}");
        assert!(denials[0].to_string().contains(&outside(1)), "{denials:?}");
        host.leave();
    });
}

#[test]
fn a_request_that_the_host_takes_back_does_no_harm() {
    each_format(|format| {
        let (_mock, mut host) = (BUSY[0].1)(format);
        host.send(json!({"type": "control_request", "request_id": "mine", "subtype": "mcp_reconnect", "serverName": "nobody"}));
        host.send(json!({"type": "control_cancel_request", "request_id": "mine"}));
        host.send(json!({"type": "control_cancel_request", "request_id": "never-asked"}));
        host.ask("interrupt", json!({}));
        host.turn();
        host.is_well();
        let lines = host.leave();
        let answers =
            lines.iter().filter(|line| line["request_id"] == "mine" && line["type"] == "control_response");
        assert_eq!(answers.count(), 1, "it has its one answer");
    });
}

#[test]
fn a_change_that_the_host_takes_back_is_answered_at_once() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.ask("initialize", json!({"sdkMcpServers": ["calc"]}));
        host.send(json!({"type": "control_request", "request_id": "mine", "subtype": "mcp_reconnect", "serverName": "calc"}));
        let question = host.question();
        assert_eq!(question["subtype"], "mcp_message", "{question}");
        host.send(json!({"type": "control_cancel_request", "request_id": "mine"}));
        let answer = host.until(|line| line["type"] == "control_response" && line["request_id"] == "mine");
        assert_eq!(
            (&answer["response"]["subtype"], &answer["response"]["error"]["code"]),
            (&json!("error"), &json!("cancelled"))
        );
        let lines = host.leave();
        let answers =
            lines.iter().filter(|line| line["type"] == "control_response" && line["request_id"] == "mine");
        assert_eq!(answers.count(), 1);
    });
}

#[test]
fn a_tool_at_work_keeps_nobody_waiting() {
    each_format(|format| {
        let mock = echo();
        let command = json!({"command": "echo up; cat block"}).to_string();
        mock.push(Reply::call("c1", "run_shell_command", &command));
        let program = worker(&mock, format).arg("--yolo");
        crate::endings::fifo(&program, "block");
        let mut host = Host::start(program);
        host.send(chat("p1", "run"));
        host.until(|line| line["type"] == "x-qwen-terminal" && line["text"] == "up\n");
        for _ in 0..10 {
            host.send(json!({"type": "heartbeat_request"}));
            host.until(|line| line["type"] == "result/heartbeat");
        }
        host.ask("interrupt", json!({}));
        assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "cancelled");
        host.leave();
    });
}

#[test]
fn set_model_during_a_turn_counts_from_the_next_model_call() {
    each_format(|format| {
        let mock = echo();
        let steps: [Step; 2] =
            [gate("hold"), ReplyEvent::call("c1", "list_directory", r#"{"path":"."}"#).step()];
        mock.push(Reply::new(steps));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "look"));
        mock.reached("hold");
        host.ask("set_model", json!({"model": "other"}));
        mock.open("hold");
        let lines = host.turn();
        assert_eq!(mock.wait_for_request(0).body["model"], "mock");
        assert_eq!(mock.wait_for_request(1).body["model"], "other");
        assert_eq!(lines.iter().filter(|line| ends_turn(line)).count(), 1);
        host.leave();
    });
}
