//! The lines of a session as values. Reading never fails: what is unknown is kept as it came.

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AgentError;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// The first line of a worker.
    Handshake,
    /// A message of the assistant, or a piece of one.
    Assistant,
    /// The terminal record of a turn.
    Result,
    /// An error outside of a terminal record.
    Error,
    Thought,
    ToolDisplay,
    Terminal,
    SessionEvent,
    /// The outcome of a slash command.
    Command,
    CommandHint,
    Cancel,
    Heartbeat,
    ControlRequest,
    ControlResponse,
    ControlCancel,
    /// A line that this version does not know.
    Unknown,
}

/// One line of a session. It dereferences to the JSON value, in which everything is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage(Value);

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageToolCall {
    pub id: String,
    pub name: String,
    /// An empty object if the model wrote none.
    pub arguments: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TurnUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub calls: u64,
    /// US dollars, if prices are known.
    pub cost_usd: Option<f64>,
}

/// What the runs of one sub-agent spent in a turn, without the sub-agents that it started.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SubagentUsage {
    /// How often it was started.
    pub runs: u64,
    pub tool_calls: u64,
    pub spent: TurnUsage,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionDenial {
    pub tool_name: String,
    pub tool_call_id: String,
    pub arguments: Value,
    pub reason: String,
}

/// The error of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnError {
    /// A stable error code.
    pub code: String,
    pub message: String,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    pub session_id: String,
    pub prompt_id: String,
    /// The text of the last message.
    pub text: String,
    /// `done`, `error`, `cancelled`, `interrupted`, or the limit that was reached.
    pub status: String,
    pub error: Option<TurnError>,
    /// The usage of the whole turn, sub-agents included.
    pub usage: TurnUsage,
    pub usage_by_model: BTreeMap<String, TurnUsage>,
    /// The part of the turn that sub-agents spent, by name.
    pub usage_by_agent: BTreeMap<String, SubagentUsage>,
    pub permission_denials: Vec<PermissionDenial>,
    pub duration_ms: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    /// The answer as data, if the session has an output schema.
    pub structured_output: Option<Value>,
    pub record: Value,
}

impl Deref for AgentMessage {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for AgentMessage {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl AgentMessage {
    /// Reads a line; none if it is not a JSON object.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().filter(Value::is_object).map(Self)
    }

    pub fn kind(&self) -> MessageKind {
        match self.0["type"].as_str() {
            Some("x-qwen-thought") => MessageKind::Thought,
            Some("x-qwen-tool-display") => MessageKind::ToolDisplay,
            Some("x-qwen-terminal") => MessageKind::Terminal,
            Some("x-qwen-session-event") => MessageKind::SessionEvent,
            Some("result/command") => MessageKind::Command,
            Some("result/command_hint") => MessageKind::CommandHint,
            Some("result/cancel") => MessageKind::Cancel,
            Some("result/heartbeat") => MessageKind::Heartbeat,
            Some("control_request") => MessageKind::ControlRequest,
            Some("control_response") => MessageKind::ControlResponse,
            Some("control_cancel_request") => MessageKind::ControlCancel,
            Some(_) => MessageKind::Unknown,
            None => self.completion(),
        }
    }

    fn completion(&self) -> MessageKind {
        let metadata = &self.0["metadata"];
        if !matches!(self.0["object"].as_str(), Some("chat.completion" | "chat.completion.chunk")) {
            return if self.0["error"].is_object() { MessageKind::Error } else { MessageKind::Unknown };
        }
        if metadata["turn"].is_object() {
            MessageKind::Result
        } else if metadata["protocol_version"].is_string() {
            MessageKind::Handshake
        } else if metadata["error"].is_object() {
            MessageKind::Error
        } else {
            MessageKind::Assistant
        }
    }

    /// The prompt that the line belongs to.
    pub fn prompt_id(&self) -> Option<&str> {
        self.0["prompt_id"].as_str()
    }

    /// The fork in which the session continues after its worker died, if the line announces one.
    pub(super) fn announced_fork(&self) -> Option<&str> {
        let notice = &self.0["value"];
        let is_fork = notice["kind"] == "worker_restarted" && notice["forked_from"].is_string();
        notice["session_id"].as_str().filter(|_| is_fork && self.kind() == MessageKind::SessionEvent)
    }

    /// The text of a message or of a piece of one.
    pub fn text(&self) -> Option<&str> {
        let choice = &self.0["choices"][0];
        choice["message"]["content"].as_str().or_else(|| choice["delta"]["content"].as_str())
    }

    /// The tool calls of a whole message.
    pub fn tool_calls(&self) -> Vec<MessageToolCall> {
        let calls = self.0["choices"][0]["message"]["tool_calls"].as_array();
        calls.into_iter().flatten().map(MessageToolCall::read).collect()
    }

    /// True if the worker refused the prompt of this line before its turn began. Errors of the model in a
    /// turn that has no other line yet are none.
    pub(super) fn refuses_prompt(&self) -> bool {
        let kind = self.0["metadata"]["error"]["type"].as_str().unwrap_or_default();
        self.kind() == MessageKind::Error
            && !matches!(kind, "api_error" | "connection_error" | "timeout_error")
    }

    /// True if the line is the end of a slash command that started no turn.
    pub(super) fn ends_command(&self) -> bool {
        self.kind() == MessageKind::Command && self.0["result"]["type"] != "submit_prompt"
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl MessageToolCall {
    fn read(call: &Value) -> Self {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
        Self {
            id: text_of(&call["id"]),
            name: text_of(&function["name"]),
            arguments: arguments.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        }
    }
}

impl TurnUsage {
    fn read(value: &Value) -> Self {
        let number = |key: &str| value[key].as_u64().unwrap_or_default();
        Self {
            prompt_tokens: number("prompt_tokens"),
            completion_tokens: number("completion_tokens"),
            total_tokens: number("total_tokens"),
            calls: number("calls"),
            cost_usd: value["cost_usd"].as_f64(),
        }
    }
}

impl SubagentUsage {
    fn read(value: &Value) -> Self {
        let number = |key: &str| value[key].as_u64().unwrap_or_default();
        Self {
            runs: number("runs"),
            tool_calls: number("tool_calls"),
            spent: TurnUsage { calls: number("model_calls"), ..TurnUsage::read(value) },
        }
    }
}

impl PermissionDenial {
    fn read(value: &Value) -> Self {
        Self {
            tool_name: text_of(&value["tool_name"]),
            tool_call_id: text_of(&value["tool_call_id"]),
            arguments: value["arguments"].clone(),
            reason: text_of(&value["reason"]),
        }
    }
}

impl TurnResult {
    /// Reads a terminal record, or the end of a slash command. `text` is the last message of the turn.
    pub(super) fn read(message: AgentMessage, text: String) -> Self {
        let AgentMessage(record) = message;
        let turn = &record["metadata"]["turn"];
        let error = &record["metadata"]["error"];
        let by_model = turn["usage_by_model"].as_object().into_iter().flatten();
        let usage_by_model: BTreeMap<String, TurnUsage> =
            by_model.map(|(model, usage)| (model.clone(), TurnUsage::read(usage))).collect();
        let by_agent = turn["usage_by_agent"].as_object().into_iter().flatten();
        let usage_by_agent =
            by_agent.map(|(agent, usage)| (agent.clone(), SubagentUsage::read(usage))).collect();
        let costs: Option<Vec<f64>> = usage_by_model.values().map(|usage| usage.cost_usd).collect();
        let number = |key: &str| turn[key].as_u64().unwrap_or_default();
        let usage = TurnUsage {
            calls: number("model_calls"),
            cost_usd: costs.filter(|costs| !costs.is_empty()).map(|costs| costs.iter().sum()),
            ..TurnUsage::read(&record["usage"])
        };
        let denials = turn["permission_denials"].as_array().into_iter().flatten();
        let command_failed = record["result"]["level"] == "error";
        let status = match turn["status"].as_str() {
            Some(status) => status,
            None if command_failed => "error",
            None => "done",
        };
        let command_error = || TurnError { code: "command_failed".to_owned(), message: text.clone() };
        Self {
            session_id: text_of(&record["session_id"]),
            prompt_id: text_of(&record["prompt_id"]),
            status: status.to_owned(),
            error: error
                .is_object()
                .then(|| TurnError { code: text_of(&error["code"]), message: text_of(&error["message"]) })
                .or_else(|| command_failed.then(command_error)),
            usage,
            usage_by_model,
            usage_by_agent,
            permission_denials: denials.map(PermissionDenial::read).collect(),
            duration_ms: number("duration_ms"),
            model_calls: number("model_calls"),
            tool_calls: number("tool_calls"),
            structured_output: Some(turn["structured_output"].clone()).filter(|value| !value.is_null()),
            text,
            record,
        }
    }

    /// True if the turn ended by itself and no call was refused.
    pub fn ok(&self) -> bool {
        self.status == "done" && self.permission_denials.is_empty()
    }

    /// The structured output as a value of the caller's type; an error if there is none or it does not fit.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, AgentError> {
        let missing = || {
            let error = self.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
            AgentError::StructuredOutput(format!("the turn ended with the status {}{error}", self.status))
        };
        let output = self.structured_output.as_ref().filter(|_| self.status == "done").ok_or_else(missing)?;
        T::deserialize(output).map_err(|error| AgentError::StructuredOutput(error.to_string()))
    }
}

/// Joins the pieces of a turn's messages.
#[derive(Debug, Default)]
pub(super) struct TurnText {
    current: String,
    last: String,
}

impl TurnText {
    pub fn read(&mut self, message: &AgentMessage) {
        let choice = &message["choices"][0];
        if choice["message"].is_object() || choice["delta"]["role"].is_string() {
            self.current.clear();
        }
        if let Some(text) = message.text() {
            self.current.push_str(text);
        }
        if !choice["finish_reason"].is_null() && !self.current.is_empty() {
            self.last.clone_from(&self.current);
        }
        if message.kind() == MessageKind::Command {
            self.last = text_of(&message["result"]["content"]);
        }
    }

    /// The text of the last message that has one.
    pub fn take(&mut self) -> String {
        let Self { current, last } = std::mem::take(self);
        if current.is_empty() { last } else { current }
    }
}
