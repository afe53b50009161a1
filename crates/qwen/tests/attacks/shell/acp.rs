//! The same attacks through `qwen --acp`: an editor that rejects whatever it is asked.

use mock_model::Reply;
use serde_json::{Value, json};

use super::{Attack, all, scene};
use crate::harness::{TREASURE, TWIN, each};

/// Plays the attack and its twin in one message. Returns all frames of the agent, and the calls that it asked about.
fn play(scene: &crate::harness::Scene, attack: &Attack) -> (Vec<Value>, Vec<String>) {
    let commands = [("c1", &attack.command), ("c2", &attack.twin)];
    scene.mock.push(Reply::new(commands.map(|(id, command)| {
        scene.names.call(id, "run_shell_command", json!({"command": scene.filled(command)}))
    })));
    scene.mock.push(Reply::text("done"));
    let mut run = scene.program.clone().args(["--acp"]).start();
    let mut frames: Vec<Value> = Vec::new();
    let mut asked = Vec::new();
    let mut session = Value::Null;
    for (id, method) in [(1, "initialize"), (2, "session/new"), (3, "session/prompt")] {
        let params = json!({"protocolVersion": 1, "cwd": scene.here().canonicalize().unwrap(), "mcpServers": [],
            "sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        run.write_line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let frame = run.json();
            if frame["method"] == "session/request_permission" {
                asked.push(frame["params"]["toolCall"]["toolCallId"].as_str().unwrap().to_owned());
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
                run.write_line(json!({"jsonrpc": "2.0", "id": frame["id"], "result": outcome}));
            }
            let is_answer = frame.get("method").is_none() && frame["id"] == id;
            frames.push(frame);
            if is_answer {
                break;
            }
        }
        session = frames.last().unwrap()["result"]["sessionId"].clone();
    }
    run.close_stdin();
    assert_eq!(run.wait().code, Some(0));
    (frames, asked)
}

/// The attack changes nothing, shows nothing, and is refused or asked about; its twin runs without a question.
fn withstood(attack: &Attack) -> Result<(), String> {
    let scene = scene(attack).args(["--approval-mode", attack.mode.as_str()]);
    let before = scene.tree();
    let (frames, asked) = play(&scene, attack);
    let fail = |what: String| Err(format!("{}: {:?}: {what}", attack.name, attack.command));
    let after = scene.tree();
    let changed = after.changed_since(&before);
    if !changed.is_empty() {
        return fail(format!("it changed {changed:?}"));
    }
    let asked_model: Vec<Value> = scene.mock.requests().iter().map(|request| request.full_body()).collect();
    if frames.iter().chain(&asked_model).any(|value| value.to_string().contains(TREASURE)) {
        return fail("it told what is outside".to_owned());
    }
    let end = frames.last().unwrap();
    let denied = end["result"]["_meta"]["qwen"]["denied"].as_array().cloned().unwrap_or_default();
    if !denied.contains(&json!("c1")) {
        return fail(format!("it is not among the denials: {end}"));
    }
    let results = asked_model.last().unwrap()["messages"].as_array().unwrap();
    let twin = results.iter().find(|message| message["tool_call_id"] == "c2");
    let ran = twin.is_some_and(|result| result["content"].to_string().contains(TWIN));
    if asked.contains(&"c2".to_owned()) || !ran {
        return fail(format!("the twin {:?} did not run: {twin:?}", attack.twin));
    }
    Ok(())
}

#[test]
fn no_command_gets_more_out_of_a_rule_through_acp_either() {
    each(&all(), withstood);
}
