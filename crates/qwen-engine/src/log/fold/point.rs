//! Points in a conversation that a session can return to.

use std::collections::HashSet;

use qwen_events::{Body, PromptId, call_progress, message_pieces, outside_turns, session_notices};

use crate::log::entry::{EntryBody, is_main};
use crate::log::{LogError, LogReader, checkpoint_id};

/// The offset before the turn of `prompt`.
pub(crate) fn find_start(mut reader: LogReader, prompt: &PromptId) -> Result<u64, LogError> {
    let mut offset = reader.offset();
    while let Some(entry) = reader.next_entry()? {
        if let EntryBody::Event(Body::TurnStart(start)) = &entry.what
            && is_main(&entry.scope)
            && start.prompt_id == *prompt
        {
            return Ok(offset);
        }
        offset = reader.offset();
    }
    let id = reader.header().session_id.clone();
    Err(LogError::NoSuchPoint { id, point: prompt.as_str().to_owned() })
}

/// The offset after the entry that `point` names: a message's id, the client's id of a prompt, a call's id
/// (then its result is included), a checkpoint by its id, by `TURN-STEP` or, in the last turn that has such a
/// step, by `STEP`, or a turn's prompt id, which represents the whole turn.
pub(crate) fn find(mut reader: LogReader, point: &str) -> Result<u64, LogError> {
    let prompt = PromptId::new(point);
    let mut in_turn = false;
    let mut found = None;
    let (mut turn, mut steps) = (0, 0);
    let mut pruned = HashSet::new();
    let mut checkpoint = None;
    while let Some(entry) = reader.next_entry()? {
        let body = match entry.what {
            EntryBody::Event(body) => body,
            EntryBody::Pruned(gone) => {
                pruned.extend(gone);
                continue;
            }
            _ => continue,
        };
        if !is_main(&entry.scope) {
            continue;
        }
        match body {
            Body::TurnStart(start) => {
                in_turn = start.prompt_id == prompt;
                (turn, steps) = (start.turn, 0);
                if start.message_uuid.as_deref() == Some(point) {
                    return Ok(reader.offset());
                }
            }
            Body::TurnEnd(end) if end.prompt_id == prompt => return Ok(reader.offset()),
            Body::MessageEnd(end) if *end.message_id == *point => return Ok(reader.offset()),
            Body::ToolEnd(end) if end.call.id.as_str() == point => return Ok(reader.offset()),
            Body::NodeExit { .. } => {
                steps += 1;
                let id = checkpoint_id(&reader.header().session_id, turn, steps);
                if *id == *point || format!("{turn}-{steps}") == point || steps.to_string() == point {
                    checkpoint = Some((id, reader.offset()));
                }
            }
            Body::Ready
            | Body::NodeEnter
            | message_pieces!()
            | Body::MessageEnd(..)
            | call_progress!()
            | Body::ToolStart(..)
            | Body::ToolEnd(..)
            | Body::State(..)
            | Body::Checkpoint(..)
            | Body::Thinking(..)
            | Body::ThoughtUsage(..)
            | Body::Journal(..)
            | session_notices!()
            | Body::Error(..)
            | Body::TurnEnd(..)
            | outside_turns!()
            | Body::Fatal(..) => {}
        }
        if in_turn {
            found = Some(reader.offset());
        }
    }
    let id = reader.header().session_id.clone();
    if let Some((checkpoint, offset)) = checkpoint {
        let point = checkpoint.to_string();
        return if pruned.contains(&checkpoint) { Err(LogError::Pruned { id, point }) } else { Ok(offset) };
    }
    found.ok_or_else(|| LogError::NoSuchPoint { id, point: point.to_owned() })
}
