//! The entry point of the event stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qwen_events::{Body, CallId, ConsoleLevel, Event, LogScope, NodeRun, Scope, Timestamp, TraceContext};
use tokio::sync::mpsc;

use crate::log::{Log, LogError, Unsynced};
use crate::redact::{EventRedactor, Redacted, Redactor};
use crate::{HooksRun, Tracer};

/// Stamps events with time and scope and sends them to readers. The channel is bounded: slow readers block
/// the sender, down to the model's socket and the tool's pipe.
#[derive(Clone)]
pub struct Emitter {
    sender: mpsc::Sender<Event>,
    scope: Scope,
    wants_state: bool,
    log: Option<Log>,
    /// One for the whole stream: all its emitters share the text that is held back.
    redaction: Option<Arc<Mutex<EventRedactor>>>,
    tracer: Option<Arc<dyn Tracer>>,
    /// Events that are held until they are synced to disk together.
    held: Option<Arc<Mutex<UnsentEvents>>>,
}

/// Events that are logged but not sent to readers yet.
#[derive(Default)]
struct UnsentEvents {
    events: Vec<Event>,
    /// The logs that are not synced yet, one entry each.
    logs: Vec<(Log, Unsynced)>,
}

impl Emitter {
    /// An emitter outside any node.
    pub fn new(sender: mpsc::Sender<Event>) -> Self {
        let scope = Scope::default();
        Self { sender, scope, wants_state: false, log: None, redaction: None, tracer: None, held: None }
    }

    /// Redacts secrets before the log, the tracer or readers get an event.
    pub fn redacting(mut self, redactor: Arc<Redactor>) -> Self {
        self.redaction = Some(Arc::new(Mutex::new(EventRedactor::new(redactor))));
        self
    }

    /// Sends every event to `tracer` too, after redaction.
    pub fn traced(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The same stream for our own texts that contain no secret. They overtake text that is held back until
    /// it is known whether it contains a secret.
    pub fn unredacted(&self) -> Self {
        Self { redaction: None, ..self.clone() }
    }

    /// Also sends the graph's state after each node, which costs a serialization of it.
    pub fn with_state(mut self) -> Self {
        self.wants_state = true;
        self
    }

    /// True if readers want the graph's state.
    pub fn wants_state(&self) -> bool {
        self.wants_state
    }

    /// The same stream, recorded in a session's log.
    pub(crate) fn logged(&self, log: Option<&Log>) -> Self {
        let mut inner = self.clone();
        inner.log = log.cloned();
        inner
    }

    /// The same stream, which sends nothing to readers before [`release`](Self::release), so that the ends of
    /// many turns wait for one sync.
    pub fn holding(&self) -> Self {
        let mut inner = self.clone();
        inner.held = Some(Arc::default());
        inner
    }

    /// Sends the held events once they are on disk. More events can be held afterwards.
    pub async fn release(&self) {
        let Some(held) = &self.held else { return };
        let UnsentEvents { events, logs } =
            std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
        for (log, unsynced) in logs {
            if let Err(error) = unsynced.sync().await {
                self.send(unlogged(&log.unsynced(error))).await;
            }
        }
        for event in events {
            self.send(event).await;
        }
    }

    /// The same stream for background tasks: it closes without waiting for them, and their events are not
    /// logged.
    pub(crate) fn in_background(&self) -> BackgroundEmitter {
        BackgroundEmitter { sender: self.sender.downgrade(), redaction: self.redaction.clone() }
    }

    /// The same stream, scoped to a node run.
    pub fn in_node(&self, node: Arc<NodeRun>) -> Self {
        let mut inner = self.clone();
        inner.scope.node = Some(node);
        inner
    }

    /// The same stream, scoped to the sub-agent that `call` started.
    pub fn in_call(&self, call: CallId) -> Self {
        let mut inner = self.clone();
        inner.scope.parent = Some(call);
        inner
    }

    /// True if the emitter belongs to a sub-agent.
    pub(crate) fn is_in_call(&self) -> bool {
        self.scope.parent.is_some()
    }

    /// Waits until the channel has room. A sender that must react to cancellation while the reader is slow
    /// waits here, where the wait can be aborted without loss, and then emits.
    pub async fn capacity(&self) {
        // A closed channel counts as having room: events sent to it are discarded.
        drop(self.sender.reserve().await);
    }

    /// The same stream, scoped to the tools of a thought.
    pub fn in_thought(&self, thought: Arc<str>) -> Self {
        let mut inner = self.clone();
        inner.scope.thought = Some(thought);
        inner
    }

    /// Notifies the tracer that a turn is about to start, with the host's trace context.
    pub(crate) fn turn_begins(&self, host: Option<&TraceContext>) {
        if let Some(tracer) = &self.tracer {
            tracer.turn_begins(host);
        }
    }

    /// The trace context of a running call, if tracing is enabled.
    pub(crate) fn context_of(&self, call: &CallId) -> Option<TraceContext> {
        self.tracer.as_ref().and_then(|tracer| tracer.context_of(call))
    }

    /// Notifies the tracer that the hooks of an event run, for a call or for this emitter's scope.
    pub(crate) fn hooks_begin(&self, event: &'static str, about: Option<&CallId>) -> Option<HooksRun> {
        let tracer = self.tracer.as_ref()?;
        Some(tracer.hooks_begin(event, about.or(self.scope.parent.as_ref())))
    }

    /// True if events are logged.
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Sends an event to the log only.
    pub fn record_only(&self, body: Body) {
        if let Some(log) = &self.log {
            log.note(body);
        }
    }

    /// Emits an event; waits while the reader is slow. Once the reader is gone, events are discarded, and the
    /// owner of the stream ends the turn.
    pub async fn emit(&self, body: Body) {
        let event = Event { at: now(), scope: self.scope.clone(), body };
        let Some(redaction) = &self.redaction else { return self.deliver(event).await };
        let Redacted { before, event } =
            redaction.lock().unwrap_or_else(PoisonError::into_inner).redact(event);
        for event in before.into_iter().chain(event) {
            self.deliver(event).await;
        }
    }

    async fn deliver(&self, event: Event) {
        if let Some(tracer) = &self.tracer {
            tracer.event(&event);
        }
        if let Some(held) = &self.held {
            return held.lock().unwrap_or_else(PoisonError::into_inner).hold(self.log.as_ref(), event);
        }
        // The log comes first: an event must be recorded before it can have an effect or a reader relies on
        // it.
        if let Some(log) = &self.log {
            let recorded = match log.record(&event) {
                Ok(Some(unsynced)) => unsynced.sync().await.map_err(|error| log.unsynced(error)),
                recorded => recorded.map(drop),
            };
            if let Err(error) = recorded {
                self.send(unlogged(&error)).await;
            }
            if let Some((host, point)) = log.sync_point(&event) {
                host.commit(point).await;
            }
        }
        self.send(event).await;
    }

    async fn send(&self, event: Event) {
        // A closed channel means that the reader is gone; the code that closed it cancels the turn.
        let _ = self.sender.send(event).await;
    }
}

/// A handle that does not keep the stream open.
pub(crate) struct BackgroundEmitter {
    sender: mpsc::WeakSender<Event>,
    redaction: Option<Arc<Mutex<EventRedactor>>>,
}

impl BackgroundEmitter {
    /// Emits an event if the stream is still open.
    pub(crate) async fn emit(&self, body: Body) {
        if let Some(sender) = self.sender.upgrade() {
            Emitter { redaction: self.redaction.clone(), ..Emitter::new(sender) }.emit(body).await;
        }
    }
}

impl UnsentEvents {
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

/// The current time.
/// The moment after a delay, in seconds since 1970, rounded up.
pub fn unix_seconds_after(delay_ms: u64) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since + Duration::from_millis(delay_ms) + Duration::from_millis(999)).as_secs()
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The error that readers get once if the log cannot be written. The session continues without a log.
fn unlogged(error: &LogError) -> Event {
    let text = format!("{error}; this session continues, but its further messages are not stored");
    let body = Body::Console { level: ConsoleLevel::Warn, scope: LogScope::System, text: text.into() };
    Event { at: now(), scope: Scope::default(), body }
}
