//! The thread that runs the kernel of a Rust host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use qwen_dialects::Format;
use qwen_events::SessionId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::{AgentError, AgentOptions};
use crate::config::{HubConfig, Keys, session_log_directory};
use crate::front::{Front, LineWriter, QwenFront};
use crate::hub::{Hub, HubParts, SessionLogs};
use crate::router::{Identity, Router, SessionOptions};
use crate::worker_pool::Pool;

/// With more unread bytes, a session is paused.
const HIGH_WATER: usize = 4 * 1024 * 1024;
/// With fewer unread bytes, it is resumed.
const LOW_WATER: usize = 1024 * 1024;

/// Commands from sessions to the kernel.
pub(super) enum Command {
    Open { id: String, options: Box<SessionOptions>, reply: oneshot::Sender<Result<Lines, AgentError>> },
    Line(String),
    Resume(String),
    Status { reply: oneshot::Sender<Value> },
    Close { reply: oneshot::Sender<()> },
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
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.lines.recv().await?;
            let before = self.waiting.fetch_sub(line.len(), Ordering::AcqRel);
            if before > LOW_WATER && before - line.len() <= LOW_WATER {
                // A kernel that has ended sends nothing more anyway.
                let _ = self.commands.send(Command::Resume(self.id.clone()));
            }
            if let Ok(value) = serde_json::from_slice(&line) {
                return Some(value);
            }
        }
    }
}

struct Reader {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

type Readers = Rc<RefCell<HashMap<String, Reader>>>;
type Answers = Rc<RefCell<HashMap<String, oneshot::Sender<Value>>>>;

/// The worker program's path.
fn binary(options: &AgentOptions) -> Result<PathBuf, AgentError> {
    let named = options.binary_path.clone().or_else(|| std::env::var_os("QWEN_BIN").map(PathBuf::from));
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join("qwen")).find(|file| file.is_file())
    };
    named.or_else(on_path).ok_or(AgentError::NoBinary)
}

/// Starts the thread.
pub(super) fn start(options: AgentOptions) -> Result<mpsc::UnboundedSender<Command>, AgentError> {
    let binary = binary(&options)?;
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
    let front: Arc<dyn Front> = Arc::new(QwenFront::new(Format::StreamJson));
    let config = HubConfig {
        worker_pool: options.worker_pool.clone(),
        settings_profile: options.settings_profile.clone(),
        ..HubConfig::default()
    };
    config.check().map_err(|error| error.to_string())?;
    let mut args = front.worker_flags();
    args.extend(options.worker_args.iter().cloned());
    let state = options.state_dir.clone().unwrap_or_else(|| std::env::temp_dir().join("qwen-kernel"));
    let inherited = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let mut keys = Keys::new(&config, binary, args, state, inherited);
    let key = keys.default_key().map_err(|error| error.to_string())?;
    let pool = Pool::new(config.worker_pool, key, fastrand::u64(..));
    let writer = LineWriter::new(&*front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let session = SessionId::from_random(fastrand::u128(..));
    let router = Router::new(front, writer, Box::new(keys), pool, Identity::default(), session);
    let session_logs: SessionLogs = Box::new(|key| session_log_directory(key, |name| std::env::var_os(name)));
    let parts = HubParts {
        router,
        events: None,
        session_logs: Some(session_logs),
        turn_ends: None,
        log: None,
        worker_stderr: None,
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
    let out = tokio::task::spawn_local(distribute(hub.clone(), readers.clone(), answers.clone()));
    let mut closing = None;
    // Readers hold a clone of the sender, so the channel never closes; the close command ends the loop.
    while let Some(command) = incoming.recv().await {
        match command {
            Command::Open { id, options, reply } => {
                let (lines, receiver) = mpsc::unbounded_channel();
                let waiting = Arc::new(AtomicUsize::new(0));
                readers.borrow_mut().insert(id.clone(), Reader { lines, waiting: waiting.clone() });
                let (told, opened) = oneshot::channel();
                let request = format!("open-{id}-{:08x}", fastrand::u32(..));
                answers.borrow_mut().insert(request.clone(), told);
                let mut line = json!({"type": "control_request", "subtype": "open", "request_id": request, "session_id": id});
                options.write(&mut line);
                hub.client_line(line.to_string().as_bytes());
                let commands = commands.clone();
                tokio::task::spawn_local(async move {
                    let answer = opened.await.unwrap_or_default();
                    let error = &answer["response"]["error"];
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let opened = if error.is_object() {
                        Err(AgentError::Refused {
                            code: text(&error["code"]),
                            message: text(&error["message"]),
                        })
                    } else {
                        Ok(Lines { id, lines: receiver, waiting, commands })
                    };
                    // The caller may no longer wait.
                    let _ = reply.send(opened);
                });
            }
            Command::Line(line) => hub.client_line(line.as_bytes()),
            Command::Resume(id) => hub.set_paused(&id, false),
            Command::Status { reply } => drop(reply.send(hub.look(Router::status))),
            Command::Close { reply } => {
                closing = Some(reply);
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

/// Passes every line to its session's reader.
async fn distribute(hub: Hub, readers: Readers, answers: Answers) {
    #[derive(serde::Deserialize)]
    struct Keys<'a> {
        #[serde(borrow)]
        session_id: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow)]
        request_id: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, rename = "type")]
        kind: Option<std::borrow::Cow<'a, str>>,
    }
    while let Some(bytes) = hub.next_output().await {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(keys) = serde_json::from_slice::<Keys<'_>>(line) else { continue };
            if keys.kind.as_deref() == Some("control_response")
                && let Some(waiting) =
                    keys.request_id.as_deref().and_then(|id| answers.borrow_mut().remove(id))
            {
                let _ = waiting.send(serde_json::from_slice(line).unwrap_or_default());
                continue;
            }
            let Some(id) = keys.session_id.as_deref() else { continue };
            let gone = match readers.borrow().get(id) {
                Some(reader) => {
                    let waiting = reader.waiting.fetch_add(line.len(), Ordering::AcqRel) + line.len();
                    if waiting > HIGH_WATER {
                        hub.set_paused(id, true);
                    }
                    reader.lines.send(line.to_vec()).is_err()
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
