//! Sessions: new, load, resume, list, close, delete, modes and options, servers of the client.

use mock_model::process::{self};
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, text, updates};
use crate::frames::check_options;

pub fn reopening(session: &str, editor: &Editor) -> Value {
    json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []})
}

/// What a client keeps of some updates: whole messages, the last state of each call, the last plan.
pub fn kept(frames: &[Value]) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut calls: serde_json::Map<String, Value> = serde_json::Map::new();
    let mut plan = Value::Null;
    for update in frames.iter().map(|frame| &frame["params"]["update"]) {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            kind @ ("agent_message_chunk" | "agent_thought_chunk") => {
                let words = update["content"]["text"].as_str().unwrap_or_default();
                match messages.last_mut().filter(|last| last["id"] == update["messageId"]) {
                    Some(last) => {
                        let joined = format!("{}{words}", last["text"].as_str().unwrap());
                        last["text"] = joined.into();
                    }
                    None => messages.push(json!({"kind": kind, "id": update["messageId"], "text": words})),
                }
            }
            "tool_call" | "tool_call_update" => {
                let id = update["toolCallId"].as_str().unwrap().to_owned();
                let call = calls.entry(id).or_insert_with(|| json!({}));
                for (name, value) in update.as_object().unwrap() {
                    if name != "sessionUpdate" && name != "_meta" {
                        call[name] = value.clone();
                    }
                }
            }
            "plan" => plan = update["entries"].clone(),
            _ => {}
        }
    }
    json!({"messages": messages, "calls": calls, "plan": plan})
}

#[test]
fn a_replay_shows_what_was_shown_live_and_then_answers() {
    let todos = r#"{"todos":[{"id":"1","content":"first","status":"completed"}]}"#;
    let mock = MockModel::with([
        Reply::new([
            sse::thought("hm"),
            sse::text("I look."),
            sse::call(0, "c1", "write_file", r#"{"file_path":"new.txt","content":"a\nb\n"}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::call("c2", "todo_write", todos),
        Reply::call("c3", "run_shell_command", r#"{"command":"echo out; false"}"#),
        Reply::text("Done."),
    ]);
    let mut editor = Editor::with(program(&mock).args(["--approval-mode", "yolo"]), &json!({}));
    let session = editor.session();
    let (live, _) = editor.turn(&session, "Work");
    editor.ask("session/close", &json!({"sessionId": session}));
    let id = editor.send("session/load", &reopening(&session, &editor));
    let (replayed, response) = editor.response(id);
    assert!(response["result"].is_object(), "{response}");
    assert_eq!(text(&replayed, "user_message_chunk"), "Work");
    assert_eq!(kept(&replayed), kept(&live));
    assert!(updates(&replayed, "usage_update").is_empty());
    // Another process, as after a restart of the editor.
    let mut other = Editor::with(editor.program.clone(), &json!({}));
    editor.run.close_stdin();
    assert_eq!(editor.run.wait().code, Some(0));
    let id = other.send("session/load", &json!({"sessionId": session, "cwd": other.cwd(), "mcpServers": []}));
    assert_eq!(kept(&other.response(id).0), kept(&live));
    mock.push(Reply::text("Continued."));
    assert_eq!(other.turn(&session, "Go on").1, "end_turn");
    assert!(mock.requests().last().unwrap().body.to_string().contains("I look."));
}

#[test]
fn a_session_of_the_terminal_continues_in_the_editor_and_back() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "First");
    editor.ask("session/close", &json!({"sessionId": session}));
    let home = editor.program.qwen_home_path();
    let continued = process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .with_model(&mock)
        .env("QWEN_HOME", &home)
        .cwd(editor.program.cwd_path())
        .args(["-p", "Second", "--resume", &session, "--model", "test-model"])
        .run();
    assert_eq!(continued.code, Some(0), "{}", continued.stderr);
    let id = editor.send("session/load", &reopening(&session, &editor));
    let (replayed, _) = editor.response(id);
    assert_eq!(text(&replayed, "user_message_chunk"), "FirstSecond");
    assert_eq!(text(&replayed, "agent_message_chunk"), "One.Two.");
}

#[test]
fn resume_sends_no_history() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "First");
    editor.ask("session/close", &json!({"sessionId": session}));
    let id = editor.send("session/resume", &json!({"sessionId": session, "cwd": editor.cwd()}));
    let (frames, response) = editor.response(id);
    assert!(response["result"]["configOptions"].is_array(), "{response}");
    for kind in ["user_message_chunk", "agent_message_chunk", "tool_call"] {
        assert!(updates(&frames, kind).is_empty());
    }
    editor.turn(&session, "Second");
    assert!(mock.requests()[1].body.to_string().contains("One."));
}

#[test]
fn sessions_are_listed_newest_first_with_titles_and_filtered_exactly() {
    let mock = MockModel::with([Reply::text("a"), Reply::text("b")]);
    let mut editor = Editor::start(&mock);
    assert_eq!(editor.ask("session/list", &json!({})), json!({"sessions": []}));
    let (one, two) = (editor.session(), editor.session());
    editor.turn(&one, "First session");
    editor.turn(&two, "Second\nsession");
    let listed = editor.ask("session/list", &json!({"cwd": editor.cwd()}));
    let rows = listed["sessions"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["sessionId"], two.as_str());
    assert_eq!(rows[1]["title"], "First session");
    for row in rows {
        assert_eq!(row["cwd"], editor.cwd());
        assert!(
            row["updatedAt"].as_str().unwrap().ends_with('Z')
                && !row["title"].as_str().unwrap().contains('\n')
        );
    }
    let next = editor.ask("session/list", &json!({"cursor": two}));
    assert_eq!(next["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(editor.ask("session/list", &json!({"cwd": "/nonexistent"})), json!({"sessions": []}));
    for bad in [json!({"cursor": "bad"}), json!({"cursor": ""}), json!({"cwd": "relative"})] {
        assert_eq!(editor.request("session/list", &bad)["error"]["code"], -32602, "{bad}");
    }
}

#[test]
fn the_title_is_the_one_in_the_list_and_never_a_command() {
    let mock = MockModel::with([Reply::text("a"), Reply::text("b")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (frames, _) = editor.turn(&session, "/stats");
    assert!(updates(&frames, "session_info_update").is_empty(), "{frames:#?}");
    let (frames, _) = editor.turn(&session, &format!("First\n  line {}", "long ".repeat(100)));
    let title = updates(&frames, "session_info_update")[0]["title"].clone();
    assert!(title.as_str().unwrap().starts_with("First line long"), "{title}");
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"][0]["title"], title);
    let (frames, _) = editor.turn(&session, "Second");
    assert!(updates(&frames, "session_info_update").is_empty(), "{frames:#?}");
}

#[test]
fn sessions_of_a_directory_are_listed_under_the_name_that_the_client_uses() {
    let mock = MockModel::with([Reply::text("a")]);
    let mut editor = Editor::start(&mock);
    let link = editor.program.home_path().join("link");
    std::fs::create_dir_all(editor.program.home_path()).unwrap();
    std::os::unix::fs::symlink(editor.cwd(), &link).unwrap();
    let opened = editor.ask("session/new", &json!({"cwd": link, "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    editor.turn(&session, "Hi");
    for cwd in [link.display().to_string(), editor.cwd(), format!("{}/", editor.cwd())] {
        let rows = editor.ask("session/list", &json!({"cwd": cwd}))["sessions"].clone();
        assert_eq!((&rows[0]["sessionId"], &rows[0]["cwd"]), (&json!(session), &json!(cwd)), "{rows}");
    }
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"][0]["cwd"], editor.cwd());
}

#[test]
fn deleting_closes_first_and_succeeds_twice() {
    let mock = MockModel::with([Reply::text("a")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "Hi");
    for _ in 0..2 {
        assert_eq!(editor.ask("session/delete", &json!({"sessionId": session})), json!({}));
    }
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"], json!([]));
    assert_eq!(editor.request("session/load", &reopening(&session, &editor))["error"]["code"], -32002);
    assert_eq!(editor.request("session/close", &json!({"sessionId": session}))["error"]["code"], -32002);
}

#[test]
fn a_session_that_another_process_holds_is_a_clear_error() {
    let mock = MockModel::with([Reply::text("a")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "Hi");
    let mut other = Editor::with(editor.program.clone(), &json!({}));
    let refused =
        other.request("session/load", &json!({"sessionId": session, "cwd": other.cwd(), "mcpServers": []}));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&session), "{refused}");
    assert!(!other.frames.iter().any(|frame| frame["method"] == "session/update"));
    let refused = other.request("session/delete", &json!({"sessionId": session}));
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn loading_an_open_session_replays_it() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    editor.turn(&session, "First");
    let id = editor.send("session/load", &reopening(&session, &editor));
    assert_eq!(text(&editor.response(id).0, "agent_message_chunk"), "One.");
    assert_eq!(editor.turn(&session, "Second").1, "end_turn");
}

#[test]
fn a_prompt_that_joined_a_turn_is_replayed_where_it_joined() {
    let mock = MockModel::with([
        Reply::new([
            sse::text("One."),
            sse::call(0, "c1", "run_shell_command", r#"{"command":"touch made"}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("Two."),
    ]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = editor.prompt(&session, "First");
    let question = editor.permission();
    let steering = json!([{"type": "text", "text": "and "}, {"type": "text", "text": "this"}]);
    let steering = editor.send("_session/steering", &json!({"sessionId": session, "prompt": steering}));
    editor.select(&question, "allow_once");
    assert_eq!(editor.response(steering).1["result"]["outcome"], "injected");
    editor.response(prompt);
    editor.ask("session/close", &json!({"sessionId": session}));
    let id = editor.send("session/load", &reopening(&session, &editor));
    let (replayed, _) = editor.response(id);
    let texts = replayed.iter().filter_map(|frame| frame["params"]["update"]["content"]["text"].as_str());
    assert_eq!(texts.collect::<Vec<_>>(), ["First", "One.", "and this", "Two."]);
    let users = updates(&replayed, "user_message_chunk");
    assert_ne!(users[0]["messageId"], users[1]["messageId"], "two messages of the user");
}

#[test]
fn loading_a_session_during_its_prompt_shows_all_that_was_shown_and_ends_no_call() {
    let mock = MockModel::with([
        Reply::text("Earlier."),
        Reply::call("c1", "run_shell_command", r#"{"command":"touch made"}"#),
    ]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let (mut live, _) = editor.turn(&session, "First");
    let prompt = editor.prompt(&session, "Second");
    live.extend(editor.until(|frame| frame["method"] == "session/request_permission"));
    let question = live.last().unwrap().clone();
    let id = editor.send("session/load", &reopening(&session, &editor));
    let (replayed, response) = editor.response(id);
    assert!(response["result"].is_object(), "{response}");
    assert_eq!(text(&replayed, "user_message_chunk"), "FirstSecond");
    assert_eq!(kept(&replayed), kept(&live));
    assert_eq!(crate::editor::status(&replayed, "c1"), "pending", "the call waits for the answer");
    mock.push(Reply::new([
        sse::text("part"),
        gate("open"),
        sse::text("ly"),
        sse::finish("stop"),
        sse::done(),
    ]));
    editor.select(&question, "allow_once");
    live.extend(editor.until(|frame| frame["params"]["update"]["content"]["text"] == "part"));
    let id = editor.send("session/load", &reopening(&session, &editor));
    let (replayed, _) = editor.response(id);
    assert_eq!(kept(&replayed), kept(&live), "with the message that is being written");
    mock.open("open");
    let (rest, response) = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn");
    assert_eq!(text(&rest, "agent_message_chunk"), "ly");
}

#[test]
fn requests_about_a_session_that_is_being_closed_have_one_answer_each() {
    let mock = MockModel::with([Reply::new([sse::text("a"), gate("never")])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let prompt = editor.prompt(&session, "Hi");
    mock.reached("never");
    let named = json!({"sessionId": session});
    let mode = editor.send("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}));
    let close = editor.send("session/close", &named);
    let load = editor.send("session/load", &reopening(&session, &editor));
    let delete = editor.send("session/delete", &named);
    let (mut frames, last) = editor.response(delete);
    frames.push(last);
    let answer = |id: u64| {
        let mut answers = frames.iter().filter(|frame| frame["id"] == id && frame.get("method").is_none());
        let answer = answers.next().unwrap_or_else(|| panic!("no answer to {id}: {frames:#?}"));
        assert!(answers.next().is_none(), "two answers to {id}");
        answer
    };
    assert_eq!(answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!((&answer(close)["result"], &answer(delete)["result"]), (&json!({}), &json!({})));
    assert_eq!(answer(load)["error"]["code"], -32600);
    assert!(answer(load)["error"]["message"].as_str().unwrap().contains("being closed"));
    assert_eq!(answer(mode)["result"], json!({}));
    assert_eq!(editor.ask("session/list", &json!({}))["sessions"], json!([]), "it is deleted");
}

#[test]
fn mode_and_option_are_consistent_whichever_was_set() {
    let mock = MockModel::start();
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let both = |frames: &[Value]| {
        let mode =
            updates(frames, "current_mode_update").last().map(|update| update["currentModeId"].clone());
        let options =
            updates(frames, "config_option_update").last().map(|update| update["configOptions"].clone());
        (mode, options)
    };
    let after = |editor: &mut Editor| {
        editor.until(|frame| frame["params"]["update"]["sessionUpdate"] == "config_option_update")
    };
    assert_eq!(editor.ask("session/set_mode", &json!({"sessionId": session, "modeId": "plan"})), json!({}));
    let (mode, options) = both(&after(&mut editor));
    assert_eq!(mode, Some(json!("plan")));
    assert_eq!(options.unwrap()[0]["currentValue"], "plan");
    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let result = editor.ask("session/set_config_option", &set("mode", "auto-edit"));
    assert_eq!(result["configOptions"][0]["currentValue"], "auto-edit");
    let (mode, _) = both(&after(&mut editor));
    assert_eq!(mode, Some(json!("auto-edit")));
    let result = editor.ask("session/set_config_option", &set("model", "another-model"));
    check_options(&result["configOptions"]);
    assert_eq!(result["configOptions"][1]["currentValue"], "another-model");
    let result = editor.ask("session/set_config_option", &set("thought_level", "high"));
    assert_eq!(result["configOptions"][2]["currentValue"], "high");
    mock.push(Reply::text("x"));
    editor.turn(&session, "Hi");
    assert_eq!(mock.requests()[0].body["model"], "another-model");
    for (id, value) in [("mode", "chaos"), ("thought_level", "galactic"), ("nothing", "x"), ("model", "")] {
        let refused = editor.request("session/set_config_option", &set(id, value));
        assert_eq!(refused["error"]["code"], -32602, "{id}: {refused}");
    }
    let refused = editor.request("session/set_mode", &json!({"sessionId": session, "modeId": "chaos"}));
    assert_eq!(refused["error"]["code"], -32602);
}

#[test]
fn without_a_key_a_session_is_refused_with_an_explanation() {
    let program = process::qwen(env!("CARGO_BIN_EXE_qwen")).arg("--acp");
    let mut editor = Editor::with(program, &json!({}));
    let params = json!({"cwd": editor.cwd(), "mcpServers": []});
    for (method, params) in [("session/new", params), ("authenticate", json!({"methodId": "model-key"}))] {
        let refused = editor.request(method, &params);
        assert_eq!(refused["error"]["code"], -32000, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("_API_KEY"), "{refused}");
    }
}

#[test]
fn a_new_session_is_answered_while_its_servers_still_start() {
    let mock = MockModel::with([Reply::text("ok")]);
    let mut editor = Editor::start(&mock);
    let servers: Vec<Value> = (0..3)
        .map(|n| json!({"name": format!("s{n}"), "command": "sleep", "args": ["30"], "env": []}))
        .collect();
    let params = json!({"cwd": editor.cwd(), "mcpServers": servers});
    let opened = editor.ask("session/new", &params);
    assert!(opened["sessionId"].is_string());
    editor.ask("session/close", &json!({"sessionId": opened["sessionId"]}));
}

#[test]
fn a_dead_worker_ends_its_prompt_with_an_error_and_the_next_prompt_runs() {
    let mock = MockModel::with([Reply::new([sse::text("one"), gate("never")])]);
    let mut editor = Editor::start(&mock);
    let session = editor.session();
    let id = editor.prompt(&session, "Hi");
    mock.reached("never");
    kill_workers(&editor);
    let (_, response) = editor.response(id);
    assert!(response["error"]["message"].as_str().is_some(), "{response}");
    mock.push(Reply::text("Alive."));
    let (frames, reason) = editor.turn(&session, "Again");
    assert_eq!((text(&frames, "agent_message_chunk").as_str(), reason.as_str()), ("Alive.", "end_turn"));
}

/// Kills the processes of all sessions.
pub fn kill_workers(editor: &Editor) {
    for pid in children(editor.run.pid()) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

/// The pids of a process's children.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}
