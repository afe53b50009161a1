//! *think*: one streamed model call.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use qwen_events::{
    Body, CallId, ConsoleLevel, ErrorInfo, ErrorKind, Finish, Json, LogScope, Message, MessageEnd, Part,
    Role, SessionEvent, ThoughtBlock, Thoughts, ToolCall, ToolKind, ToolSpec, Usage,
};
use qwen_model::{Piece, Request, estimate_unfinished};
use qwen_tools::Registry;

use super::{Delta, ReactState, context_window, written_call};
use crate::Stop;
use crate::context::TurnContext;
use crate::emitter::unix_seconds_after;
use crate::graph::{Next, Node, RunContext, Step};
use crate::tool_search;

pub(super) struct Think(pub Arc<TurnContext>);

impl Node<ReactState> for Think {
    fn run<'a>(&'a self, state: &'a ReactState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            if let Some(wanted) = &self.0.structured
                && let Some(step) = wanted.conclude(&self.0, cx).await
            {
                return step;
            }
            self.call_model_within_window(state, cx).await
        })
    }
}

impl Think {
    /// Calls the model. If the window cannot hold the conversation, a summary replaces older messages: before
    /// the call if that can be foreseen, after it if the model reports it.
    async fn call_model_within_window(&self, state: &ReactState, cx: &RunContext) -> Step<Delta> {
        let context = &self.0;
        let tools = || Some(context.usable_tools());
        let mut made = None;
        if context_window::is_short(context, state, cx) {
            made = context_window::make(context, &state.messages, cx).await;
        }
        let messages = made.clone().unwrap_or_else(|| state.messages.clone());
        let mut step = stream_message(context, messages.clone(), tools(), cx).await;
        if context_window::is_too_long(&step) && !cx.cancel.is_stopped() {
            let again = context_window::make(context, &messages, cx).await;
            let compressed = again.is_some();
            if let Some(shorter) = again {
                step = stream_message(context, shorter.clone(), tools(), cx).await;
                made = Some(shorter);
            }
            context_window::explain(&mut step, compressed);
        }
        if let Some(messages) = made {
            step.delta = Delta::Compacted { messages, then: Box::new(step.delta) };
        }
        step
    }
}

impl TurnContext {
    /// The tools that the model can use now: questions need someone who answers, and plan mode is left only
    /// from within it, with approval. Both are the main agent's.
    pub fn usable_tools(&self) -> Arc<[ToolSpec]> {
        let can_answer = self.session.process.can_answer() && self.origin.parent.is_none();
        let can_leave_plan = can_answer && self.session.process.permissions.mode() == "plan";
        let offered = tool_search::offered(&self.tools, &self.session.loaded_tools);
        if can_answer && can_leave_plan {
            return offered;
        }
        let is_usable = |kind: ToolKind| match kind {
            ToolKind::Ask => can_answer,
            ToolKind::ExitPlan => can_leave_plan,
            ToolKind::Read
            | ToolKind::Edit
            | ToolKind::Execute
            | ToolKind::Fetch
            | ToolKind::Mcp
            | ToolKind::Session
            | ToolKind::Memory
            | ToolKind::Undeclared => true,
        };
        let kind_of = |spec: &ToolSpec| {
            let tool = self.tools.get(&spec.name).and_then(|tool| tool.declaration());
            tool.map_or(ToolKind::Undeclared, |declaration| declaration.kind)
        };
        offered.iter().filter(|spec| is_usable(kind_of(spec))).cloned().collect()
    }
}

/// One model call whose answer becomes a message of the conversation, streamed as it arrives. Without `tools`
/// the model cannot call any.
pub(crate) async fn stream_message(
    context: &TurnContext,
    messages: Arc<Vec<Message>>,
    tools: Option<Arc<[ToolSpec]>>,
    cx: &RunContext,
) -> Step<Delta> {
    if let Err(stop) = cx.budget.model_call() {
        announce_limit(&stop, cx).await;
        return Step { delta: Delta::None, next: Next::Stop(stop) };
    }
    let may_call = tools.is_some();
    let request = context.request(messages, tools.unwrap_or_default());
    let model = request.model.clone().unwrap_or_else(|| context.session.model.name().into());
    let mut answer = StreamedMessage::new(model, calls_of_turn(&request.messages));
    answer.hides_thoughts = request.sampling.thoughts == Some(Thoughts::Omitted);
    let started = Instant::now();
    let mut pieces = context.session.model.call(request.clone());
    let stopped = cx.cancel.stopped();
    tokio::pin!(stopped);
    let ended = loop {
        // Cancellation is polled first, so that a model that never pauses cannot starve it.
        let piece = tokio::select! {
            biased;
            stop = &mut stopped => break Err(stop),
            piece = pieces.next() => piece,
        };
        tokio::select! {
            biased;
            stop = &mut stopped => break Err(stop),
            () = cx.emit.capacity() => {}
        }
        match piece {
            Some(Ok(Piece::Finish(finish))) => break Ok(finish),
            Some(Ok(Piece::Call { .. })) if !may_call => {}
            Some(Ok(piece)) => answer.take(piece, &context.tools, cx).await,
            Some(Err(error)) => break Err(Stop::failed(error.0)),
            None => break Err(Stop::failed(silent_end())),
        }
    };
    drop(pieces);
    if ended.is_err() {
        answer.count_unfinished(&request);
    }
    // Sub-agents have other prompts, and a call that failed may lack its usage.
    let notice = (ended.is_ok() && context.origin.parent.is_none())
        .then(|| context.session.cache_watch.record(&request, &answer.model, &answer.usage))
        .flatten();
    let step = answer.end(context, ended, started, cx).await;
    if let Some(text) = notice {
        let (level, scope) = (ConsoleLevel::Warn, LogScope::System);
        cx.emit.emit(Body::Console { level, scope, text: text.into() }).await;
    }
    step
}

/// The answer received so far.
struct StreamedMessage {
    /// The ids of earlier calls.
    taken: Vec<CallId>,
    message_id: Arc<str>,
    model: Arc<str>,
    started: bool,
    text: String,
    thoughts: Vec<Thought>,
    /// Readers do not get the model's reasoning.
    hides_thoughts: bool,
    calls: Vec<PartialCall>,
    usage: Usage,
}

/// A block of reasoning. A signed block is complete; a signature without text is a block that only the
/// provider can read.
#[derive(Default)]
struct Thought {
    text: String,
    signature: Option<Arc<str>>,
}

/// The name that the session uses for the tool that the model calls `name`.
fn session_name(tools: &Registry, name: Arc<str>) -> Arc<str> {
    tools.get(&name).map_or(name, |tool| tool.spec().name.clone())
}

/// A call that is still being streamed.
struct PartialCall {
    index: u32,
    id: CallId,
    name: Arc<str>,
    arguments: String,
    provider_fields: Option<Json>,
}

impl PartialCall {
    /// Converts the completed call.
    fn finish(self) -> Arc<ToolCall> {
        let call = written_call(self.id, self.name, self.arguments);
        Arc::new(ToolCall { provider_fields: self.provider_fields, ..call })
    }
}

impl StreamedMessage {
    fn new(model: Arc<str>, taken: Vec<CallId>) -> Self {
        Self {
            taken,
            message_id: format!("msg-{:016x}", fastrand::u64(..)).into(),
            model,
            started: false,
            text: String::new(),
            thoughts: Vec::new(),
            hides_thoughts: false,
            calls: Vec::new(),
            usage: Usage::default(),
        }
    }

    async fn take(&mut self, piece: Piece, tools: &Registry, cx: &RunContext) {
        match piece {
            Piece::Start { model } => {
                self.model = model;
                self.start(cx).await;
            }
            Piece::Text(text) => {
                self.start(cx).await;
                self.text.push_str(&text);
                cx.emit.emit(Body::TextDelta(text)).await;
            }
            Piece::Thought(text) => {
                self.start(cx).await;
                self.open_thought().text.push_str(&text);
                if !self.hides_thoughts {
                    cx.emit.emit(Body::ThoughtDelta(text)).await;
                }
            }
            Piece::ThoughtSignature(signature) => {
                let thought = self.open_thought();
                thought.signature = Some(signature.clone());
                if !thought.text.is_empty() && !self.hides_thoughts {
                    cx.emit.emit(Body::ThoughtSignature(signature)).await;
                }
            }
            Piece::Call { index, id, name, arguments } => {
                let name = session_name(tools, name);
                self.call_piece(index, &id, name, arguments, cx).await;
            }
            Piece::CallFields { index, fields } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.index == index) {
                    call.provider_fields = Some(fields);
                }
            }
            Piece::Usage(usage) => self.usage = usage,
            Piece::Retry { attempt, max_retries, delay_ms, error } => {
                let retry = SessionEvent::Retry {
                    attempt,
                    max_retries,
                    delay_ms,
                    status: error.status,
                    error: error.message,
                };
                cx.emit.emit(Body::Session(Box::new(retry))).await;
            }
            Piece::Waiting { error, delay_ms } => {
                let (reason, status) = (error.message, error.status);
                let until = unix_seconds_after(delay_ms);
                let waiting = SessionEvent::Waiting { reason, delay_ms, until, status };
                cx.emit.emit(Body::Session(Box::new(waiting))).await;
            }
            Piece::Fallback { from, to, error } => {
                let fallback = SessionEvent::ModelFallback { from, to, reason: error.message };
                cx.emit.emit(Body::Session(Box::new(fallback))).await;
            }
            Piece::RateLimit(limit) => cx.emit.emit(Body::RateLimit(limit)).await,
            Piece::Paused | Piece::Finish(_) => {}
        }
    }

    /// The block of reasoning that is still open.
    fn open_thought(&mut self) -> &mut Thought {
        let at = match self.thoughts.len().checked_sub(1) {
            Some(last) if self.thoughts[last].signature.is_none() => last,
            _ => {
                self.thoughts.push(Thought::default());
                self.thoughts.len() - 1
            }
        };
        &mut self.thoughts[at]
    }

    async fn start(&mut self, cx: &RunContext) {
        if !self.started {
            self.started = true;
            let start = Body::MessageStart { message_id: self.message_id.clone(), model: self.model.clone() };
            cx.emit.emit(start).await;
        }
    }

    async fn call_piece(
        &mut self,
        index: u32,
        id: &str,
        name: Arc<str>,
        arguments: Box<str>,
        cx: &RunContext,
    ) {
        self.start(cx).await;
        let place = self.calls.iter().position(|c| c.index == index).unwrap_or_else(|| {
            let id = CallId::new(id);
            let id = if self.taken.contains(&id) { fresh_call_id() } else { id };
            self.calls.push(PartialCall { index, id, name, arguments: String::new(), provider_fields: None });
            self.calls.len() - 1
        });
        let call = &mut self.calls[place];
        call.arguments.push_str(&arguments);
        let delta = Body::ToolCallDelta {
            index: call.index,
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments,
        };
        cx.emit.emit(delta).await;
    }

    /// Estimates the tokens of an answer that was cut off before its server reported them.
    fn count_unfinished(&mut self, request: &Request) {
        if self.started && self.usage.total() == 0 {
            let calls: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
            let thoughts = self.thoughts.iter().map(|thought| thought.text.len()).sum();
            self.usage = estimate_unfinished(request, self.text.len() + calls, thoughts);
        }
    }

    async fn end(
        mut self,
        context: &TurnContext,
        ended: Result<Finish, Stop>,
        started: Instant,
        cx: &RunContext,
    ) -> Step<Delta> {
        cx.budget.spend(&self.model, &self.usage, started.elapsed());
        if self.usage.total() > 0 {
            cx.budget.context_is(self.usage.total(), self.usage.estimated);
        }
        let aborted = ended.is_err();
        let mut calls: Vec<Arc<ToolCall>> = Vec::new();
        if !aborted {
            // Only a complete message has calls: a partial call must neither run nor remain unanswered in the
            // conversation.
            self.start(cx).await;
            calls.extend(std::mem::take(&mut self.calls).into_iter().map(PartialCall::finish));
            context.expect_host(&calls);
            for call in &calls {
                cx.emit.emit(Body::ToolCall(call.clone())).await;
            }
        }
        let finish = match &ended {
            Ok(Finish::Stop | Finish::ToolCalls) if !calls.is_empty() => Finish::ToolCalls,
            Ok(Finish::ToolCalls) | Err(_) => Finish::Stop,
            Ok(finish) => *finish,
        };
        let reply: Arc<str> = self.text.as_str().into();
        if self.started {
            let end = MessageEnd {
                message_id: self.message_id.clone(),
                model: self.model.clone(),
                text: reply.clone(),
                thought: self.shown_thought(),
                // A single signature cannot cover several blocks.
                signature: if let [thought] = &self.thoughts[..] { thought.signature.clone() } else { None },
                thoughts: self.blocks(),
                calls: calls.clone(),
                finish,
                usage: self.usage,
                aborted,
            };
            cx.emit.emit(Body::MessageEnd(Box::new(end))).await;
        }
        if finish == Finish::Length {
            let message = "the answer was cut off at the model's output limit".into();
            cx.emit.emit(Body::Session(Box::new(SessionEvent::MaxTokens { message }))).await;
        }
        let next = match ended {
            Err(stop) => Next::Stop(stop),
            Ok(_) if calls.is_empty() => Next::End,
            Ok(_) => Next::Goto("act"),
        };
        let message = self.message(&reply, &calls);
        Step { delta: Delta::MessageAdded { message, calls, reply, finish }, next }
    }

    /// The reasoning blocks that readers get, if there are several.
    fn blocks(&self) -> Vec<ThoughtBlock> {
        let several = self.thoughts.iter().filter(|_| self.thoughts.len() > 1);
        let shown =
            |thought: &Thought| if self.hides_thoughts { "".into() } else { thought.text.as_str().into() };
        several
            .map(|thought| ThoughtBlock { text: shown(thought), signature: thought.signature.clone() })
            .collect()
    }

    /// The part of the reasoning that readers get.
    fn shown_thought(&self) -> Arc<str> {
        let shown = self.thoughts.iter().filter(|_| !self.hides_thoughts);
        shown.map(|thought| thought.text.as_str()).collect::<String>().into()
    }

    /// The message for the conversation; `None` if the model's answer is empty.
    fn message(&self, text: &Arc<str>, calls: &[Arc<ToolCall>]) -> Option<Message> {
        let thoughts = self.thoughts.iter();
        let mut parts: Vec<Part> = thoughts
            .map(|thought| Part::Thought {
                text: thought.text.as_str().into(),
                signature: thought.signature.clone(),
            })
            .collect();
        if !text.is_empty() {
            parts.push(Part::Text(text.clone()));
        }
        parts.extend(calls.iter().cloned().map(Part::Call));
        let has_content = parts.iter().any(|p| !matches!(p, Part::Thought { .. }));
        has_content.then_some(Message { role: Role::Assistant, parts })
    }
}

/// The ids of the turn's calls so far. Some servers reuse one id for every call, which would make results
/// ambiguous for readers.
fn calls_of_turn(messages: &[Message]) -> Vec<CallId> {
    let turn = messages.iter().rev().take_while(|message| message.role != Role::User);
    let parts = turn.flat_map(|message| &message.parts);
    let calls = parts.filter_map(|part| match part {
        Part::Call(call) => Some(call.id.clone()),
        _ => None,
    });
    calls.collect()
}

fn fresh_call_id() -> CallId {
    CallId::new(format!("call_{:032x}", fastrand::u128(..)))
}

/// Reports to readers that a limit ended the turn.
pub async fn announce_limit(stop: &Stop, cx: &RunContext) {
    use qwen_events::EndStatus;
    // The end of a sub-agent does not end the turn; a limit that ends both is reported when it ends the turn.
    if cx.emit.is_in_call() {
        return;
    }
    let message = stop.error.as_ref().map(|e| e.message.clone()).unwrap_or_default();
    let event = match stop.status {
        EndStatus::MaxTurns => {
            let limits = cx.budget.limits();
            SessionEvent::MaxTurns { limit: limits.session_turns.or(limits.turns).unwrap_or_default() }
        }
        EndStatus::MaxTokens => SessionEvent::MaxTokens { message },
        _ => return,
    };
    cx.emit.emit(Body::Session(Box::new(event))).await;
}

/// The error of a model stream that ended without a finish reason.
pub fn silent_end() -> ErrorInfo {
    ErrorInfo::new(
        ErrorKind::Network,
        "stream_broken",
        "the model's stream ended without saying that it is finished",
    )
}
