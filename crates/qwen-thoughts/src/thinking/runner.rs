//! One model call inside a thought, and the tools that it may use.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use qwen_events::{
    Body, CallId, Denial, ErrorInfo, ErrorKind, Finish, Json, Message, MessageEnd, ModelUsage, Part, Role,
    SessionEvent, ToolCall, ToolSpec, Usage,
};
use qwen_model::{Piece, estimate_unfinished};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use qwen_engine::Stop;
use qwen_engine::agent::{
    CallOrder, CallPlace, CallStart, Openness, StoredRun, TurnContext, run_call, silent_end,
    unix_seconds_after, written_call,
};
use qwen_engine::graph::{RunContext, fan_out};

use super::ThinkingOptions;

/// The maximum number of tool rounds before a thought must answer.
const TOOL_ROUNDS: usize = 12;

/// State shared by the thoughts of a run.
pub(crate) struct ThoughtRunner {
    pub turn: Arc<TurnContext>,
    /// The conversation before the message of this turn.
    context: Vec<Message>,
    /// The parts of the turn's message that are not text.
    media: Vec<Part>,
    /// The maximum number of concurrent model calls.
    pub parallel: usize,
    permits: Semaphore,
    /// The timeout of a thought, per attempt.
    pub(super) timeout: Option<Duration>,
    /// The maximum number of retries.
    pub(super) retries: usize,
    /// Only one thought at a time emits its calls, so that messages are not interleaved for readers.
    voice: tokio::sync::Mutex<()>,
    denials: Mutex<Vec<Denial>>,
}

/// A question of a thought to the model.
pub(crate) struct ThoughtRequest<'a> {
    /// Identifies the question within its step.
    pub key: &'a str,
    /// The thought that asks.
    pub thought: &'a str,
    pub prompt: String,
    /// True if tools may be used to find the answer.
    pub tools: bool,
}

/// Why a thought has no result.
#[derive(Debug, Clone)]
pub(crate) enum ThoughtFailure {
    /// The whole run must end: a limit or a cancellation.
    Run(Stop),
    /// Only this thought failed.
    Thought(ErrorInfo),
}

/// The model's answer, as stored in the log.
#[derive(Serialize, Deserialize)]
struct MessageAdded {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<PartialCall>,
}

/// A call that the model requests.
#[derive(Serialize, Deserialize)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_fields: Option<String>,
}

/// A tool's result, as stored in the log.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    text: String,
    is_error: bool,
}

impl ThoughtRunner {
    /// A runner for a turn whose conversation ends with the user's message.
    pub fn new(turn: Arc<TurnContext>, conversation: &[Message], options: &ThinkingOptions) -> Self {
        let (added, context) =
            conversation.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
        let parts = added.map(|message| message.parts.as_slice()).unwrap_or_default();
        let media = parts.iter().filter(|part| matches!(part, Part::Media(_))).cloned().collect();
        Self {
            turn,
            context: context.to_vec(),
            media,
            parallel: options.parallel.max(1),
            permits: Semaphore::new(options.parallel.max(1)),
            timeout: options.timeout,
            retries: options.retries,
            voice: tokio::sync::Mutex::default(),
            denials: Mutex::default(),
        }
    }

    /// The conversation with `prompt` as its last message.
    pub fn messages(&self, prompt: String) -> Vec<Message> {
        let mut messages = self.context.clone();
        let mut parts = vec![Part::Text(prompt.into())];
        parts.extend(self.media.iter().cloned());
        messages.push(Message { role: Role::User, parts });
        messages
    }

    /// The calls that were denied so far.
    pub fn take_denials(&self) -> Vec<Denial> {
        std::mem::take(&mut *self.denials.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the model, runs the tools that it requests if that is allowed, and returns its final answer.
    pub(super) async fn attempt(
        &self,
        ask: &ThoughtRequest<'_>,
        cx: &RunContext,
    ) -> Result<String, ThoughtFailure> {
        let mut messages = self.messages(ask.prompt.clone());
        let mut rounds = 0;
        loop {
            let tools =
                if ask.tools && rounds < TOOL_ROUNDS { self.turn.usable_tools() } else { Arc::from([]) };
            let key = if rounds == 0 { ask.key.to_owned() } else { format!("{}/{rounds}", ask.key) };
            let added = cx.once(&key, self.call(messages.clone().into(), tools, cx)).await?;
            if added.calls.is_empty() {
                return Ok(added.text);
            }
            rounds += 1;
            let cx = RunContext { emit: cx.emit.in_thought(ask.thought.into()), ..cx.clone() };
            self.use_tools(added, &key, &mut messages, &cx).await?;
        }
    }

    /// One model call, collected into a whole answer.
    async fn call(
        &self,
        messages: Arc<Vec<Message>>,
        tools: Arc<[ToolSpec]>,
        cx: &RunContext,
    ) -> Result<MessageAdded, ThoughtFailure> {
        let stopped = cx.cancel.stopped();
        tokio::pin!(stopped);
        let _permit = tokio::select! {
            biased;
            stop = &mut stopped => return Err(ThoughtFailure::Run(stop)),
            permit = self.permits.acquire() => permit,
        };
        cx.budget.model_call().map_err(ThoughtFailure::Run)?;
        let offered = !tools.is_empty();
        let request = self.turn.request(messages, tools);
        let name = request.model.clone().unwrap_or_else(|| self.turn.session.model.name().into());
        let mut answer =
            StreamedAnswer { model: name, text: String::new(), calls: Vec::new(), usage: Usage::default() };
        let started = Instant::now();
        let mut pieces = self.turn.session.model.call(request.clone());
        let ended = loop {
            let piece = tokio::select! {
                biased;
                stop = &mut stopped => break Err(ThoughtFailure::Run(stop)),
                piece = pieces.next() => piece,
            };
            match piece {
                Some(Ok(Piece::Finish(finish))) => break answer.checked(finish),
                Some(Ok(piece)) => answer.take(piece, cx).await,
                Some(Err(error)) => break Err(ThoughtFailure::Thought(error.0)),
                None => break Err(ThoughtFailure::Thought(silent_end())),
            }
        };
        drop(pieces);
        if ended.is_err() && answer.usage.total() == 0 && !answer.text.is_empty() {
            answer.usage = estimate_unfinished(&request, answer.text.len(), 0);
        }
        let cost_usd = cx.budget.spend(&answer.model, &answer.usage, started.elapsed());
        let spent = ModelUsage { model: answer.model, calls: 1, usage: answer.usage, cost_usd };
        cx.emit.emit(Body::ThoughtUsage(Box::new(spent))).await;
        ended?;
        let calls = answer.calls.into_iter().map(|(_, call)| call);
        // If no tools were offered, a partial call cannot be told from a complete one.
        Ok(MessageAdded { text: answer.text, calls: if offered { calls.collect() } else { Vec::new() } })
    }

    /// Emits the calls, runs them, and adds calls and results to the thought's conversation.
    async fn use_tools(
        &self,
        added: MessageAdded,
        key: &str,
        messages: &mut Vec<Message>,
        cx: &RunContext,
    ) -> Result<(), ThoughtFailure> {
        let places = (0..).map(|n| format!("{key}/tool{n}"));
        let calls = added
            .calls
            .into_iter()
            .zip(places)
            .map(|(call, place)| (self.with_unique_id(call, &place), place));
        let (calls, places): (Vec<Arc<ToolCall>>, Vec<String>) = calls.unzip();
        // An earlier process already emitted the calls that it ran.
        let ran_before = |place: &String| cx.effects.recall(place).is_some();
        let summary = calls.iter().zip(&places).filter(|(_, place)| !ran_before(place));
        let summary: Vec<Arc<ToolCall>> = summary.map(|(call, _)| call.clone()).collect();
        if !summary.is_empty() {
            self.show(&summary, cx).await;
        }
        let order = CallOrder::new(calls.len(), &[]);
        let keyed = calls.iter().zip(places).enumerate();
        let tasks = keyed.map(|(index, (call, key))| self.run_once(key, call, order.place(index), cx));
        let ran = fan_out(tasks).await;
        let mut parts = Vec::new();
        if !added.text.is_empty() {
            parts.push(Part::Text(added.text.into()));
        }
        parts.extend(calls.iter().cloned().map(Part::Call));
        messages.push(Message { role: Role::Assistant, parts });
        let results = ran.into_iter().collect::<Result<Vec<Part>, ThoughtFailure>>()?;
        messages.push(Message { role: Role::Tool, parts: results });
        if cx.cancel.is_stopped() { Err(ThoughtFailure::Run(cx.cancel.cause())) } else { Ok(()) }
    }

    /// Runs a call, unless an earlier process did. A call that it started without recording a result is not
    /// started again.
    async fn run_once(
        &self,
        key: String,
        call: &Arc<ToolCall>,
        place: CallPlace<'_>,
        cx: &RunContext,
    ) -> Result<Part, ThoughtFailure> {
        let interrupted = cx.effects.recall(&StoredRun::started(&call.id)).is_some();
        let gave = cx
            .once(&key, async {
                let start = CallStart { interrupted, alone: false, place };
                let done = run_call(&self.turn, call, start, cx).await;
                if let Some(denial) = done.denial {
                    self.denials.lock().unwrap_or_else(PoisonError::into_inner).push(denial);
                }
                match done.limit {
                    Some(stop) => Err(ThoughtFailure::Run(stop)),
                    None if done.openness != Openness::Ended => {
                        Err(ThoughtFailure::Run(Stop::deferred(std::slice::from_ref(call))))
                    }
                    None => Ok(StoredResult {
                        text: [&*done.result.text]
                            .into_iter()
                            .chain(done.hook_notes.iter().map(String::as_str))
                            .collect::<Vec<_>>()
                            .join("\n\n"),
                        is_error: done.result.is_error,
                    }),
                }
            })
            .await?;
        Ok(Part::Result(qwen_events::ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            text: gave.text.into(),
            media: Vec::new(),
            is_error: gave.is_error,
        }))
    }

    /// The call with an id that is unique in the session: models may give the same id to calls of concurrent
    /// thoughts. The id is derived from the position of the call, so that a later process derives the same
    /// one.
    fn with_unique_id(&self, call: PartialCall, place: &str) -> Arc<ToolCall> {
        let mut hash = std::hash::DefaultHasher::new();
        (self.turn.origin.prompt_id.as_str(), place).hash(&mut hash);
        let id = CallId::new(format!("{}-{:08x}", call.id, hash.finish() & 0xffff_ffff));
        let written = written_call(id, call.name.into(), call.arguments);
        Arc::new(ToolCall { provider_fields: call.provider_fields.map(Json::trusted), ..written })
    }

    /// Emits a message that contains only calls. The thought's text is not emitted.
    async fn show(&self, calls: &[Arc<ToolCall>], cx: &RunContext) {
        let _voice = self.voice.lock().await;
        self.turn.expect_host(calls);
        let message_id: Arc<str> = format!("msg-{:016x}", fastrand::u64(..)).into();
        let model: Arc<str> = self.turn.session.model.name().into();
        let start = Body::MessageStart { message_id: message_id.clone(), model: model.clone() };
        cx.emit.emit(start).await;
        for call in calls {
            cx.emit.emit(Body::ToolCall(call.clone())).await;
        }
        let end = MessageEnd {
            message_id,
            model,
            text: Arc::default(),
            thought: Arc::default(),
            signature: None,
            thoughts: Vec::new(),
            calls: calls.to_vec(),
            finish: Finish::ToolCalls,
            usage: Usage::default(),
            aborted: false,
        };
        cx.emit.emit(Body::MessageEnd(Box::new(end))).await;
    }
}

/// The answer received so far.
struct StreamedAnswer {
    model: Arc<str>,
    text: String,
    calls: Vec<(u32, PartialCall)>,
    usage: Usage,
}

impl StreamedAnswer {
    async fn take(&mut self, piece: Piece, cx: &RunContext) {
        match piece {
            Piece::Start { model } => self.model = model,
            Piece::Text(text) => self.text.push_str(&text),
            Piece::Call { index, id, name, arguments } => {
                let at = self.calls.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
                    let (id, name, arguments) = (id.to_string(), name.to_string(), String::new());
                    let call = PartialCall { id, name, arguments, provider_fields: None };
                    self.calls.push((index, call));
                    self.calls.len() - 1
                });
                self.calls[at].1.arguments.push_str(&arguments);
            }
            Piece::CallFields { index, fields } => {
                if let Some((_, call)) = self.calls.iter_mut().find(|(known, _)| *known == index) {
                    call.provider_fields = Some(fields.as_str().to_owned());
                }
            }
            Piece::Usage(usage) => self.usage = usage,
            Piece::Retry { attempt, max_retries, delay_ms, error } => {
                let (status, error) = (error.status, error.message);
                let retry = SessionEvent::Retry { attempt, max_retries, delay_ms, status, error };
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
            Piece::Thought(_) | Piece::ThoughtSignature(_) | Piece::Paused | Piece::Finish(_) => {}
        }
    }

    /// An answer that the provider refused to give is an error.
    fn checked(&self, finish: Finish) -> Result<(), ThoughtFailure> {
        if finish == Finish::ContentFilter && self.text.is_empty() && self.calls.is_empty() {
            let message = "the provider's filter stopped the answer";
            return Err(ThoughtFailure::Thought(ErrorInfo::new(ErrorKind::Model, "content_filter", message)));
        }
        Ok(())
    }
}
