//! The thread that runs the kernel of a Rust host.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use qwen_dialects::Format;
use qwen_events::SessionId;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, LocalSet};

use super::binary::find_binary;
use super::{AgentError, AgentMessage, AgentOptions};
use crate::config::{HubConfig, Keys, session_log_directory};
use crate::control_plane::ControlPlane;
use crate::front::{Front, LineWriter, QwenFront};
use crate::hub::{Hub, HubParts, SessionLogs, WorkerStderr};
use crate::router::{Identity, Router, SessionOptions};
use crate::worker_pool::Pool;

/// With more unread bytes, a session is paused.
const HIGH_WATER: usize = 4 * 1024 * 1024;
/// With fewer unread bytes, it is resumed.
const LOW_WATER: usize = 1024 * 1024;

/// Commands from sessions to the kernel.
pub(super) enum Command {
    Open {
        id: String,
        options: Box<SessionOptions>,
        control: Arc<ControlPlane>,
        /// Runs the callbacks of the control plane.
        runtime: Handle,
        reply: oneshot::Sender<Result<Lines, AgentError>>,
    },
    Line(String),
    /// A control request whose answer is returned here and not read as a line.
    Ask {
        session: String,
        request_id: String,
        line: String,
        reply: oneshot::Sender<Value>,
    },
    Resume(String),
    Status {
        reply: oneshot::Sender<Value>,
    },
    Close {
        reply: Option<oneshot::Sender<()>>,
    },
}

/// The lines of one session.
pub(super) struct Lines {
    id: String,
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Bytes that the reader has not consumed.
    waiting: Arc<AtomicUsize>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Lines {
    /// Reads no more: what still comes is dropped.
    pub fn stop(&mut self) {
        self.lines.close();
        while self.lines.try_recv().is_ok() {}
        // A kernel that has ended sends nothing more anyway.
        let _ = self.commands.send(Command::Resume(self.id.clone()));
    }

    pub async fn next(&mut self) -> Option<AgentMessage> {
        loop {
            let line = self.lines.recv().await?;
            let before = self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            if before > LOW_WATER && before - line.len() <= LOW_WATER {
                // A kernel that has ended sends nothing more anyway.
                let _ = self.commands.send(Command::Resume(self.id.clone()));
            }
            if let Some(message) = AgentMessage::parse(&line) {
                if let Some(fork) = message.announced_fork() {
                    fork.clone_into(&mut self.id);
                }
                return Some(message);
            }
        }
    }
}

struct Reader {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    control: Arc<ControlPlane>,
    runtime: Handle,
    /// Requests without an answer: until it comes, the session is not paused.
    asked: usize,
    /// The callbacks that run, by the question's request id.
    questions: HashMap<String, AbortHandle>,
}

impl Reader {
    /// Lets the control plane answer a question of the worker.
    fn answer(&mut self, request_id: &str, line: &[u8], commands: &mpsc::UnboundedSender<Command>) {
        let Ok(question) = serde_json::from_slice::<Value>(line) else { return };
        let (control, commands) = (self.control.clone(), commands.clone());
        let task = self.runtime.spawn(async move {
            let response = control.answer(&question).await;
            let line = json!({"type": "control_response", "request_id": question["request_id"],
                "session_id": question["session_id"], "response": response});
            // The kernel may already have ended.
            let _ = commands.send(Command::Line(line.to_string()));
        });
        self.questions.retain(|_, task| !task.is_finished());
        self.questions.insert(request_id.to_owned(), task.abort_handle());
    }
}

/// The caller that waits for an answer, and the session that it asked; none for `open`.
struct Awaited {
    session: Option<String>,
    reply: oneshot::Sender<Value>,
}

type Readers = Rc<RefCell<HashMap<String, Reader>>>;
type Answers = Rc<RefCell<HashMap<String, Awaited>>>;

pub(super) fn start(options: AgentOptions) -> Result<mpsc::UnboundedSender<Command>, AgentError> {
    let binary = find_binary(options.binary_path.as_deref())?;
    let (commands, incoming) = mpsc::unbounded_channel();
    let own = commands.clone();
    let (ready, started) = std::sync::mpsc::channel();
    let run = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error.to_string()))),
        };
        LocalSet::new().block_on(&runtime, async move {
            match hub(&options, binary) {
                Ok(hub) => {
                    // The caller waits for this message.
                    let _ = ready.send(Ok(()));
                    serve(hub, own, incoming).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    };
    std::thread::Builder::new()
        .name("qwen-kernel".to_owned())
        .spawn(run)
        .map_err(|error| AgentError::Start(error.to_string()))?;
    match started.recv() {
        Ok(Ok(())) => Ok(commands),
        Ok(Err(error)) => Err(AgentError::Start(error)),
        Err(_) => Err(AgentError::Ended),
    }
}

fn hub(options: &AgentOptions, binary: PathBuf) -> Result<Hub, String> {
    let format = if options.include_partial_messages { Format::StreamChunkJson } else { Format::StreamJson };
    let front: Arc<dyn Front> = Arc::new(QwenFront::new(format));
    let config = HubConfig {
        worker_pool: options.worker_pool.clone(),
        settings_profile: options.settings_profile.clone(),
        ..HubConfig::default()
    };
    config.check().map_err(|error| error.to_string())?;
    let mut args = front.worker_flags();
    if options.settings_profile.is_none() {
        args.push(format!("--setting-sources={}", options.setting_sources.join(",")));
    }
    args.extend(options.worker_args.iter().cloned());
    let state = options.state_dir.clone().unwrap_or_else(|| std::env::temp_dir().join("qwen-kernel"));
    let inherited = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let mut keys = Keys::new(&config, binary, args, state, inherited);
    let key = keys.default_key().map_err(|error| error.to_string())?;
    let pool = Pool::new(config.worker_pool, key, fastrand::u64(..));
    let writer = LineWriter::new(&*front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let session = SessionId::from_random(fastrand::u128(..));
    let router = Router::new(front, writer, Box::new(keys), pool, Identity::default(), session);
    let log =
        options.logger.clone().map(|log| Box::new(move |record: &Value| log(record)) as Box<dyn Fn(&Value)>);
    let worker_stderr = options.stderr.clone();
    let worker_stderr = worker_stderr.map(|stderr| Box::new(move |line: &str| stderr(line)) as WorkerStderr);
    let session_logs: SessionLogs = Box::new(|key| session_log_directory(key, |name| std::env::var_os(name)));
    let parts = HubParts {
        router,
        events: None,
        session_logs: Some(session_logs),
        shared: None,
        turn_ends: None,
        log,
        worker_stderr,
        write_now: None,
    };
    Hub::start(parts).map_err(|error| error.to_string())
}

async fn serve(
    hub: Hub,
    commands: mpsc::UnboundedSender<Command>,
    mut incoming: mpsc::UnboundedReceiver<Command>,
) {
    let readers = Readers::default();
    let answers = Answers::default();
    let out =
        tokio::task::spawn_local(distribute(hub.clone(), readers.clone(), answers.clone(), commands.clone()));
    let mut closing = None;
    // Readers hold a clone of the sender, so the channel never closes; the close command ends the loop.
    while let Some(command) = incoming.recv().await {
        match command {
            Command::Open { id, options, control, runtime, reply } => {
                let (lines, receiver) = mpsc::unbounded_channel();
                let waiting = Arc::new(AtomicUsize::new(0));
                let reader = Reader {
                    lines,
                    waiting: waiting.clone(),
                    control,
                    runtime,
                    asked: 0,
                    questions: HashMap::new(),
                };
                readers.borrow_mut().insert(id.clone(), reader);
                let (told, opened) = oneshot::channel();
                let request = format!("open-{id}-{:08x}", fastrand::u32(..));
                answers.borrow_mut().insert(request.clone(), Awaited { session: None, reply: told });
                let mut line = json!({"type": "control_request", "subtype": "open", "request_id": request, "session_id": id});
                options.write(&mut line);
                hub.client_line(line.to_string().as_bytes());
                let commands = commands.clone();
                tokio::task::spawn_local(async move {
                    let answer = opened.await.unwrap_or_default();
                    let error = &answer["response"]["error"];
                    let opened = if error.is_object() {
                        Err(AgentError::refused(error))
                    } else {
                        Ok(Lines { id, lines: receiver, waiting, commands })
                    };
                    // The caller may no longer wait.
                    let _ = reply.send(opened);
                });
            }
            Command::Line(line) => hub.client_line(line.as_bytes()),
            Command::Ask { session, request_id, line, reply } => {
                if let Some(reader) = readers.borrow_mut().get_mut(&session) {
                    reader.asked += 1;
                }
                answers.borrow_mut().insert(request_id, Awaited { session: Some(session.clone()), reply });
                hub.set_paused(&session, false);
                hub.client_line(line.as_bytes());
            }
            Command::Resume(id) => hub.set_paused(&id, false),
            Command::Status { reply } => drop(reply.send(hub.inspect(Router::status))),
            Command::Close { reply } => {
                closing = reply;
                break;
            }
        }
    }
    hub.drain(0);
    hub.drain(0);
    let _ = out.await;
    hub.kill_all();
    if let Some(reply) = closing {
        // The caller may no longer wait.
        let _ = reply.send(());
    }
}

/// The keys by which a line is passed on.
#[derive(serde::Deserialize)]
struct LineKeys<'a> {
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

/// Passes every line to its session's reader.
async fn distribute(hub: Hub, readers: Readers, answers: Answers, commands: mpsc::UnboundedSender<Command>) {
    while let Some(bytes) = hub.next_output().await {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(keys) = serde_json::from_slice::<LineKeys<'_>>(line) else { continue };
            let kind = keys.kind.as_deref().unwrap_or_default();
            let request_id = keys.request_id.as_deref().unwrap_or_default();
            if kind == "control_response"
                && let Some(awaited) = answers.borrow_mut().remove(request_id)
            {
                if let Some(session) = awaited.session {
                    let mut readers = readers.borrow_mut();
                    if let Some(reader) = readers.get_mut(&session) {
                        reader.asked = reader.asked.saturating_sub(1);
                        if reader.asked == 0 && reader.lines.is_closed() {
                            readers.remove(&session);
                        }
                    }
                }
                // The caller may no longer wait.
                let _ = awaited.reply.send(serde_json::from_slice(line).unwrap_or_default());
                continue;
            }
            let Some(id) = keys.session_id.as_deref() else { continue };
            let notice = (kind == "x-qwen-session-event").then(|| AgentMessage::parse(line)).flatten();
            let fork = notice.as_ref().and_then(AgentMessage::announced_fork);
            if let Some(fork) = fork {
                // The session's further lines carry the id of the fork.
                let reader = readers.borrow_mut().remove(id);
                readers.borrow_mut().extend(reader.map(|reader| (fork.to_owned(), reader)));
                hub.set_paused(id, false);
            }
            let id = fork.unwrap_or(id);
            let gone = match readers.borrow_mut().get_mut(id) {
                Some(reader) => {
                    match kind {
                        "control_request" => reader.answer(request_id, line, &commands),
                        "control_cancel_request" => {
                            if let Some(task) = reader.questions.remove(request_id) {
                                task.abort();
                            }
                        }
                        _ => {}
                    }
                    let waiting = reader.waiting.fetch_add(line.len(), Ordering::AcqRel) + line.len();
                    if waiting > HIGH_WATER && reader.asked == 0 && !reader.lines.is_closed() {
                        hub.set_paused(id, true);
                    }
                    reader.lines.send(line.to_vec()).is_err() && reader.asked == 0
                }
                None => false,
            };
            if gone {
                readers.borrow_mut().remove(id);
                hub.set_paused(id, false);
            }
        }
    }
}
