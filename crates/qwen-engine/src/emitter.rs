//! Where events enter the stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_events::{Body, CallId, ConsoleLevel, Event, LogScope, NodeRun, Scope, Timestamp, TraceContext};
use tokio::sync::mpsc;

use crate::log::{Log, LogError, Unsynced};
use crate::redact::{EventRedactor, Redacted, Redactor};
use crate::{HooksRun, Tracer};

/// Stamps events with time and scope and hands them on. The channel is bounded: when readers are slow, whoever
/// speaks waits, down to the model's socket and the tool's pipe.
#[derive(Clone)]
pub struct Emitter {
    sender: mpsc::Sender<Event>,
    scope: Scope,
    wants_state: bool,
    log: Option<Log>,
    /// One for the whole stream: what it holds back of a text belongs to all who speak.
    redaction: Option<Arc<Mutex<EventRedactor>>>,
    tracer: Option<Arc<dyn Tracer>>,
    /// What is not told before it is on disk together.
    held: Option<Arc<Mutex<Held>>>,
}

/// Events that logs know, and their readers not yet.
#[derive(Default)]
struct Held {
    events: Vec<Event>,
    /// The logs that the disk has not taken yet, one each.
    logs: Vec<(Log, Unsynced)>,
}

impl Emitter {
    /// An emitter outside any node.
    pub fn new(sender: mpsc::Sender<Event>) -> Self {
        let scope = Scope::default();
        Self { sender, scope, wants_state: false, log: None, redaction: None, tracer: None, held: None }
    }

    /// Takes out secrets before anything else learns of them.
    pub fn redacting(mut self, redactor: Arc<Redactor>) -> Self {
        self.redaction = Some(Arc::new(Mutex::new(EventRedactor::new(redactor))));
        self
    }

    /// Lets `tracer` see everything, without secrets.
    pub fn traced(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The same stream for words of our own that hold no secret. They pass by what is held back of a text until it is
    /// known whether a secret is in it.
    pub fn aside(&self) -> Self {
        Self { redaction: None, ..self.clone() }
    }

    /// Also sends the graph's state after each node, which costs a rendering of it.
    pub fn with_state(mut self) -> Self {
        self.wants_state = true;
        self
    }

    /// Whether readers want to see the graph's state.
    pub fn wants_state(&self) -> bool {
        self.wants_state
    }

    /// The same stream, kept in a session's log.
    pub(crate) fn logged(&self, log: Option<&Log>) -> Self {
        let mut inner = self.clone();
        inner.log = log.cloned();
        inner
    }

    /// The same stream, where readers hear nothing before [`release`](Self::release): so that the ends of many turns wait
    /// for the disk once.
    pub fn holding(&self) -> Self {
        let mut inner = self.clone();
        inner.held = Some(Arc::default());
        inner
    }

    /// Tells what was held, once it is on disk. More can be held afterwards.
    pub async fn release(&self) {
        let Some(held) = &self.held else { return };
        let Held { events, logs } = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
        for (log, unsynced) in logs {
            if let Err(error) = unsynced.sync().await {
                self.send(unlogged(&log.unsynced(error))).await;
            }
        }
        for event in events {
            self.send(event).await;
        }
    }

    /// The same stream for those who speak beside the turns: it ends without waiting for them, and no log keeps their words.
    pub(crate) fn in_background(&self) -> BackgroundEmitter {
        BackgroundEmitter { sender: self.sender.downgrade(), redaction: self.redaction.clone() }
    }

    /// The same stream, spoken to by a node run.
    pub fn in_node(&self, node: Arc<NodeRun>) -> Self {
        let mut inner = self.clone();
        inner.scope.node = Some(node);
        inner
    }

    /// The same stream, spoken to by the sub-agent that `call` started.
    pub fn in_call(&self, call: CallId) -> Self {
        let mut inner = self.clone();
        inner.scope.parent = Some(call);
        inner
    }

    /// Whether a sub-agent speaks.
    pub(crate) fn is_in_call(&self) -> bool {
        self.scope.parent.is_some()
    }

    /// Waits until there is room to say something. Whoever must hear a cancel while the reader is slow waits here, where
    /// giving up costs nothing, and then speaks.
    pub async fn capacity(&self) {
        // A closed channel has room: what is said into it is heard by nobody.
        drop(self.sender.reserve().await);
    }

    /// The same stream, spoken to by the tools of a thought.
    pub(crate) fn in_thought(&self, thought: Arc<str>) -> Self {
        let mut inner = self.clone();
        inner.scope.thought = Some(thought);
        inner
    }

    /// Tells whoever makes traces that a turn is about to begin, under what its host says.
    pub(crate) fn turn_begins(&self, host: Option<&TraceContext>) {
        if let Some(tracer) = &self.tracer {
            tracer.turn_begins(host);
        }
    }

    /// Where in a trace a running call is, where traces are made.
    pub(crate) fn place_of(&self, call: &CallId) -> Option<TraceContext> {
        self.tracer.as_ref().and_then(|tracer| tracer.place_of(call))
    }

    /// Tells whoever makes traces that the hooks of an event are called, about a call or by whoever speaks here.
    pub(crate) fn hooks_begin(&self, event: &'static str, about: Option<&CallId>) -> Option<HooksRun> {
        let tracer = self.tracer.as_ref()?;
        Some(tracer.hooks_begin(event, about.or(self.scope.parent.as_ref())))
    }

    /// Whether a log keeps what is said.
    pub(crate) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Says something to the log alone.
    pub(crate) fn keep(&self, body: Body) {
        if let Some(log) = &self.log {
            log.note(body);
        }
    }

    /// Says what happened; waits while the reader is slow. Once the reader is gone, nothing can be said any more,
    /// and whoever owns the stream ends the turn.
    pub async fn emit(&self, body: Body) {
        let event = Event { at: now(), scope: self.scope.clone(), body };
        let Some(redaction) = &self.redaction else { return self.tell(event).await };
        let Redacted { before, event } =
            redaction.lock().unwrap_or_else(PoisonError::into_inner).redact(event);
        for event in before.into_iter().chain(event) {
            self.tell(event).await;
        }
    }

    async fn tell(&self, event: Event) {
        if let Some(tracer) = &self.tracer {
            tracer.event(&event);
        }
        if let Some(held) = &self.held {
            return held.lock().unwrap_or_else(PoisonError::into_inner).hold(self.log.as_ref(), event);
        }
        // The log comes first: what it tells must be kept before it can have an effect or anyone relies on it.
        if let Some(log) = &self.log {
            let kept = match log.record(&event) {
                Ok(Some(unsynced)) => unsynced.sync().await.map_err(|error| log.unsynced(error)),
                recorded => recorded.map(drop),
            };
            if let Err(error) = kept {
                self.send(unlogged(&error)).await;
            }
        }
        self.send(event).await;
    }

    async fn send(&self, event: Event) {
        // A closed channel means that the reader is gone; the turn is cancelled by the one who closed it.
        let _ = self.sender.send(event).await;
    }
}

/// A stream that is not kept open.
pub(crate) struct BackgroundEmitter {
    sender: mpsc::WeakSender<Event>,
    redaction: Option<Arc<Mutex<EventRedactor>>>,
}

impl BackgroundEmitter {
    /// Says what happened, while anybody else may still say something.
    pub(crate) async fn emit(&self, body: Body) {
        if let Some(sender) = self.sender.upgrade() {
            Emitter { redaction: self.redaction.clone(), ..Emitter::new(sender) }.emit(body).await;
        }
    }
}

impl Held {
    fn hold(&mut self, log: Option<&Log>, event: Event) {
        match log.map(|log| (log, log.record(&event))) {
            Some((log, Ok(Some(unsynced)))) if self.logs.iter().all(|(other, _)| !other.is(log)) => {
                self.logs.push((log.clone(), unsynced));
            }
            Some((_, Err(error))) => self.events.push(unlogged(&error)),
            _ => {}
        }
        self.events.push(event);
    }
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// What readers are told, once, when the log cannot be written: the session is worth more than its log.
fn unlogged(error: &LogError) -> Event {
    let text = format!("{error}; this session goes on, but what is said from here on is not kept");
    let body = Body::Console { level: ConsoleLevel::Warn, scope: LogScope::System, text: text.into() };
    Event { at: now(), scope: Scope::default(), body }
}
