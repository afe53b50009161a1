//! "Commands and `@` References": implicit and explicit, and what comes of them.

use std::fs;

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, each_format, echo, ends_turn, worker};

fn result(host: &mut Host) -> Value {
    host.until(|line| line["type"] == "result/command")
}

#[test]
fn the_spec_s_declared_command_is_answered_as_printed() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(json!({"session_id": "session-123", "prompt_id": "session-123########8",
            "input": {"origin": "user", "parts": [{"type": "text", "text": ""}],
                "command": {"kind": "slash", "path": ["chat", "list"], "args": ""}}}));
        let line = result(&mut host);
        assert_eq!(
            (&line["session_id"], &line["prompt_id"]),
            (&json!("session-123"), &json!("session-123########8"))
        );
        assert_eq!(line["command"], json!({"kind": "slash", "path": ["chat", "list"], "args": ""}));
        assert_eq!((&line["result"]["type"], &line["result"]["level"]), (&json!("message"), &json!("info")));
        assert!(
            line["result"]["content"]
                .as_str()
                .unwrap()
                .starts_with("The current session has 0 history records.")
        );
        let lines = host.leave();
        assert!(!lines.iter().any(ends_turn), "a command has no terminal record: {lines:#?}");
        assert!(mock.requests().is_empty());
    });
}

#[test]
fn text_that_starts_with_a_slash_a_question_mark_or_an_at_is_a_command() {
    each_format(|format| {
        let mock = echo();
        let program = worker(&mock, format);
        fs::write(program.cwd_path().join("main.py"), "print('Hi')").unwrap();
        let mut host = Host::start(program);
        for (text, kind) in [("/help", "slash"), ("?", "help"), ("/chat list", "slash")] {
            host.send(json!({"input": {"origin": "user", "parts": [{"text": text}]}}));
            let line = result(&mut host);
            assert_eq!(
                (&line["command"]["kind"], &line["result"]["type"]),
                (&json!(kind), &json!("message")),
                "{line}"
            );
        }
        assert!(mock.requests().is_empty());
        host.send(json!({"input": {"origin": "user", "parts": [{"text": "@main.py what is it?"}]}}));
        let line = result(&mut host);
        assert_eq!(line["command"], json!({"kind": "at", "path": ["main.py"], "args": "what is it?"}));
        assert_eq!(line["result"]["type"], "submit_prompt");
        let end = host.turn().pop().unwrap();
        assert_eq!(end["metadata"]["turn"]["status"], "done");
        assert!(mock.wait_for_request(0).body.to_string().contains("print('Hi')"));
        host.leave();
    });
}

#[test]
fn an_unknown_command_is_an_error_message_and_asks_no_model() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        for line in [
            json!({"input": {"parts": [{"text": "/nonsense"}]}}),
            json!({"input": {"parts": [], "command": {"kind": "slash", "path": ["nonsense"], "args": ""}}}),
        ] {
            host.send(line);
            let line = result(&mut host);
            assert_eq!(
                (&line["result"]["type"], &line["result"]["level"]),
                (&json!("message"), &json!("error"))
            );
        }
        assert!(mock.requests().is_empty());
        host.leave();
    });
}

#[test]
fn a_command_of_each_result_type_keeps_to_the_words_of_the_enum() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    let listed = host.ask("supported_commands", json!({}));
    let names: Vec<String> = listed["result"]["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["name"].as_str().unwrap().to_owned())
        .filter(|name| !matches!(name.as_str(), "quit" | "compress" | "init"))
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        host.send(json!({"input": {"command": {"kind": "slash", "path": [name], "args": ""}}}));
        let line = result(&mut host);
        let kind = line["result"]["type"].as_str().unwrap();
        assert!(["message", "dialog", "tool", "submit_prompt"].contains(&kind), "{line}");
    }
    host.leave();
}

#[test]
fn a_command_that_submits_a_prompt_is_followed_by_its_turn() {
    each_format(|format| {
        let mock = echo();
        let program = worker(&mock, format);
        let place = program.qwen_home_path().join("commands");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("mend.md"), "---\ndescription: Mends\n---\nMend $ARGUMENTS.").unwrap();
        let mut host = Host::start(program);
        host.send(json!({"prompt_id": "p", "input": {"parts": [{"text": "/mend it"}]}}));
        let line = result(&mut host);
        assert_eq!((&line["result"]["type"], &line["prompt_id"]), (&json!("submit_prompt"), &json!("p")));
        let end = host.turn().pop().unwrap();
        assert_eq!((&end["prompt_id"], &end["metadata"]["turn"]["status"]), (&json!("p"), &json!("done")));
        assert_eq!(mock.wait_for_request(0).last_user_text(), "Mend it.");
        host.leave();
    });
}

#[test]
fn a_command_that_asks_the_model_keeps_nobody_waiting_and_can_be_cancelled() {
    each_format(|format| {
        let mock = MockModel::with([Reply::text("one"), Reply::new([sse::text("SUM"), gate("never")])]);
        mock.answer_with(|_: &mock_model::Request| Some(Reply::text("later")));
        let mut host = Host::with(&mock, format);
        host.say("a story");
        host.send(json!({"prompt_id": "c", "input": {"parts": [{"text": "/compress"}]}}));
        mock.reached("never");
        host.send(json!({"type": "heartbeat_request"}));
        host.until(|line| line["type"] == "result/heartbeat");
        host.send(json!({"type": "control/cancel", "prompt_id": "c", "reason": "escape"}));
        assert_eq!(host.until(|line| line["type"] == "result/cancel")["status"], "ok");
        assert_eq!(result(&mut host)["result"]["level"], "error");
        host.is_well();
        host.leave();
    });
}

#[test]
fn a_declared_reference_to_nothing_is_an_error_and_no_turn() {
    each_format(|format| {
        let mock = echo();
        let program = worker(&mock, format);
        fs::write(program.cwd_path().join("there.txt"), "content").unwrap();
        let mut host = Host::start(program);
        let declared = |path: &str| {
            json!({"session_id": "s", "input": {"origin": "user", "parts": [],
                "command": {"kind": "at", "path": [path], "args": "explain"}}})
        };
        for path in ["missing.txt", "../outside.txt", "/etc/passwd"] {
            host.send(declared(path));
            let line = result(&mut host);
            assert_eq!(
                (&line["result"]["type"], &line["result"]["level"]),
                (&json!("message"), &json!("error")),
                "{line}"
            );
        }
        assert!(mock.requests().is_empty());
        host.send(declared("there.txt"));
        assert_eq!(result(&mut host)["result"]["type"], "submit_prompt");
        host.turn();
        assert!(mock.requests()[0].last_user_text().contains("content"));
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| line["type"] == "result/command").count(), 4, "{lines:#?}");
    });
}

#[test]
fn a_slash_alone_is_no_prompt() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(json!({"session_id": "s", "input": {"parts": [{"text": " / "}]}}));
        assert_eq!(result(&mut host)["result"]["level"], "error");
        host.leave();
        assert!(mock.requests().is_empty());
    });
}

#[test]
fn what_the_user_wants_remembered_is_in_the_memory_of_the_next_session() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    for (words, level) in
        [("/memory add", "error"), ("/memory add I drink tea.", "info"), ("/memory x", "error")]
    {
        host.send(json!({"session_id": "s", "input": {"parts": [{"text": words}]}}));
        assert_eq!(result(&mut host)["result"]["level"], level, "{words}");
    }
    let program = host.program.clone();
    host.leave();
    let mut host = Host::start(program);
    host.say("hello");
    assert!(mock.requests()[0].body["messages"][0]["content"].as_str().unwrap().contains("- I drink tea."));
    host.leave();
}
