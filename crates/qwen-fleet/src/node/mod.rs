//! A node: the sessions of this machine's workers, for hubs on the bus.

mod suspension;
pub mod workspaces;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use async_nats::{HeaderMap, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use qwen_events::{EndStatus, ErrorInfo, ErrorKind, SessionId};
use qwen_kernel::front::{LineWriter, OpenParts, session_id_of};
use qwen_kernel::ipc::MAX_LINE;
use qwen_kernel::{Hub, Router};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::suspension::Suspension;
use self::workspaces::{AnnouncedWorkspace, WantedWorkspace};
use crate::bus::{Bus, BusError};
use crate::headers::unescape;
use crate::heartbeat::NodeState;
use crate::sessions::BusSessions;
use crate::subjects::token;

/// The subject to which the hub of a line wants lines without a number.
pub const HUB: &str = "Q-Hub";
/// The session of a line, as a token.
pub const SESSION: &str = "Q-Session";
/// The process that sends a line without a number.
pub const SENDER: &str = "Q-Sender";
/// The position of a line among those of its hub and session; a line that is sent again has the same.
pub const LINE: &str = "Q-Line";
/// The part of a line that one message cannot hold, as `i/n`.
pub const PART: &str = "Q-Part";
/// The format of the lines that the hub's client reads.
pub const FORMAT: &str = "Q-Format";
/// Where the files of the session are.
pub const PLACE: &str = "Q-Workspace";
/// Present for a line of the program that runs the hub, which joins the session's stream.
pub const EVENT: &str = "Q-Event";
/// Present for a line that begins a turn.
pub const PROMPT: &str = "Q-Prompt";
/// The answer of a node that has a line.
pub const TAKEN: &[u8] = b"ok";
/// The answer of a node that takes no new sessions and begins no new turns.
pub const DRAINING: &[u8] = b"draining";

/// The answer of a node that may have lost its sessions and has not looked yet.
const UNCERTAIN: &[u8] = b"uncertain";

/// The largest number of hubs per session that receive lines without a number.
const MAX_HUBS: usize = 64;

/// The largest number of a hub's own lines that wait for a session to be opened.
const MAX_EARLY_EVENTS: usize = 64;

/// How often sessions are looked for that were idle for too long.
const SWEEP: Duration = Duration::from_secs(1800);

/// How the ids of the node's own requests begin.
const OWN_REQUEST: &str = "qwen-node-open-";

/// Lines of one hub.
#[derive(Default)]
struct Sender {
    /// The position of the last whole line.
    last: u64,
    parts: Vec<u8>,
}

/// What a node is made of.
pub struct NodeParts {
    pub bus: Rc<Bus>,
    pub sessions: Rc<BusSessions>,
    /// The hubs with the node's workers, by the format of their lines. The first serves what names no format.
    pub hubs: Vec<(&'static str, Hub)>,
    pub is_draining: Rc<dyn Fn() -> bool>,
    pub labels: BTreeMap<String, String>,
    pub workspaces: Vec<AnnouncedWorkspace>,
    /// The directory of the workspaces that the node creates.
    pub directory: PathBuf,
    pub writer: LineWriter,
    /// True if the sessions are a tenant's, who may not have what the user of this machine has access to.
    pub is_for_tenant: bool,
}

/// A node on the bus.
pub struct BusNode {
    parts: NodeParts,
    started: Instant,
    /// By hub and session.
    senders: RefCell<HashMap<(String, String), Sender>>,
    /// The number of the last line of each session that was written.
    written: RefCell<HashMap<SessionId, u64>>,
    /// The hubs that have sent lines to a session.
    hubs: RefCell<HashMap<SessionId, BTreeSet<String>>>,
    /// The lines of sessions whose workspace is being prepared, with their hubs' format and kind.
    preparing: RefCell<HashMap<SessionId, Vec<Incoming>>>,
    /// The hubs' lines for sessions that are not open yet.
    early_events: RefCell<HashMap<SessionId, Vec<Vec<u8>>>>,
    /// Why the node ends although no one asked it to.
    failure: RefCell<Option<BusError>>,
    /// When the node last received its own heartbeat.
    heard: Cell<Instant>,
    /// When the node last received its own heartbeat while its sessions were its own.
    certain: Cell<Instant>,
    suspension: Suspension,
}

/// A whole line of a hub.
struct Incoming {
    line: Vec<u8>,
    format: String,
    is_event: bool,
}

impl BusNode {
    /// Fails if another node with this name lives.
    pub async fn check_name(bus: &Bus) -> Result<(), BusError> {
        let mut heartbeats = Self::follow_name(bus).await?;
        let deadline = Instant::now() + bus.timing.dead_after;
        while let Ok(Some(message)) = tokio::time::timeout_at(deadline, heartbeats.next()).await {
            if let Ok(state) = serde_json::from_slice::<NodeState>(&message.payload)
                && state.incarnation != bus.identity.incarnation
            {
                return Err(name_in_use(bus));
            }
        }
        Ok(())
    }

    async fn follow_name(bus: &Bus) -> Result<Subscriber, BusError> {
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass heartbeats on.");
        let subject = bus.names.heartbeat_subject(&bus.identity.name);
        bus.client.subscribe(subject).await.map_err(lost)
    }

    /// Serves hubs until the kernel hubs end. It must be called on a `LocalSet`.
    pub async fn serve(parts: NodeParts) -> Result<(), BusError> {
        let node = Rc::new(Self {
            parts,
            started: Instant::now(),
            senders: RefCell::default(),
            written: RefCell::default(),
            hubs: RefCell::default(),
            preparing: RefCell::default(),
            early_events: RefCell::default(),
            failure: RefCell::default(),
            heard: Cell::new(Instant::now()),
            certain: Cell::new(Instant::now()),
            suspension: Suspension::default(),
        });
        let bus = node.parts.bus.clone();
        let identity = &bus.identity;
        let subject = bus.names.node_subject(&identity.name, &identity.incarnation, "input");
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass lines on.");
        let mut lines = bus.client.subscribe(subject).await.map_err(lost)?;
        let heartbeats = Self::follow_name(&bus).await?;
        let reader = node.clone();
        let input = tokio::task::spawn_local(async move {
            while let Some(message) = lines.next().await {
                reader.clone().receive(message).await;
            }
        });
        let beating = node.clone();
        let beats = tokio::task::spawn_local(async move {
            loop {
                beating.beat().await;
                tokio::time::sleep(beating.parts.bus.timing.interval).await;
                beating.check_connection().await;
            }
        });
        let listening = tokio::task::spawn_local(node.clone().hear_itself(heartbeats));
        let sweeper = node.parts.sessions.clone();
        let sweeping = tokio::task::spawn_local(async move {
            loop {
                // Nodes that were started together do not all ask at the same time.
                tokio::time::sleep(SWEEP + SWEEP.mul_f64(fastrand::f64())).await;
                // What cannot be deleted now is deleted later.
                let _ = sweeper.delete_idle().await;
            }
        });
        join_all((0..node.parts.hubs.len()).map(|index| node.write_output(index))).await;
        input.abort();
        beats.abort();
        listening.abort();
        sweeping.abort();
        node.suspension.end_all();
        // The last lines must reach the bus before the connection ends.
        let _ = bus.client.flush().await;
        match node.failure.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Passes on what one of the hubs writes, until it ends.
    async fn write_output(&self, index: usize) {
        let Some((_, hub)) = self.parts.hubs.get(index) else { return };
        while let Some(output) = hub.next_output().await {
            for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.pass_on(line).await;
            }
        }
    }

    /// Receives the heartbeats under this node's name: its own show that it is connected; another process with
    /// the name ends one of both.
    async fn hear_itself(self: Rc<Self>, mut heartbeats: Subscriber) {
        while let Some(message) = heartbeats.next().await {
            let Ok(state) = serde_json::from_slice::<NodeState>(&message.payload) else { continue };
            let identity = &self.parts.bus.identity;
            if state.incarnation == identity.incarnation {
                self.heard.set(Instant::now());
                self.confirm_sessions().await;
                continue;
            }
            // The older one was silent, or else the younger one would not have started. Of two that started at the
            // same time, one is chosen.
            let own = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let tolerance = u64::try_from(self.parts.bus.timing.dead_after.as_millis()).unwrap_or(u64::MAX);
            let is_older = own > state.uptime.saturating_add(tolerance);
            let is_younger = state.uptime > own.saturating_add(tolerance);
            if is_older || !is_younger && identity.incarnation < state.incarnation {
                self.failure.borrow_mut().get_or_insert(name_in_use(&self.parts.bus));
                for (_, hub) in &self.parts.hubs {
                    // The second call ends at once.
                    hub.drain(1);
                    hub.drain(1);
                }
                return;
            }
        }
    }

    /// True if others may have found this node dead and taken its sessions.
    fn is_uncertain(&self) -> bool {
        self.certain.get().elapsed() >= self.parts.bus.timing.absent_after()
    }

    /// Notes that the bus passes this node's heartbeats on. After a pause, sessions that were taken over meanwhile are
    /// given up first: one that only waits, for an answer or for a prompt, appends nothing that would be refused.
    async fn confirm_sessions(&self) {
        if self.is_uncertain() {
            for (_, hub) in &self.parts.hubs {
                for session in hub.inspect(Router::session_ids) {
                    match self.parts.sessions.log.read_end(&session).await {
                        Ok(Some(end)) if end.headers.is_written_by_other(&self.parts.bus.identity) => {
                            self.suspension.end(&session);
                            hub.give_up_session(&session);
                        }
                        Ok(_) => {}
                        // It is tried again with the next heartbeat.
                        Err(_) => return,
                    }
                }
            }
        }
        self.certain.set(Instant::now());
    }

    /// Stops the commands in shared workspaces while this node is cut off from the bus, since another node may have
    /// taken its sessions; afterwards, those of sessions that it still owns continue.
    async fn check_connection(&self) {
        let is_cut_off = self.heard.get().elapsed() >= self.parts.bus.timing.absent_after();
        let workers = self.parts.hubs.iter().flat_map(|(_, hub)| hub.session_pids());
        if is_cut_off {
            self.parts.bus.metrics.missed_heartbeats.increment();
            let is_shared = |session: &SessionId| {
                let place = self.parts.bus.place_of(session, None);
                place.is_some_and(|place| place.starts_with("shared:"))
            };
            for (session, pid) in workers.filter(|(session, _)| is_shared(session)) {
                self.suspension.stop(&session, pid);
            }
            return;
        }
        for session in self.suspension.sessions() {
            match self.parts.sessions.log.read_end(&session).await {
                Ok(Some(end)) if end.headers.is_written_by_other(&self.parts.bus.identity) => {
                    self.suspension.end(&session);
                }
                Ok(_) => self.suspension.resume(&session),
                // It is asked again.
                Err(_) => return,
            }
        }
    }

    async fn beat(&self) {
        let counts = self.parts.hubs.iter().map(|(_, hub)| {
            hub.inspect(|router| {
                let pool = router.pool();
                (pool.limits().max_workers, pool.workers().filter(|worker| !worker.is_spare()).count())
            })
        });
        let (max, busy) = counts.fold((0, 0), |(max, busy), (limit, used)| (limit.max(max), busy + used));
        let free = max.saturating_sub(busy);
        let sessions = busy;
        let identity = &self.parts.bus.identity;
        let state = NodeState {
            name: identity.name.clone(),
            incarnation: identity.incarnation.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: (self.parts.is_draining)(),
            free,
            sessions,
            workspace: identity.workspace.clone().unwrap_or_default(),
            labels: self.parts.labels.clone(),
            workspaces: self.parts.workspaces.clone(),
            uptime: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        if let Ok(payload) = serde_json::to_vec(&state) {
            // The next one follows soon.
            let _ = self
                .parts
                .bus
                .client
                .publish(self.parts.bus.names.heartbeat_subject(&state.name), payload.into())
                .await;
        }
    }

    async fn receive(self: Rc<Self>, message: Message) {
        let answer = if self.is_uncertain() {
            UNCERTAIN
        } else {
            self.accept(&message.headers.unwrap_or_default(), &message.payload)
        };
        if let Some(reply) = message.reply {
            // A hub that gets no answer sends the line again.
            let _ = self.parts.bus.client.publish(reply, Bytes::from_static(answer)).await;
        }
    }

    /// Takes a line or a part of one.
    fn accept(self: &Rc<Self>, headers: &HeaderMap, payload: &Bytes) -> &'static [u8] {
        let text = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
        let (Some(hub), Some(line)) = (text(HUB), text(LINE).and_then(|text| text.parse::<u64>().ok()))
        else {
            return b"malformed";
        };
        let (part, parts) = text(PART)
            .and_then(|text| text.split_once('/'))
            .and_then(|(part, parts)| Some((part.parse::<u64>().ok()?, parts.parse::<u64>().ok()?)))
            .unwrap_or((1, 1));
        if (self.parts.is_draining)() && headers.get(PROMPT).is_some() {
            return DRAINING;
        }
        let whole = {
            let mut senders = self.senders.borrow_mut();
            let key = (hub.to_owned(), text(SESSION).unwrap_or_default().to_owned());
            let sender = senders.entry(key).or_default();
            if line <= sender.last {
                return TAKEN;
            }
            if part == 1 {
                sender.parts.clear();
            }
            if sender.parts.len() + payload.len() > MAX_LINE {
                sender.parts = Vec::new();
                return b"malformed";
            }
            sender.parts.extend_from_slice(payload);
            if part < parts {
                return TAKEN;
            }
            sender.last = line;
            std::mem::take(&mut sender.parts)
        };
        let incoming = Incoming {
            line: whole,
            format: text(FORMAT).unwrap_or_default().to_owned(),
            is_event: text(EVENT).is_some(),
        };
        let session = session_id_of(&incoming.line);
        if let Some(session) = &session {
            let is_open = self.is_open(session) || self.preparing.borrow().contains_key(session);
            if (self.parts.is_draining)() && !is_open {
                return DRAINING;
            }
            let mut hubs = self.hubs.borrow_mut();
            let known = hubs.entry(session.clone()).or_default();
            if known.len() < MAX_HUBS {
                known.insert(hub.to_owned());
            }
        }
        match session {
            Some(session) => self.prepare_or_process(session, incoming, text(PLACE), hub),
            None => self.hub_for(None, &incoming.format).client_line(&incoming.line),
        }
        TAKEN
    }

    /// Returns the hub that has a session, or that writes this format.
    fn hub_for(&self, session: Option<&SessionId>, format: &str) -> &Hub {
        let hubs = &self.parts.hubs;
        let has = |hub: &Hub| {
            session.is_some_and(|session| hub.inspect(|router| router.session_status(session).is_some()))
        };
        let found = hubs.iter().find(|(_, hub)| has(hub));
        let (_, hub) = found.or_else(|| hubs.iter().find(|(name, _)| *name == format)).unwrap_or(&hubs[0]);
        hub
    }

    fn is_open(&self, session: &SessionId) -> bool {
        let has = |hub: &Hub| hub.inspect(|router| router.session_status(session).is_some());
        self.parts.hubs.iter().any(|(_, hub)| has(hub))
    }

    /// Processes a line once the workspace of its session is there.
    fn prepare_or_process(
        self: &Rc<Self>,
        session: SessionId,
        incoming: Incoming,
        place: Option<&str>,
        hub: &str,
    ) {
        if let Some(waiting) = self.preparing.borrow_mut().get_mut(&session) {
            return waiting.push(incoming);
        }
        if self.is_open(&session) || incoming.is_event {
            return self.process(&session, incoming);
        }
        let recorded = place.map(unescape);
        let opened = opened_workspace(&incoming.line);
        let workspace = match &recorded {
            Some(place) => WantedWorkspace::of_place(place),
            None => opened,
        };
        let Some(workspace) = workspace else { return self.process(&session, incoming) };
        if let Some(place) = recorded.or_else(|| workspace.place()) {
            self.parts.bus.note_place(&session, place);
        }
        self.preparing.borrow_mut().insert(session.clone(), Vec::new());
        tokio::task::spawn_local(self.clone().prepare(session, workspace, incoming, hub.to_owned()));
    }

    async fn prepare(
        self: Rc<Self>,
        session: SessionId,
        workspace: WantedWorkspace,
        mut first: Incoming,
        hub: String,
    ) {
        let (announced, directory) = (&self.parts.workspaces, &self.parts.directory);
        let is_public = self.parts.is_for_tenant;
        let prepared = workspace.prepare(announced, directory, &token(&session), is_public).await;
        let mut error = None;
        match prepared {
            Ok(Some(directory)) => {
                if !set_directory(&mut first.line, &directory) {
                    // The session continues from its log, in the directory that is there now.
                    let open = json!({
                        "type": "control_request", "request_id": format!("{OWN_REQUEST}{session}"), "subtype": "open",
                        "session_id": session.as_str(), "cwd": directory,
                    });
                    self.hub_for(None, &first.format).client_line(open.to_string().as_bytes());
                }
            }
            Ok(None) => {}
            Err(why) => {
                let message = format!("The workspace of the session '{session}' cannot be prepared: {why}");
                let refusal = ErrorInfo::new(ErrorKind::Input, "workspace_not_prepared", message);
                error = Some(refusal.with_param("workspace"));
            }
        }
        let waiting = self.preparing.borrow_mut().remove(&session).unwrap_or_default();
        for incoming in [first].into_iter().chain(waiting) {
            match &error {
                None => self.process(&session, incoming),
                Some(error) => self.refuse(&session, &incoming.line, error, &hub).await,
            }
        }
    }

    /// Ends a line whose session has no workspace.
    async fn refuse(&self, session: &SessionId, line: &[u8], error: &ErrorInfo, hub: &str) {
        let line: Value = serde_json::from_slice(line).unwrap_or_default();
        let writer = &self.parts.writer;
        let request = line["request_id"].as_str().filter(|_| line["type"] == "control_request");
        let lines = match (request, line["prompt_id"].as_str()) {
            (Some(request), _) => {
                let is_nested = line["request"].is_object();
                writer.control_reply(session, request, is_nested, Err(error.clone()))
            }
            (None, prompt_id) => {
                let prompt_id = prompt_id.map_or_else(|| format!("{session}########1"), str::to_owned);
                let open = OpenParts::default();
                writer.turn_end(session, &prompt_id, EndStatus::Error, error.clone(), 0, &open)
            }
        };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.send_note(hub.to_owned(), line).await;
        }
    }

    fn process(&self, session: &SessionId, incoming: Incoming) {
        let hub = self.hub_for(Some(session), &incoming.format);
        let is_open = self.is_open(session);
        if incoming.is_event {
            if is_open {
                return hub.session_line(session, &incoming.line);
            }
            // Only an open session has a stream; the line that opens it follows.
            let mut early = self.early_events.borrow_mut();
            let waiting = early.entry(session.clone()).or_default();
            if waiting.len() < MAX_EARLY_EVENTS {
                waiting.push(incoming.line);
            }
            return;
        }
        let early = self.early_events.borrow_mut().remove(session).unwrap_or_default();
        if early.is_empty() {
            return hub.client_line(&incoming.line);
        }
        if !is_open {
            // The hub's lines come before what the prompt causes.
            let open = json!({
                "type": "control_request", "request_id": format!("{OWN_REQUEST}{session}"), "subtype": "open",
                "session_id": session.as_str(),
            });
            hub.client_line(open.to_string().as_bytes());
        }
        for event in early {
            hub.session_line(session, &event);
        }
        hub.client_line(&incoming.line);
    }

    /// Passes a line on that was not stored now; the bus itself repeats those that have one.
    async fn pass_on(&self, line: &[u8]) {
        let Some(session) = session_id_of(line) else { return };
        if let Some(number) = number_of(line) {
            let mut written = self.written.borrow_mut();
            let last = written.entry(session.clone()).or_default();
            if number > *last {
                *last = number;
                return;
            }
            // A client asked for the end of a turn again, which keeps its number.
        }
        if is_own_answer(line) {
            return;
        }
        let hubs = self.hubs.borrow().get(&session).cloned().unwrap_or_default();
        for hub in hubs {
            self.send_note(hub, line).await;
        }
    }

    async fn send_note(&self, hub: String, line: &[u8]) {
        let bus = &self.parts.bus;
        let mut headers = HeaderMap::new();
        headers.insert(SENDER, bus.identity.to_string());
        // A hub that is gone needs no line.
        let _ = bus.client.publish_with_headers(hub, headers, Bytes::copy_from_slice(line)).await;
    }
}

fn name_in_use(bus: &Bus) -> BusError {
    let message = format!(
        "Another node on this bus has the name '{}'. Choose one with --name, or stop that node and wait {:.1} s.",
        bus.identity.name,
        bus.timing.dead_after.as_secs_f64()
    );
    BusError::new("node_name_in_use", message)
}

/// Returns the workspace that a line asks for, if it is an `open` request.
fn opened_workspace(line: &[u8]) -> Option<WantedWorkspace> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let body = if value["request"].is_object() { &value["request"] } else { &value };
    if value["type"] != "control_request" || body["subtype"] != "open" {
        return None;
    }
    serde_json::from_value(body.get("workspace")?.clone()).ok()
}

/// Sets the working directory of an `open` request. Returns false for other lines.
fn set_directory(line: &mut Vec<u8>, directory: &Path) -> bool {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return false };
    let is_nested = value["request"].is_object();
    let body = if is_nested { &mut value["request"] } else { &mut value };
    if body["subtype"] != "open" {
        return false;
    }
    body["cwd"] = directory.to_string_lossy().into();
    *line = value.to_string().into_bytes();
    true
}

/// Returns true for the answer to a request of the node itself.
fn is_own_answer(line: &[u8]) -> bool {
    let is_answer = line.starts_with(b"{\"type\":\"control_response\"");
    is_answer && line.windows(OWN_REQUEST.len()).any(|part| part == OWN_REQUEST.as_bytes())
}

/// Returns the number of a line.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
