//! The sessions of this server: what clients can do with them, whichever protocol they speak.
//!
//! Rationale: the server is the only client of its kernel. It writes each session's input in order, keeps the
//! numbered lines that come back, and everything that clients see is read from those. Several clients per
//! session, slow readers and reconnects therefore never reach the router.

mod approvals;
mod follow;
mod hub;
mod intake;
mod order;
mod record;
mod session;
mod timeline;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use qwen_events::SessionId;
use qwen_kernel::store::{Events, FileEvents};
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};

pub use self::approvals::{Approval, Approvals};
pub use self::follow::{SessionLines, SessionReader};
pub use self::hub::{NextOutput, SessionHub};
pub use self::intake::run_intake;
pub use self::record::{Records, SessionRecord, now};
pub use self::session::{Line, Session};
pub use self::timeline::Timeline;
use crate::options::ServeLimits;
use crate::respond::Refusal;
use crate::token::random_id;

/// How long the kernel may take to answer a request about a session.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The maximum length of a session's title, in characters.
const TITLE: usize = 200;

/// The stored conversations, which the engine owns.
pub trait StoredSessions {
    /// The messages so far, as OpenAI's chat messages.
    fn messages(&self, session: &SessionId) -> Result<Value, String>;

    /// True if there is a log of this session.
    fn holds(&self, session: &SessionId) -> bool;

    /// Creates `fork`: a session with the conversation of `of` up to the end of a turn.
    fn fork(&self, of: &SessionId, prompt_id: &str, fork: &SessionId) -> Result<(), String>;

    /// Deletes the session's log. A session without a log is no error.
    fn delete(&self, session: &SessionId) -> Result<(), String>;
}

/// What a new session is created with.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The session's id; a random one if absent.
    pub id: Option<SessionId>,
    pub workspace: Option<String>,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub agent: Option<String>,
    pub fork_from: Option<SessionId>,
    /// The session and its prompt after whose turn the new session begins.
    pub fork_at: Option<(SessionId, String)>,
    /// Added to the system prompt.
    pub instructions: Option<String>,
    pub front: Map<String, Value>,
}

/// A prompt on its way to the kernel.
#[derive(Debug, Clone)]
pub struct NewPrompt {
    /// The prompt's id, which the session has not had; a random one if absent.
    pub prompt_id: Option<String>,
    /// The text or the parts of the message.
    pub parts: Value,
    /// True if it joins the running turn.
    pub steers: bool,
    /// Further keys of the line, such as `options`.
    pub further: Map<String, Value>,
    /// The prompt whose turn is continued with a tool's result; then nothing is queued.
    pub continues: Option<String>,
    /// True if `further` has the conversation, so that the parts are only shown.
    pub is_conversation: bool,
}

impl NewPrompt {
    /// A message of the user: a text or parts.
    pub fn parts(parts: Value) -> Self {
        Self {
            prompt_id: None,
            parts,
            steers: false,
            further: Map::new(),
            continues: None,
            is_conversation: false,
        }
    }

    /// A conversation in `further`, of which this text is new.
    pub fn conversation(text: String) -> Self {
        Self { is_conversation: true, ..Self::parts(Value::String(text)) }
    }
}

/// A prompt that was accepted.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub prompt_id: String,
    /// The number of the line after which its lines begin.
    pub after: u64,
}

/// All sessions of the server.
pub struct Sessions {
    hub: Rc<dyn SessionHub>,
    store: Rc<FileEvents>,
    records: Records,
    stored: Box<dyn StoredSessions>,
    workspaces: Vec<PathBuf>,
    pub limits: ServeLimits,
    by_id: RefCell<HashMap<SessionId, Rc<Session>>>,
    /// The callers that wait for answers of the kernel, by request id.
    awaited: RefCell<HashMap<String, oneshot::Sender<Value>>>,
    requests: Cell<u64>,
    pub approvals: RefCell<Approvals>,
    pub timeline: Timeline,
    closing: watch::Sender<bool>,
    is_draining: Cell<bool>,
}

impl Sessions {
    /// Loads what is known of sessions and ends turns that a former server was killed in.
    pub fn start(
        hub: Rc<dyn SessionHub>,
        store: Rc<FileEvents>,
        records: Records,
        stored: Box<dyn StoredSessions>,
        workspaces: Vec<PathBuf>,
        limits: ServeLimits,
    ) -> std::io::Result<Rc<Self>> {
        let loaded = records.load()?;
        let mut by_id = HashMap::new();
        // Sessions of a former server with other workspaces are not those of this one.
        for (id, record) in loaded.into_iter().filter(|(_, record)| is_inside(&record.workspace, &workspaces))
        {
            let last = store.last(&id);
            by_id.insert(id.clone(), Rc::new(Session::new(id, record, last)));
        }
        let lasts: Vec<(SessionId, u64)> =
            by_id.values().map(|session: &Rc<Session>| (session.id.clone(), session.last())).collect();
        let timeline = Timeline::open(&records.order_path(), &store, &lasts)?;
        let sessions = Rc::new(Self {
            hub,
            store,
            records,
            stored,
            workspaces,
            limits,
            by_id: RefCell::new(by_id),
            awaited: RefCell::default(),
            requests: Cell::new(0),
            approvals: RefCell::default(),
            timeline,
            closing: watch::Sender::new(false),
            is_draining: Cell::new(false),
        });
        Ok(sessions)
    }

    /// Ends the turns in which a former server was killed, and the prompts that it had accepted.
    pub async fn recover(&self) {
        let left: Vec<Rc<Session>> = self.all();
        for session in left {
            let prompts = std::mem::take(&mut session.record.borrow_mut().open_prompts);
            let ended_before = session.last();
            if prompts.is_empty() || self.open(&session).await.is_err() {
                continue;
            }
            // Whoever attaches ends the turn that was running.
            let attach =
                json!({"subtype": "attach", "session_id": session.id.as_str(), "after": session.last()});
            // Lines that are missing because of a failure are missing in the stream.
            let _ = self.ask(attach).await;
            for prompt in prompts {
                if !Self::has_ended(&session, &prompt, ended_before) {
                    self.publish(&session, &json!({"kind": "prompt_lost", "prompt_id": prompt}));
                }
            }
            self.remember(&session);
        }
    }

    /// True if the lines after `after` end this prompt's turn.
    fn has_ended(session: &Session, prompt: &str, after: u64) -> bool {
        let lines = session.recent_after(after, usize::MAX).unwrap_or_default();
        lines.iter().any(|line| intake::ended_prompt(&line.text).as_deref() == Some(prompt))
    }

    /// All sessions, the most recently used first.
    pub fn all(&self) -> Vec<Rc<Session>> {
        let mut all: Vec<Rc<Session>> = self.by_id.borrow().values().cloned().collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.record.borrow().updated_at));
        all
    }

    /// The session with this id.
    pub fn get(&self, id: &str) -> Result<Rc<Session>, Refusal> {
        let id = SessionId::parse(id).map_err(|_| Refusal::not_found("session"))?;
        self.by_id.borrow().get(&id).cloned().ok_or_else(|| Refusal::not_found("session"))
    }

    /// The session that a front keeps under this key and value.
    pub fn find(&self, key: &str, value: &str) -> Option<Rc<Session>> {
        let sessions = self.by_id.borrow();
        let is_kept = |session: &&Rc<Session>| {
            session.record.borrow().front.get(key).and_then(Value::as_str) == Some(value)
        };
        let found =
            sessions.values().filter(is_kept).max_by_key(|session| session.record.borrow().updated_at);
        found.cloned()
    }

    /// Creates a session. Its worker starts with the first prompt.
    pub async fn create(&self, new: NewSession) -> Result<Rc<Session>, Refusal> {
        let workspace = self.workspace(new.workspace.as_deref())?;
        check_options(&new)?;
        self.make_room().await?;
        let id = match new.id {
            Some(id) => id,
            None => {
                let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
                SessionId::from_random(random)
            }
        };
        if self.by_id.borrow().contains_key(&id) || self.stored.holds(&id) {
            let message = "There is a session with this id already.";
            return Err(Refusal::new(StatusCode::CONFLICT, "session_id_conflict", message));
        }
        let record = SessionRecord {
            workspace,
            model: new.model,
            mode: new.mode,
            agent: new.agent,
            created_at: now(),
            updated_at: now(),
            instructions: new.instructions,
            front: new.front,
            ..SessionRecord::default()
        };
        if let Some((of, prompt_id)) = &new.fork_at {
            self.stored.fork(of, prompt_id, &id).map_err(|why| {
                Refusal::bad_request("not_forked", format!("The session cannot be forked there: {why}."))
            })?;
        }
        let session = Rc::new(Session::new(id.clone(), record, 0));
        self.open_with(&session, new.fork_from.as_ref()).await?;
        self.by_id.borrow_mut().insert(id, session.clone());
        self.remember(&session);
        Ok(session)
    }

    /// Creates a session that begins with a copy of another one's conversation.
    pub async fn fork(&self, of: &Session) -> Result<Rc<Session>, Refusal> {
        let record = of.record.borrow().clone();
        let workspace = record.workspace.to_str().map(str::to_owned);
        let new = NewSession {
            workspace,
            model: record.model,
            mode: record.mode,
            agent: record.agent,
            fork_from: (of.last() > 0).then(|| of.id.clone()),
            instructions: record.instructions,
            ..NewSession::default()
        };
        let fork = self.create(new).await?;
        fork.record.borrow_mut().title.clone_from(&record.title);
        self.remember(&fork);
        Ok(fork)
    }

    /// Deletes a session with its log and its lines. A running turn is cancelled.
    pub async fn delete(&self, session: &Rc<Session>) -> Result<(), Refusal> {
        self.close(session).await?;
        self.approvals.borrow_mut().withdraw(&session.id, None);
        self.stored.delete(&session.id).map_err(|why| {
            Refusal::new(
                StatusCode::CONFLICT,
                "session_in_use",
                format!("The session cannot be deleted: {why}"),
            )
        })?;
        self.by_id.borrow_mut().remove(&session.id);
        session.close();
        let removed = self.records.remove(&session.id).and_then(|()| self.store.delete(&session.id));
        removed.map_err(|error| Refusal::internal(format!("The session's files cannot be removed: {error}")))
    }

    /// Keeps a value of a protocol's front with the session.
    pub fn keep(&self, session: &Session, key: &str, value: Value) {
        session.record.borrow_mut().front.insert(key.to_owned(), value);
        self.remember(session);
    }

    /// Changes and stores the title, cut to its maximum length.
    pub fn rename(&self, session: &Session, title: &str) {
        session.record.borrow_mut().title = title.chars().take(TITLE).collect();
        self.remember(session);
    }

    /// Changes the model or the mode of a session, for its next model call.
    pub async fn configure(&self, session: &Rc<Session>, key: &str, value: &str) -> Result<(), Refusal> {
        self.open(session).await?;
        let subtype = if key == "model" { "set_model" } else { "set_permission_mode" };
        let mut request = json!({"subtype": subtype, "session_id": session.id.as_str()});
        request[key] = value.into();
        let answer = self.ask(request).await?;
        if let Some(error) = answer["response"]["error"]["message"].as_str() {
            return Err(Refusal::bad_request("refused", error));
        }
        let mut record = session.record.borrow_mut();
        let field = if key == "model" { &mut record.model } else { &mut record.mode };
        *field = Some(value.to_owned());
        drop(record);
        self.remember(session);
        Ok(())
    }

    /// Accepts a prompt: it runs now or after those that were accepted before.
    pub async fn submit(&self, session: &Rc<Session>, prompt: NewPrompt) -> Result<Accepted, Refusal> {
        if self.is_draining.get() {
            return Err(Refusal::busy("draining", "The server is shutting down."));
        }
        self.open(session).await?;
        let waiting = session.prompts.borrow().len();
        if prompt.continues.is_none() && waiting > self.limits.queued_prompts {
            let message = format!("{} prompts of this session wait already.", self.limits.queued_prompts);
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message);
            return Err(Refusal { retry_after: Some(5), ..refusal });
        }
        let random = random_id().map_err(|error| Refusal::internal(error.to_string()))?;
        if prompt.prompt_id.as_ref().is_some_and(|id| session.prompts.borrow().contains(id)) {
            let message = "A prompt of this session has this id already.";
            return Err(Refusal::new(StatusCode::CONFLICT, "prompt_id_in_use", message));
        }
        let prompt_id =
            prompt.continues.clone().or(prompt.prompt_id).unwrap_or_else(|| format!("p-{random:032x}"));
        let after = session.last();
        session.used_at.set(Instant::now());
        if !session.prompts.borrow().contains(&prompt_id) {
            session.prompts.borrow_mut().push_back(prompt_id.clone());
        }
        {
            let mut record = session.record.borrow_mut();
            record.updated_at = now();
            if record.title.is_empty() {
                record.title = plain_text(&prompt.parts).chars().take(80).collect();
            }
        }
        self.remember(session);
        if prompt.continues.is_none() {
            let shown = json!({"kind": "prompt", "prompt_id": prompt_id, "parts": prompt.parts, "delivery": if prompt.steers { "steer" } else { "queue" }});
            self.publish(session, &shown);
        }
        let mut line = json!({"session_id": session.id.as_str(), "prompt_id": prompt_id});
        if !prompt.is_conversation {
            line["input"] = json!({"parts": prompt.parts});
        }
        if prompt.steers {
            line["delivery"] = "steer".into();
        }
        for (key, value) in prompt.further {
            line[key] = value;
        }
        self.hub.client_line(line.to_string().as_bytes());
        Ok(Accepted { prompt_id, after })
    }

    /// Cancels the running turn; false if none runs.
    pub fn cancel(&self, session: &Session) -> bool {
        let runs = session.is_busy();
        if runs {
            self.send(&json!({"type": "control/cancel", "session_id": session.id.as_str()}));
        }
        runs
    }

    /// Withdraws a prompt that waits.
    pub fn withdraw(&self, session: &Session, prompt_id: &str) -> Result<(), Refusal> {
        if !session.prompts.borrow().iter().any(|waiting| waiting == prompt_id) {
            return Err(Refusal::not_found("prompt that waits"));
        }
        if session.running().as_deref() == Some(prompt_id) {
            let message = "The prompt's turn runs already. Cancel it with POST …/cancel.";
            return Err(Refusal::new(StatusCode::CONFLICT, "prompt_running", message));
        }
        self.send(
            &json!({"type": "control/cancel", "session_id": session.id.as_str(), "prompt_id": prompt_id}),
        );
        Ok(())
    }

    /// Answers a permission request. The first answer wins.
    pub fn decide(
        &self,
        id: &str,
        decision: &'static str,
        mut response: Map<String, Value>,
    ) -> Result<(), Refusal> {
        let ended = self.approvals.borrow_mut().end(id, decision);
        let Some(approval) = ended else {
            let approvals = self.approvals.borrow();
            let Some(ended) = approvals.ended(id) else { return Err(Refusal::not_found("approval")) };
            let message = format!("The approval was decided already: {}.", ended.decision);
            let refusal = Refusal::new(StatusCode::CONFLICT, "already_decided", message);
            return Err(refusal.with("decision", ended.decision));
        };
        response.insert("behavior".to_owned(), decision.into());
        self.send(&json!({"type": "control_response", "request_id": id, "session_id": approval.session.as_str(), "response": {"subtype": "success", "result": response}}));
        if let Ok(session) = self.get(approval.session.as_str()) {
            self.publish(
                &session,
                &json!({"kind": "approval_decided", "request_id": id, "decision": decision}),
            );
        }
        Ok(())
    }

    /// A reader of the session's lines after `after`.
    pub fn follow(&self, session: &Rc<Session>, after: u64) -> SessionReader {
        SessionReader::new(session.clone(), self.store.clone(), self.closing.subscribe(), after)
    }

    /// The session so far, for readers whose position is no longer stored.
    pub fn snapshot(&self, session: &Session) -> Value {
        let last = session.last();
        let messages = self.stored.messages(&session.id).unwrap_or_else(|_| json!([]));
        json!({"session_id": session.id.as_str(), "last_event_id": last, "messages": messages, "approvals": self.approvals_json(Some(&session.id))})
    }

    /// The open approvals as clients see them.
    pub fn approvals_json(&self, session: Option<&SessionId>) -> Value {
        let approvals = self.approvals.borrow();
        let open = approvals.list(session).into_iter().map(|(id, approval)| {
            json!({
                "id": id, "session_id": approval.session.as_str(), "prompt_id": approval.prompt_id,
                "tool": approval.request["tool"], "metadata": approval.request["metadata"],
                "asked_at": approval.asked_at,
            })
        });
        Value::Array(open.collect())
    }

    /// Becomes true when the server ends.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Refuses new prompts from now on, and lets running turns finish.
    pub fn drain(&self, exit_code: u8) {
        self.is_draining.set(true);
        self.hub.drain(exit_code);
    }

    /// The nodes on the bus; none without a bus.
    pub fn nodes(&self) -> Option<Vec<Value>> {
        self.hub.nodes()
    }

    /// True once new prompts are refused.
    pub fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// Ends the streams of all readers when the server shuts down.
    pub fn end(&self) {
        self.closing.send_replace(true);
    }

    /// How many sessions the kernel has open.
    fn open_count(&self) -> usize {
        self.by_id.borrow().values().filter(|session| session.is_open.get()).count()
    }

    /// Makes room for one more open session: the one that rests longest is closed.
    async fn make_room(&self) -> Result<(), Refusal> {
        while self.open_count() >= self.limits.sessions {
            let resting = self
                .by_id
                .borrow()
                .values()
                .filter(|session| session.is_open.get() && !session.is_busy())
                .min_by_key(|session| session.used_at.get())
                .cloned();
            let Some(session) = resting else {
                let message = format!(
                    "{} sessions are busy, which is the limit (--max-sessions).",
                    self.limits.sessions
                );
                return Err(Refusal::busy("too_many_sessions", message));
            };
            self.close(&session).await?;
            session.forget_recent();
        }
        Ok(())
    }

    /// Opens a session in the kernel, unless it is open.
    async fn open(&self, session: &Rc<Session>) -> Result<(), Refusal> {
        if session.is_deleted.get() {
            return Err(Refusal::not_found("session"));
        }
        if session.is_open.get() {
            return Ok(());
        }
        // The directory may have been replaced by a link since the session was created.
        if !is_inside(&session.record.borrow().workspace, &self.workspaces) {
            return Err(refuse_workspace());
        }
        self.make_room().await?;
        self.open_with(session, None).await
    }

    async fn open_with(&self, session: &Rc<Session>, fork_from: Option<&SessionId>) -> Result<(), Refusal> {
        let record = session.record.borrow().clone();
        let mut args = Vec::new();
        let flags = [
            ("--model", record.model),
            ("--approval-mode", record.mode),
            ("--agent", record.agent),
            ("--append-system-prompt", record.instructions),
        ];
        for (flag, value) in flags {
            args.extend(value.map(|value| format!("{flag}={value}")));
        }
        let mut request =
            json!({"subtype": "open", "session_id": session.id.as_str(), "sequence": true, "args": args});
        let is_own = std::env::current_dir().is_ok_and(|own| own == record.workspace);
        if !is_own {
            // A session in the server's own directory can use a worker that is ready.
            request["cwd"] = record.workspace.to_string_lossy().into();
        }
        if let Some(from) = fork_from {
            request["fork_from"] = from.as_str().into();
        }
        // Set first: a second caller must not open the session again.
        session.is_open.set(true);
        let answer = self.ask(request).await;
        let error = answer.as_ref().ok().map(|answer| &answer["response"]["error"]);
        // On a bus, the session may be open on a node since before this server started.
        let error = error.filter(|error| self.hub.nodes().is_none() || error["code"] != "duplicate_session");
        if let Some(message) = error.and_then(|error| error["message"].as_str()) {
            session.is_open.set(false);
            return Err(Refusal::bad_request("session_not_opened", message));
        }
        answer.map(|_| ()).inspect_err(|_| session.is_open.set(false))
    }

    /// Closes a session in the kernel. Its next prompt opens it again; a running turn is cancelled.
    pub async fn close(&self, session: &Rc<Session>) -> Result<(), Refusal> {
        if session.is_open.replace(false) {
            self.ask(json!({"subtype": "close", "session_id": session.id.as_str()})).await?;
            session.prompts.borrow_mut().clear();
        }
        Ok(())
    }

    /// Sends a control request and waits for its answer.
    async fn ask(&self, mut request: Value) -> Result<Value, Refusal> {
        let number = self.requests.get() + 1;
        self.requests.set(number);
        let id = format!("serve-{number}");
        request["type"] = "control_request".into();
        request["request_id"] = id.as_str().into();
        let (sender, answer) = oneshot::channel();
        self.awaited.borrow_mut().insert(id.clone(), sender);
        self.send(&request);
        let answered = tokio::time::timeout(ANSWER_TIME, answer).await;
        self.awaited.borrow_mut().remove(&id);
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(Refusal::busy("no_answer", "The session did not answer before the deadline.")),
        }
    }

    fn send(&self, line: &Value) {
        self.hub.client_line(line.to_string().as_bytes());
    }

    /// Adds a line of the server's own to a session's stream, so that every reader sees it, now and later.
    fn publish(&self, session: &Session, value: &Value) {
        let id = session.id.as_str();
        let line = format!(
            "{{\"type\":\"x-qwen-session-event\",\"event\":\"Custom\",\"message\":\"\",\"value\":{value},\"session_id\":\"{id}\"}}"
        );
        self.hub.session_line(&session.id, line.as_bytes());
    }

    /// Writes the session's record.
    fn remember(&self, session: &Session) {
        let mut record = session.record.borrow().clone();
        record.open_prompts = session.prompts.borrow().iter().cloned().collect();
        // A record that cannot be written is written with the next change; the session itself is in its log.
        let _ = self.records.write(&session.id, &record);
    }

    /// The directory of a new session, which must be in one of the workspaces.
    fn workspace(&self, wanted: Option<&str>) -> Result<PathBuf, Refusal> {
        let Some(wanted) = wanted else {
            let first = self.workspaces.first().cloned();
            return first.ok_or_else(|| Refusal::internal("The server has no workspace."));
        };
        let path = Path::new(wanted);
        if !path.is_absolute() || wanted.contains('\0') {
            return Err(refuse_workspace());
        }
        let real = path.canonicalize().map_err(|_| refuse_workspace())?;
        if is_inside(&real, &self.workspaces) && real.is_dir() { Ok(real) } else { Err(refuse_workspace()) }
    }

    /// The directories in which sessions may run.
    pub fn workspaces(&self) -> &[PathBuf] {
        &self.workspaces
    }
}

/// One error for everything: what exists elsewhere is not revealed.
fn refuse_workspace() -> Refusal {
    Refusal::new(
        StatusCode::FORBIDDEN,
        "workspace_not_allowed",
        "The workspace is not one of this server's (--workspace).",
    )
}

/// True if a directory is in one of the workspaces, after all links. One that is missing counts by its name.
fn is_inside(directory: &Path, workspaces: &[PathBuf]) -> bool {
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    workspaces.iter().any(|workspace| real.starts_with(workspace))
}

/// Refuses values that a worker would read as something else.
fn check_options(new: &NewSession) -> Result<(), Refusal> {
    if let Some(mode) = &new.mode
        && !["plan", "default", "auto-edit", "yolo"].contains(&mode.as_str())
    {
        return Err(Refusal::bad_request("invalid_mode", "`mode` must be plan, default, auto-edit or yolo."));
    }
    if let Some(agent) = &new.agent
        && !["react", "tot", "got", "agot"].contains(&agent.as_str())
    {
        return Err(Refusal::bad_request("invalid_agent", "`agent` must be react, tot, got or agot."));
    }
    if new.model.as_ref().is_some_and(|model| model.is_empty() || model.contains(['\0', '\n'])) {
        return Err(Refusal::bad_request("invalid_model", "`model` must be the name of a model."));
    }
    Ok(())
}

/// The text of a message's parts.
pub fn plain_text(parts: &Value) -> String {
    match parts {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join(" ")
        }
        _ => String::new(),
    }
}
