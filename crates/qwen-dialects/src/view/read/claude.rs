//! The stream of the Claude and Qwen Code SDKs.

use super::super::event::{End, Tokens, ViewEvent, ViewLine};
use super::super::words;
use super::{Reader, channel};
use crate::check::syntax::Object;
use crate::claude::hook::Outcome;
use crate::claude::wire::control::{ControlRequest, Question};
use crate::claude::wire::message::{AssistantMessage, Block, Content};
use crate::claude::wire::result::ResultLine;
use crate::claude::wire::stream_event::{Delta, StreamEvent};
use crate::claude::wire::{Message, Notice, UserLine};

#[derive(Default)]
pub(super) struct ClaudeReader {
    /// The messages that were shown in pieces, most recent last; their complete blocks are not shown again.
    streamed: Vec<Box<str>>,
}

/// The maximum number of concurrent messages, including those of sub-agents.
const MESSAGES: usize = 64;

impl Reader for ClaudeReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        let Ok(message) = object.read::<Message<'_>>() else {
            // The vendor's own API sends counts that ours always has only in part.
            let is_count = is_event_without_content(object.text);
            return if is_count { Some(vec![ViewLine::new(ViewEvent::Nothing)]) } else { channel(object) };
        };
        let mut parent = None;
        let seen = match message {
            Message::System(line) => vec![notice(line.notice)],
            Message::Assistant(line) => {
                parent = line.parent_tool_use_id;
                self.assistant(line.message, line.error.is_some())
            }
            Message::User(line) => {
                parent.clone_from(&line.parent_tool_use_id);
                user(line)
            }
            Message::StreamEvent(line) => {
                parent = line.parent_tool_use_id;
                vec![self.piece(line.event)]
            }
            Message::Result(result) => vec![end(*result)],
            Message::RateLimitEvent(line) => {
                vec![ViewEvent::Notice(format!("the model's server: {}", line.rate_limit_info.status))]
            }
            Message::ConversationReset(line) => {
                let new = line.new_conversation_id;
                vec![ViewEvent::Notice(format!(
                    "the conversation is cleared and continues in the session {new}"
                ))]
            }
            Message::ControlRequest(ControlRequest { request, .. }) => vec![question(request)],
            Message::ControlResponse(_) | Message::ControlCancelRequest { .. } => vec![ViewEvent::Nothing],
        };
        let session: Option<Box<str>> = object.str("session_id").map(Into::into);
        let parent: Option<Box<str>> = parent.map(|id| id.as_ref().into());
        let to_line =
            |seen| ViewLine { session: session.clone(), parent: parent.clone(), ..ViewLine::new(seen) };
        Some(seen.into_iter().map(to_line).collect())
    }
}

/// True for a `stream_event` that carries counts or keeps the connection alive.
fn is_event_without_content(line: &str) -> bool {
    let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { return false };
    line["type"] == "stream_event" && matches!(line["event"]["type"].as_str(), Some("message_delta" | "ping"))
}

impl ClaudeReader {
    fn assistant(&self, message: AssistantMessage<'_>, is_error: bool) -> Vec<ViewEvent> {
        let streamed = self.streamed.iter().any(|id| **id == *message.id);
        let show = |block| match block {
            Block::Text { text } if is_error => ViewEvent::Error(text.into()),
            Block::Text { text } if !streamed => ViewEvent::Text(text.into()),
            Block::Thinking { thinking, .. } if !streamed => {
                ViewEvent::Thought { subject: String::new(), text: thinking.into() }
            }
            Block::ToolUse { id, name, input } => {
                ViewEvent::Call { id: id.into(), name: name.into(), arguments: input.as_str().to_owned() }
            }
            _ => ViewEvent::Nothing,
        };
        message.content.into_iter().map(show).collect()
    }

    fn piece(&mut self, event: StreamEvent<'_>) -> ViewEvent {
        match event {
            StreamEvent::MessageStart { message } => {
                if self.streamed.len() >= MESSAGES {
                    self.streamed.remove(0);
                }
                self.streamed.push(message.id.as_ref().into());
                ViewEvent::Nothing
            }
            StreamEvent::ContentBlockDelta { delta: Delta::TextDelta { text }, .. } => {
                ViewEvent::Text(text.into())
            }
            StreamEvent::ContentBlockDelta { delta: Delta::ThinkingDelta { thinking, text }, .. } => {
                ViewEvent::ThoughtPiece(if thinking.is_empty() { text.into() } else { thinking.into() })
            }
            _ => ViewEvent::Nothing,
        }
    }
}

fn notice(notice: Notice<'_>) -> ViewEvent {
    match notice {
        Notice::Init(init) => ViewEvent::TurnStart { message: None, by: Some(init.model.into()) },
        Notice::SessionStateChanged { .. } => ViewEvent::Nothing,
        Notice::ApiRetry { attempt, max_retries, error, message, .. } => {
            ViewEvent::Notice(format!("retry {attempt} of {max_retries}: {error} {message}"))
        }
        Notice::Status { status, permission_mode_claude, .. } if permission_mode_claude.is_empty() => {
            status.map_or(ViewEvent::Nothing, |status| ViewEvent::Notice(status.into()))
        }
        Notice::Status { permission_mode_claude, .. } => {
            ViewEvent::Notice(format!("the approval mode is now {permission_mode_claude}"))
        }
        Notice::CompactBoundary { compact_metadata } => ViewEvent::Notice(format!(
            "the conversation of {} tokens was compressed",
            compact_metadata.pre_tokens
        )),
        Notice::ModelFallback { from, to, reason } => {
            ViewEvent::Notice(format!("{to} continues in place of {from}: {reason}"))
        }
        Notice::LoopDetected { message } => ViewEvent::Notice(message.into()),
        Notice::Steered { prompt_id, .. } => {
            ViewEvent::Notice(format!("the prompt {prompt_id} joins the turn"))
        }
        Notice::ThinkingProgress { text } => {
            words::of_sentence(&text).map_or_else(|| ViewEvent::Notice(text.into()), ViewEvent::Step)
        }
        Notice::TaskStarted(task) => {
            ViewEvent::Notice(format!("the task {} has started: {}", task.task_id, task.description))
        }
        Notice::TaskProgress(_) => ViewEvent::Nothing,
        Notice::TaskNotification(task) => {
            ViewEvent::Notice(format!("the task {} is {}: {}", task.task_id, task.status, task.summary))
        }
        Notice::TaskUpdated { task_id, patch } => patch.status.map_or(ViewEvent::Nothing, |status| {
            ViewEvent::Notice(format!("the task {task_id} is {status}"))
        }),
        // The result of the call and the lines of the task say the same.
        Notice::PermissionDenied { .. } | Notice::BackgroundTasksChanged { .. } => ViewEvent::Nothing,
        Notice::HookStarted { .. } | Notice::HookProgress { .. } => ViewEvent::Nothing,
        Notice::HookResponse { hook, outcome, .. } => {
            let went = match outcome {
                Outcome::Success => return ViewEvent::Nothing,
                Outcome::Error => "failed",
                Outcome::Cancelled => "was cancelled",
            };
            ViewEvent::Notice(format!("the hook {} {went}", hook.hook_name))
        }
        Notice::Informational { content, .. } => ViewEvent::Notice(content.into()),
        Notice::Custom { value } => ViewEvent::Notice(value.as_str().to_owned()),
        Notice::InputError { error } | Notice::Error { error } => ViewEvent::Error(error.message.into()),
    }
}

fn user(line: UserLine<'_>) -> Vec<ViewEvent> {
    match line.message.content {
        Content::Text(text) => vec![ViewEvent::TurnStart { message: Some(text.into()), by: None }],
        Content::Blocks(blocks) => blocks
            .into_iter()
            .map(|block| match block {
                Block::Text { text } if line.is_replay => {
                    ViewEvent::TurnStart { message: Some(text.into()), by: None }
                }
                Block::Text { text } => ViewEvent::Notice(text.into()),
                Block::ToolResult { tool_use_id, is_error, content } => ViewEvent::CallEnd {
                    id: tool_use_id.into(),
                    name: String::new(),
                    ok: !is_error,
                    text: content.map(words).unwrap_or_default(),
                },
                _ => ViewEvent::Nothing,
            })
            .collect(),
    }
}

fn words(content: Content<'_>) -> String {
    match content {
        Content::Text(text) => text.into(),
        Content::Blocks(blocks) => {
            let text = |block| if let Block::Text { text } = block { Some(text) } else { None };
            blocks.into_iter().filter_map(text).collect()
        }
    }
}

fn question(question: Question<'_>) -> ViewEvent {
    match question {
        Question::CanUseTool(question) => ViewEvent::Approval {
            id: question.tool_use_id.into(),
            name: question.tool_name.into(),
            words: question.description.map_or_else(|| question.input.as_str().to_owned(), Into::into),
        },
        Question::HookCallback(hook) => {
            ViewEvent::Notice(format!("asks the host's hook {}", hook.callback_id))
        }
        Question::McpMessage(message) => {
            ViewEvent::Notice(format!("asks the host's server {}", message.server_name))
        }
    }
}

fn end(result: ResultLine<'_>) -> ViewEvent {
    let status = match &result.terminal_reason {
        _ if !result.is_error => "done".to_owned(),
        Some(reason) => reason.to_string(),
        None => "error".to_owned(),
    };
    // Claude's `input_tokens` excludes the cached ones.
    let usage = result.usage;
    let read = match usage.total_tokens.checked_sub(usage.output_tokens) {
        Some(read) if read > 0 => read,
        _ => usage.input_tokens.saturating_add(usage.cache_read_input_tokens),
    };
    ViewEvent::TurnEnd(End {
        status,
        errors: result.errors.unwrap_or_default().into_iter().map(Into::into).collect(),
        reply: result.result.unwrap_or_default().into(),
        tokens: Some(Tokens { read, written: usage.output_tokens }),
        denials: result.permission_denials.len(),
    })
}
