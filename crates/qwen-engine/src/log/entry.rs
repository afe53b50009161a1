//! Writes and reads one entry of the log. An entry is a line:
//! `{"at":1739430000123,"type":"tool_end","node":"run-act-1","parent":"call_7","data":{…}}`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use qwen_events::{
    AgentName, Body, CallId, ErrorInfo, Event, HistoryChange, Journal, MessageEnd, ModelUsage, NodeRun,
    PromptId, Scope, SessionEvent, SessionId, Thinking, Timestamp, ToolCall, channel_events, message_pieces,
    notices,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::redact::Redactor;

use super::file_backups::{FileBackup, FileBefore};
use super::form::{
    ApprovalForm, CallRef, CheckpointForm, CommandResultForm, DecisionForm, ErrorForm, HistoryForm,
    JournalForm, MessageEndForm, ModelUsageForm, NoticeForm, OutputForm, Raw, ThinkingForm, ToolEndForm,
    TurnEndForm, TurnStartForm,
};

#[derive(Debug)]
pub struct Entry {
    pub at: Timestamp,
    /// The agent, node and call that emitted it.
    pub scope: Scope,
    pub what: EntryBody,
}

/// The content of an entry.
#[derive(Debug)]
pub enum EntryBody {
    /// An event. A message is logged only by its end, and a call's output in few pieces.
    Event(Body),
    /// A process continued a turn that another one had left unfinished.
    Resumed(PromptId),
    /// A file is about to change.
    File(FileBackup),
    /// Checkpoints that are no longer available.
    Pruned(Vec<Arc<str>>),
    /// A connection of a sandboxed program ended, or was refused.
    Connection,
}

/// What the log already contains and later entries only refer to. The writer and the reader maintain the same
/// context.
#[derive(Default)]
pub(super) struct LoggedContext {
    calls: HashMap<CallId, Arc<ToolCall>>,
    /// The text of the main agent's last message.
    last_text: Arc<str>,
    /// The agent has state that cannot be derived from the logged conversation.
    keeps_state: bool,
}

impl LoggedContext {
    /// Stores what later entries may refer to.
    pub fn note(&mut self, scope: &Scope, body: &Body) {
        match body {
            Body::TurnStart(start) if is_main(scope) => {
                self.calls.clear();
                self.last_text = Arc::default();
                self.keeps_state = start.agent != AgentName::React;
            }
            Body::MessageEnd(end) => {
                self.calls.extend(end.calls.iter().map(|call| (call.id.clone(), call.clone())));
                if is_main(scope) {
                    self.last_text = end.text.clone();
                }
            }
            _ => {}
        }
    }

    fn refer(&self, call: &Arc<ToolCall>) -> CallRef {
        CallRef::new(call, self.calls.get(&call.id))
    }

    fn resolve(&self, call: CallRef) -> Option<Arc<ToolCall>> {
        let logged = self.calls.get(&CallId::new(call.id.clone()));
        call.resolve(logged)
    }
}

/// True if the event is the main agent's: not a sub-agent's and not a thought's, which have separate
/// conversations.
pub(super) fn is_main(scope: &Scope) -> bool {
    scope.parent.is_none() && scope.thought.is_none()
}

#[derive(Serialize)]
struct FrameOut<'a, T> {
    at: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
}

#[derive(Deserialize)]
struct FrameIn<'a> {
    at: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    node: Option<Arc<str>>,
    #[serde(default)]
    parent: Option<Arc<str>>,
    #[serde(default)]
    thought: Option<Arc<str>>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
struct ExitForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct StartForm {
    call: CallRef,
}

#[derive(Serialize, Deserialize)]
struct ResumedForm {
    prompt_id: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct PrunedForm {
    checkpoints: Vec<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct FileForm {
    path: String,
    was: WasForm,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WasForm {
    Absent,
    Kept { name: String, bytes: u64, mode: u32 },
    Lost,
}

/// True if an event is logged. Not logged: pieces of a message, because its end contains all of it; a tool's
/// display while it runs; the graph's state, which can be derived from the log; and events of the connection
/// rather than the session.
pub(super) fn is_logged(body: &Body) -> bool {
    matches!(
        body,
        Body::TurnStart(_)
            | Body::NodeEnter
            | Body::NodeExit { .. }
            | Body::MessageEnd(_)
            | Body::Decision { .. }
            | Body::Approval { .. }
            | Body::ToolStart(_)
            | Body::ToolOutput { .. }
            | Body::ToolEnd(_)
            | Body::Checkpoint(_)
            | Body::Thinking(_)
            | Body::ThoughtUsage(_)
            | Body::Journal(_)
            | Body::Session(_)
            | Body::History(_)
            | Body::Custom(_)
            | Body::Error(_)
            | Body::TurnEnd(_)
            | Body::CommandResult(_)
    )
}

/// Appends the line of an event; nothing for an event that is not logged.
pub(super) fn write(event: &Event, context: &LoggedContext, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let line = Line { at: event.at, scope: &event.scope, out };
    match &event.body {
        Body::TurnStart(start) => line.put("turn_start", TurnStartForm::from(&**start)),
        Body::NodeEnter => line.bare("node_enter"),
        Body::NodeExit { error } => line.put("node_exit", ExitForm { error: error.clone() }),
        Body::MessageEnd(end) => line.put("message", MessageEndForm::from(&**end)),
        Body::Decision { call, decision } => {
            line.put("decision", DecisionForm::new(context.refer(call), decision))
        }
        Body::Approval { call, confirmation, reason } => {
            let confirmation = (&**confirmation).into();
            line.put(
                "approval",
                ApprovalForm { call: context.refer(call), confirmation, reason: reason.clone() },
            )
        }
        Body::ToolStart(call) => line.put("tool_start", StartForm { call: context.refer(call) }),
        Body::ToolOutput { call, channel, text } => {
            let form =
                OutputForm { call: context.refer(call), channel: (*channel).into(), text: text.clone() };
            line.put("tool_output", form)
        }
        Body::ToolEnd(end) => line.put("tool_end", ToolEndForm::new(context.refer(&end.call), end)),
        Body::Checkpoint(checkpoint) => {
            line.put("checkpoint", CheckpointForm::new(checkpoint, context.keeps_state))
        }
        Body::Thinking(step) => line.put("thinking", ThinkingForm::from(&**step)),
        Body::ThoughtUsage(spent) => line.put("thought_usage", ModelUsageForm::from(&**spent)),
        Body::Journal(journal) => line.put("journal", JournalForm::from(&**journal)),
        Body::Session(notice) => line.put("notice", NoticeForm::from(&**notice)),
        Body::History(change) => line.put("history", HistoryForm::from(&**change)),
        Body::Custom(value) => line.put("custom", Raw(value.clone())),
        Body::Error(error) => line.put("error", ErrorForm::from(&**error)),
        Body::TurnEnd(end) => line.put("turn_end", TurnEndForm::new(end, &context.last_text)),
        Body::CommandResult(result) => line.put("command_result", CommandResultForm::from(&**result)),
        Body::Ready
        | message_pieces!()
        | Body::ToolDisplay { .. }
        | Body::State(..)
        | notices!()
        | channel_events!()
        | Body::Fatal(..) => Ok(()),
    }
}

/// Appends the entry for a process that continues an unfinished turn.
pub(super) fn write_resumed(
    at: Timestamp,
    prompt_id: &PromptId,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let line = Line { at, scope: &Scope::default(), out };
    line.put("turn_resumed", ResumedForm { prompt_id: prompt_id.as_str().into() })
}

/// Appends the entry for a file that is about to change.
pub(super) fn write_file(at: Timestamp, file: &FileBackup, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let was = match file.was.clone() {
        FileBefore::Absent => WasForm::Absent,
        FileBefore::Kept { name, bytes, mode } => WasForm::Kept { name, bytes, mode },
        FileBefore::Lost => WasForm::Lost,
    };
    let line = Line { at, scope: &Scope::default(), out };
    line.put("file", FileForm { path: file.path.to_string_lossy().into_owned(), was })
}

/// Appends the entry for checkpoints that are no longer available.
pub(super) fn write_pruned(
    at: Timestamp,
    checkpoints: Vec<Arc<str>>,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let line = Line { at, scope: &Scope::default(), out };
    line.put("pruned", PrunedForm { checkpoints })
}

/// Connections of sandboxed programs to one destination.
#[derive(Debug, Clone, Serialize)]
pub struct LoggedConnection {
    /// The requested server as `host:port`.
    pub destination: String,
    /// The HTTP method, if the proxy read the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The address that was connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `allowed`, `refused` or `failed`.
    pub outcome: &'static str,
    /// Why it was refused or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many connections this is about. Of a flood, only the first are logged one by one.
    pub count: u64,
    /// Bytes to the server and back.
    pub sent: u64,
    pub received: u64,
}

/// Appends the entry for connections of sandboxed programs.
pub(super) fn write_connection(
    at: Timestamp,
    connection: &LoggedConnection,
    redactor: &Redactor,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let clean = |text: &String| redactor.redact(text).into_owned();
    let data = LoggedConnection {
        destination: clean(&connection.destination),
        reason: connection.reason.as_ref().map(clean),
        ..connection.clone()
    };
    Line { at, scope: &Scope::default(), out }.put("connection", data)
}

struct Line<'a> {
    at: Timestamp,
    scope: &'a Scope,
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn bare(self, kind: &'static str) -> serde_json::Result<()> {
        self.frame::<()>(kind, None)
    }

    fn put(self, kind: &'static str, data: impl Serialize) -> serde_json::Result<()> {
        self.frame(kind, Some(data))
    }

    fn frame<T: Serialize>(self, kind: &'static str, data: Option<T>) -> serde_json::Result<()> {
        let frame = FrameOut {
            at: self.at.0,
            kind,
            node: self.scope.node.as_ref().map(|node| &*node.id),
            parent: self.scope.parent.as_ref().map(CallId::as_str),
            thought: self.scope.thought.as_deref(),
            data,
        };
        let start = self.out.len();
        let written = serde_json::to_writer(&mut *self.out, &frame);
        // A failed write leaves no partial line.
        match written {
            Ok(()) => self.out.push(b'\n'),
            Err(_) => self.out.truncate(start),
        }
        written
    }
}

/// Why a line could not be read as an entry.
#[derive(Debug)]
pub(super) enum Unreadable {
    Damaged,
    /// This version does not know its type.
    Unknown,
}

/// Parses a line of the log of `session`.
pub(super) fn read(line: &[u8], context: &LoggedContext, session: &SessionId) -> Result<Entry, Unreadable> {
    let frame: FrameIn<'_> = parse(std::str::from_utf8(line).map_err(|_| Unreadable::Damaged)?)?;
    let data = frame.data.map_or("null", RawValue::get);
    let call = |call| context.resolve(call).ok_or(Unreadable::Damaged);
    let body = match &*frame.kind {
        "turn_start" => Body::TurnStart(Box::new(parse::<TurnStartForm>(data)?.into_start(session))),
        "turn_resumed" => {
            let what = EntryBody::Resumed(PromptId::new(parse::<ResumedForm>(data)?.prompt_id));
            return Ok(Entry { at: Timestamp(frame.at), scope: Scope::default(), what });
        }
        "pruned" => {
            let what = EntryBody::Pruned(parse::<PrunedForm>(data)?.checkpoints);
            return Ok(Entry { at: Timestamp(frame.at), scope: Scope::default(), what });
        }
        "connection" => {
            return Ok(Entry {
                at: Timestamp(frame.at),
                scope: Scope::default(),
                what: EntryBody::Connection,
            });
        }
        "file" => {
            let form: FileForm = parse(data)?;
            let was = match form.was {
                WasForm::Absent => FileBefore::Absent,
                WasForm::Kept { name, bytes, mode } => FileBefore::Kept { name, bytes, mode },
                WasForm::Lost => FileBefore::Lost,
            };
            let what = EntryBody::File(FileBackup { path: form.path.into(), was });
            return Ok(Entry { at: Timestamp(frame.at), scope: Scope::default(), what });
        }
        "node_enter" => Body::NodeEnter,
        "node_exit" => Body::NodeExit { error: parse::<ExitForm>(data)?.error },
        "message" => Body::MessageEnd(Box::new(MessageEnd::from(parse::<MessageEndForm>(data)?))),
        "decision" => {
            let (reference, decision) = parse::<DecisionForm>(data)?.into_parts();
            Body::Decision { call: call(reference)?, decision }
        }
        "approval" => {
            let form: ApprovalForm = parse(data)?;
            let confirmation = Box::new(form.confirmation.into());
            Body::Approval { call: call(form.call)?, confirmation, reason: form.reason }
        }
        "tool_start" => Body::ToolStart(call(parse::<StartForm>(data)?.call)?),
        "tool_output" => {
            let form: OutputForm = parse(data)?;
            Body::ToolOutput { call: call(form.call)?, channel: form.channel.into(), text: form.text }
        }
        "tool_end" => {
            let end = parse::<ToolEndForm>(data)?.into_end(|call| context.resolve(call));
            Body::ToolEnd(Box::new(end.ok_or(Unreadable::Damaged)?))
        }
        "checkpoint" => Body::Checkpoint(Box::new(parse::<CheckpointForm>(data)?.into_checkpoint(session))),
        "thinking" => Body::Thinking(Box::new(Thinking::from(parse::<ThinkingForm>(data)?))),
        "thought_usage" => Body::ThoughtUsage(Box::new(ModelUsage::from(parse::<ModelUsageForm>(data)?))),
        "journal" => Body::Journal(Box::new(Journal::from(parse::<JournalForm>(data)?))),
        "notice" => Body::Session(Box::new(SessionEvent::from(parse::<NoticeForm>(data)?))),
        "history" => Body::History(Box::new(HistoryChange::from(parse::<HistoryForm>(data)?))),
        "custom" => Body::Custom(parse::<Raw>(data)?.0),
        "error" => Body::Error(Box::new(ErrorInfo::from(parse::<ErrorForm>(data)?))),
        "turn_end" => Body::TurnEnd(Box::new(parse::<TurnEndForm>(data)?.into_end(&context.last_text))),
        "command_result" => {
            Body::CommandResult(Box::new(parse::<CommandResultForm>(data)?.into_result(session)))
        }
        _ => return Err(Unreadable::Unknown),
    };
    let scope = Scope {
        node: frame.node.as_ref().map(node_run),
        parent: frame.parent.map(CallId::new),
        thought: frame.thought,
    };
    Ok(Entry { at: Timestamp(frame.at), scope, what: EntryBody::Event(body) })
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|_| Unreadable::Damaged)
}

/// Parses a node run from its id, `run-<name>-<n>`.
fn node_run(id: &Arc<str>) -> Arc<NodeRun> {
    let name = id.strip_prefix("run-").and_then(|rest| rest.rsplit_once('-')).map_or(&**id, |(name, _)| name);
    Arc::new(NodeRun { name: name.into(), id: id.clone() })
}
