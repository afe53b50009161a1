//! `chat.completion` lines or chunks, and the accompanying records.

use super::super::event::{End, Tokens, ViewEvent, ViewLine};
use super::super::words;
use super::{Reader, channel};
use crate::check::syntax::Object;
use crate::qwen::wire::record::{
    ConfirmationRecord, ResultDisplay, SessionEventRecord, TerminalRecord, ThoughtRecord, ToolDisplayRecord,
};
use crate::qwen::wire::{ChatCompletion, ChatCompletionChunk, FatalError, Metadata, TokenUsage};

#[derive(Default)]
pub(super) struct QwenReader {
    /// Calls that arrive in pieces: their index, id, name and arguments so far.
    calls: Vec<(u32, String, String, String)>,
}

/// The maximum number of calls per message, and the maximum displayed length of their arguments.
const CALLS: usize = 256;
const ARGUMENTS: usize = 64 * 1024;

impl Reader for QwenReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        let mut parent = None;
        let seen = match object.kind() {
            Some("x-qwen-terminal") => {
                let record: TerminalRecord<'_> = object.read().ok()?;
                parent.clone_from(&record.parent_tool_call_id);
                vec![terminal(record)]
            }
            Some("x-qwen-tool-display") => {
                let record: ToolDisplayRecord<'_> = object.read().ok()?;
                parent.clone_from(&record.parent_tool_call_id);
                vec![display(record)]
            }
            Some("x-qwen-thought") => {
                let record: ThoughtRecord<'_> = object.read().ok()?;
                parent.clone_from(&record.parent_tool_call_id);
                vec![words::of_thought(&record.subject, &record.description).map_or_else(
                    || ViewEvent::Thought { subject: record.subject.into(), text: record.description.into() },
                    ViewEvent::Step,
                )]
            }
            Some("x-qwen-session-event") => {
                let record: SessionEventRecord<'_> = object.read().ok()?;
                vec![match (&*record.event, record.value) {
                    ("Finished", _) => ViewEvent::Nothing,
                    (_, Some(value)) => ViewEvent::Notice(value.get().to_owned()),
                    (event, None) if record.message.is_empty() => ViewEvent::Notice(event.to_owned()),
                    _ => ViewEvent::Notice(record.message.into()),
                }]
            }
            Some(_) => return channel(object),
            None if object.has("error") => {
                vec![ViewEvent::Error(object.read::<FatalError<'_>>().ok()?.error.message.into())]
            }
            None if object.str("object") == Some("chat.completion") => message(object.read().ok()?),
            None if object.has("choices") => self.chunk(object.read().ok()?),
            None => return None,
        };
        let session: Option<Box<str>> = object.str("session_id").map(Into::into);
        let parent: Option<Box<str>> = parent.map(|id| id.as_ref().into());
        let to_line =
            |seen| ViewLine { session: session.clone(), parent: parent.clone(), ..ViewLine::new(seen) };
        Some(seen.into_iter().map(to_line).collect())
    }
}

impl QwenReader {
    fn chunk(&mut self, line: ChatCompletionChunk<'_>) -> Vec<ViewEvent> {
        let mut seen = Vec::new();
        for choice in line.choices {
            seen.extend(choice.delta.content.map(|text| ViewEvent::Text(text.into())));
            for piece in choice.delta.tool_calls.unwrap_or_default() {
                let at = match self.calls.iter().position(|(index, ..)| *index == piece.index) {
                    Some(at) => at,
                    None if self.calls.len() >= CALLS => continue,
                    None => {
                        self.calls.push((piece.index, String::new(), String::new(), String::new()));
                        self.calls.len() - 1
                    }
                };
                let (_, id, name, arguments) = &mut self.calls[at];
                id.extend(piece.id.as_deref());
                name.extend(piece.function.name.as_deref());
                if arguments.len() < ARGUMENTS {
                    arguments.push_str(&piece.function.arguments);
                }
            }
            if choice.finish_reason.is_some() {
                let calls = std::mem::take(&mut self.calls).into_iter();
                seen.extend(calls.map(|(_, id, name, arguments)| ViewEvent::Call { id, name, arguments }));
            }
        }
        seen.extend(ending(line.metadata, line.usage.as_ref()));
        seen
    }
}

fn message(line: ChatCompletion<'_>) -> Vec<ViewEvent> {
    let mut seen = Vec::new();
    for choice in line.choices {
        seen.extend(
            choice.message.content.filter(|text| !text.is_empty()).map(|text| ViewEvent::Text(text.into())),
        );
        for call in choice.message.tool_calls.unwrap_or_default() {
            seen.push(ViewEvent::Call {
                id: call.id.into(),
                name: call.function.name.into(),
                arguments: call.function.arguments.into(),
            });
        }
    }
    seen.extend(ending(line.metadata, line.usage.as_ref()));
    seen
}

/// The event in the metadata of a line: the end of a turn, or an error.
fn ending(metadata: Option<Metadata<'_>>, usage: Option<&TokenUsage>) -> Option<ViewEvent> {
    let metadata = metadata?;
    let error = metadata.error.map(|error| error.message.into_owned());
    match metadata.turn {
        Some(turn) => Some(ViewEvent::TurnEnd(End {
            status: turn.status.into(),
            errors: error.into_iter().collect(),
            tokens: usage.map(|usage| Tokens { read: usage.prompt_tokens, written: usage.completion_tokens }),
            denials: turn.permission_denials.len(),
            ..End::default()
        })),
        None => error.map(ViewEvent::Error),
    }
}

fn terminal(record: TerminalRecord<'_>) -> ViewEvent {
    match (&*record.source, record.tool_call_id) {
        ("tool", Some(call)) => {
            ViewEvent::CallOutput { id: call.into(), name: String::new(), text: record.text.into() }
        }
        ("system", _) => ViewEvent::Nothing,
        _ => ViewEvent::Notice(record.text.into()),
    }
}

fn display(record: ToolDisplayRecord<'_>) -> ViewEvent {
    let id: String = record.tool_call_id.into();
    let name: String = record.tool_name.unwrap_or_default().into();
    match &*record.status {
        "pending" => ViewEvent::Nothing,
        "confirming" => ViewEvent::Approval {
            id,
            name,
            words: record.confirmation.as_ref().map(confirmation_text).unwrap_or_default(),
        },
        "executing" => ViewEvent::CallStart { id, name },
        status => {
            let text = record.result_display.map(display_text).unwrap_or_default();
            ViewEvent::CallEnd { id, name, ok: status == "success", text }
        }
    }
}

fn confirmation_text(confirmation: &ConfirmationRecord<'_>) -> String {
    match confirmation {
        ConfirmationRecord::Edit { file_name, .. } => format!("edit {file_name}"),
        ConfirmationRecord::Exec { command, .. } => command.to_string(),
        ConfirmationRecord::Mcp { server_name, tool_name, .. } => format!("{server_name}: {tool_name}"),
        ConfirmationRecord::Info { prompt, .. } => prompt.to_string(),
        ConfirmationRecord::Plan { plan, .. } => plan.to_string(),
    }
}

fn display_text(display: ResultDisplay<'_>) -> String {
    match display {
        ResultDisplay::String { text, .. } => text.into(),
        ResultDisplay::FileDiff { diff, .. } => diff.into(),
        ResultDisplay::TodoList { todos } => {
            let lines: Vec<String> =
                todos.iter().map(|todo| format!("[{}] {}", todo.status, todo.content)).collect();
            lines.join("\n")
        }
        ResultDisplay::PlanSummary { message, plan } => format!("{message}\n{plan}"),
        ResultDisplay::TaskExecution { agent, description, status, .. } => {
            format!("{agent}: {description} ({status})")
        }
    }
}
