//! JSON-RPC messages of the Agent Client Protocol.

use serde_json::Value;

use super::super::event::{End, Tokens, ViewEvent, ViewLine};
use super::Reader;
use crate::acp::wire::{
    Chunk, ContentBlock, ErrorResponse, Notification, PermissionMethod, PermissionRequest, PromptResponse,
    Request, SessionUpdate, StopReason, ToolContent, ToolUpdate, UpdateMethod, UpdateParams,
};
use crate::check::syntax::Object;

#[derive(Default)]
pub(super) struct AcpReader {
    /// The session of the last update, to which a response belongs.
    session: Option<Box<str>>,
    /// The turn has begun.
    in_turn: bool,
    /// Calls whose arguments were shown, and their names.
    calls: Vec<(String, String)>,
}

impl Reader for AcpReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        object.get("jsonrpc")?;
        let events = match object.str("method") {
            Some("session/update") => {
                let read = object.read::<Notification<UpdateMethod, UpdateParams<'_>>>().ok()?;
                self.session = Some((&*read.params.session_id).into());
                return Some(self.update(read.params.update));
            }
            Some("session/request_permission") => {
                let read = object.read::<Request<'_, PermissionMethod, PermissionRequest<'_>>>().ok()?;
                vec![ViewEvent::Approval {
                    name: self.name(&read.params.tool_call.tool_call_id),
                    id: read.params.tool_call.tool_call_id.into(),
                    words: read.params.tool_call.title.unwrap_or_default().into(),
                }]
            }
            Some(_) => vec![ViewEvent::Nothing],
            None if object.has("error") => {
                let read = object.read::<ErrorResponse<'_>>().ok()?;
                vec![self.end("error", Some(read.error.message.into()), None)]
            }
            None => {
                let read = object.read::<PromptResponse<'_>>().ok()?;
                let status = match read.result.stop_reason {
                    StopReason::EndTurn => "done",
                    StopReason::MaxTokens => "max_tokens",
                    StopReason::MaxTurnRequests => "max_turn_requests",
                    StopReason::Refusal => "refusal",
                    StopReason::Cancelled => "cancelled",
                };
                let count =
                    |name: &str| read.result.meta.as_ref()?.get("qwen")?.get("usage")?.get(name)?.as_u64();
                let tokens = count("inputTokens").zip(count("outputTokens")).map(|(read, written)| Tokens {
                    read: read + count("cachedReadTokens").unwrap_or(0),
                    written,
                });
                vec![self.end(status, None, tokens)]
            }
        };
        Some(events.into_iter().map(|event| self.line(event, None)).collect())
    }
}

impl AcpReader {
    fn line(&self, event: ViewEvent, meta: Option<&Value>) -> ViewLine {
        let parent = meta.and_then(|meta| meta.get("qwen")?.get("parentToolCallId")?.as_str());
        ViewLine { session: self.session.clone(), parent: parent.map(Into::into), ..ViewLine::new(event) }
    }

    fn name(&self, id: &str) -> String {
        let found = self.calls.iter().find(|(known, _)| known == id);
        found.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    fn end(&mut self, status: &str, error: Option<String>, tokens: Option<Tokens>) -> ViewEvent {
        self.in_turn = false;
        self.calls.clear();
        let errors = error.into_iter().collect();
        ViewEvent::TurnEnd(End { status: status.to_owned(), errors, tokens, ..End::default() })
    }

    fn update(&mut self, update: SessionUpdate<'_>) -> Vec<ViewLine> {
        let mut meta = None;
        let events = match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                let is_start = !std::mem::replace(&mut self.in_turn, true);
                let text = text_of(chunk);
                vec![if is_start {
                    ViewEvent::TurnStart { message: Some(text), by: None }
                } else {
                    ViewEvent::Notice(text)
                }]
            }
            SessionUpdate::AgentMessageChunk(chunk) => {
                meta.clone_from(&chunk.meta);
                vec![ViewEvent::Text(text_of(chunk))]
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                meta.clone_from(&chunk.meta);
                vec![ViewEvent::ThoughtPiece(text_of(chunk))]
            }
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                meta.clone_from(&call.meta);
                self.call(call)
            }
            SessionUpdate::Plan { entries } => {
                let lines = entries.iter().map(|entry| format!("[{}] {}", entry.status, entry.content));
                vec![ViewEvent::Notice(format!("plan: {}", lines.collect::<Vec<_>>().join("; ")))]
            }
            SessionUpdate::CurrentModeUpdate { current_mode_id } => {
                vec![ViewEvent::Notice(format!("the approval mode is now {current_mode_id}"))]
            }
            SessionUpdate::Notice { title, .. } => vec![ViewEvent::Notice(title.into())],
            SessionUpdate::CompactionUpdate { status, .. } => {
                vec![ViewEvent::Notice(format!("compaction: {status}"))]
            }
            SessionUpdate::SessionInfoUpdate { .. }
            | SessionUpdate::AvailableCommandsUpdate { .. }
            | SessionUpdate::ConfigOptionUpdate { .. }
            | SessionUpdate::UsageUpdate { .. }
            | SessionUpdate::SubagentSpawned { .. }
            | SessionUpdate::SubagentStateUpdate { .. } => vec![ViewEvent::Nothing],
        };
        events.into_iter().map(|event| self.line(event, meta.as_ref())).collect()
    }

    fn call(&mut self, call: ToolUpdate<'_>) -> Vec<ViewEvent> {
        let id = call.tool_call_id.to_string();
        if let Some(name) = &call.name {
            self.calls.push((id.clone(), name.to_string()));
        }
        let name = self.name(&id);
        let mut events = Vec::new();
        if let Some(input) = call.raw_input {
            let (id, name) = (id.clone(), name.clone());
            events.push(ViewEvent::Call { id, name, arguments: input.0.into() });
        }
        match call.status.as_deref() {
            Some("in_progress") => events.push(ViewEvent::CallStart { id, name }),
            Some(status @ ("completed" | "failed")) => {
                let output = call.raw_output.and_then(|output| serde_json::from_str::<Value>(&output.0).ok());
                let text = output.as_ref().and_then(|output| output.get("text")?.as_str()).map(str::to_owned);
                let text = text.unwrap_or_else(|| join_texts(call.content.unwrap_or_default()));
                events.push(ViewEvent::CallEnd { id, name, ok: status == "completed", text });
            }
            _ => {}
        }
        events
    }
}

fn text_of(chunk: Chunk<'_>) -> String {
    match chunk.content {
        ContentBlock::Text { text } => text.into(),
        ContentBlock::Image { mime_type, .. } => format!("[{mime_type}]"),
        ContentBlock::ResourceLink { uri, .. } => format!("[{uri}]"),
        ContentBlock::Resource { resource } => format!("[{}]", resource.uri),
    }
}

fn join_texts(contents: Vec<ToolContent<'_>>) -> String {
    let texts = contents.into_iter().filter_map(|content| match content {
        ToolContent::Content { content: ContentBlock::Text { text } } => Some(text.into_owned()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
