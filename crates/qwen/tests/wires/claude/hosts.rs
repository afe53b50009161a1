//! What the hosts of the `claude` dialect rely on: Claude's SDKs, Qwen Code's SDKs, and programs that start
//! their CLIs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use super::{CLAUDE, claude_sdk, control, init, qwen_sdk};
use crate::harness::{Host, of, qwen, with_a_sub_agent};

#[test]
fn the_id_of_a_stored_session_starts_no_new_one() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let id = "3f0a4f34-0000-4000-8000-000000000009";
    let program = claude_sdk(&mock).args(["--session-id", id]);
    let mut host = Host::of(&program, CLAUDE);
    host.say("Hello");
    host.leave();
    let again = program
        .clone()
        .stdin("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n")
        .run();
    assert_eq!(again.code, Some(1), "{again:?}");
    let result = again.json_lines().pop().unwrap();
    let cause = format!("Session ID {id} is already in use.");
    assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
    assert!(result["errors"][0].as_str().unwrap().starts_with(&cause), "{result}");
    assert!(again.stderr.contains(&cause), "{}", again.stderr);
    let text = qwen()
        .env("QWEN_HOME", program.qwen_home_path())
        .with_model(&mock)
        .args(["-p", "x", "--session-id", id])
        .run();
    assert_eq!(text.code, Some(42), "{text:?}");
    let resumed = qwen()
        .env("QWEN_HOME", program.qwen_home_path())
        .with_model(&mock)
        .args(["-p", "x", "--resume", id])
        .run();
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn a_failing_start_reads_what_its_host_writes_and_reports_the_cause_on_both_streams() {
    let mock = MockModel::start();
    for (flags, code, cause) in [
        (&["--no-such-flag"][..], 2, "--no-such-flag"),
        (&["--session-id", "../x"], 42, "../x"),
        (&["--settings", "{\"permissions\": 3}"], 52, "permissions"),
        (&["--resume", "3f0a4f34-0000-4000-8000-00000000000a"], 1, "No conversation found"),
        (&["--disallowedTools", "Bsah"], 2, "Bsah"),
    ] {
        let program = claude_sdk(&mock).args(flags);
        let mut command = program.command();
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut record = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut record).unwrap();
        let result: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(
            (&result["type"], &result["subtype"]),
            (&json!("result"), &json!("error_during_execution"))
        );
        assert!(result["errors"][0].as_str().unwrap().contains(cause), "{flags:?}: {result}");
        let mut stdin = child.stdin.take().unwrap();
        let initialize = r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize"}}"#;
        let prompt = json!({ "type": "user", "message": { "role": "user", "content": "x".repeat(200_000) } });
        // These writes fail if the process has closed its input.
        writeln!(stdin, "{initialize}").unwrap();
        writeln!(stdin, "{prompt}").unwrap();
        drop(stdin);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{flags:?}");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(stderr.contains(cause), "{flags:?}: {stderr}");
    }
}

#[test]
fn the_words_behind_a_list_flag_are_its_items_and_the_prompt_stays_the_prompt() {
    let said = |flags: &[&str]| {
        let mock = MockModel::with([Reply::text("Done.")]);
        let program = qwen().with_model(&mock).args(["--model", "mock"]).args(flags);
        fs::create_dir(program.cwd_path().join("lib")).unwrap();
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        let request = mock.requests().pop().unwrap();
        let tools: Vec<String> = request.tool_names().into_iter().map(str::to_owned).collect();
        (request.last_user_text(), tools)
    };
    for flags in [
        &["--print", "Explain it", "--allowedTools", "Read", "Bash(git log *)"][..],
        &["--allowedTools", "Read", "Bash(git log *)", "Explain it"],
        &["--print", "--allowedTools", "Read", "Bash(git log *)", "--output-format", "text", "Explain it"],
        &["-p", "Explain it", "--disallowedTools", "WebFetch", "Write", "--add-dir", "lib", "."],
        &["--add-dir", "lib", "./lib", "Explain it"],
        &["--mcp-config", "{\"mcpServers\":{}}", "{\"mcpServers\":{}}", "Explain it"],
        &["--setting-sources", "user", "local", "Explain it"],
        &["--betas", "b-2025-01-01", "Explain it"],
        &["-p", "Explain it", "--extensions", "one", "two", "--debug", "api"],
        &["-p", "Explain it", "--worktree", "feature"],
    ] {
        assert_eq!(said(flags).0, "Explain it", "{flags:?}");
    }
    let (prompt, tools) = said(&["--tools", "Read", "Grep", "Explain it"]);
    assert_eq!(
        (prompt.as_str(), tools.as_slice()),
        ("Explain it", &["read_file".to_owned(), "grep_search".to_owned()][..])
    );
    let (_, tools) = said(&["-p", "Explain it", "--tools", "Read Grep"]);
    assert_eq!(tools, ["read_file", "grep_search"]);
}

#[test]
fn flags_of_both_clis_without_a_meaning_here_cost_one_line_each_and_never_reach_the_prompt() {
    for flags in [
        &["--autocompact", "auto"][..],
        &["--background"],
        &["--bg"],
        &["--bare"],
        &["--brief"],
        &["--chrome"],
        &["--checkpointing"],
        &["--cloud"],
        &["--desktop"],
        &["--disable-slash-commands"],
        &["--environment", "e"],
        &["--file", "f:a.txt"],
        &["--from-pr", "12"],
        &["--ide"],
        &["--list-extensions"],
        &["-l"],
        &["-n", "title"],
        &["--name", "title"],
        &["--plugin-url", "http://127.0.0.1/p.zip"],
        &["--prompt-suggestions", "true"],
        &["--remote-control"],
        &["--remote-control-session-name-prefix", "p"],
        &["--system-prompt-snapshot", "on"],
        &["--teleport"],
        &["--tmux"],
        &["-w", "tree"],
        &["-e", "none"],
    ] {
        let mock = MockModel::with([Reply::text("Done.")]);
        let ended = qwen().with_model(&mock).args(["--model", "mock", "-p", "Hello"]).args(flags).run();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Done.\n"), "{flags:?}: {ended:?}");
        assert_eq!(mock.requests()[0].last_user_text(), "Hello", "{flags:?}");
        let notes = ended.stderr.lines().filter(|line| line.contains("changes nothing here"));
        assert_eq!(notes.count(), 1, "{flags:?}: {}", ended.stderr);
    }
    for flags in
        [&["--no-chrome"][..], &["--ax-screen-reader"], &["--exclude-dynamic-system-prompt-sections"]]
    {
        let mock = MockModel::with([Reply::text("Done.")]);
        let ended = qwen().with_model(&mock).args(["--model", "mock", "-p", "Hello"]).args(flags).run();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
    }
}

#[test]
fn a_restricted_run_has_no_tools_that_run_commands_unless_they_are_named() {
    let tools = |flags: &[&str]| {
        let mock = MockModel::with([Reply::text("Done.")]);
        let ended =
            qwen().with_model(&mock).args(["--model", "mock", "-p", "x", "--restricted"]).args(flags).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        mock.requests()[0].tool_names().join(" ")
    };
    let offered = tools(&[]);
    assert!(!offered.contains("run_shell_command") && !offered.contains("web_fetch"), "{offered}");
    assert!(offered.contains("read_file"), "{offered}");
    assert!(tools(&["--tools", "Bash,Read"]).contains("run_shell_command"));
    let refused = qwen().args(["-p", "x", "--restricted", "--yolo"]).run();
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn the_permission_mode_is_reported_as_it_was_set_and_dont_ask_denies() {
    for mode in ["dontAsk", "auto", "acceptEdits", "plan", "default"] {
        let mock = MockModel::with([
            Reply::call("c", "Bash", r#"{"command":"touch made","description":"d"}"#),
            Reply::text("Done."),
            Reply::text("Done."),
        ]);
        let program =
            claude_sdk(&mock).args(["--permission-mode", mode, "--permission-prompt-tool", "stdio"]);
        let mut host = Host::of(&program, CLAUDE);
        host.ask("Go");
        let lines = host.turn("deny");
        assert_eq!(init(&lines)["permissionMode"], mode);
        let asked = of(&lines, "control_request").len();
        assert_eq!(asked, usize::from(!["dontAsk", "plan"].contains(&mode)), "{mode}: {lines:#?}");
        assert_eq!(lines.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1, "{mode}");
        assert!(!host.file("made").exists(), "{mode}");
        let answer = control(&mut host, &json!({ "subtype": "set_permission_mode", "mode": "dontAsk" }));
        assert_eq!(answer["response"]["mode"], "dontAsk");
        let status = host.run.json();
        assert_eq!((&status["subtype"], &status["permissionMode"]), (&json!("status"), &json!("dontAsk")));
        assert_eq!(init(&host.say("Go on"))["permissionMode"], "dontAsk");
        host.leave();
    }
}

#[test]
fn session_states_are_written_to_hosts_that_ask_for_them_by_either_variable() {
    for (variable, wanted) in [
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", true),
        ("CLAUDE_CODE_SDK_READS_SESSION_STATE", true),
        ("CLAUDE_CODE_SOMETHING_ELSE", false),
    ] {
        let mock = MockModel::with([Reply::text("Done.")]);
        let mut host = Host::of(&claude_sdk(&mock).env(variable, "1"), CLAUDE);
        host.say("Hello");
        let ended = host.leave();
        let states: Vec<String> = ended
            .json_lines()
            .iter()
            .filter(|line| line["subtype"] == "session_state_changed")
            .map(|line| line["state"].as_str().unwrap().to_owned())
            .collect();
        let expected: &[&str] = if wanted { &["running", "idle"] } else { &[] };
        assert_eq!(states, expected, "{variable}");
    }
}

#[test]
fn clear_announces_a_new_session_and_the_conversation_goes_on_there_empty() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let first = host.say("Remember the word heron").pop().unwrap();
    host.run.write_line(json!({
        "type": "user", "uuid": "11111111-2222-4333-8444-555555555555",
        "message": { "role": "user", "content": "/clear" },
    }));
    let lines = host.turn("allow");
    let reset = of(&lines, "conversation_reset")[0];
    let cleared = lines.last().unwrap();
    assert_eq!(reset["session_id"], first["session_id"]);
    assert_eq!(
        (&reset["trigger"], &reset["user_message_uuid"]),
        (&json!("clear"), &json!("11111111-2222-4333-8444-555555555555"))
    );
    assert_ne!(reset["new_conversation_id"], first["session_id"]);
    assert_eq!(cleared["session_id"], reset["new_conversation_id"]);
    let next = host.say("Which word?");
    assert_eq!(init(&next)["session_id"], reset["new_conversation_id"]);
    assert!(!mock.requests()[1].body.to_string().contains("heron"), "the conversation is empty");
    host.leave();
    // Other hosts address the session by its id, which stays.
    let mock = MockModel::with([Reply::text("one")]);
    let mut host = Host::of(&qwen_sdk(&mock), CLAUDE);
    let first = host.say("Hello").pop().unwrap();
    let cleared = host.say("/clear");
    assert!(of(&cleared, "conversation_reset").is_empty());
    assert_eq!(cleared.last().unwrap()["session_id"], first["session_id"]);
    host.leave();
}

#[test]
fn the_origin_of_a_user_line_is_echoed_on_its_result_and_on_no_other() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let origin = json!({ "kind": "channel", "server": "chat" });
    for (text, origin) in [("Hello", Some(&origin)), ("Again", None), ("/stats", Some(&origin))] {
        let mut line = json!({ "type": "user", "message": { "role": "user", "content": text } });
        if let Some(origin) = origin {
            line["origin"] = origin.clone();
        }
        host.run.write_line(line);
        let result = host.turn("allow").pop().unwrap();
        assert_eq!(result.get("origin"), origin, "{text}: {result}");
    }
    host.leave();
}

#[test]
fn text_of_sub_agents_is_written_to_claude_hosts_only_on_request() {
    let is_text = |line: &&Value| {
        line["parent_tool_use_id"] == "outer" && line["message"]["content"][0]["type"] == "text"
    };
    let is_call = |line: &Value| {
        line["parent_tool_use_id"] == "outer" && line["message"]["content"][0]["type"] == "tool_use"
    };
    let (flag, variable) = ("--forward-subagent-text", "CLAUDE_CODE_FORWARD_SUBAGENT_TEXT");
    let mock = with_a_sub_agent();
    for (program, asks, expected) in [
        (claude_sdk(&mock), false, 0),
        (claude_sdk(&mock).arg(flag), false, 1),
        (claude_sdk(&mock).env(variable, "1"), false, 1),
        (claude_sdk(&mock), true, 1),
        (qwen_sdk(&mock), false, 1),
    ] {
        let mut host = Host::of(&program.arg("--tool-names=qwen"), CLAUDE);
        if asks {
            control(&mut host, &json!({ "subtype": "initialize", "forwardSubagentText": true }));
        }
        let lines = host.say("Delegate");
        assert_eq!(lines.iter().filter(is_text).count(), expected, "{lines:#?}");
        assert!(lines.iter().any(is_call), "{lines:#?}");
        host.leave();
    }
}

#[test]
fn sub_agents_leave_their_transcripts_beside_the_sessions() {
    let mock = with_a_sub_agent();
    let program = claude_sdk(&mock).arg("--tool-names=qwen");
    let mut host = Host::of(&program, CLAUDE);
    let result = host.say("Delegate").pop().unwrap();
    host.leave();
    let session = result["session_id"].as_str().unwrap();
    let projects = fs::read_dir(program.home_path().join(".claude/projects")).unwrap();
    let project = projects.map(|entry| entry.unwrap().path()).next().unwrap();
    let folder = project.join(session).join("subagents");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let meta: Value = serde_json::from_str(&read("agent-outer.meta.json")).unwrap();
    assert_eq!((&meta["toolUseId"], &meta["agentType"]), (&json!("outer"), &json!("general-purpose")));
    let entries: Vec<Value> =
        read("agent-outer.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "user", "assistant"], "{entries:#?}");
    assert_eq!(entries[0]["message"]["content"], "SUBTASK");
    assert_eq!(entries[3]["message"]["content"][0]["text"], "from below");
    for (entry, before) in entries.iter().skip(1).zip(&entries) {
        assert_eq!(entry["parentUuid"], before["uuid"]);
    }
    for entry in &entries {
        assert_eq!((&entry["isSidechain"], &entry["agentId"]), (&json!(true), &json!("outer")));
        assert_eq!(entry["sessionId"], session);
    }
    let main = fs::read_to_string(project.join(format!("{session}.jsonl"))).unwrap();
    assert!(!main.contains("from below\"}]"), "only the main conversation: {main}");
}

#[test]
fn a_sub_agent_in_the_background_leaves_its_prompt_and_its_report() {
    let mock = MockModel::start();
    mock.answer_with(|request: &mock_model::Request| {
        let results = request.messages().iter().filter(|message| message["role"] == "tool").count();
        let task = json!({ "description": "d", "prompt": "SUBTASK", "subagent_type": "general-purpose", "run_in_background": true });
        Some(match (request.last_user_text().contains("SUBTASK"), results) {
            (true, _) => Reply::text("from below"),
            (false, 0) => Reply::call("outer", "Task", &task.to_string()),
            (false, 1) => Reply::call("wait", "TaskOutput", r#"{"task_id":"agent-1"}"#),
            (false, _) => Reply::text("from above"),
        })
    });
    let program = claude_sdk(&mock);
    let mut host = Host::of(&program, CLAUDE);
    let ended = host.say("Delegate").pop().unwrap();
    host.leave();
    let session = ended["session_id"].as_str().unwrap();
    let projects = fs::read_dir(program.home_path().join(".claude/projects")).unwrap();
    let folder = projects.map(|entry| entry.unwrap().path()).next().unwrap().join(session).join("subagents");
    let text = fs::read_to_string(folder.join("agent-outer.jsonl")).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 2, "{entries:#?}");
    assert_eq!(entries[0]["message"]["content"], "SUBTASK");
    assert_eq!(entries[1]["message"]["content"][0]["text"], "from below");
    assert!(folder.join("agent-outer.meta.json").exists());
}

#[test]
fn qwen_hosts_find_the_session_in_init_and_summary_among_the_commands() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let mut host = Host::of(&qwen_sdk(&mock), CLAUDE);
    let answer = control(&mut host, &json!({ "subtype": "initialize", "agents": [] }));
    assert_eq!(answer["subtype"], "success");
    let answer = control(&mut host, &json!({ "subtype": "supported_commands" }));
    assert!(answer["response"]["commands"].as_array().unwrap().contains(&json!("summary")), "{answer}");
    for _ in 0..2 {
        let lines = host.say("Hello");
        let init = init(&lines);
        assert_eq!(init["uuid"], init["session_id"]);
        assert_eq!(init["agents"], json!([]), "an empty list of agents means none");
    }
    host.leave();
}

#[test]
fn the_setting_of_tool_names_counts_and_the_flag_counts_more() {
    let tools = |flags: &[&str]| {
        let mock = MockModel::with([Reply::text("Done.")]);
        let program = qwen().with_model(&mock).args(["--model", "mock", "-p", "x"]).args(flags);
        assert_eq!(program.run().code, Some(0), "{flags:?}");
        mock.requests()[0].tool_names().join(" ")
    };
    let claude = "{\"tools\":{\"names\":\"claude\"}}";
    assert!(tools(&["--settings", claude]).contains("Bash"));
    assert!(tools(&["--settings", claude, "--tool-names", "qwen"]).contains("run_shell_command"));
    assert!(tools(&[]).contains("run_shell_command"));
}

#[test]
fn an_approved_path_outside_of_the_workspace_works_and_an_added_directory_asks_no_more() {
    let outside = qwen();
    let place = outside.cwd_path().canonicalize().unwrap();
    fs::write(place.join("seen.txt"), "a heron").unwrap();
    let path = |name: &str| place.join(name).to_string_lossy().into_owned();
    let mock = MockModel::with([
        Reply::call("c1", "Read", &json!({"file_path": path("seen.txt")}).to_string()),
        Reply::call("c2", "Write", &json!({"file_path": path("made.txt"), "content": "x"}).to_string()),
        Reply::call(
            "c5",
            "Grep",
            &json!({"pattern": "heron", "path": place, "output_mode": "content"}).to_string(),
        ),
        Reply::text("Done."),
        Reply::call("c3", "Read", &json!({"file_path": path("seen.txt")}).to_string()),
        Reply::call("c4", "Read", &json!({"file_path": path("made.txt")}).to_string()),
        Reply::text("Done."),
    ]);
    let mut host = Host::of(&claude_sdk(&mock).args(["--permission-prompt-tool", "stdio"]), CLAUDE);
    let lines = host.say("Go");
    assert_eq!(of(&lines, "control_request").len(), 3, "each call is asked about");
    assert_eq!(lines.last().unwrap()["permission_denials"], json!([]));
    assert!(mock.requests()[1].body.to_string().contains("a heron"), "it was read");
    let messages = mock.requests()[3].body["messages"].clone();
    let searched = messages.as_array().unwrap().last().unwrap().to_string();
    assert!(searched.contains("a heron"), "it was searched: {searched}");
    assert_eq!(fs::read_to_string(place.join("made.txt")).unwrap(), "x");
    host.ask("Again");
    let mut asked = 0;
    let end = loop {
        let line = host.run.json();
        if line["type"] == "control_request" {
            asked += 1;
            let id = &line["request_id"];
            let added = json!([{"type": "addDirectories", "directories": [place], "destination": "session"}]);
            let answer = json!({"behavior": "allow", "updatedInput": {}, "updatedPermissions": added});
            let response = json!({"subtype": "success", "request_id": id, "response": answer});
            host.run.write_line(json!({"type": "control_response", "response": response}));
        }
        if line["type"] == "result" {
            break line;
        }
    };
    assert_eq!((asked, &end["permission_denials"]), (1, &json!([])));
    host.leave();
}
