//! Random schedules on up to five sessions: prompts, cancels, closes, deletions, loads, answers and dropped connections.

use std::collections::{HashMap, HashSet};

use mock_model::{MockModel, Reply, Request, Source, sse};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::editor::Editor;
use crate::sessions::{kept, reopening};

#[derive(Debug, Clone)]
enum Step {
    New,
    Prompt(usize, bool),
    Cancel(usize),
    Close(usize),
    Delete(usize),
    Load(usize),
    /// Allow, reject, or the outcome `cancelled`.
    Answer(u8),
    Mode(usize),
    Drop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::New),
        5 => (0..5_usize, any::<bool>()).prop_map(|(at, calls)| Step::Prompt(at, calls)),
        2 => (0..5_usize).prop_map(Step::Cancel),
        1 => (0..5_usize).prop_map(Step::Close),
        1 => (0..5_usize).prop_map(Step::Delete),
        1 => (0..5_usize).prop_map(Step::Load),
        4 => (0..3_u8).prop_map(Step::Answer),
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

/// Updates that belong to a turn.
const OF_TURNS: [&str; 5] =
    ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];

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
    /// What was shown live, by session.
    live: HashMap<String, Vec<Value>>,
}

impl Expected {
    /// The running prompt of a session.
    fn running(&self, session: &str) -> Option<u64> {
        self.open.iter().find(|(_, of)| of.as_deref() == Some(session)).map(|(id, _)| *id)
    }

    /// Takes a frame in.
    fn take(&mut self, frame: &Value) {
        if frame.get("method").is_none() {
            return self.take_response(frame);
        }
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        let update = &frame["params"]["update"];
        let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        match frame["method"].as_str().unwrap() {
            "session/request_permission" => self.questions.push(frame.clone()),
            "$/cancel_request" => self.questions.retain(|open| open["id"] != frame["params"]["requestId"]),
            _ => {}
        }
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        assert_ne!(kind, "user_message_chunk", "outside a replay: {frame}");
        if OF_TURNS.contains(&kind) {
            assert!(self.running(&session).is_some(), "an update outside a turn: {frame}");
            self.live.entry(session.clone()).or_default().push(frame.clone());
        }
        match kind {
            "tool_call" => drop(self.calls.entry(session).or_default().insert(call)),
            "tool_call_update" if matches!(update["status"].as_str(), Some("completed" | "failed")) => {
                self.calls.entry(session).or_default().remove(&call);
            }
            _ => {}
        }
    }

    fn take_response(&mut self, frame: &Value) {
        let id = frame["id"].as_u64().unwrap();
        let session = self.open.remove(&id).unwrap_or_else(|| panic!("a second response: {frame}"));
        let Some(session) = session else { return };
        let reason = frame["result"]["stopReason"].as_str();
        if self.cancelled.contains(&id) {
            // It may have ended before the cancellation arrived.
            assert!(matches!(reason, Some("cancelled" | "end_turn")), "{frame}");
        } else {
            assert_eq!(reason, Some("end_turn"), "{frame}");
        }
        let calls = self.calls.remove(&session).unwrap_or_default();
        assert!(calls.is_empty(), "calls without an end: {calls:?}");
        self.questions.retain(|question| question["params"]["sessionId"] != session.as_str());
    }

    /// What a replay of the session shows. A call whose arguments never became complete is not in the conversation.
    fn history(&self, session: &str) -> Value {
        let mut history = kept(self.live.get(session).map_or(&[], Vec::as_slice));
        let calls = history["calls"].as_object_mut().unwrap();
        calls.retain(|_, call| call.get("rawInput").is_some());
        history
    }
}

/// A client that plays a schedule.
struct Client {
    editor: Editor,
    expected: Expected,
    sessions: Vec<String>,
}

impl Client {
    fn send(&mut self, method: &str, params: &Value, prompt_of: Option<String>) -> u64 {
        let id = self.editor.send(method, params);
        self.expected.open.insert(id, prompt_of);
        id
    }

    /// Sends a request and reads up to its response.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params, None);
        loop {
            let frame = self.editor.next();
            self.expected.take(&frame);
            if frame["id"] == id && frame.get("method").is_none() {
                return frame;
            }
        }
    }

    /// Loads a session: the replay is complete before the answer, and shows what was shown live. Returns false for one
    /// that never had a prompt and is not open.
    fn load(&mut self, session: &str) -> bool {
        let id = self.send("session/load", &reopening(session, &self.editor), None);
        let mut replayed = Vec::new();
        loop {
            let frame = self.editor.next();
            let update = &frame["params"]["update"];
            let is_of_session =
                frame["params"]["sessionId"] == session && frame["method"] == "session/update";
            if is_of_session && (!replayed.is_empty() || update["sessionUpdate"] == "user_message_chunk") {
                replayed.push(frame);
                continue;
            }
            self.expected.take(&frame);
            if frame["id"] == id && frame.get("method").is_none() {
                let is_known = frame["result"].is_object() || frame["error"]["code"] == -32002;
                assert!(is_known, "{frame}");
                assert_eq!(kept(&replayed), self.expected.history(session), "{frame}");
                return frame["result"].is_object();
            }
        }
    }

    fn cancel(&mut self, session: &str) {
        self.expected.cancelled.extend(self.expected.running(session));
        self.editor.notify("session/cancel", &json!({"sessionId": session}));
    }

    fn answer(&mut self, answer: u8) {
        let Some(question) = self.expected.questions.pop() else { return };
        match answer {
            0 => self.editor.select(&question, "allow_once"),
            1 => self.editor.select(&question, "reject_once"),
            _ => {
                let session = question["params"]["sessionId"].as_str().unwrap();
                self.expected.cancelled.extend(self.expected.running(session));
                self.editor.answer(&question, &json!({"outcome": {"outcome": "cancelled"}}));
            }
        }
    }

    fn play(&mut self, step: &Step) {
        let sessions = &self.sessions;
        let named = |at: &usize| (!sessions.is_empty()).then(|| sessions[at % sessions.len()].clone());
        match step {
            Step::New if self.sessions.len() < 5 => {
                let opened = self.ask("session/new", &json!({"cwd": self.editor.cwd(), "mcpServers": []}));
                self.sessions.push(opened["result"]["sessionId"].as_str().unwrap().to_owned());
            }
            Step::Prompt(at, calls) => {
                let Some(session) = named(at) else { return };
                let text = if *calls { "CALL" } else { "PLAIN" };
                let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
                if self.expected.running(&session).is_none() {
                    self.send("session/prompt", &params, Some(session));
                }
            }
            Step::Cancel(at) => {
                if let Some(session) = named(at) {
                    self.cancel(&session);
                }
            }
            Step::Close(at) => {
                let Some(session) = named(at) else { return };
                self.expected.cancelled.extend(self.expected.running(&session));
                self.ask("session/close", &json!({"sessionId": session}));
                assert_eq!(self.expected.running(&session), None, "its prompt is answered first");
                if !self.load(&session) {
                    self.sessions.retain(|open| *open != session);
                }
            }
            Step::Delete(at) => {
                let Some(session) = named(at) else { return };
                self.expected.cancelled.extend(self.expected.running(&session));
                let deleted = self.ask("session/delete", &json!({"sessionId": session}));
                assert_eq!(deleted["result"], json!({}));
                assert_eq!(self.expected.running(&session), None, "its prompt is answered first");
                self.sessions.retain(|open| *open != session);
                let load = self.ask("session/load", &reopening(&session, &self.editor));
                assert_eq!(load["error"]["code"], -32002, "{load}");
            }
            Step::Load(at) => {
                if let Some(session) = named(at) {
                    self.load(&session);
                }
            }
            Step::Answer(answer) => self.answer(*answer),
            Step::Mode(at) => {
                let Some(session) = named(at) else { return };
                let set = self.ask("session/set_mode", &json!({"sessionId": session, "modeId": "default"}));
                assert_eq!(set["result"], json!({}));
            }
            Step::New | Step::Drop => {}
        }
    }

    /// Cancels what runs, and reads until every request has its answer.
    fn finish(mut self) {
        for session in self.sessions.clone() {
            self.cancel(&session);
        }
        while !self.expected.open.is_empty() {
            let frame = self.editor.next();
            self.expected.take(&frame);
        }
    }

    /// Closes the connection. Another one shows the same history.
    fn drop_connection(mut self) {
        for session in self.sessions.clone() {
            self.expected.cancelled.extend(self.expected.running(&session));
        }
        self.editor.run.close_stdin();
        while let Some(line) = self.editor.run.line() {
            self.expected.take(&serde_json::from_str(&line).unwrap());
        }
        let Editor { run, program, .. } = self.editor;
        assert_eq!(run.wait().code, Some(0));
        let editor = Editor::with(program, &json!({}));
        let mut client = Client { editor, expected: self.expected, sessions: self.sessions };
        client.expected.open.clear();
        for session in client.sessions.clone() {
            client.load(&session);
        }
    }
}

fn play(steps: &[Step]) {
    let mock = MockModel::start();
    mock.answer_with(Caller);
    let mut client =
        Client { editor: Editor::start(&mock), expected: Expected::default(), sessions: Vec::new() };
    for step in steps {
        if matches!(step, Step::Drop) {
            return client.drop_connection();
        }
        client.play(step);
    }
    client.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_has_one_answer_and_every_call_an_end(steps in prop::collection::vec(step(), 1..14)) {
        play(&steps);
    }
}
