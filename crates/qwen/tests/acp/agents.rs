//! Sub-agents: as titles, as nested transcripts, and as sessions, depending on what the client advertises.

use std::collections::HashSet;

use mock_model::{MockModel, Reply, Request, Source, sse};
use serde_json::{Value, json};

use crate::editor::{Editor, program, text, updates};

/// Starts a sub-agent, which thinks, writes, runs a command that needs approval, and reports.
struct Delegator;

impl Source for Delegator {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        let body = request.body.to_string();
        let has_result = body.contains("\"role\":\"tool\"");
        let is_child = !body.contains("Delegate this");
        Some(match (is_child, has_result) {
            (false, false) => Reply::call(
                "parent",
                "agent",
                r#"{"subagent_type":"general-purpose","description":"Look","prompt":"look around"}"#,
            ),
            (false, true) => Reply::text("All done."),
            (true, false) => Reply::new([
                sse::thought("child thinks"),
                sse::text("child begins"),
                sse::call(0, "nested", "run_shell_command", r#"{"command":"touch made"}"#),
                sse::finish("tool_calls"),
                sse::done(),
            ]),
            (true, true) => Reply::text("child ends"),
        })
    }
}

/// Runs a turn with a sub-agent; the session and its frames.
fn delegate(capabilities: &Value) -> (Editor, String, Vec<Value>) {
    let mock = MockModel::start();
    mock.answer_with(Delegator);
    let mut editor = Editor::with(program(&mock), capabilities);
    let session = editor.session();
    let id = editor.prompt(&session, "Delegate this");
    let request = editor.permission();
    let title = request["params"]["toolCall"]["title"].as_str().unwrap();
    assert_eq!(title, "general-purpose: touch made", "the request names the sub-agent");
    assert_eq!(request["params"]["sessionId"], session.as_str(), "requests belong to the user's session");
    editor.select(&request, "allow_once");
    let (_, response) = editor.response(id);
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    let frames = editor.frames.clone();
    (editor, session, frames)
}

fn of_parent<'a>(updates: &[&'a Value], pointer: &str) -> Vec<&'a Value> {
    let has_parent = |update: &&&Value| update.pointer(pointer).is_some_and(|parent| parent == "parent");
    updates.iter().filter(has_parent).copied().collect()
}

#[test]
fn a_client_that_advertises_nothing_sees_titles_and_no_text_of_a_sub_agent() {
    let (_, _, frames) = delegate(&json!({}));
    assert_eq!(text(&frames, "agent_message_chunk"), "All done.");
    assert_eq!(text(&frames, "agent_thought_chunk"), "");
    let calls = updates(&frames, "tool_call");
    assert!(calls.iter().any(|call| call["title"] == "general-purpose: run_shell_command"), "{calls:#?}");
    let all = serde_json::to_string(&frames).unwrap();
    assert!(!all.contains("claudeCode") && !all.contains("subagent_spawned"));
}

#[test]
fn a_nested_transcript_names_its_parent_in_every_update_and_separates_messages() {
    let (_, session, frames) = delegate(&json!({"_meta": {"subagent-transcript": true}}));
    let pointer = "/_meta/claudeCode/parentToolUseId";
    let chunks = updates(&frames, "agent_message_chunk");
    let nested = of_parent(&chunks, pointer);
    let words: Vec<&str> = nested.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect();
    assert_eq!(words.concat(), "child beginschild ends");
    let thoughts = updates(&frames, "agent_thought_chunk");
    assert_eq!(of_parent(&thoughts, pointer).len(), thoughts.len());
    let ids = nested.iter().chain(&thoughts).map(|chunk| chunk["messageId"].as_str().unwrap());
    assert_eq!(ids.collect::<HashSet<_>>().len(), 3, "two messages and a thought: {frames:#?}");
    let calls: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["params"]["update"])
        .filter(|update| update["toolCallId"] == "nested")
        .collect();
    assert!(calls.len() > 2);
    assert_eq!(of_parent(&calls, pointer).len(), calls.len(), "{calls:#?}");
    assert!(
        frames
            .iter()
            .filter(|frame| frame["method"] == "session/update")
            .all(|frame| frame["params"]["sessionId"] == session.as_str())
    );
}

#[test]
fn a_client_of_sub_agent_sessions_sees_one_that_begins_and_ends() {
    let air =
        json!({"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["nativeSubagentSessions"]}}}});
    let (mut editor, session, frames) = delegate(&air);
    let capabilities = &frames[0]["result"]["_meta"]["jetbrains"]["air"]["capabilities"];
    assert_eq!(*capabilities, json!(["nativeSubagentSessions"]));
    let spawned = updates(&frames, "subagent_spawned");
    assert_eq!((spawned.len(), &spawned[0]["name"]), (1, &json!("general-purpose")));
    let child = spawned[0]["subagentSessionId"].as_str().unwrap().to_owned();
    let in_session = |frames: &[Value], id: &str| -> Vec<Value> {
        frames.iter().filter(|frame| frame["params"]["sessionId"] == id).cloned().collect()
    };
    assert_eq!(text(&in_session(&frames, &child), "agent_message_chunk"), "child beginschild ends");
    assert_eq!(text(&in_session(&frames, &session), "agent_message_chunk"), "All done.");
    let ended = updates(&frames, "subagent_state_update");
    assert_eq!((ended.len(), &ended[0]["state"]), (1, &json!("completed")));
    assert_eq!(ended[0]["subagentSessionId"], child.as_str());
    // The same in a replay.
    editor.ask("session/close", &json!({"sessionId": session}));
    let load =
        editor.send("session/load", &json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []}));
    let (replayed, _) = editor.response(load);
    assert_eq!(text(&in_session(&replayed, &child), "agent_message_chunk"), "child beginschild ends");
    assert_eq!(updates(&replayed, "subagent_state_update").len(), 1);
}

#[test]
fn the_to_do_list_of_a_sub_agent_is_not_the_plan_of_the_session() {
    let list =
        |content: &str| json!({"todos": [{"id": "1", "content": content, "status": "pending"}]}).to_string();
    let agent = r#"{"subagent_type":"general-purpose","description":"Look","prompt":"look around"}"#;
    let sessions = json!({"_meta": {"jetbrains": {"air": {"capabilities": ["nativeSubagentSessions"]}}}});
    for capabilities in [json!({}), json!({"_meta": {"subagent-transcript": {}}}), sessions.clone()] {
        let mock = MockModel::with([
            Reply::call("c1", "todo_write", &list("of the user's agent")),
            Reply::call("c2", "agent", agent),
            Reply::call("c3", "todo_write", &list("of the sub-agent")),
            Reply::text("child ends"),
            Reply::text("All done."),
        ]);
        let mut editor = Editor::with(program(&mock), &capabilities);
        let session = editor.session();
        let (live, _) = editor.turn(&session, "Delegate this");
        let cwd = editor.cwd();
        let id = editor.send("session/load", &json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        let (replayed, _) = editor.response(id);
        for frames in [live, replayed] {
            let plans = frames.iter().filter(|frame| frame["params"]["update"]["sessionUpdate"] == "plan");
            let (own, nested): (Vec<_>, Vec<_>) =
                plans.partition(|frame| frame["params"]["sessionId"] == session.as_str());
            assert_eq!(
                own.last().unwrap()["params"]["update"]["entries"][0]["content"],
                "of the user's agent"
            );
            assert!(own.iter().all(|frame| !frame.to_string().contains("of the sub-agent")), "{own:?}");
            assert_eq!(!nested.is_empty(), capabilities == sessions, "{nested:?}");
        }
    }
}
