//! The parent process of a supervised worker: it commits the session's log at sync points (`--commit-fd`)
//! and must show signs of life before work starts (`--leash`).
//!
//! The descriptor carries JSON lines. The worker writes
//! `{"type":"commit","id":1,"session_id":S,"bytes":X,"reason":"start","prompt_id":P}` (or `"effect"` with
//! `tool` and `call`, or `"end"`) and waits for `{"type":"committed","id":1,"outcome":"ok"}`. The outcome
//! `fenced` is final: another process owns the session. After `unknown` the same question is asked again.
//! `{"type":"alive"}` asks for a sign of life, and any line is one. With `{"type":"discard"}` the parent
//! takes the session away: the worker ends it and starts anew in the same process.

use std::collections::HashMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use qwen_engine::{Cancel, SyncPoint, SyncReason};
use qwen_events::{ErrorInfo, ErrorKind};
use rustix::fs::FileType;
use rustix::io::FdFlags;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::cli::{CommitDescriptors, Supervision};
use crate::runtime::restart;

/// The pause before a commit with an unknown outcome is asked for again.
const RETRY: Duration = Duration::from_millis(50);

/// How long a process that must end waits for a commit.
const FINAL_COMMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The link to the parent process.
pub struct ParentProcess {
    leash: Option<Duration>,
    /// Lines for the commit descriptor; none without one.
    lines: Option<mpsc::UnboundedSender<String>>,
    state: Mutex<State>,
    /// Signalled when the parent was heard.
    changed: Notify,
    ending: Cancel,
}

struct State {
    last_contact: Instant,
    /// Standard input has ended, so that silence there means nothing.
    input_ended: bool,
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Outcome>>,
    refusal: Option<ErrorInfo>,
    is_discarding: bool,
    /// The commit descriptor once more, for the process image that follows this one.
    descriptors: Vec<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Fenced,
    Unknown,
}

/// A line of the parent.
#[derive(Deserialize)]
struct Reply {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<u64>,
    outcome: Option<Outcome>,
}

impl ParentProcess {
    /// Opens the link that the flags describe; none without them. Call it once per process, because it takes
    /// the descriptors over.
    pub fn open(supervision: &Supervision, ending: &Cancel) -> Result<Option<Arc<Self>>, ErrorInfo> {
        if !supervision.is_active() {
            return Ok(None);
        }
        let (sender, lines) = mpsc::unbounded_channel();
        let parent = Arc::new(Self {
            leash: supervision.leash,
            lines: supervision.commit_fd.is_some().then_some(sender),
            state: Mutex::new(State {
                last_contact: Instant::now(),
                input_ended: false,
                last_id: 0,
                waiting: HashMap::new(),
                refusal: None,
                is_discarding: false,
                descriptors: Vec::new(),
            }),
            changed: Notify::new(),
            ending: ending.clone(),
        });
        if let Some(CommitDescriptors { read, write }) = supervision.commit_fd {
            parent.connect(read, write, lines).map_err(|error| {
                let message = format!(
                    "--commit-fd: {error}; give the number of an open socket, or of two pipes as READ,WRITE"
                );
                ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
            })?;
        }
        Ok(Some(parent))
    }

    fn connect(
        self: &Arc<Self>,
        input: RawFd,
        output: RawFd,
        lines: mpsc::UnboundedReceiver<String>,
    ) -> io::Result<()> {
        let first = self.adopt(input)?;
        if input == output {
            if FileType::from_raw_mode(rustix::fs::fstat(&first)?.st_mode) != FileType::Socket {
                return Err(io::Error::other(format!("descriptor {input} is not a socket")));
            }
            let stream = std::os::unix::net::UnixStream::from(first);
            stream.set_nonblocking(true)?;
            // Halves that do not shut the socket down when they are dropped: a restarted worker uses it
            // again.
            let (reader, writer) = tokio::io::split(tokio::net::UnixStream::from_std(stream)?);
            self.run(reader, writer, lines);
            return Ok(());
        }
        let reader = pipe::Receiver::from_owned_fd(first)?;
        let writer = pipe::Sender::from_owned_fd(self.adopt(output)?)?;
        self.run(reader, writer, lines);
        Ok(())
    }

    /// Takes a descriptor over and keeps a copy of it for a restart.
    fn adopt(&self, number: RawFd) -> io::Result<OwnedFd> {
        let owned = adopt(number)?;
        self.state().descriptors.push(owned.try_clone()?);
        Ok(owned)
    }

    fn run(
        self: &Arc<Self>,
        reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
        mut lines: mpsc::UnboundedReceiver<String>,
    ) {
        let parent = self.clone();
        tokio::spawn(async move {
            let mut replies = BufReader::new(reader).lines();
            while let Ok(Some(line)) = replies.next_line().await {
                parent.reply(&line);
            }
            parent.refuse("parent_gone", "the parent process closed the commit descriptor");
        });
        tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                // The reader notices when the parent is gone.
                if writer.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }

    fn reply(&self, line: &str) {
        self.record_contact();
        let Ok(reply) = serde_json::from_str::<Reply>(line) else { return };
        if reply.kind.as_deref() == Some("discard") {
            self.state().is_discarding = true;
            return self.changed.notify_waiters();
        }
        let (Some(id), Some(outcome)) = (reply.id, reply.outcome) else { return };
        if let Some(waiting) = self.state().waiting.remove(&id) {
            // The asker may have stopped waiting at this moment.
            let _ = waiting.send(outcome);
        }
    }

    /// Waits until the parent takes the session away.
    pub async fn discarding(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_discarding() {
                return;
            }
            changed.await;
        }
    }

    pub fn is_discarding(&self) -> bool {
        self.state().is_discarding
    }

    /// Requests the restart that follows the end of a session which the parent took away.
    pub fn restart_if_discarding(&self) {
        let mut state = self.state();
        if state.is_discarding {
            restart::request(std::mem::take(&mut state.descriptors));
        }
    }

    /// Records that the parent sent something.
    pub fn record_contact(&self) {
        self.state().last_contact = Instant::now();
        self.changed.notify_waiters();
    }

    /// Standard input has ended. Without a commit descriptor nothing can be heard any more, so the leash ends
    /// with it: what was accepted is finished.
    pub fn note_input_ended(&self) {
        self.state().input_ended = true;
        self.changed.notify_waiters();
    }

    fn refuse(&self, code: &'static str, message: &'static str) {
        let mut state = self.state();
        state.refusal.get_or_insert_with(|| ErrorInfo::new(ErrorKind::Internal, code, message));
        // Dropping a sender fails the commit that waits for it.
        state.waiting.clear();
        drop(state);
        self.changed.notify_waiters();
    }

    fn is_silent(&self) -> bool {
        let Some(leash) = self.leash else { return false };
        let state = self.state();
        let has_ended = state.input_ended && self.lines.is_none();
        state.refusal.is_none() && !has_ended && state.last_contact.elapsed() >= leash
    }

    /// Waits until the parent sends something if it has been silent for longer than the leash.
    pub async fn wait_for_contact(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // Registered before the check, so that no sign of life is missed.
        changed.as_mut().enable();
        if !self.is_silent() {
            return;
        }
        self.send(&json!({"type": "alive"}));
        tokio::select! {
            () = changed => {}
            _ = self.ending.stopped() => {}
        }
    }

    fn send(&self, line: &serde_json::Value) {
        if let Some(lines) = &self.lines {
            // The writer is gone only if the parent is.
            let _ = lines.send(format!("{line}\n"));
        }
    }

    /// Asks the parent to commit the log and waits until it has answered.
    pub async fn commit(&self, point: SyncPoint) {
        loop {
            let (answer, answered) = oneshot::channel();
            let id = {
                let mut state = self.state();
                if state.refusal.is_some() {
                    return;
                }
                state.last_id += 1;
                let id = state.last_id;
                state.waiting.insert(id, answer);
                id
            };
            self.send(&question(id, &point));
            let outcome = tokio::select! {
                outcome = answered => outcome.ok(),
                () = self.shutdown_limit() => None,
            };
            match outcome {
                Some(Outcome::Ok) => return,
                Some(Outcome::Unknown) => tokio::time::sleep(RETRY).await,
                Some(Outcome::Fenced) => {
                    return self.refuse("session_taken_over", "another process has taken the session over");
                }
                None => return self.refuse("not_committed", "the parent process did not commit the log"),
            }
        }
    }

    /// A process that must end cannot wait for ever for a parent that may never answer.
    async fn shutdown_limit(&self) {
        self.ending.stopped().await;
        tokio::time::sleep(FINAL_COMMIT_TIMEOUT).await;
    }

    /// True if sync points must be committed.
    pub fn commits(&self) -> bool {
        self.lines.is_some()
    }

    /// Why nothing may have an effect any more.
    pub fn refusal(&self) -> Option<ErrorInfo> {
        self.state().refusal.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn question(id: u64, point: &SyncPoint) -> serde_json::Value {
    let mut line = json!({
        "type": "commit",
        "id": id,
        "session_id": point.session_id.as_str(),
        "bytes": point.bytes,
    });
    match &point.reason {
        SyncReason::Start { prompt_id } => {
            line["reason"] = "start".into();
            line["prompt_id"] = prompt_id.as_str().into();
        }
        SyncReason::Effect { tool, call_id } => {
            line["reason"] = "effect".into();
            line["tool"] = (&**tool).into();
            line["call"] = call_id.as_str().into();
        }
        SyncReason::End { prompt_id } => {
            line["reason"] = "end".into();
            line["prompt_id"] = prompt_id.as_str().into();
        }
    }
    line
}

/// Takes over a descriptor that the parent passed by its number. Commands do not inherit it.
fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 || !std::path::Path::new(&format!("/proc/self/fd/{number}")).exists() {
        return Err(io::Error::other(format!("descriptor {number} is not open")));
    }
    // SAFETY: the parent opened this descriptor for this purpose and named it on the command line; nothing
    // else in this process uses it, and it is adopted once.
    #[expect(unsafe_code, reason = "the parent hands over a descriptor by number")]
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&owned, FdFlags::CLOEXEC)?;
    Ok(owned)
}
