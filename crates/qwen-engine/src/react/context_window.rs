//! Compaction in the middle of a turn: a summary replaces older messages and the work continues.

use std::sync::Arc;

use qwen_events::{Body, ErrorInfo, HistoryChange, Message, Part, Role, SessionEvent};
use serde_json::Value;

use super::{Delta, ReactState};
use crate::compaction::{self, estimate};
use crate::context::TurnContext;
use crate::graph::{Next, RunContext, Step};
use crate::hooks::HookEvent;

/// The server's error code for a conversation that is too long.
const TOO_LONG: &str = "context_length_exceeded";

/// The minimum number of new messages since the last compaction: if a summary did not help, another one will
/// not either.
const BETWEEN: usize = 4;

const CONTINUE_NOTE: &str = "Part of this is done already; the summary lists it. Continue from there.";

/// True if the window is nearly full between two model calls of one turn.
pub(super) fn is_short(context: &TurnContext, state: &ReactState, cx: &RunContext) -> bool {
    let messages = &state.messages;
    let at_work = messages.last().is_some_and(|message| message.role == Role::Tool);
    let rested = state.compacted_at.is_none_or(|at| messages.len() >= at + BETWEEN);
    at_work && rested && context.session.window.is_nearly_full(filled(messages, cx))
}

/// An estimate of the tokens of the next call: the count of the last call plus what was added since.
fn filled(messages: &[Message], cx: &RunContext) -> u64 {
    match cx.budget.context() {
        (0, _) => estimate(messages),
        (counted, _) => {
            let last_answer = messages.iter().rposition(|message| message.role == Role::Assistant);
            counted.saturating_add(estimate(&messages[last_answer.map_or(0, |at| at + 1)..]))
        }
    }
}

/// True if the model rejected the conversation as too long.
pub(super) fn is_too_long(step: &Step<Delta>) -> bool {
    let nothing_said = matches!(step.delta, Delta::MessageAdded { message: None, .. });
    nothing_said
        && matches!(&step.next, Next::Stop(stop) if stop.error.as_ref().is_some_and(|e| e.code == TOO_LONG))
}

/// Describes what was tried if the conversation is still too long.
pub(super) fn explain(step: &mut Step<Delta>, compressed: bool) {
    if let Next::Stop(stop) = &mut step.next
        && let Some(error) = stop.error.as_mut().filter(|error| error.code == TOO_LONG)
    {
        let tried = if compressed {
            "it is too long even with a summary in place of the earlier messages"
        } else {
            "no earlier messages could be summarized to free space"
        };
        let advice = "send less at once, start over (/clear) or use a model with a larger window";
        error.message = format!("{}; {tried}: {advice}", error.message).into();
    }
}

/// The conversation with a summary instead of its older part. `None` if there is nothing to replace or the
/// summary failed, which is reported. A call and its result are never separated: the summary covers both or
/// neither.
pub(super) async fn make(
    context: &TurnContext,
    messages: &[Message],
    cx: &RunContext,
) -> Option<Arc<Vec<Message>>> {
    let plan = Plan::compute(messages)?;
    match compact(context, messages, &plan, cx).await {
        Ok(made) => Some(Arc::new(made)),
        Err(error) => {
            if !cx.cancel.is_stopped() {
                cx.emit.emit(Body::Error(Box::new(error))).await;
            }
            None
        }
    }
}

/// Which messages are summarized and which are retained.
struct Plan {
    /// Messages before this index are summarized.
    summarized: usize,
    /// The index of the last user message.
    prompt: usize,
    /// The last calls and their results stay after the prompt.
    keeps_tail: bool,
}

impl Plan {
    fn compute(messages: &[Message]) -> Option<Self> {
        if messages.len() < 3 {
            return None;
        }
        let prompt = messages
            .iter()
            .rposition(|message| message.role == Role::User && !message.is_note())
            .or_else(|| messages.iter().rposition(|message| message.role == Role::User))?;
        let calls = messages.iter().rposition(|message| message.role == Role::Assistant);
        Some(match calls.filter(|calls| *calls > prompt) {
            None => Self { summarized: prompt, prompt, keeps_tail: false },
            Some(calls) => {
                let keeps_tail = estimate(&messages[calls..]).saturating_mul(2) <= estimate(messages);
                let summarized = if keeps_tail { calls } else { messages.len() };
                Self { summarized, prompt, keeps_tail }
            }
        })
    }
}

async fn compact(
    context: &TurnContext,
    messages: &[Message],
    plan: &Plan,
    cx: &RunContext,
) -> Result<Vec<Message>, ErrorInfo> {
    let fields = vec![("trigger", "auto".into()), ("custom_instructions", Value::Null)];
    let ruling = context.fire(HookEvent::PreCompact, None, "auto", fields, cx).await;
    if let Some(why) = ruling.block.or(ruling.stop) {
        return Err(compaction::blocked(&why));
    }
    let fixed = compaction::estimate_fixed_part(&context.system_prompt, context.usable_tools().iter());
    let before = filled(messages, cx).max(fixed.saturating_add(estimate(messages)));
    let name = context.model_name.clone().or_else(|| context.session.process.overrides.model());
    let most = context.session.window.most_read(messages);
    let summarized = &messages[..plan.summarized];
    let asked = compaction::SubagentRequest {
        messages: summarized,
        wish: "",
        most,
        caller: context.origin.parent.clone(),
    };
    let summary =
        compaction::summarize(context.session.model.as_ref(), name, asked, &cx.budget, &cx.cancel).await?;
    let mut made = compaction::replacement(&summary);
    let mut prompt = messages[plan.prompt].clone();
    if plan.summarized > plan.prompt && !plan.keeps_tail {
        prompt.parts.push(Part::Text(CONTINUE_NOTE.into()));
    }
    made.push(prompt);
    if plan.keeps_tail {
        made.extend_from_slice(&messages[plan.summarized..]);
    }
    context.situation.fold_changes();
    let after = fixed.saturating_add(estimate(&made));
    cx.budget.context_is(estimate(&made), true);
    // A sub-agent's conversation is private: it appears neither in the log nor in the session's event stream.
    if !cx.emit.is_in_call() {
        let notice = SessionEvent::Compressed { original_tokens: before, new_tokens: after, manual: false };
        cx.emit.emit(Body::Session(Box::new(notice))).await;
        cx.emit.emit(Body::History(Box::new(HistoryChange::Replaced(made.clone())))).await;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use qwen_events::{CallId, Json, ToolCall, ToolResult};

    use super::*;

    fn round(size: usize) -> [Message; 2] {
        let id = CallId::new("c");
        let arguments = Json::empty_object();
        let call =
            ToolCall { id: id.clone(), name: "t".into(), arguments, malformed: None, provider_fields: None };
        let text = "x".repeat(size).into();
        let result = ToolResult { call_id: id, name: "t".into(), text, media: Vec::new(), is_error: false };
        [
            Message { role: Role::Assistant, parts: vec![Part::Call(Arc::new(call))] },
            Message { role: Role::Tool, parts: vec![Part::Result(result)] },
        ]
    }

    fn turn(sizes: &[usize]) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::User, "do it")];
        messages.extend(sizes.iter().flat_map(|size| round(*size)));
        messages
    }

    #[test]
    fn calls_and_results_are_never_parted() {
        for sizes in [&[400, 400, 400][..], &[10, 4000], &[4000], &[4000, 10], &[1; 20]] {
            let messages = turn(sizes);
            let plan = Plan::compute(&messages).unwrap();
            let boundary = messages.get(plan.summarized).map(|message| message.role);
            assert!(matches!(boundary, None | Some(Role::Assistant)), "{sizes:?}");
            assert_eq!(plan.keeps_tail, plan.summarized < messages.len(), "{sizes:?}");
        }
    }

    #[test]
    fn the_last_results_are_kept_as_they_are_unless_they_are_the_larger_part() {
        let keeps_tail_of = |sizes: &[usize]| Plan::compute(&turn(sizes)).unwrap().keeps_tail;
        assert!(keeps_tail_of(&[4000, 10]));
        assert!(!keeps_tail_of(&[10, 4000]));
    }

    #[test]
    fn one_prompt_alone_has_nothing_to_summarize() {
        assert!(Plan::compute(&turn(&[])).is_none());
    }
}
