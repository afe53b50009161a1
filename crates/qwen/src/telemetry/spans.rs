//! Converts events to spans: tracks the open spans and applies each event to them.

use std::collections::HashMap;

use qwen_events::{
    Body, CallId, Display, EndStatus, Event, SessionEvent, SessionId, Thinking, ToolCall, ToolEnd,
    ToolStatus, TurnEnd, TurnStart, Verdict, graph_events, message_pieces, notices, outside_turns,
};

use super::Tracing;
use super::chat::{finish_reasons, record_usage};
use super::content::Message;
use super::context::SpanContext;
use super::span::{Attributes, Kind, Span};

/// The open spans.
#[derive(Default)]
pub(super) struct Open {
    session: Option<SessionId>,
    turn: Option<Span>,
    calls: HashMap<CallId, Call>,
}

/// A tool call.
struct Call {
    id: CallId,
    session: Option<SessionId>,
    span: Span,
    /// The span of its open permission question.
    asking: Option<Span>,
    /// The span of the sub-agent that it started.
    agent: Option<Span>,
}

impl Call {
    /// The parent position for what happens in this call.
    fn context(&self) -> &SpanContext {
        self.agent.as_ref().map_or(&self.span.context, |agent| &agent.context)
    }

    /// Starts a child span of this call.
    fn begin(&self, name: String) -> Span {
        let mut span = Span::begin(Some(&self.span.context), name, Kind::Internal);
        sign(&mut span, self.session.as_ref());
        span.set("gen_ai.tool.call.id", self.id.as_str());
        span
    }

    /// Its spans, inner ones first.
    fn spans(self) -> impl Iterator<Item = Span> {
        self.asking.into_iter().chain(self.agent).chain([self.span])
    }
}

impl Open {
    /// The position of a call, else of the turn.
    pub fn context(&self, call: Option<&CallId>) -> Option<&SpanContext> {
        let call = call.and_then(|id| self.calls.get(id)).map(Call::context);
        call.or_else(|| self.turn.as_ref().map(|turn| &turn.context))
    }

    /// Adds the session id to a span.
    pub fn sign(&self, span: &mut Span) {
        sign(span, self.session.as_ref());
    }

    /// Prepares a turn below `above`. Returns the spans that an earlier turn left open.
    pub fn turn_begins(&mut self, above: Option<&SpanContext>) -> Vec<Span> {
        let left = self.abandon();
        self.turn = Some(Span::begin(above, "invoke_agent".to_owned(), Kind::Internal));
        left
    }

    /// Ends all open spans early and returns them.
    pub fn abandon(&mut self) -> Vec<Span> {
        let mut left = self.stop_calls();
        left.extend(self.turn.take().map(|mut turn| {
            turn.fail(EndStatus::Interrupted.name(), "the process ended before the turn did");
            turn
        }));
        left
    }

    fn stop_calls(&mut self) -> Vec<Span> {
        let cancelled = |mut span: Span| {
            span.fail("cancelled", "cancelled");
            span
        };
        self.calls.drain().flat_map(|(_, call)| call.spans()).map(cancelled).collect()
    }

    /// Applies an event and returns the spans that it ends.
    pub fn event(&mut self, event: &Event, tracing: &Tracing) -> Vec<Span> {
        let parent = event.scope.parent.as_ref();
        match &event.body {
            Body::TurnStart(start) => self.turn_start(start, tracing),
            Body::TurnEnd(end) => return self.turn_end(end, tracing),
            Body::Decision { call, decision } => {
                let verdict = match decision.verdict {
                    Verdict::Allow => "allow",
                    Verdict::Ask => "ask",
                    Verdict::Deny => "deny",
                };
                let call = self.call(call, parent, tracing);
                call.span.mark("permission.decision", vec![("qwen.permission.verdict", verdict.into())]);
            }
            Body::Approval { call, .. } => {
                let call = self.call(call, parent, tracing);
                call.asking = Some(call.begin("ask_permission".to_owned()));
            }
            Body::ToolStart(call) => {
                let call = self.call(call, parent, tracing);
                call.span.mark("tool.start", Vec::new());
                return call.asking.take().into_iter().collect();
            }
            Body::ToolDisplay { call, display } => {
                if let Display::Task(task) = &**display
                    && let Some(call) = self.calls.get_mut(&call.id)
                    && call.agent.is_none()
                {
                    let mut agent = call.begin(format!("invoke_agent {}", task.agent));
                    agent.set("gen_ai.operation.name", "invoke_agent");
                    agent.set("gen_ai.agent.name", &*task.agent);
                    call.agent = Some(agent);
                }
            }
            Body::ToolEnd(end) => return self.tool_end(end, parent, tracing),
            Body::Thinking(step) => self.mark(Some(thinking(step))),
            Body::Session(event) => self.mark(noticed(event)),
            Body::Error(error) => self.mark(Some(("error", vec![("error.type", error.code.into())]))),
            Body::Ready
            | graph_events!()
            | message_pieces!()
            | Body::MessageEnd(..)
            | Body::ToolOutput { .. }
            | notices!()
            | Body::History(..)
            | Body::Custom(..)
            | outside_turns!()
            | Body::Fatal(..) => {}
        }
        Vec::new()
    }

    fn turn_start(&mut self, start: &TurnStart, tracing: &Tracing) {
        self.session = Some(start.session_id.clone());
        let above = tracing.parent.as_ref();
        let mut turn = self.turn.take().unwrap_or_else(|| Span::begin(above, String::new(), Kind::Internal));
        turn.name = format!("invoke_agent {}", start.agent.name());
        self.sign(&mut turn);
        turn.set("gen_ai.operation.name", "invoke_agent");
        turn.set("gen_ai.agent.name", start.agent.name());
        turn.set("gen_ai.request.model", &*start.model);
        turn.set("qwen.prompt_id", start.prompt_id.as_str());
        turn.set("qwen.turn", start.turn);
        turn.set("qwen.permission_mode", &*start.permission_mode);
        if tracing.shows_content() {
            turn.set("gen_ai.input.messages", Message::from_text("user", &start.message));
        }
        self.turn = Some(turn);
    }

    fn turn_end(&mut self, end: &TurnEnd, tracing: &Tracing) -> Vec<Span> {
        let mut over = self.stop_calls();
        let Some(mut turn) = self.turn.take() else { return over };
        record_usage(&mut turn, &end.usage);
        turn.set("gen_ai.response.finish_reasons", finish_reasons(end.finish));
        turn.set("qwen.status", end.status.name());
        turn.set("qwen.model_calls", end.model_calls);
        turn.set("qwen.tool_calls", end.tool_calls);
        if !end.denials.is_empty() {
            turn.set("qwen.permission_denials", u64::try_from(end.denials.len()).unwrap_or(u64::MAX));
        }
        if end.cost_usd > 0.0 {
            turn.set("qwen.cost_usd", end.cost_usd);
        }
        if tracing.shows_content() {
            turn.set("gen_ai.output.messages", Message::from_text("assistant", &end.reply));
        }
        match (&end.error, end.status) {
            (_, EndStatus::Done) => {}
            (Some(error), EndStatus::Error) => tracing.fail(&mut turn, error),
            (_, status) => turn.fail(status.name(), status.name()),
        }
        over.push(turn);
        over
    }

    /// The span of a call, which starts with the first event about the call.
    fn call(&mut self, call: &ToolCall, parent: Option<&CallId>, tracing: &Tracing) -> &mut Call {
        let above = self.context(parent).or(tracing.parent.as_ref()).cloned();
        let Self { calls, session, .. } = self;
        calls.entry(call.id.clone()).or_insert_with(|| {
            let mut span = Span::begin(above.as_ref(), format!("execute_tool {}", call.name), Kind::Internal);
            sign(&mut span, session.as_ref());
            span.set("gen_ai.operation.name", "execute_tool");
            span.set("gen_ai.tool.name", &*call.name);
            span.set("gen_ai.tool.call.id", call.id.as_str());
            let kind = if call.name.starts_with("mcp__") { "extension" } else { "function" };
            span.set("gen_ai.tool.type", kind);
            if tracing.shows_content() {
                span.set("gen_ai.tool.call.arguments", call.arguments.as_str());
            }
            Call { id: call.id.clone(), session: session.clone(), span, asking: None, agent: None }
        })
    }

    fn tool_end(&mut self, end: &ToolEnd, parent: Option<&CallId>, tracing: &Tracing) -> Vec<Span> {
        self.call(&end.call, parent, tracing);
        let Some(mut call) = self.calls.remove(&end.call.id) else { return Vec::new() };
        if let Some(code) = end.exit_code {
            call.span.set("process.exit.code", i64::from(code));
        }
        if tracing.shows_content() {
            call.span.set("gen_ai.tool.call.result", &*end.text);
        }
        let wrong = match end.status {
            ToolStatus::Success => None,
            ToolStatus::Error => Some(end.error_code.unwrap_or("tool_error")),
            ToolStatus::Denied => Some("permission_denied"),
            ToolStatus::Cancelled => Some("cancelled"),
        };
        if let Some(wrong) = wrong {
            call.span.fail(wrong, wrong);
            call.agent.iter_mut().for_each(|agent| agent.fail(wrong, wrong));
        }
        call.spans().collect()
    }

    fn mark(&mut self, mark: Option<(&'static str, Attributes)>) {
        if let (Some(turn), Some((name, attributes))) = (&mut self.turn, mark) {
            turn.mark(name, attributes);
        }
    }
}

fn sign(span: &mut Span, session: Option<&SessionId>) {
    if let Some(session) = session {
        span.set("session.id", session.as_str());
        span.set("gen_ai.conversation.id", session.as_str());
    }
}

/// The event of a reasoning step, without its text.
fn thinking(step: &Thinking) -> (&'static str, Attributes) {
    let count = |list: usize| u64::try_from(list).unwrap_or(u64::MAX).into();
    match step {
        Thinking::TotExpand { candidates } => {
            ("tot.expand", vec![("qwen.candidates", count(candidates.len()))])
        }
        Thinking::TotEvaluate { chosen, .. } => ("tot.evaluate", vec![("qwen.chosen", (*chosen).into())]),
        Thinking::TotBacktrack { to_depth, .. } => {
            ("tot.backtrack", vec![("qwen.to_depth", (*to_depth).into())])
        }
        Thinking::GotPlan { node_ids, .. } => ("got.plan", vec![("qwen.nodes", count(node_ids.len()))]),
        Thinking::GotNodeStart { id } => ("got.node_start", vec![("qwen.thought", (&**id).into())]),
        Thinking::GotNodeComplete { id, .. } => ("got.node_complete", vec![("qwen.thought", (&**id).into())]),
        Thinking::GotNodeFailed { id, .. } => ("got.node_failed", vec![("qwen.thought", (&**id).into())]),
        Thinking::GotExpand { id, nodes_added, .. } => {
            ("got.expand", vec![("qwen.thought", (&**id).into()), ("qwen.nodes", (*nodes_added).into())])
        }
    }
}

/// The event of a session notice. Retries and fallbacks are recorded in the span of the model call where they
/// occur.
fn noticed(event: &SessionEvent) -> Option<(&'static str, Attributes)> {
    Some(match event {
        SessionEvent::Compressed { original_tokens, new_tokens, .. } => (
            "session.compressed",
            vec![
                ("qwen.tokens.before", (*original_tokens).into()),
                ("qwen.tokens.after", (*new_tokens).into()),
            ],
        ),
        SessionEvent::LoopDetected { .. } => ("loop_detected", Vec::new()),
        SessionEvent::ModeChanged { mode } => {
            ("permission_mode.changed", vec![("qwen.permission_mode", (&**mode).into())])
        }
        SessionEvent::Steered { prompt_id, .. } => {
            ("steered", vec![("qwen.prompt_id", prompt_id.as_str().into())])
        }
        SessionEvent::Finished
        | SessionEvent::MaxTokens { .. }
        | SessionEvent::MaxTurns { .. }
        | SessionEvent::Cancelled
        | SessionEvent::Retry { .. }
        | SessionEvent::Waiting { .. }
        | SessionEvent::ModelFallback { .. } => return None,
    })
}
