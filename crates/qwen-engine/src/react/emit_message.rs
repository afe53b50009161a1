//! Emits known text in the form of a model message.

use std::sync::Arc;

use qwen_events::{Body, Message, MessageEnd, Role};

use crate::context::TurnContext;
use crate::graph::RunContext;

/// Emits `text` as the last message of the turn, so that every reader finds it where answers are.
pub async fn emit_message(context: &TurnContext, text: Arc<str>, cx: &RunContext) -> Message {
    let message_id: Arc<str> = format!("msg-{:016x}", fastrand::u64(..)).into();
    let model: Arc<str> = context.session.model.name().into();
    cx.emit.emit(Body::MessageStart { message_id: message_id.clone(), model: model.clone() }).await;
    cx.emit.emit(Body::TextDelta((&*text).into())).await;
    let end = MessageEnd::text(message_id, model, text.clone());
    cx.emit.emit(Body::MessageEnd(Box::new(end))).await;
    Message::text(Role::Assistant, text)
}
