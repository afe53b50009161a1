//! "Input Format (Qwen Session Protocol)": the Qwen Chat Request, field by field, and the other two shapes.

use std::fs;

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{Host, chat, each_format, echo, ends_turn, is_error, openai, worker};

/// The messages that the model got with request `number`, without the system prompt, as `role: text`.
fn told(mock: &MockModel, number: usize) -> Vec<String> {
    let request = mock.wait_for_request(number);
    let messages = request.messages().iter().filter(|message| message["role"] != "system");
    let text = |content: &Value| match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    messages.map(|m| format!("{}: {}", m["role"].as_str().unwrap(), text(&m["content"]))).collect()
}

#[test]
fn the_spec_s_chat_request_is_obeyed_field_by_field() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(json!({
            "session_id": "session-123", "prompt_id": "session-123########7", "model": "qwen-coder",
            "input": {"origin": "user", "parts": [{"type": "text", "text": "Please fix the bug in @main.py"}], "command": null},
            "options": {"temperature": 0.2, "tool_overrides": ["EditTool"]}}));
        let end = host.turn().pop().unwrap();
        assert_eq!(end["session_id"], "session-123");
        assert_eq!(end["prompt_id"], "session-123########7");
        let request = mock.wait_for_request(0);
        assert_eq!(request.body["model"], "qwen-coder");
        assert_eq!(request.body["temperature"], 0.2);
        assert_eq!(request.tool_names(), ["edit"]);
        assert_eq!(told(&mock, 0), ["user: Please fix the bug in @main.py"]);
        host.leave();
    });
}

#[test]
fn session_id_new_mints_one_and_forgets_the_past() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "old"));
        assert_eq!(host.turn().pop().unwrap()["session_id"], "s");
        let mut ids = Vec::new();
        for _ in 0..2 {
            host.send(json!({"session_id": "_new", "input": {"parts": [{"text": "new"}]}}));
            let end = host.turn().pop().unwrap();
            let id = end["session_id"].as_str().unwrap().to_owned();
            assert_eq!(end["prompt_id"], format!("{id}########1"));
            ids.push(id);
        }
        assert!(ids[0] != ids[1] && !ids.contains(&"s".to_owned()) && !ids.contains(&"_new".to_owned()));
        assert_eq!(told(&mock, 2), ["user: new"], "a new session has no past");
        host.send(chat("p2", "back again"));
        assert_eq!(host.turn().pop().unwrap()["session_id"], "s");
        assert_eq!(told(&mock, 3), ["user: old", "assistant: <old>", "user: back again"]);
        host.leave();
    });
}

#[test]
fn prompt_ids_default_to_session_and_turn_and_pass_over_taken_ones() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(chat("s########2", "the client counts ahead"));
        assert_eq!(host.turn().pop().unwrap()["prompt_id"], "s########2");
        for expected in ["s########3", "s########4"] {
            host.send(json!({"session_id": "s", "input": {"parts": [{"text": "x"}]}}));
            let end = host.turn().pop().unwrap();
            assert_eq!(end["prompt_id"], expected, "{end}");
        }
        host.leave();
    });
}

#[test]
fn parts_of_every_kind_reach_the_model() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    let png = "iVBORw0KGgo=";
    host.send(json!({"input": {"origin": "user", "parts": [
        {"type": "text", "text": "one"},
        {"text": "two"},
        "three",
        {"type": "inline_data", "inline_data": {"mime_type": "image/png", "data": png}},
        {"inlineData": {"mimeType": "image/png", "data": png}},
        {"type": "file_data", "file_data": {"mime_type": "image/png", "file_uri": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/b.png"}},
    ]}}));
    host.turn();
    let request = mock.wait_for_request(0);
    let content = request.messages().last().unwrap()["content"].clone();
    let texts: String = content.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
    assert!(texts.contains("one") && texts.contains("two") && texts.contains("three"), "{content}");
    let images = content.as_array().unwrap().iter().filter(|part| part["type"] == "image_url").count();
    assert_eq!(images, 4, "{content}");
    host.leave();
}

#[test]
fn files_of_this_machine_reach_the_model_as_references_do() {
    let mock = echo();
    let program = worker(&mock, "stream-json");
    let cwd = program.cwd_path().canonicalize().unwrap();
    fs::write(cwd.join("two words.txt"), "WHAT IT SAYS").unwrap();
    fs::write(cwd.parent().unwrap().join("outside.txt"), "NOT FOR YOU").unwrap();
    let mut host = Host::start(program);
    let cwd = cwd.to_str().unwrap();
    for (n, (address, is_sent)) in [
        (format!("file://{cwd}/two%20words.txt"), true),
        (format!("{cwd}/two words.txt"), true),
        ("two words.txt".to_owned(), true),
        (format!("file://{cwd}/../outside.txt"), false),
        (format!("file://{cwd}/missing.txt"), false),
    ]
    .into_iter()
    .enumerate()
    {
        host.send(json!({"session_id": "s", "input": {"origin": "user", "parts": [
            {"type": "file_data", "file_data": {"file_uri": address, "mime_type": "text/plain"}},
            {"type": "text", "text": "What does it say?"}]}}));
        assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "done");
        let said = mock.wait_for_request(n).last_user_text();
        assert!(said.contains("What does it say?"), "{said}");
        assert_eq!(said.contains("WHAT IT SAYS"), is_sent, "{address}: {said}");
        assert!(!said.contains("NOT FOR YOU"), "{said}");
    }
    host.leave();
}

#[test]
fn origin_system_is_context_for_the_next_turn_and_runs_none() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let context =
            |text: &str| json!({"session_id": "s", "input": {"origin": "system", "parts": [{"text": text}]}});
        host.send(context("it is Monday"));
        host.send(chat("p1", "which day?"));
        host.turn();
        assert_eq!(mock.requests().len(), 1, "context alone asks nothing");
        assert_eq!(told(&mock, 0)[..2], ["user: it is Monday", "user: which day?"]);
        let lines = host.leave();
        assert_eq!(lines.iter().filter(|line| ends_turn(line)).count(), 1);
    });
}

#[test]
fn origin_system_during_a_turn_waits_for_the_next_one_of_the_same_session() {
    each_format(|format| {
        let mock = echo();
        mock.push(Reply::new([sse::text("first"), gate("hold"), sse::finish("stop"), sse::done()]));
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "one"));
        mock.reached("hold");
        host.send(
            json!({"session_id": "s", "input": {"origin": "system", "parts": [{"text": "by the way"}]}}),
        );
        host.send(chat("p2", "two"));
        host.send(json!({"type": "heartbeat_request"}));
        host.until(|line| line["type"] == "result/heartbeat");
        mock.open("hold");
        host.turn();
        let end = host.turn().pop().unwrap();
        assert_eq!((&end["session_id"], &end["prompt_id"]), (&json!("s"), &json!("p2")));
        assert_eq!(told(&mock, 1), ["user: one", "assistant: first", "user: by the way", "user: two"]);
        let program = host.program.clone();
        let lines = host.leave();
        assert!(!lines.iter().any(is_error), "{lines:#?}");
        let logs = fs::read_dir(program.qwen_home_path().join("sessions")).unwrap().filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "jsonl")
        });
        assert_eq!(logs.count(), 1, "one session, one log");
    });
}

#[test]
fn options_override_model_and_sampling_for_one_request() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    host.send(json!({"input": {"parts": [{"text": "x"}]}, "options": {
        "model": "other", "temperature": 0.5, "top_p": 0.25, "max_tokens": 77, "seed": 9, "stop": ["END"],
        "tool_overrides": ["read_file", "ShellTool"]}}));
    host.turn();
    let request = mock.wait_for_request(0);
    let body = &request.body;
    assert_eq!(
        (&body["model"], &body["temperature"], &body["top_p"]),
        (&json!("other"), &json!(0.5), &json!(0.25))
    );
    assert_eq!((&body["seed"], &body["stop"]), (&json!(9), &json!(["END"])));
    assert!(body["max_tokens"] == 77 || body["max_completion_tokens"] == 77, "{body}");
    let mut names = request.tool_names();
    names.sort_unstable();
    assert_eq!(names, ["read_file", "run_shell_command"]);
    host.say("y");
    let request = mock.wait_for_request(1);
    assert_eq!(request.body["model"], "mock", "an override is for one request");
    assert!(request.tool_names().len() > 2 && request.body.get("seed").is_none_or(Value::is_null));
    host.leave();
}

#[test]
fn a_name_of_no_tool_in_the_list_of_tools_is_a_warning_of_its_turn() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let known =
            json!({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}});
        let mut request = chat("p1", "x");
        request["options"] = json!({"tools": [known],
            "tool_overrides": ["EditTool", "read_file", "look", "mcp__a__b", "read_fiel"]});
        host.send(request);
        let lines = host.turn();
        let told: Vec<&Value> = lines.iter().filter(|line| line["console_level"] == "warn").collect();
        assert_eq!(told.len(), 1, "{told:#?}");
        let text = told[0]["text"].as_str().unwrap();
        assert!(text.contains("'read_fiel'") && text.contains("did you mean 'read_file'"), "{text}");
        assert_eq!(told[0]["prompt_id"], "p1");
        host.leave();
    });
}

#[test]
fn a_host_tool_that_no_model_server_accepts_is_an_error_that_names_it() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        for (tools, param, code) in [
            (json!([tool("look"), tool("look at")]), "options.tools[1].function.name", "invalid_value"),
            (json!([tool("größe")]), "options.tools[0].function.name", "invalid_value"),
            (json!([tool("")]), "options.tools[0].function.name", "empty_field"),
            (json!([tool("look"), tool("look")]), "options.tools[1]", "duplicate_tool"),
        ] {
            let mut request = chat("p1", "x");
            request["options"] = json!({"tools": tools});
            host.send(request);
            let error = &host.until(is_error)["metadata"]["error"];
            assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!(code)), "{error}");
        }
        assert!(mock.requests().is_empty());
        let mut request = chat("p1", "x");
        request["options"] = json!({"tools": [tool("look"), tool("look_2"), tool("my.look-3")]});
        host.send(request);
        host.turn();
        host.leave();
    });
}

#[test]
fn continuation_may_name_the_same_prompt_again_and_nothing_else_may() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(chat("p1", "one"));
        host.turn();
        host.send(chat("p1", "again"));
        let error = host.until(is_error);
        assert_eq!(error["metadata"]["error"]["param"], "prompt_id", "{error}");
        let mut more = chat("p1", "go on");
        more["continuation"] = true.into();
        host.send(more);
        let end = host.turn().pop().unwrap();
        assert_eq!((&end["prompt_id"], &end["metadata"]["turn"]["status"]), (&json!("p1"), &json!("done")));
        assert_eq!(mock.requests().len(), 2);
        assert_eq!(end["metadata"]["turn"]["continuation"], true, "{end}");
        // Each part of such a turn has a terminal record; the second says what it is.
        host.leave();
    });
}

#[test]
fn a_refused_prompt_does_not_use_up_its_prompt_id() {
    let mock = echo();
    let mut host = Host::with(&mock, "stream-json");
    host.send(chat("p1", "one"));
    host.turn();
    let mut stray = chat("p2", "two");
    stray["session_id"] = "nowhere".into();
    host.send(&stray);
    assert_eq!(host.until(is_error)["metadata"]["error"]["param"], "session_id");
    host.send(chat("p2", "two"));
    assert_eq!(host.turn().pop().unwrap()["prompt_id"], "p2");
    host.leave();
}

#[test]
fn an_openai_request_continues_the_conversation() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.say("one");
        host.say("two");
        assert_eq!(told(&mock, 1), ["user: one", "assistant: <one>", "user: two"]);
        host.leave();
    });
}

#[test]
fn a_conversation_that_is_sent_whole_each_time_is_known_again() {
    each_format(|format| {
        let mock = MockModel::with([
            Reply::call("c1", "list_directory", r#"{"path":"."}"#),
            Reply::text("Nothing."),
            Reply::text("Still nothing."),
            Reply::text("Bye."),
        ]);
        let mut host = Host::with(&mock, format);
        let user = |text: &str| json!({"role": "user", "content": text});
        let assistant = |text: &str| json!({"role": "assistant", "content": text});
        host.send(json!({"messages": [user("what is there?")]}));
        host.turn();
        host.send(json!({"messages": [user("what is there?"), assistant("Nothing."), user("and now?")]}));
        host.turn();
        let second = mock.wait_for_request(2);
        let roles: Vec<&Value> = second.messages().iter().map(|message| &message["role"]).collect();
        assert_eq!(
            roles,
            ["system", "user", "assistant", "tool", "assistant", "user"],
            "ours is richer, and kept"
        );
        host.send(json!({"messages": [user("what is there?"), assistant("I do not know."), user("bye")]}));
        host.turn();
        assert_eq!(
            told(&mock, 3),
            ["user: what is there?", "assistant: I do not know.", "user: bye"],
            "a past that differs is the client's to decide"
        );
        host.leave();
    });
}

#[test]
fn a_claude_user_line_is_a_prompt_too() {
    each_format(|format| {
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(json!({"type": "user", "session_id": "", "parent_tool_use_id": null,
            "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}));
        assert_eq!(host.turn().pop().unwrap()["metadata"]["turn"]["status"], "done");
        host.leave();
    });
}

#[test]
fn a_session_on_disk_is_taken_up_by_its_name() {
    let mock = echo();
    let program = worker(&mock, "stream-json");
    let mut host = Host::start(program.clone());
    host.send(chat("p1", "one"));
    host.turn();
    host.leave();
    let mut host = Host::start(program);
    host.send(openai("elsewhere"));
    host.turn();
    host.send(chat("p1", "reused over processes"));
    assert_eq!(host.until(is_error)["metadata"]["error"]["param"], "prompt_id");
    host.send(chat("p2", "two"));
    host.turn();
    assert_eq!(told(&mock, 2), ["user: one", "assistant: <one>", "user: two"]);
    host.leave();
}
