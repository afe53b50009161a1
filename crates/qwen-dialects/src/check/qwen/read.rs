//! Reads a line, and checks what the wire types leave open about its shape.

use std::borrow::Cow;

use super::super::channel;
use super::super::syntax::{END_STATUSES, Object, Violation, word};
use super::records::Record;
use crate::qwen::wire::{ChatCompletion, ChatCompletionChunk, ChunkChoice, FatalError, Metadata, TokenUsage};

pub(super) enum QwenLine<'a> {
    /// A line about the connection.
    Channel,
    /// The process ends.
    Fatal,
    /// A message, a piece of one, or a remark about the stream.
    Completion(Box<Completion<'a>>),
    /// One of the four records that accompany the messages.
    Record(Box<Record<'a>>),
}

/// A `chat.completion`, complete or a chunk.
pub(super) struct Completion<'a> {
    pub(super) is_chunk: bool,
    pub(super) id: Cow<'a, str>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) prompt_id: Option<Cow<'a, str>>,
    /// The only choice; none in the handshake.
    pub(super) choice: Option<Choice<'a>>,
    pub(super) usage: Option<TokenUsage>,
    pub(super) metadata: Option<Metadata<'a>>,
}

/// The content of the only choice of a line.
pub(super) struct Choice<'a> {
    /// True if a message begins, or is complete in this line.
    pub(super) role: bool,
    /// True if there is text, or a piece of a call.
    pub(super) says: bool,
    /// The arguments of complete calls.
    pub(super) arguments: Vec<Cow<'a, str>>,
    pub(super) calls: bool,
    /// Pieces of calls: the index, and whether the piece begins its call with an id and a name.
    pub(super) call_pieces: Vec<(u64, bool)>,
    pub(super) finish_reason: Option<Cow<'a, str>>,
}

impl Completion<'_> {
    pub(super) fn is_handshake(&self) -> bool {
        self.choice.is_none()
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.turn.is_some())
    }

    /// True for the end of a continuation under the id of an ended turn.
    pub(super) fn is_continuation(&self) -> bool {
        let turn = self.metadata.as_ref().and_then(|metadata| metadata.turn.as_ref());
        turn.is_some_and(|turn| turn.continuation)
    }

    /// True for a remark about an unusable line, or about the process.
    pub(super) fn is_error_notice(&self) -> bool {
        !self.is_terminal() && self.metadata.as_ref().is_some_and(|metadata| metadata.error.is_some())
    }

    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.choice.as_ref().and_then(|choice| choice.finish_reason.as_deref())
    }
}

pub(super) fn line<'a>(object: &'a Object<'_>) -> Result<QwenLine<'a>, Violation> {
    match object.kind() {
        Some(kind) if kind.starts_with("x-qwen-") => {
            Record::read(object, kind).map(|record| QwenLine::Record(Box::new(record)))
        }
        Some("result/command") => channel::command(object).map(|()| QwenLine::Channel),
        Some(_) => match channel::read(object) {
            Some(fits) => fits.map(|()| QwenLine::Channel),
            None => Err(object.unknown_type()),
        },
        None if object.has("error") => object.read::<FatalError<'_>>().map(|_| QwenLine::Fatal),
        None if object.str("object") == Some("chat.completion") => {
            message(object.read()?).map(|completion| QwenLine::Completion(Box::new(completion)))
        }
        None if object.has("choices") => {
            chunk(object.read()?).map(|completion| QwenLine::Completion(Box::new(completion)))
        }
        None => Err(object.unknown_type()),
    }
}

/// What both kinds of line have in common.
macro_rules! completion {
    ($line:ident, $is_chunk:literal, $choice:ident) => {
        Completion {
            is_chunk: $is_chunk,
            id: $line.id,
            session_id: $line.session_id,
            prompt_id: $line.prompt_id,
            choice: $choice,
            usage: $line.usage,
            metadata: $line.metadata,
        }
    };
}

fn message(line: ChatCompletion<'_>) -> Result<Completion<'_>, Violation> {
    let mut choices = line.choices.into_iter();
    let choice = choices.next().map(|choice| {
        let calls = choice.message.tool_calls.unwrap_or_default();
        Choice {
            role: true,
            says: true,
            calls: !calls.is_empty(),
            call_pieces: Vec::new(),
            arguments: calls.into_iter().map(|call| call.function.arguments).collect(),
            finish_reason: Some(choice.finish_reason),
        }
    });
    let one = choices.next().is_none();
    require_one_choice(completion!(line, false, choice), one)
}

fn chunk(line: ChatCompletionChunk<'_>) -> Result<Completion<'_>, Violation> {
    let mut choices = line.choices.into_iter();
    let choice = choices.next().map(|ChunkChoice { delta, finish_reason, .. }| {
        let call_pieces: Vec<(u64, bool)> = delta
            .tool_calls
            .iter()
            .flatten()
            .map(|call| {
                let named = call.function.name.is_some();
                (u64::from(call.index), call.id.is_some() && named)
            })
            .collect();
        let calls = !call_pieces.is_empty();
        Choice {
            role: delta.role.is_some(),
            says: calls || delta.content.is_some(),
            calls,
            call_pieces,
            arguments: Vec::new(),
            finish_reason,
        }
    });
    let one = choices.next().is_none();
    require_one_choice(completion!(line, true, choice), one)
}

fn require_one_choice(completion: Completion<'_>, one_choice: bool) -> Result<Completion<'_>, Violation> {
    if !one_choice {
        return Err(Violation::new("shape", "a line has one choice, or none in the handshake"));
    }
    let greets = completion.metadata.as_ref().is_some_and(|metadata| metadata.protocol_version.is_some());
    if completion.is_handshake() && !greets {
        return Err(Violation::new(
            "shape",
            "only the handshake has no choices, and it has `metadata.protocol_version`",
        ));
    }
    if let Some(reason) = completion.finish_reason() {
        word("finish_reason", reason, &["stop", "tool_calls", "length", "content_filter", "error"])?;
    }
    if let Some(usage) = &completion.usage
        && usage.prompt_tokens.checked_add(usage.completion_tokens) != Some(usage.total_tokens)
    {
        let sum = format!("{} + {}", usage.prompt_tokens, usage.completion_tokens);
        return Err(Violation::new("usage", format!("`total_tokens` is {}, not {sum}", usage.total_tokens)));
    }
    if let Some(turn) = completion.metadata.as_ref().and_then(|metadata| metadata.turn.as_ref()) {
        word("metadata.turn.status", &turn.status, &END_STATUSES)?;
    }
    Ok(completion)
}
