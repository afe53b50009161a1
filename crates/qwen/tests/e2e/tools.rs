//! A turn that works with tools, told in every wire: the same calls, the same results, each in its dialect's
//! words.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{asked, judged};
use crate::stream_content::StreamContent;
use crate::wire::{self, CLAUDE, CORE, EXPORT, LITE, LOOM, QWEN, QWEN_CHUNK, Wire};

const NOISY: &str = r"printf '\033[32mgreen\033[0m out\n'; printf 'trouble\n' >&2; exit 3";

/// Looks at a file and runs a command beside it; changes two files; keeps a list; answers.
fn model() -> MockModel {
    let call =
        |id: &str, name: &str, arguments: &Value| ReplyEvent::call(id, name, &arguments.to_string()).step();
    MockModel::with([
        Reply::new([
            ReplyEvent::Thought("**Looking around** before I change anything".into()).step(),
            ReplyEvent::Text("Let me ".into()).step(),
            ReplyEvent::Text("look. ".into()).step(),
            call("c1", "read_file", &json!({ "file_path": "a.txt" })),
            call("c2", "run_shell_command", &json!({ "command": NOISY })),
            ReplyEvent::Usage { input: 100, output: 20 }.step(),
        ]),
        Reply::new([
            call("c3", "write_file", &json!({ "file_path": "new.txt", "content": "hello\n" })),
            call("c4", "edit", &json!({ "file_path": "a.txt", "old_string": "Hi", "new_string": "Hello" })),
            ReplyEvent::Usage { input: 200, output: 30 }.step(),
        ]),
        Reply::new([
            call(
                "c5",
                "todo_write",
                &json!({ "todos": [{ "id": "1", "content": "Look", "status": "completed" }] }),
            ),
            ReplyEvent::Usage { input: 300, output: 40 }.step(),
        ]),
        Reply::new([
            ReplyEvent::Text("All done.".into()).step(),
            ReplyEvent::Usage { input: 400, output: 50 }.step(),
        ]),
    ])
}

fn at_work(mock: &MockModel, wire: Wire) -> Program {
    let program = asked(mock, wire).arg("--yolo");
    fs::write(program.cwd_path().join("a.txt"), "print('Hi')\n").unwrap();
    program
}

#[track_caller]
fn worked(wire: Wire) -> StreamContent {
    let mock = model();
    let program = at_work(&mock, wire);
    let ended = program.run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(fs::read_to_string(program.cwd_path().join("new.txt")).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(program.cwd_path().join("a.txt")).unwrap(), "print('Hello')\n");
    assert_eq!(mock.requests().len(), 4);
    judged(wire, &ended)
}

#[test]
fn every_wire_tells_the_same_story() {
    wire::each(&wire::all(), |wire| {
        let told = worked(wire);
        assert_eq!((told.end().status.as_str(), told.end().tokens), ("done", (1000, 140)));
        if wire.is_document() && matches!(wire.dialect, "qwen" | "claude") {
            assert_eq!(told.end().reply.as_deref(), Some("All done."));
            return;
        }
        assert_eq!(told.text, "Let me look. All done.");
        let calls: Vec<(&str, &str)> =
            told.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        let names = ["read_file", "run_shell_command", "write_file", "edit", "todo_write"];
        let expected: Vec<(&str, &str)> = ["c1", "c2", "c3", "c4", "c5"].into_iter().zip(names).collect();
        assert_eq!(calls, expected);
        assert_eq!(told.calls[0].arguments, json!({ "file_path": "a.txt" }));
        let mut results: Vec<(&str, bool)> =
            told.results.iter().map(|r| (r.id.as_str(), r.is_error)).collect();
        results.sort_unstable();
        assert_eq!(results, [("c1", false), ("c2", true), ("c3", false), ("c4", false), ("c5", false)]);
    });
}

#[test]
fn the_model_gets_every_result_under_its_calls_id() {
    let mock = model();
    assert_eq!(at_work(&mock, LITE).run().code, Some(0));
    let requests = mock.requests();
    let second = requests[1].messages();
    let roles: Vec<&str> = second.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(second[2]["content"], "Let me look. ");
    assert_eq!(second[2]["tool_calls"][1]["id"], "c2");
    assert_eq!((&second[3]["tool_call_id"], &second[4]["tool_call_id"]), (&"c1".into(), &"c2".into()));
    assert!(second[3]["content"].as_str().unwrap().contains("print('Hi')"), "{}", second[3]);
    let shell = second[4]["content"].as_str().unwrap();
    assert!(
        shell.contains("green") && shell.contains("trouble") && shell.contains("Exit code: 3"),
        "{shell}"
    );
    assert!(requests[0].body["stream"] == true && !requests[0].tool_names().is_empty());
}

fn of<'a>(told: &'a StreamContent, kind: &str) -> Vec<&'a Value> {
    told.lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn qwen_shows_how_far_each_call_is_and_what_it_changed() {
    for wire in [QWEN, QWEN_CHUNK] {
        let told = worked(wire);
        let displays = of(&told, "x-qwen-tool-display");
        for id in ["c1", "c2", "c3", "c4", "c5"] {
            let mut statuses: Vec<&str> = displays
                .iter()
                .filter(|line| line["tool_call_id"] == id)
                .map(|line| line["status"].as_str().unwrap())
                .collect();
            statuses.dedup();
            let last = if id == "c2" { "error" } else { "success" };
            assert_eq!(statuses, ["pending", "executing", last], "{id}");
        }
        assert!(displays.iter().all(|line| line["timestamp"].is_u64() && line.get("confirmation").is_some()));
        assert!(displays.iter().all(|line| line["pending"] == (line["status"] == "pending")));
        let shown = |id: &str| {
            let last = displays.iter().rfind(|line| line["tool_call_id"] == id).unwrap();
            last["result_display"].clone()
        };
        let edit = shown("c4");
        assert_eq!((&edit["kind"], &edit["file_name"]), (&"file_diff".into(), &"a.txt".into()), "{edit}");
        assert_eq!(
            (&edit["original"], &edit["modified"]),
            (&"print('Hi')\n".into(), &"print('Hello')\n".into())
        );
        assert!(edit["diff"].as_str().unwrap().contains("-print('Hi')\n+print('Hello')"), "{edit}");
        assert_eq!(
            edit["stat"],
            json!({ "ai_added_lines": 1, "ai_removed_lines": 1, "user_added_lines": 0, "user_removed_lines": 0 })
        );
        assert_eq!(shown("c3")["kind"], "file_diff");
        assert_eq!(shown("c5")["kind"], "todo_list");
        let thought = of(&told, "x-qwen-thought");
        assert_eq!(thought.len(), 1);
        assert_eq!(
            (&thought[0]["subject"], &thought[0]["description"]),
            (&"Looking around".into(), &"before I change anything".into())
        );
        let finished = of(&told, "x-qwen-session-event");
        assert_eq!(finished.last().unwrap()["event"], "Finished");
    }
}

#[test]
fn qwen_shows_terminal_output_with_its_styles() {
    for wire in [QWEN, QWEN_CHUNK] {
        let told = worked(wire);
        let output = of(&told, "x-qwen-terminal");
        let tool: Vec<&&Value> = output.iter().filter(|line| line["source"] == "tool").collect();
        let text = |channel: &str| -> String {
            let lines = tool.iter().filter(|line| line["channel"] == channel);
            lines.map(|line| line["text"].as_str().unwrap()).collect()
        };
        assert_eq!((text("stdout").as_str(), text("stderr").as_str()), ("green out\n", "trouble\n"));
        let styled = tool.iter().find(|line| line["text"].as_str().unwrap().contains("green")).unwrap();
        assert_eq!(
            styled["ansi"],
            json!([{ "offset": 0, "code": "\u{1b}[32m" }, { "offset": 5, "code": "\u{1b}[0m" }])
        );
        let span = &styled["spans"][0];
        assert_eq!((&span["start"], &span["end"]), (&0.into(), &5.into()), "{span}");
        assert_eq!(span["style"]["theme_token"], "AccentGreen");
        let end = output.iter().find(|line| line["source"] == "system").unwrap();
        assert_eq!(end["exit_code"], 0, "{end}");
        assert!(output.iter().all(|line| line["session_id"].is_string() && line["prompt_id"].is_string()));
    }
}

#[test]
fn core_requests_and_responses_have_the_fields_of_spec_4() {
    let told = worked(CORE);
    let requests = of(&told, "tool_call_request");
    assert_eq!(requests.len(), 5);
    for request in requests {
        let value = request["value"].as_object().unwrap();
        assert!(value["callId"].is_string() && value["name"].is_string() && value["args"].is_object());
        assert_eq!(value["isClientInitiated"], false);
        assert!(value["prompt_id"].as_str().unwrap().ends_with("########1"), "{request}");
    }
    let responses = of(&told, "tool_call_response");
    assert_eq!(responses.len(), 5);
    let response =
        |id: &str| responses.iter().find(|line| line["value"]["callId"] == id).unwrap()["value"].clone();
    let read = response("c1");
    assert!(read["responseParts"][0]["text"].as_str().unwrap().contains("print('Hi')"), "{read}");
    assert!(
        read["resultDisplay"].is_string() && read["error"].is_null() && read["errorType"].is_null(),
        "{read}"
    );
    assert!(read["outputFile"].is_null() && read["contentLength"].is_u64(), "{read}");
    let shell = response("c2");
    assert!(shell["error"].is_string() && shell["errorType"].is_string(), "{shell}");
    let edit = response("c4")["resultDisplay"].clone();
    assert!(edit["fileDiff"].is_string() && edit["fileName"] == "a.txt", "{edit}");
    let thought = &of(&told, "thought")[0]["value"];
    assert_eq!(*thought, json!({ "subject": "Looking around", "description": "before I change anything" }));
    let finished = &told.lines.last().unwrap()["value"];
    assert_eq!(finished["reason"], "STOP");
    assert_eq!(finished["usageMetadata"]["totalTokenCount"], 1140);
}

#[test]
fn loom_runs_through_think_act_and_observe() {
    let told = worked(LOOM);
    let nodes: Vec<&str> = of(&told, "node_enter").iter().map(|line| line["id"].as_str().unwrap()).collect();
    let round = ["think", "act", "observe"];
    assert_eq!(nodes, [&round[..], &round, &round, &["think"]].concat());
    let ids: Vec<&str> =
        of(&told, "node_enter").iter().map(|line| line["node_id"].as_str().unwrap()).collect();
    assert_eq!(ids[..4], ["run-think-1", "run-act-1", "run-observe-1", "run-think-2"]);
    let mut node = "";
    for line in &told.lines {
        match line["type"].as_str() {
            Some("node_enter") => node = line["id"].as_str().unwrap(),
            Some("message_chunk" | "tool_call_chunk" | "tool_call" | "usage") => {
                assert_eq!(node, "think", "{line}");
            }
            Some("tool_start" | "tool_output" | "tool_end" | "tool_approval") => {
                assert_eq!(node, "act", "{line}");
            }
            _ => {}
        }
    }
    // After each exit: the whole state, twice, under the id of the node that was left.
    for (at, line) in told.lines.iter().enumerate().filter(|(_, line)| line["type"] == "node_exit") {
        let (values, updates) = (&told.lines[at + 1], &told.lines[at + 2]);
        assert_eq!((&values["type"], &updates["type"]), (&"values".into(), &"updates".into()), "{line}");
        assert_eq!((&values["node_id"], &updates["node_id"]), (&line["node_id"], &line["node_id"]));
        assert_eq!((&updates["id"], &updates["state"]), (&line["id"], &values["state"]));
    }
    let of_call = |id: &str| -> Vec<&str> {
        let lines = told.lines.iter().filter(|line| line["call_id"] == id);
        let mut kinds: Vec<&str> = lines.map(|line| line["type"].as_str().unwrap()).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(of_call("c1"), ["tool_call_chunk", "tool_call", "tool_start", "tool_end"]);
    assert_eq!(of_call("c2"), ["tool_call_chunk", "tool_call", "tool_start", "tool_output", "tool_end"]);
    let start = &told.lines[0];
    assert_eq!(
        (&start["type"], &start["message"], &start["agent"]),
        (&"run_start".into(), &"Hello".into(), &"react".into())
    );
    assert!(start.get("node_id").is_none(), "before the first node there is none: {start}");
    let reply = told.lines.last().unwrap();
    assert_eq!((&reply["reply"], &reply["node_id"]), (&"All done.".into(), &"run-think-4".into()));
    let checkpoint = of(&told, "checkpoint")[0];
    assert_eq!((&checkpoint["step"], &checkpoint["thread_id"]), (&10.into(), &start["session_id"]));
    assert!(checkpoint["timestamp"].as_str().unwrap().ends_with('Z'), "{checkpoint}");
    let thought =
        &of(&told, "custom").iter().find(|line| line["value"]["kind"] == "thought").unwrap()["value"];
    assert_eq!(thought["subject"], "Looking around");
}

#[test]
fn the_export_form_tells_the_same_under_single_keys() {
    let (told, export) = (worked(LOOM), worked(EXPORT));
    assert_eq!(told.lines.len(), export.lines.len());
    let keys: Vec<&String> = export.lines.iter().flat_map(|line| line.as_object().unwrap().keys()).collect();
    assert_eq!((keys[0].as_str(), keys[1].as_str()), ("RunStart", "TaskStart"));
    let first = |key: &str| export.lines.iter().find(|line| line.get(key).is_some()).unwrap()[key].clone();
    assert_eq!(first("TaskStart"), json!({ "node_id": "think" }));
    assert_eq!(first("TaskEnd"), json!({ "node_id": "think", "result": "Ok" }));
    assert_eq!(
        first("Messages"),
        json!({ "chunk": { "content": "Let me " }, "metadata": { "loom_node": "think" } })
    );
    assert_eq!(first("Usage"), json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 }));
    assert!(first("Values")["messages"].is_array(), "the bare state");
    assert_eq!(first("Updates")["node_id"], "think");
    assert_eq!(first("Custom")["kind"], "thought");
    assert_eq!(first("ToolStart"), json!({ "call_id": "c1", "name": "read_file" }));
    assert_eq!(*export.lines.last().unwrap(), json!({ "reply": "All done." }));
}

#[test]
fn claude_writes_one_block_a_line_and_pairs_results_with_calls() {
    let told = worked(CLAUDE);
    let assistant = of(&told, "assistant");
    let blocks: Vec<(&Value, &str)> = assistant
        .iter()
        .map(|line| {
            let content = line["message"]["content"].as_array().unwrap();
            assert_eq!(content.len(), 1, "one block a line: {line}");
            (&line["message"]["id"], content[0]["type"].as_str().unwrap())
        })
        .collect();
    let kinds: Vec<&str> = blocks.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds[..4], ["thinking", "text", "tool_use", "tool_use"]);
    assert!(blocks[..4].iter().all(|(id, _)| *id == blocks[0].0), "the blocks of a message share its id");
    assert_eq!(assistant[0]["message"]["content"][0]["signature"], "");
    let first = &told.lines[0];
    assert_eq!((&first["type"], &first["subtype"]), (&"system".into(), &"init".into()));
    assert!(first["tools"].as_array().unwrap().iter().any(|tool| tool == "read_file"), "{first}");
    assert_eq!(first["permissionMode"], "bypassPermissions");
    let result = told.lines.last().unwrap();
    assert_eq!(
        (&result["subtype"], &result["result"], &result["num_turns"]),
        (&"success".into(), &"All done.".into(), &4.into())
    );
}

#[test]
fn a_refused_call_is_told_listed_and_never_run() {
    wire::each(&wire::all(), |wire| {
        let call = json!({ "command": "touch made" }).to_string();
        let mock =
            MockModel::with([Reply::call("c1", "run_shell_command", &call), Reply::text("I may not.")]);
        let program = asked(&mock, wire);
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!program.cwd_path().join("made").exists());
        let told = judged(wire, &ended);
        assert_eq!(told.end().status, "done");
        let last = told.lines.last().unwrap();
        let denied = match wire.dialect {
            "qwen" => last["metadata"]["turn"]["permission_denials"][0]["tool_call_id"] == "c1",
            "claude" => last["permission_denials"][0]["tool_use_id"] == "c1",
            "core" => last["value"]["permissionDenials"][0]["callId"] == "c1",
            _ => true,
        };
        assert!(denied, "listed in the terminal record: {last}");
        if !(wire.is_document() && matches!(wire.dialect, "qwen" | "claude")) {
            assert!(
                told.results[0].is_error && told.results[0].text.contains("requires permission"),
                "{told:#?}"
            );
        }
        if wire == LOOM {
            assert_eq!((of(&told, "tool_start").len(), of(&told, "tool_end").len()), (0, 1));
        }
    });
}

#[test]
fn a_call_that_lacks_what_it_needs_is_an_error_of_the_call_and_no_matter_of_permission() {
    for (tool, arguments, named) in [
        ("run_shell_command", json!({}), "`command` is missing"),
        ("run_shell_command", json!({"command": 5}), "`command` must be a string"),
        ("write_file", json!({"file_path": "x"}), "`content` is missing"),
        ("edit", json!({"file_path": "x", "old_string": "a"}), "`new_string` is missing"),
    ] {
        let call = ReplyEvent::call("c1", tool, &arguments.to_string()).step();
        let mock = MockModel::with([Reply::new([call]), Reply::text("Done.")]);
        let ended = asked(&mock, CLAUDE).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines: Vec<Value> =
            ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = lines.iter().find(|line| line["type"] == "user").unwrap();
        let text = result["message"]["content"][0]["content"].as_str().unwrap();
        assert!(text.contains(named), "{tool} {arguments}: {text}");
        assert_eq!(lines.last().unwrap()["permission_denials"], json!([]), "{tool} {arguments}");
    }
}
