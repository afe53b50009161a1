//! Random schedules on up to five sessions: prompts, cancels, closes, loads, answers and dropped connections.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use mock_model::{MockModel, Reply, Request, Source, sse};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::editor::Editor;

#[derive(Debug, Clone)]
enum Step {
    New,
    Prompt(usize, bool),
    Cancel(usize),
    Close(usize),
    Load(usize),
    Answer(bool),
    Mode(usize),
    Drop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::New),
        5 => (0..5_usize, any::<bool>()).prop_map(|(at, calls)| Step::Prompt(at, calls)),
        2 => (0..5_usize).prop_map(Step::Cancel),
        1 => (0..5_usize).prop_map(Step::Close),
        1 => (0..5_usize).prop_map(Step::Load),
        4 => any::<bool>().prop_map(Step::Answer),
        1 => (0..5_usize).prop_map(Step::Mode),
        1 => Just(Step::Drop),
    ]
}

/// A model that calls a command when the prompt asks for it, and answers otherwise.
struct Caller;

impl Source for Caller {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        let body = request.body.to_string();
        let asked = body.rfind("CALL");
        let answered = body.rfind("\"role\":\"tool\"");
        Some(match (asked, answered) {
            (Some(asked), answered)
                if answered.is_none_or(|answered| answered < asked)
                    && !request.last_user_text().contains("PLAIN") =>
            {
                Reply::call(&format!("c{}", body.len()), "run_shell_command", r#"{"command":"touch made"}"#)
            }
            _ => Reply::new([sse::text("fine "), sse::text("text"), sse::finish("stop"), sse::done()]),
        })
    }
}

/// What the client expects of the connection.
#[derive(Default)]
struct Expected {
    /// The requests without a response, and the session of prompts.
    open: HashMap<u64, Option<String>>,
    /// Prompts that were cancelled.
    cancelled: HashSet<u64>,
    /// Questions without an answer.
    questions: Vec<Value>,
    /// Calls without an end, by session.
    calls: HashMap<String, HashSet<String>>,
}

impl Expected {
    /// Takes a frame in.
    fn take(&mut self, frame: &Value) {
        if frame.get("method").is_none() {
            let id = frame["id"].as_u64().unwrap();
            let session = self.open.remove(&id).unwrap_or_else(|| panic!("a second response: {frame}"));
            if self.cancelled.contains(&id) {
                assert_eq!(frame["result"]["stopReason"], "cancelled", "{frame}");
            }
            if let Some(session) = session {
                let calls = self.calls.remove(&session).unwrap_or_default();
                assert!(calls.is_empty(), "calls without an end: {calls:?}");
            }
            return;
        }
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        let update = &frame["params"]["update"];
        let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        match frame["method"].as_str().unwrap() {
            "session/request_permission" => self.questions.push(frame.clone()),
            "$/cancel_request" => self.questions.retain(|open| open["id"] != frame["params"]["requestId"]),
            _ => {}
        }
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "tool_call" => drop(self.calls.entry(session).or_default().insert(call)),
            "tool_call_update" if matches!(update["status"].as_str(), Some("completed" | "failed")) => {
                self.calls.entry(session).or_default().remove(&call);
            }
            "agent_message_chunk" => {
                let runs = self.open.values().flatten().any(|open| *open == session);
                assert!(runs, "an update outside a turn or a replay: {frame}");
            }
            _ => {}
        }
    }
}

fn play(steps: &[Step]) {
    let mock = MockModel::start();
    mock.answer_with(Caller);
    let mut editor = Editor::start(&mock);
    let mut sessions: Vec<String> = Vec::new();
    let mut expected = Expected::default();
    let mut running: HashMap<String, u64> = HashMap::new();
    for step in steps {
        let of = |at: &usize| (!sessions.is_empty()).then(|| sessions[at % sessions.len()].clone());
        running.retain(|_, id| expected.open.contains_key(id));
        match step {
            Step::New if sessions.len() < 5 => {
                let id = editor.send("session/new", &json!({"cwd": editor.cwd(), "mcpServers": []}));
                expected.open.insert(id, None);
                let result = drain_to(&mut editor, &mut expected, id);
                sessions.push(result["result"]["sessionId"].as_str().unwrap().to_owned());
            }
            Step::Prompt(at, calls) => {
                let Some(session) = of(at) else { continue };
                let id = editor.prompt(&session, if *calls { "CALL" } else { "PLAIN" });
                match running.entry(session.clone()) {
                    Entry::Occupied(_) => expected.open.insert(id, None),
                    Entry::Vacant(idle) => {
                        idle.insert(id);
                        expected.open.insert(id, Some(session))
                    }
                };
            }
            Step::Cancel(at) => {
                let Some(session) = of(at) else { continue };
                editor.notify("session/cancel", &json!({"sessionId": session}));
            }
            Step::Close(at) => {
                let Some(session) = of(at) else { continue };
                let id = editor.send("session/close", &json!({"sessionId": session}));
                expected.open.insert(id, None);
                sessions.retain(|open| *open != session);
                drain_to(&mut editor, &mut expected, id);
            }
            Step::Load(at) => {
                let Some(session) = of(at).filter(|session| !running.contains_key(session)) else { continue };
                let params = json!({"sessionId": session, "cwd": editor.cwd(), "mcpServers": []});
                let id = editor.send("session/load", &params);
                expected.open.insert(id, Some(session));
                drain_to(&mut editor, &mut expected, id);
            }
            Step::Answer(allows) => {
                if let Some(question) = expected.questions.pop() {
                    editor.select(&question, if *allows { "allow_once" } else { "reject_once" });
                }
            }
            Step::Mode(at) => {
                let Some(session) = of(at) else { continue };
                let id = editor.send("session/set_mode", &json!({"sessionId": session, "modeId": "default"}));
                expected.open.insert(id, None);
                drain_to(&mut editor, &mut expected, id);
            }
            Step::Drop => break,
            Step::New => {}
        }
    }
    if steps.iter().any(|step| matches!(step, Step::Drop)) {
        editor.run.close_stdin();
        let Editor { run, program: _program, .. } = editor;
        assert_eq!(run.wait().code, Some(0));
        return;
    }
    for session in &sessions {
        editor.notify("session/cancel", &json!({"sessionId": session}));
    }
    while !expected.open.is_empty() {
        let frame = editor.next();
        expected.take(&frame);
    }
}

/// Reads up to a response.
fn drain_to(editor: &mut Editor, expected: &mut Expected, id: u64) -> Value {
    loop {
        let frame = editor.next();
        expected.take(&frame);
        if frame["id"] == id && frame.get("method").is_none() {
            return frame;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_has_one_answer_and_every_call_an_end(steps in prop::collection::vec(step(), 1..14)) {
        play(&steps);
    }
}
