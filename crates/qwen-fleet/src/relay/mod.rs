//! A hub without workers: it places the sessions of its client on nodes, passes lines on, relays what the bus repeats
//! after it was stored, and ends the turns of nodes that died.

mod closing;
mod following;
mod placement;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Json, PromptId, SessionId};
use qwen_kernel::front::{
    ClientInput, Front, InputKind, LineWriter, OpenParts, session_id_of, with_session_id,
};
use qwen_kernel::{LineRecorder, TurnEnds};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use self::following::Followed;
use crate::bus::{Bus, BusError};
use crate::heartbeat::Nodes;
use crate::node::SENDER;
use crate::node::workspaces::Wanted;
use crate::sessions::BusSessions;

/// With more pending bytes for the client, no session is followed: the bus keeps its lines meanwhile.
const HIGH_WATER: usize = 8 << 20;

/// The largest number of sessions whose owners a status has.
const MAX_DESCRIBED: usize = 500;

/// What a relay is made of.
pub struct RelayParts {
    pub bus: Rc<Bus>,
    pub sessions: Rc<BusSessions>,
    pub front: Arc<dyn Front>,
    pub writer: LineWriter,
    /// The session of lines that name none.
    pub default_session: SessionId,
    /// Looks up how a turn ended, in a directory of logs.
    pub turn_ends: TurnEnds,
    /// A directory for logs that are only read.
    pub scratch: PathBuf,
    /// The tenant of the account of the bus, if the client names tenants.
    pub tenant: Option<String>,
    /// True to begin the output with the handshake.
    pub has_handshake: bool,
    /// Receives every line of every session.
    pub recorder: Option<LineRecorder>,
}

/// A hub without workers. Clones share it.
#[derive(Clone)]
pub struct Relay(Rc<Shared>);

struct Shared {
    parts: RelayParts,
    recorder: RefCell<Option<LineRecorder>>,
    nodes: Nodes,
    /// The subject to which nodes send lines without a number.
    inbox: String,
    sessions: RefCell<HashMap<SessionId, mpsc::UnboundedSender<Work>>>,
    /// The sessions that wait for an end or an answer.
    busy: RefCell<HashSet<SessionId>>,
    /// The sessions that asked questions, by request id.
    questions: RefCell<HashMap<String, SessionId>>,
    /// The position of the last line that was sent to a node.
    sent: Cell<u64>,
    output: RefCell<Vec<u8>>,
    /// Signalled when there is output, and when the relay may be over.
    ready: Notify,
    /// Signalled when output was written.
    room: Notify,
    /// The number of requests about the hub that are not answered yet.
    open_requests: Cell<usize>,
    started: Instant,
    ending: Cell<Option<u8>>,
    is_stopped: Cell<bool>,
}

/// Something for the task of a session.
enum Work {
    /// A line of the client, complete with its session's id.
    Line(ClientLine),
    /// A client wants the lines after a number.
    Attach { request_id: String, nested: bool, after: u64 },
    /// A line of a node without a number.
    Note { sender: String, line: Bytes },
}

/// A line of the client.
#[derive(Debug, Clone)]
struct ClientLine {
    bytes: Vec<u8>,
    /// True for a line that ends with a terminal record.
    is_prompt: bool,
    prompt_id: Option<String>,
    /// The control request that wants an answer.
    request: Option<(String, bool)>,
    /// What `open` asks of the node.
    wanted: Option<Wanted>,
    /// True for a line of the program that runs this hub, which joins the session's stream.
    is_event: bool,
}

impl Relay {
    /// Starts with the handshake. It must be called on a `LocalSet`.
    pub async fn start(mut parts: RelayParts) -> Result<Self, BusError> {
        let nodes = Nodes::follow(&parts.bus).await?;
        let inbox = parts.bus.client.new_inbox();
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass lines on.");
        let mut notes = parts.bus.client.subscribe(inbox.clone()).await.map_err(lost)?;
        let handshake =
            if parts.has_handshake { parts.writer.handshake(&parts.default_session) } else { Vec::new() };
        let relay = Self(Rc::new(Shared {
            recorder: RefCell::new(parts.recorder.take()),
            parts,
            nodes,
            inbox,
            sessions: RefCell::default(),
            busy: RefCell::default(),
            questions: RefCell::default(),
            sent: Cell::new(0),
            output: RefCell::new(handshake),
            ready: Notify::new(),
            room: Notify::new(),
            open_requests: Cell::new(0),
            started: Instant::now(),
            ending: Cell::new(None),
            is_stopped: Cell::new(false),
        }));
        let receiver = relay.clone();
        tokio::task::spawn_local(async move {
            while let Some(note) = notes.next().await {
                if let Some(session) = session_id_of(&note.payload) {
                    let sender = note.headers.as_ref().and_then(|headers| headers.get(SENDER));
                    let sender = sender.map(ToString::to_string).unwrap_or_default();
                    receiver.work(&session, Work::Note { sender, line: note.payload });
                }
            }
        });
        Ok(relay)
    }

    /// The next bytes for the client; none once all work is finished.
    pub async fn next_output(&self) -> Option<Vec<u8>> {
        loop {
            let output = std::mem::take(&mut *self.0.output.borrow_mut());
            if !output.is_empty() {
                self.0.room.notify_waiters();
                return Some(output);
            }
            let is_idle = self.0.busy.borrow().is_empty() && self.0.open_requests.get() == 0;
            let is_over = self.0.ending.get().is_some() && is_idle;
            if is_over || self.0.is_stopped.get() {
                return None;
            }
            self.0.ready.notified().await;
        }
    }

    /// Finishes what was accepted and ends with this code; a second call ends at once. Turns continue on their
    /// nodes.
    pub fn end(&self, code: u8, is_signal: bool) {
        if is_signal && self.0.ending.get().is_some_and(|code| code != 0) {
            self.0.is_stopped.set(true);
        }
        if self.0.ending.get().is_none() || is_signal {
            self.0.ending.set(Some(code));
        }
        self.0.ready.notify_one();
    }

    /// Returns true once the relay has ended with everything finished that it had accepted.
    pub fn has_finished(&self) -> bool {
        !self.0.is_stopped.get() && self.0.busy.borrow().is_empty()
    }

    /// Returns the exit code of the process.
    pub fn exit_code(&self) -> u8 {
        self.0.ending.get().unwrap_or(0)
    }

    /// Processes one line of the client.
    pub fn client_line(&self, line: &[u8]) {
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        match self.0.parts.front.input(text) {
            Ok(input) => {
                if let Err(error) = self.route(&input, text) {
                    self.refuse_input(&input, error);
                }
            }
            Err(error) => self.write(&self.0.parts.writer.error(&self.0.parts.default_session, error)),
        }
    }

    /// Refuses a line of the client in the form that its kind requires.
    pub fn refuse(&self, input: &ClientInput<'_>, error: ErrorInfo) {
        self.refuse_input(input, error);
    }

    /// Returns true if the client has used this session.
    pub fn has_session(&self, session: &SessionId) -> bool {
        self.0.sessions.borrow().contains_key(session)
    }

    /// Returns true if this question came from one of the relay's sessions.
    pub fn has_asked(&self, request_id: &str) -> bool {
        self.0.questions.borrow().contains_key(request_id)
    }

    /// Reports that a line of the client was too long.
    pub fn client_line_too_long(&self) {
        let error = ErrorInfo::new(ErrorKind::Input, "line_too_long", "a line is longer than 64 MiB");
        self.write(&self.0.parts.writer.error(&self.0.parts.default_session, error));
    }

    fn route(&self, input: &ClientInput<'_>, line: &[u8]) -> Result<(), ErrorInfo> {
        if input.tenant.as_deref() != self.0.parts.tenant.as_deref() && input.tenant.is_some()
            || input.invalid_tenant.is_some()
        {
            let message =
                "a hub on a bus has the tenants of its configuration; correct `tenant` or leave it out";
            return Err(ErrorInfo::new(ErrorKind::Input, "invalid_tenant", message).with_param("tenant"));
        }
        let subtype = input.subtype.as_deref().unwrap_or_default();
        let is_control = input.kind == InputKind::Control;
        if is_control && self.answer_request(input, subtype)? {
            return Ok(());
        }
        let session = self.session_of(input)?;
        self.record(&session, true, line);
        let request = input.request_id.as_deref().filter(|_| is_control);
        let request = request.map(|id| (id.to_owned(), input.nested));
        if is_control && subtype == "attach" {
            let after = input.after.unwrap_or("0").parse().map_err(|_| {
                let message = "`after` must be a number that was seen, or 0";
                ErrorInfo::new(ErrorKind::Input, "invalid_after", message).with_param("after")
            })?;
            let (request_id, nested) = request.unwrap_or_default();
            self.work(&session, Work::Attach { request_id, nested, after });
            return Ok(());
        }
        let is_prompt = input.kind == InputKind::Prompt;
        if is_prompt && self.0.ending.get().is_some_and(|code| code != 0) {
            let message = "the hub is draining and takes no new prompts; use another one";
            let error = ErrorInfo::new(ErrorKind::Overloaded, "draining", message);
            return Err(ErrorInfo { retryable: true, ..error });
        }
        let prompt_id = input.prompt_id.as_deref().map(str::to_owned);
        let bytes = with_session_id(line, &session);
        let wanted = (is_control && subtype == "open").then(|| Wanted::read(input.body)).transpose()?;
        let line = ClientLine { bytes, is_prompt, prompt_id, request, wanted, is_event: false };
        self.work(&session, Work::Line(line));
        Ok(())
    }

    /// Adds a line of the program that runs this hub to a session's stream, numbered like the worker's lines.
    pub fn session_line(&self, session: &SessionId, line: &[u8]) {
        let bytes = line.to_vec();
        let line = ClientLine {
            bytes,
            is_prompt: false,
            prompt_id: None,
            request: None,
            wanted: None,
            is_event: true,
        };
        self.work(session, Work::Line(line));
    }

    /// Answers a request about the hub itself. Returns false for other requests.
    fn answer_request(&self, input: &ClientInput<'_>, subtype: &str) -> Result<bool, ErrorInfo> {
        let Some(request_id) = input.request_id.as_deref() else { return Ok(false) };
        let result = match subtype {
            "hub/status" => {
                let answer = self.clone().report_status(request_id.to_owned(), input.nested);
                self.0.open_requests.set(self.0.open_requests.get() + 1);
                tokio::task::spawn_local(answer);
                return Ok(true);
            }
            "initialize" if input.session_id.is_none() && input.sequence.is_some() => json!({
                "hub": true, "sequence": true, "session_id": self.0.parts.default_session.as_str(),
                "protocol_version": qwen_kernel::PROTOCOL_VERSION,
            }),
            "flow" => {
                let message =
                    "a hub without workers does not pause sessions; read them with `attach` at your pace";
                return Err(ErrorInfo::new(ErrorKind::Input, "unsupported_request", message));
            }
            _ => return Ok(false),
        };
        let result = Ok(Json::trusted(result.to_string()));
        let default = &self.0.parts.default_session;
        self.write(&self.0.parts.writer.control_reply(default, request_id, input.nested, result));
        Ok(true)
    }

    /// Answers `hub/status`, once every node had the time for a heartbeat.
    async fn report_status(self, request_id: String, nested: bool) {
        tokio::time::sleep_until(self.0.started + self.0.parts.bus.timing.interval * 2).await;
        let status = self.describe().await;
        let default = &self.0.parts.default_session;
        let result = Ok(Json::trusted(status.to_string()));
        self.0.open_requests.set(self.0.open_requests.get() - 1);
        self.write(&self.0.parts.writer.control_reply(default, &request_id, nested, result));
    }

    /// Describes the hub, the nodes, the owners of this hub's sessions and the streams.
    pub async fn describe(&self) -> Value {
        let identity = &self.0.parts.bus.identity;
        let sessions = &self.0.parts.sessions;
        let followed: Vec<SessionId> = self.0.sessions.borrow().keys().cloned().collect();
        let owners = sessions.describe_all(&followed, MAX_DESCRIBED).await.unwrap_or_default();
        let streams = sessions.describe_streams().await.unwrap_or_default();
        json!({
            "hub": {
                "id": identity.name, "incarnation": identity.incarnation,
                "version": env!("CARGO_PKG_VERSION"), "draining": self.0.ending.get().is_some(),
            },
            "machines": self.0.nodes.report(),
            "sessions": followed.len(),
            "owners": owners,
            "shards": streams,
        })
    }

    fn session_of(&self, input: &ClientInput<'_>) -> Result<SessionId, ErrorInfo> {
        let asked = input.request_id.as_deref().filter(|_| input.kind == InputKind::Answer);
        match input.session_id.as_deref() {
            None => {
                let asking = asked.and_then(|id| self.0.questions.borrow().get(id).cloned());
                Ok(asking.unwrap_or_else(|| self.0.parts.default_session.clone()))
            }
            Some("_new") => Ok(SessionId::from_random(fastrand::u128(..))),
            Some(text) => SessionId::parse(text).map_err(|error| {
                let shown: String = text.chars().take(80).collect();
                let message = format!("session_id {shown:?}: {error}");
                ErrorInfo::new(ErrorKind::Input, "invalid_session_id", message).with_param("session_id")
            }),
        }
    }

    fn refuse_input(&self, input: &ClientInput<'_>, error: ErrorInfo) {
        let writer = &self.0.parts.writer;
        let shown = input.session_id.as_deref().and_then(|text| SessionId::parse(text).ok());
        let shown = shown.unwrap_or_else(|| self.0.parts.default_session.clone());
        let lines = match (&input.kind, &input.request_id) {
            (InputKind::Control, Some(request)) => {
                writer.control_reply(&shown, request, input.nested, Err(error))
            }
            (InputKind::Prompt, _) => {
                let prompt = input.prompt_id.as_deref().map(PromptId::new);
                writer.error(&shown, error.for_prompt(input.session_id.as_deref(), prompt))
            }
            _ => writer.error(&shown, error),
        };
        self.write(&lines);
    }

    /// Ends a line of the client that no node takes.
    fn refuse_line(&self, session: &SessionId, line: &ClientLine, error: &ErrorInfo) {
        if line.is_event {
            return;
        }
        let writer = &self.0.parts.writer;
        let lines = match (&line.request, line.is_prompt) {
            (Some((request, nested)), _) => {
                writer.control_reply(session, request, *nested, Err(error.clone()))
            }
            (None, true) => {
                let name = line.prompt_id.clone().unwrap_or_else(|| format!("{session}########1"));
                writer.turn_end(session, &name, EndStatus::Error, error.clone(), 0, &OpenParts::default())
            }
            (None, false) => writer.error(session, error.clone()),
        };
        self.write(&lines);
    }

    /// Gives work to the task of a session, which starts with the first.
    fn work(&self, session: &SessionId, work: Work) {
        let mut sessions = self.0.sessions.borrow_mut();
        if matches!(work, Work::Line(_) | Work::Attach { .. }) {
            self.0.busy.borrow_mut().insert(session.clone());
        }
        let sender = sessions.entry(session.clone()).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            let followed = Followed::new(self.clone(), session.clone());
            tokio::task::spawn_local(followed.run(receiver));
            sender
        });
        // The task ends only with the process.
        let _ = sender.send(work);
    }

    fn write(&self, lines: &[u8]) {
        if self.0.recorder.borrow().is_some() {
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                if let Some(session) = session_id_of(line) {
                    self.record(&session, false, line);
                }
            }
        }
        self.push_output(lines);
    }

    /// Writes numbered lines of a session, whichever id they contain: a worker writes some before it has the session.
    fn write_numbered(&self, session: &SessionId, lines: &[u8]) {
        if self.0.recorder.borrow().is_some() {
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.record(session, false, line);
            }
        }
        self.push_output(lines);
    }

    fn push_output(&self, lines: &[u8]) {
        self.0.output.borrow_mut().extend_from_slice(lines);
        self.0.ready.notify_one();
    }

    fn record(&self, session: &SessionId, inbound: bool, line: &[u8]) {
        if let Some(recorder) = &mut *self.0.recorder.borrow_mut() {
            recorder(self.0.parts.tenant.as_deref().unwrap_or_default(), session, inbound, line);
        }
    }

    /// Waits until the client has read enough.
    async fn wait_for_room(&self) {
        while self.0.output.borrow().len() >= HIGH_WATER {
            self.0.room.notified().await;
        }
    }
}
