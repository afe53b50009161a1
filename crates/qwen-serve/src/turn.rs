//! A turn as a sequence of steps: what the fronts of other protocols are written from.
//!
//! Rationale: the numbered lines of a session are the only stream. A front reads the lines of one prompt as
//! [`TurnStep`]s and writes them in its own form, so that every front sees the same turn and can begin at any
//! number.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde_json::Value;

use crate::sessions::{SessionLines, SessionReader};

/// One step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// The model begins a message.
    MessageStart,
    Text(String),
    Thought(String),
    /// A step of a tree or graph of thoughts.
    Search {
        subject: String,
        description: String,
    },
    /// The model begins to write a call.
    CallStart {
        id: String,
        name: String,
    },
    /// A piece of the call's arguments.
    CallArguments {
        id: String,
        delta: String,
    },
    /// The message and its calls are complete.
    MessageEnd,
    /// A call of the agent runs.
    CallRunning {
        id: String,
    },
    /// A call ended, with the text that is shown.
    CallEnd {
        id: String,
        status: String,
        output: String,
    },
    /// A tool wrote output while it runs.
    CallOutput {
        id: String,
        text: String,
    },
    /// A call of the agent runs a sub-agent.
    SubAgent {
        call: String,
        name: String,
        description: String,
    },
    /// The complete to-do list after a change.
    Todos(Value),
    /// A call waits for permission.
    Approval {
        id: String,
        call_id: String,
        name: String,
        arguments: Value,
        reason: String,
    },
    /// A permission request ended.
    ApprovalEnded {
        id: String,
    },
    /// The turn waits for the results of these calls, which its client runs.
    Paused {
        calls: Vec<String>,
    },
    /// A notice about the session.
    Notice {
        event: String,
        value: Value,
    },
    /// The turn ended; this is its last step.
    End(TurnOutcome),
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnOutcome {
    /// `done`, `cancelled`, `error`, `interrupted`, or the limit that was reached.
    pub status: String,
    /// The reason why the last message ended, in OpenAI's terms.
    pub finish_reason: String,
    /// Token counts under OpenAI's names for chat completions.
    pub usage: Value,
    /// The error, if there is one: `message` and `code`.
    pub error: Option<(String, String)>,
}

/// Reads the steps of one prompt.
pub struct TurnReader {
    follower: SessionReader,
    steps: TurnSteps,
    last: u64,
}

impl TurnReader {
    pub fn new(follower: SessionReader, prompt_id: String, host_tools: HashSet<String>) -> Self {
        Self { follower, steps: TurnSteps::new(prompt_id, host_tools), last: 0 }
    }

    /// The number of the line that the last step came from.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The names of tools that the client runs.
    pub fn host_tools(&self) -> &HashSet<String> {
        &self.steps.host_tools
    }

    pub fn prompt_id(&self) -> &str {
        &self.steps.prompt_id
    }

    /// The next step; none after the end of the turn, or if its lines cannot be read any more.
    pub async fn next(&mut self) -> Option<TurnStep> {
        loop {
            if let Some((number, step)) = self.steps.next() {
                self.last = number;
                return Some(step);
            }
            if self.steps.is_over {
                return None;
            }
            match self.follower.next().await {
                SessionLines::Lines(lines) => {
                    for line in lines {
                        if let Ok(value) = serde_json::from_slice::<Value>(&line.text) {
                            self.steps.read(line.number, &value);
                        }
                    }
                }
                SessionLines::TooOld { .. } | SessionLines::Ended => {
                    self.steps.is_over = true;
                    let error = ("The server is shutting down.".to_owned(), "server_shutdown".to_owned());
                    let end = TurnOutcome {
                        status: "interrupted".to_owned(),
                        error: Some(error),
                        ..TurnOutcome::default()
                    };
                    return Some(TurnStep::End(end));
                }
            }
        }
    }
}

/// Turns the lines of one prompt into steps.
pub struct TurnSteps {
    pub prompt_id: String,
    /// The names of tools that the client runs.
    host_tools: HashSet<String>,
    /// The calls of the message that is written, by index.
    written: BTreeMap<u64, String>,
    /// Calls that have not ended: true for those that the client runs.
    open: BTreeMap<String, bool>,
    /// Calls of the client that wait for it.
    waiting: HashSet<String>,
    is_message_open: bool,
    ready: VecDeque<(u64, TurnStep)>,
    is_over: bool,
}

impl TurnSteps {
    pub fn new(prompt_id: String, host_tools: HashSet<String>) -> Self {
        Self {
            prompt_id,
            host_tools,
            written: BTreeMap::new(),
            open: BTreeMap::new(),
            waiting: HashSet::new(),
            is_message_open: false,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next step that was read, and the number of its line.
    pub fn next(&mut self) -> Option<(u64, TurnStep)> {
        self.ready.pop_front()
    }

    /// Reads a line. Lines of other prompts are ignored.
    pub fn read(&mut self, number: u64, line: &Value) {
        if line["prompt_id"] != self.prompt_id.as_str() || self.is_over {
            return;
        }
        let mut steps = Vec::new();
        match line["type"].as_str() {
            None if line["object"] == "chat.completion.chunk" => self.chunk(line, &mut steps),
            Some("x-qwen-thought") if is_main(line) && self.is_message_open => {
                steps.push(TurnStep::Thought(text(&line["description"])));
            }
            Some("x-qwen-thought") if is_main(line) => steps.push(TurnStep::Search {
                subject: text(&line["subject"]),
                description: text(&line["description"]),
            }),
            Some("x-qwen-tool-display") if is_main(line) => self.display(line, &mut steps),
            Some("x-qwen-terminal") if is_main(line) && line["tool_call_id"].is_string() => {
                steps.push(TurnStep::CallOutput {
                    id: text(&line["tool_call_id"]),
                    text: text(&line["text"]),
                });
            }
            Some("x-qwen-session-event") if line["event"] != "Finished" => {
                steps.push(TurnStep::Notice { event: text(&line["event"]), value: line["value"].clone() });
            }
            Some("control_request") if line["subtype"] == "can_use_tool" => steps.push(TurnStep::Approval {
                id: text(&line["request_id"]),
                call_id: text(&line["metadata"]["tool_call_id"]),
                name: text(&line["tool"]["name"]),
                arguments: line["tool"]["arguments"].clone(),
                reason: text(&line["metadata"]["reason"]),
            }),
            Some("control_cancel_request") => {
                steps.push(TurnStep::ApprovalEnded { id: text(&line["request_id"]) });
            }
            Some("result/command") if line["result"]["type"] != "submit_prompt" => {
                steps.push(TurnStep::MessageStart);
                steps.push(TurnStep::Text(text(&line["result"]["content"])));
                steps.push(TurnStep::MessageEnd);
                let end = TurnOutcome {
                    status: "done".to_owned(),
                    finish_reason: "stop".to_owned(),
                    ..TurnOutcome::default()
                };
                steps.push(TurnStep::End(end));
            }
            _ => {}
        }
        for step in steps {
            self.is_over |= matches!(step, TurnStep::End(_));
            self.ready.push_back((number, step));
        }
    }

    fn chunk(&mut self, line: &Value, steps: &mut Vec<TurnStep>) {
        let choice = &line["choices"][0];
        let delta = &choice["delta"];
        if delta["role"].is_string() {
            self.end_message(steps);
            self.written.clear();
            self.is_message_open = true;
            steps.push(TurnStep::MessageStart);
        }
        if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
            steps.push(TurnStep::Text(text.to_owned()));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap_or_default();
            if let Some(id) = call["id"].as_str() {
                let name = text(&call["function"]["name"]);
                self.written.insert(index, id.to_owned());
                self.open.insert(id.to_owned(), self.host_tools.contains(&name));
                steps.push(TurnStep::CallStart { id: id.to_owned(), name });
            }
            let delta = text(&call["function"]["arguments"]);
            if let Some(id) = self.written.get(&index).filter(|_| !delta.is_empty()) {
                steps.push(TurnStep::CallArguments { id: id.clone(), delta });
            }
        }
        let turn = &line["metadata"]["turn"];
        if !turn.is_object() {
            if choice["finish_reason"].is_string() {
                self.end_message(steps);
            }
            if let Some(error) = line["metadata"]["error"].as_object().filter(|_| !self.is_message_open) {
                // A prompt that was refused has no turn.
                let error = Some((text(&error["message"]), error.get("code").map(text).unwrap_or_default()));
                steps.push(TurnStep::End(TurnOutcome {
                    status: "error".to_owned(),
                    error,
                    ..TurnOutcome::default()
                }));
            }
            return;
        }
        self.end_message(steps);
        let error = &line["metadata"]["error"];
        steps.push(TurnStep::End(TurnOutcome {
            status: text(&turn["status"]),
            finish_reason: text(&choice["finish_reason"]),
            usage: line["usage"].clone(),
            error: error.is_object().then(|| (text(&error["message"]), text(&error["code"]))),
        }));
    }

    fn end_message(&mut self, steps: &mut Vec<TurnStep>) {
        if std::mem::take(&mut self.is_message_open) {
            steps.push(TurnStep::MessageEnd);
        }
    }

    fn display(&mut self, line: &Value, steps: &mut Vec<TurnStep>) {
        let id = text(&line["tool_call_id"]);
        let display = &line["result_display"];
        let status = text(&line["status"]);
        if display["kind"] == "todo_list" {
            steps.push(TurnStep::Todos(display["todos"].clone()));
        }
        if display["kind"] == "task_execution" {
            steps.push(TurnStep::SubAgent {
                call: id.clone(),
                name: text(&display["agent"]),
                description: text(&display["description"]),
            });
        }
        match status.as_str() {
            "success" | "error" | "canceled" => {
                self.open.remove(&id);
                self.waiting.remove(&id);
                steps.push(TurnStep::CallEnd { id, status, output: display_text(display) });
            }
            "executing" if self.open.get(&id) == Some(&true) => {
                self.waiting.insert(id);
            }
            "executing" => steps.push(TurnStep::CallRunning { id }),
            _ => return,
        }
        // The client runs its calls while ours run; the turn waits for it when only its own are left.
        if !self.waiting.is_empty() && self.waiting.len() == self.open.len() {
            let mut calls: Vec<String> = self.waiting.iter().cloned().collect();
            calls.sort();
            steps.push(TurnStep::Paused { calls });
        }
    }
}

/// True for lines of the main agent.
fn is_main(line: &Value) -> bool {
    line["parent_tool_call_id"].is_null()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a tool's result shows, as text.
fn display_text(display: &Value) -> String {
    let fields = ["text", "diff", "message", "plan"];
    if let Some(text) = fields.iter().find_map(|field| display[*field].as_str()) {
        return text.to_owned();
    }
    if display.is_null() { String::new() } else { display.to_string() }
}
