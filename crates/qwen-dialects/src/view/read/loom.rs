//! Both forms of Loom.

use serde_json::Value;

use super::super::event::{End, Step, Tokens, ViewEvent, ViewLine};
use super::{Reader, channel, channel_of};
use crate::check::syntax::Object;
use crate::loom::custom::{CommandOutcome, Custom, CustomValue};
use crate::loom::export::Exported;
use crate::loom::wire::{Body, Frame, NodeResult, ReplyFrame};

/// Reads `loom` and `loom-export`.
pub(super) struct LoomReader {
    /// True for single keys and no envelope.
    pub(super) export: bool,
}

impl Reader for LoomReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        if object.has("reply") && object.kind().is_none() {
            let reply: ReplyFrame<'_> = object.read().ok()?;
            let end = End { reply: reply.reply.into_owned(), ..End::default() };
            return Some(vec![ViewLine {
                session: reply.session_id.map(|id| id.as_ref().into()),
                number: reply.event_id,
                ..ViewLine::new(ViewEvent::TurnEnd(end))
            }]);
        }
        let about_connection = if self.export { channel_of(None, object) } else { channel(object) };
        if let Some(lines) = about_connection {
            return Some(lines);
        }
        let frame: Frame<'_> =
            if self.export { object.read::<Exported<'_>>().ok()?.into() } else { object.read().ok()? };
        Some(vec![view_line(frame)])
    }
}

/// Exactly one event per line, so that every number is accounted for.
fn view_line(frame: Frame<'_>) -> ViewLine {
    let envelope = ViewLine {
        session: frame.session_id.as_deref().map(Into::into),
        number: frame.event_id,
        node: frame.node_id.as_deref().map(Into::into),
        ..ViewLine::new(ViewEvent::Nothing)
    };
    if let Body::Custom { value: CustomValue::Known(custom) } = &frame.body
        && let Custom::Subagent { parent, event } = custom.as_ref()
    {
        let inner = serde_json::from_str::<Frame<'_>>(event.as_str());
        let (event, node) = match inner {
            Ok(inner) => {
                (view_event(inner.body, inner.node_id.as_deref()), inner.node_id.as_deref().map(Into::into))
            }
            Err(_) => (ViewEvent::Nothing, None),
        };
        return ViewLine { parent: Some(parent.as_ref().into()), event, node, ..envelope };
    }
    ViewLine { event: view_event(frame.body, frame.node_id.as_deref()), ..envelope }
}

fn view_event(body: Body<'_>, node_id: Option<&str>) -> ViewEvent {
    let id_of = |id: Option<std::borrow::Cow<'_, str>>, name: &str| id.map_or(name.to_owned(), Into::into);
    match body {
        Body::RunStart { message, agent, .. } => {
            ViewEvent::TurnStart { message: message.map(Into::into), by: agent.map(Into::into) }
        }
        Body::NodeEnter { id } => ViewEvent::NodeEnter(id.into()),
        Body::NodeExit { result: NodeResult::Ok, .. } => ViewEvent::NodeExit(None),
        Body::NodeExit { result: NodeResult::Err(error), .. } => ViewEvent::NodeExit(Some(error.into())),
        Body::MessageChunk { content, .. } => ViewEvent::Text(content.into()),
        Body::Usage { prompt_tokens, completion_tokens, .. } => {
            ViewEvent::Usage(Tokens { read: prompt_tokens, written: completion_tokens })
        }
        Body::Values { state } | Body::Updates { state, .. } => ViewEvent::State(state.as_str().to_owned()),
        Body::Checkpoint(checkpoint) => ViewEvent::State(checkpoint.state.as_str().to_owned()),
        Body::ToolCallChunk { .. } => ViewEvent::Nothing,
        Body::Custom { value: CustomValue::Known(custom) } => self::custom(*custom),
        Body::Custom { value: CustomValue::Other(value) } => ViewEvent::Notice(value.as_str().to_owned()),
        Body::TotExpand { candidates } => ViewEvent::Step(Step::Expand(words(candidates))),
        Body::TotEvaluate { chosen, scores } => ViewEvent::Step(Step::Evaluate { chosen, scores }),
        Body::TotBacktrack { reason, to_depth } => {
            ViewEvent::Step(Step::Backtrack { reason: reason.into(), to_depth })
        }
        Body::GotPlan { node_ids, edge_count, .. } => {
            ViewEvent::Step(Step::Plan { ids: words(node_ids), edges: edge_count })
        }
        Body::GotNodeStart { id } => ViewEvent::Step(Step::Start(id.into())),
        Body::GotNodeComplete { id, result_summary } => {
            ViewEvent::Step(Step::Done(id.into(), result_summary.into()))
        }
        Body::GotNodeFailed { id, error } => ViewEvent::Step(Step::Failed(id.into(), error.into())),
        Body::GotExpand { nodes_added, .. } => {
            ViewEvent::Step(Step::Grow(node_id.unwrap_or_default().to_owned(), nodes_added))
        }
        Body::ToolCall(call) => ViewEvent::Call {
            id: id_of(call.call_id, &call.name),
            arguments: call.arguments.as_str().to_owned(),
            name: call.name.into(),
        },
        Body::ToolStart { call_id, name } => {
            ViewEvent::CallStart { id: id_of(call_id, &name), name: name.into() }
        }
        Body::ToolOutput { call_id, name, content } => {
            ViewEvent::CallOutput { id: id_of(call_id, &name), name: name.into(), text: content.into() }
        }
        Body::ToolEnd { call_id, name, result, is_error } => ViewEvent::CallEnd {
            id: id_of(call_id, &name),
            name: name.into(),
            ok: !is_error,
            text: result.into(),
        },
        Body::ToolApproval(call) => ViewEvent::Approval {
            id: id_of(call.call_id, &call.name),
            words: call.arguments.as_str().to_owned(),
            name: call.name.into(),
        },
    }
}

fn custom(custom: Custom<'_>) -> ViewEvent {
    match custom {
        Custom::Thought { subject, description } => {
            ViewEvent::Thought { subject: subject.into(), text: description.into() }
        }
        Custom::SessionEvent { event, .. } if event == "Finished" => ViewEvent::Nothing,
        Custom::SessionEvent { event, message, .. } => match message {
            Some(message) => ViewEvent::Notice(format!("{event}: {message}")),
            None => ViewEvent::Notice(event.into()),
        },
        Custom::Console { level, text, .. } => ViewEvent::Notice(format!("{level}: {text}")),
        Custom::Error(error) => ViewEvent::Error(error.message.into()),
        Custom::Command { result, .. } => match result {
            CommandOutcome::Message { level, content } if level == "error" => {
                ViewEvent::Error(content.into())
            }
            // The text is the reply, which follows.
            CommandOutcome::Message { .. } => ViewEvent::Nothing,
            CommandOutcome::Dialog { name, .. } => ViewEvent::Notice(format!("dialog: {name}")),
            CommandOutcome::Tool { name, .. } => ViewEvent::Notice(format!("ran {name}")),
            CommandOutcome::SubmitPrompt { content } => {
                ViewEvent::TurnStart { message: Some(content.into()), by: None }
            }
        },
        Custom::RunEnd { status } => ViewEvent::RunEnd(status.into()),
        Custom::Subagent { event, .. } => {
            let kind = serde_json::from_str::<Value>(event.as_str()).ok();
            let kind = kind.as_ref().and_then(|event| event.get("type")).and_then(Value::as_str);
            ViewEvent::Notice(format!("sub-agent: {}", kind.unwrap_or("something")))
        }
    }
}

fn words(list: Vec<std::borrow::Cow<'_, str>>) -> Vec<String> {
    list.into_iter().map(Into::into).collect()
}
