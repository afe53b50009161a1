//! An editor: sends requests, collects what comes back, and checks every frame.

use std::collections::{HashMap, HashSet};

use mock_model::MockModel;
use mock_model::process::{self, Program, Run};
use serde_json::{Value, json};

use crate::frames;

/// `qwen --acp` with a model.
pub fn program(mock: &MockModel) -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen")).args(["--acp", "--model", "test-model"]).with_model(mock)
}

/// A connection.
pub struct Editor {
    pub run: Run,
    pub program: Program,
    next_id: u64,
    /// Everything that was received, in order.
    pub frames: Vec<Value>,
    /// The calls that were announced, by session.
    calls: HashMap<String, HashSet<String>>,
}

impl Editor {
    /// A connection whose client advertises nothing.
    pub fn start(mock: &MockModel) -> Self {
        Self::with(program(mock), &json!({}))
    }

    /// An initialized connection.
    pub fn with(program: Program, capabilities: &Value) -> Self {
        let mut editor = Self::raw(program);
        let result = editor.request(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(result["result"]["protocolVersion"], 1, "{result}");
        editor
    }

    /// A connection without `initialize`.
    pub fn raw(program: Program) -> Self {
        let run = program.start();
        Self { run, program, next_id: 0, frames: Vec::new(), calls: HashMap::new() }
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.run.write_line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.run.write_line(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the agent.
    pub fn answer(&mut self, request: &Value, result: &Value) {
        self.run.write_line(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// The next frame, checked.
    #[track_caller]
    pub fn next(&mut self) -> Value {
        let frame = self.run.json();
        frames::check(&frame);
        self.check_calls(&frame);
        self.frames.push(frame.clone());
        frame
    }

    /// No update of a call precedes the call.
    #[track_caller]
    fn check_calls(&mut self, frame: &Value) {
        let update = &frame["params"]["update"];
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        let call = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        let known = self.calls.entry(session).or_default();
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => drop(known.insert(call)),
            Some("tool_call_update") => assert!(known.contains(&call), "an unknown call: {frame}"),
            _ => {}
        }
    }

    /// Reads up to a frame for which `is_last` holds; returns all of them.
    #[track_caller]
    pub fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut read = Vec::new();
        loop {
            let frame = self.next();
            read.push(frame.clone());
            if is_last(&frame) {
                return read;
            }
        }
    }

    /// Reads up to the response to a request; returns what came before it, and the response.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut read = self.until(|frame| frame["id"] == id && frame.get("method").is_none());
        let response = read.pop().unwrap();
        (read, response)
    }

    /// Sends a request and returns its response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.response(id).1
    }

    /// Sends a request that succeeds, and returns its result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let response = self.request(method, params);
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].clone()
    }

    pub fn cwd(&self) -> String {
        self.program.cwd_path().canonicalize().unwrap().display().to_string()
    }

    /// Opens a session in the working directory and returns its id.
    #[track_caller]
    pub fn session(&mut self) -> String {
        let params = json!({"cwd": self.cwd(), "mcpServers": []});
        self.ask("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and returns the id of the request.
    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}),
        )
    }

    /// Runs a prompt; returns its frames and its stop reason.
    #[track_caller]
    pub fn turn(&mut self, session: &str, text: &str) -> (Vec<Value>, String) {
        let id = self.prompt(session, text);
        let (frames, response) = self.response(id);
        let reason = response["result"]["stopReason"].as_str();
        (frames, reason.unwrap_or_else(|| panic!("{response}")).to_owned())
    }

    /// Reads up to a permission request.
    #[track_caller]
    pub fn permission(&mut self) -> Value {
        self.until(|frame| frame["method"] == "session/request_permission").pop().unwrap()
    }

    /// Selects an option of a permission request.
    pub fn select(&mut self, request: &Value, option: &str) {
        self.answer(request, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }
}

/// The updates of one kind among some frames.
pub fn updates<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let updates = frames.iter().map(|frame| &frame["params"]["update"]);
    updates.filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of all chunks of one kind.
pub fn text(frames: &[Value], kind: &str) -> String {
    updates(frames, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// The last status of a call.
pub fn status(frames: &[Value], call: &str) -> String {
    let updates = frames.iter().map(|frame| &frame["params"]["update"]);
    let mut statuses =
        updates.filter(|update| update["toolCallId"] == call).filter_map(|update| update["status"].as_str());
    statuses.next_back().unwrap_or_default().to_owned()
}
