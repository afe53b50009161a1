//! Writes the conversations of sub-agents where Claude's SDKs look for them: `subagents/agent-ID.jsonl` in
//! the folder of the session, with a description in `agent-ID.meta.json`.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qwen_engine::{TOOLS, subagent};
use qwen_events::{Body, CallId, Event, SessionId};
use serde_json::{Map, Value, json};

use super::open_message::OpenMessage;

/// The conversations of the sub-agents of one session.
#[derive(Default)]
pub(super) struct AgentTranscripts {
    /// The calls that started sub-agents, by their ids.
    calls: HashMap<CallId, AgentCall>,
    open: HashMap<CallId, OpenTranscript>,
}

/// A call that starts a sub-agent.
struct AgentCall {
    arguments: Value,
    /// The call that started the calling sub-agent.
    parent: Option<CallId>,
}

struct OpenTranscript {
    path: PathBuf,
    file: File,
    /// The entry that the next one follows.
    last: Option<Value>,
    open_message: OpenMessage,
}

/// New entries of one transcript.
pub(super) struct NewEntries {
    pub path: PathBuf,
    pub entries: Vec<Value>,
}

/// What every entry of a session contains.
pub(super) struct EntryContext<'a> {
    /// The folder of the project.
    pub folder: &'a Path,
    pub session_id: &'a SessionId,
    pub cwd: &'a str,
    pub timestamp: String,
}

impl EntryContext<'_> {
    /// The entry of a message that follows the entry `last`.
    pub fn entry(&self, message: &Map<String, Value>, last: Option<&Value>) -> Value {
        let field = |name: &str| message.get(name).cloned().unwrap_or_default();
        let mut entry = json!({
            "type": field("type"),
            "uuid": field("uuid"),
            "parentUuid": last,
            "isSidechain": false,
            "userType": "external",
            "sessionId": self.session_id.as_str(),
            "timestamp": self.timestamp,
            "cwd": self.cwd,
            "version": env!("CARGO_PKG_VERSION"),
            "message": field("message"),
        });
        // The blocks of one message are entries with the same usage; programs that add it up recognize by
        // this id
        // that they belong together.
        if let Some(id) = entry["message"]["id"].as_str() {
            entry["requestId"] = format!("req_{id}").into();
        }
        if let Some(result) = message.get("tool_use_result") {
            entry["toolUseResult"] = result.clone();
        }
        entry
    }
}

impl AgentTranscripts {
    /// Remembers the arguments of a call that starts a sub-agent.
    pub fn note_call(&mut self, event: &Event) {
        if let Body::ToolStart(call) = &event.body
            && *TOOLS.canonical_name(&call.name) == *subagent::TOOL
        {
            let arguments = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
            let parent = event.scope.parent.clone();
            self.calls.insert(call.id.clone(), AgentCall { arguments, parent });
        }
    }

    /// Appends messages of the sub-agent that the call `agent` started.
    pub fn append(
        &mut self,
        agent: &CallId,
        messages: Vec<Map<String, Value>>,
        cx: &EntryContext<'_>,
    ) -> io::Result<Option<NewEntries>> {
        if messages.is_empty() {
            return Ok(None);
        }
        let id = subagent::file_id(agent);
        let mut entries = Vec::new();
        if !self.open.contains_key(agent) {
            let (transcript, first) = self.create(agent, &id, cx)?;
            self.open.insert(agent.clone(), transcript);
            entries.extend(first);
        }
        let Some(transcript) = self.open.get_mut(agent) else { return Ok(None) };
        let open_message = &mut transcript.open_message;
        let ready: Vec<_> = messages.into_iter().flat_map(|message| open_message.push(message)).collect();
        for message in &ready {
            let mut entry = cx.entry(message, transcript.last.as_ref());
            entry["isSidechain"] = true.into();
            entry["agentId"] = id.as_str().into();
            writeln!(transcript.file, "{entry}")?;
            transcript.last = Some(entry["uuid"].clone());
            entries.push(entry);
        }
        Ok(Some(NewEntries { path: transcript.path.clone(), entries }))
    }

    /// Creates the files of a sub-agent. Its description and its prompt are the first entries.
    fn create(
        &self,
        agent: &CallId,
        id: &str,
        cx: &EntryContext<'_>,
    ) -> io::Result<(OpenTranscript, Vec<Value>)> {
        let folder = cx.folder.join(cx.session_id.as_str()).join("subagents");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(format!("agent-{id}.jsonl"));
        let mut file = File::options().append(true).create(true).mode(0o600).open(&path)?;
        let call = self.calls.get(agent);
        let argument =
            |name: &str| call.and_then(|call| call.arguments.get(name)).cloned().unwrap_or_default();
        let mut meta = json!({"toolUseId": agent.as_str()});
        for (field, name) in [("agentType", "subagent_type"), ("description", "description")] {
            if let Value::String(text) = argument(name) {
                meta[field] = text.into();
            }
        }
        if let Some(parent) = call.and_then(|call| call.parent.as_ref()) {
            meta["parentAgentId"] = subagent::file_id(parent).into();
        }
        let mut sidecar = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path.with_file_name(format!("agent-{id}.meta.json")))?;
        write!(sidecar, "{meta}")?;
        let mut described = json!({"type": "agent_metadata"});
        if let (Value::Object(described), Value::Object(meta)) = (&mut described, meta) {
            described.extend(meta);
        }
        let mut entries = vec![described];
        let mut last = None;
        if let Value::String(prompt) = argument("prompt")
            && fs::metadata(&path)?.len() == 0
        {
            let uuid = SessionId::from_random(fastrand::u128(..));
            let message = json!({
                "type": "user",
                "uuid": uuid.as_str(),
                "message": {"role": "user", "content": prompt},
            });
            if let Value::Object(message) = message {
                let mut entry = cx.entry(&message, None);
                entry["isSidechain"] = true.into();
                entry["agentId"] = id.into();
                writeln!(file, "{entry}")?;
                last = Some(entry["uuid"].clone());
                entries.push(entry);
            }
        }
        Ok((OpenTranscript { path, file, last, open_message: OpenMessage::default() }, entries))
    }
}

/// The last message of a sub-agent.
pub(super) fn report(text: &str) -> Map<String, Value> {
    let id = SessionId::from_random(fastrand::u128(..));
    let content = json!([{"type": "text", "text": text}]);
    let message = json!({"id": format!("msg-{}", id.as_str()), "type": "message", "role": "assistant", "content": content});
    [("type", "assistant".into()), ("uuid", id.as_str().into()), ("message", message)]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}
