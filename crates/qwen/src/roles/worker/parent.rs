//! The parent process of a supervised worker. On the descriptor of `--commit-fd` the worker reports its turns and
//! asks for commits of the session's log at sync points; with `--leash` the parent must show signs of life before
//! work starts. The messages are those of `qwen_kernel::ipc`.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use qwen_engine::{Cancel, SyncPoint, SyncReason};
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_kernel::ipc::{CommitReason, HubMessage, Place, Report, ReportedFact, WorkerMessage};
use qwen_kernel::store::Appended;
use rustix::fs::FileType;
use rustix::io::{Errno, FdFlags};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Interest};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot};

use crate::cli::{CommitDescriptors, Supervision, descriptors};
use crate::io::descriptor::watch;
use crate::runtime::{exit, restart};

/// The pause before a commit with an unknown outcome is asked for again.
const RETRY: Duration = Duration::from_millis(50);

/// How long a process that must end waits for a commit.
const FINAL_COMMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The link to the parent process.
pub struct ParentProcess {
    leash: Option<Duration>,
    has_descriptor: bool,
    outgoing: Mutex<Outgoing>,
    /// Signalled when `outgoing` begins or ends to wait for the parent.
    unwritten: Notify,
    state: Mutex<State>,
    /// Signalled when the parent was heard.
    changed: Notify,
    ending: Cancel,
}

/// The sending side of the commit descriptor.
#[derive(Default)]
struct Outgoing {
    /// Absent without a descriptor, and once the parent is gone.
    descriptor: Option<OwnedFd>,
    /// Bytes that the descriptor has not accepted.
    waiting: Vec<u8>,
}

impl Outgoing {
    /// Writes as much as the descriptor accepts without waiting.
    fn write(&mut self) {
        while let Some(descriptor) = &self.descriptor
            && !self.waiting.is_empty()
        {
            match rustix::io::write(descriptor, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The reader notices that the parent is gone.
                Err(_) => self.descriptor = None,
            }
        }
        self.waiting = Vec::new();
    }
}

struct State {
    last_contact: Instant,
    /// Standard input has ended, so that silence there means nothing.
    input_ended: bool,
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Appended>>,
    refusal: Option<ErrorInfo>,
    is_discarding: bool,
    /// The commit descriptor once more, for the process image that follows this one.
    descriptors: Vec<OwnedFd>,
}

impl ParentProcess {
    /// Opens the link that the flags describe; none without them. Call it once per process, because it takes
    /// the descriptors over.
    pub fn open(supervision: &Supervision, ending: &Cancel) -> Result<Option<Arc<Self>>, ErrorInfo> {
        if !supervision.is_active() {
            return Ok(None);
        }
        let parent = Arc::new(Self {
            leash: supervision.leash,
            has_descriptor: supervision.commit_fd.is_some(),
            outgoing: Mutex::default(),
            unwritten: Notify::new(),
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
            parent.connect(read, write).map_err(|error| {
                let message = format!(
                    "--commit-fd: {error}; give the number of an open socket, or of two pipes as READ,WRITE"
                );
                ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
            })?;
        }
        Ok(Some(parent))
    }

    fn connect(self: &Arc<Self>, input: RawFd, output: RawFd) -> io::Result<()> {
        let first = self.adopt(input)?;
        if input == output {
            if FileType::from_raw_mode(rustix::fs::fstat(&first)?.st_mode) != FileType::Socket {
                return Err(io::Error::other(format!("descriptor {input} is not a socket")));
            }
            let stream = std::os::unix::net::UnixStream::from(first);
            stream.set_nonblocking(true)?;
            let sending = stream.try_clone()?.into();
            // A half that does not shut the socket down when it is dropped: a restarted worker uses it again.
            let (reader, _) = tokio::io::split(tokio::net::UnixStream::from_std(stream)?);
            return self.run(reader, sending);
        }
        let reader = pipe::Receiver::from_owned_fd(first)?;
        let sending = self.adopt(output)?;
        rustix::io::ioctl_fionbio(&sending, true)?;
        self.run(reader, sending)
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
        sending: OwnedFd,
    ) -> io::Result<()> {
        let waiting = sending.try_clone()?;
        self.outgoing().descriptor = Some(sending);
        let parent = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                parent.receive(&line);
            }
            parent.refuse("parent_gone", "the parent process closed the commit descriptor");
        });
        tokio::spawn(self.clone().write_waiting(waiting));
        Ok(())
    }

    /// Writes what the descriptor did not accept at once.
    async fn write_waiting(self: Arc<Self>, descriptor: OwnedFd) {
        let mut watched = None;
        let mut descriptor = Some(descriptor);
        loop {
            self.unwritten.notified().await;
            while !self.outgoing().waiting.is_empty() {
                if let Some(descriptor) = descriptor.take() {
                    watched = watch(descriptor, Interest::WRITABLE).ok();
                }
                let Some(watched) = &watched else { return };
                let Ok(mut ready) = watched.writable().await else { return };
                let mut outgoing = self.outgoing();
                outgoing.write();
                if !outgoing.waiting.is_empty() {
                    ready.clear_ready();
                }
            }
            self.changed.notify_waiters();
        }
    }

    fn receive(&self, line: &str) {
        self.record_contact();
        match HubMessage::parse(line.as_bytes()) {
            Some(HubMessage::Ping) => self.send(&WorkerMessage::Pong),
            Some(HubMessage::Discard) => {
                self.state().is_discarding = true;
                self.changed.notify_waiters();
            }
            Some(HubMessage::Committed { id, outcome }) => {
                if let Some(waiting) = self.state().waiting.remove(&id) {
                    // The asker may have stopped waiting at this moment.
                    let _ = waiting.send(outcome);
                }
            }
            Some(HubMessage::Alive) | None => {}
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

    /// Requests the restart that follows the end of a session which the parent took away. `lines` were written
    /// to standard output.
    pub async fn restart_if_discarding(&self, lines: u64) {
        if self.is_discarding() {
            self.report(Place::After(lines), ReportedFact::Restarting);
            self.send_waiting().await;
            restart::request(std::mem::take(&mut self.state().descriptors));
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
        let has_ended = state.input_ended && !self.has_descriptor;
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
        self.send(&WorkerMessage::Alive);
        tokio::select! {
            () = changed => {}
            _ = self.ending.stopped() => {}
        }
    }

    /// Reports what happened in the session.
    pub fn report(&self, at: Place, fact: ReportedFact) {
        self.send(&WorkerMessage::Report(Report { at, fact }));
    }

    fn send(&self, message: &WorkerMessage) {
        if self.has_descriptor {
            self.send_lines(&message.to_line());
        }
    }

    /// Sends whole lines, in the order of the calls. What the parent does not accept at once waits.
    pub fn send_lines(&self, lines: &[u8]) {
        let mut outgoing = self.outgoing();
        let waited = !outgoing.waiting.is_empty();
        outgoing.waiting.extend_from_slice(lines);
        if !waited {
            outgoing.write();
            if !outgoing.waiting.is_empty() {
                self.unwritten.notify_one();
            }
        }
    }

    /// Waits until the parent has accepted everything that was sent.
    pub async fn send_waiting(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.outgoing().waiting.is_empty() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.shutdown_limit() => return,
            }
        }
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
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
            self.send(&commit_message(id, &point));
            let outcome = tokio::select! {
                outcome = answered => outcome.ok(),
                () = self.shutdown_limit() => None,
            };
            match outcome {
                Some(Appended::Ok) => return,
                Some(Appended::Unknown) => tokio::time::sleep(RETRY).await,
                Some(Appended::Fenced) => {
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
        self.has_descriptor
    }

    /// Why nothing may have an effect any more.
    pub fn refusal(&self) -> Option<ErrorInfo> {
        self.state().refusal.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn commit_message(id: u64, point: &SyncPoint) -> WorkerMessage {
    let reason = match &point.reason {
        SyncReason::Start { prompt_id } => CommitReason::Start { prompt_id: prompt_id.as_str().to_owned() },
        SyncReason::Effect { tool, call_id } => {
            CommitReason::Effect { tool: tool.to_string(), call: call_id.as_str().to_owned() }
        }
        SyncReason::End { prompt_id } => CommitReason::End { prompt_id: prompt_id.as_str().to_owned() },
    };
    let session_id = Some(point.session_id.as_str().to_owned());
    WorkerMessage::Commit { id, session_id, bytes: point.bytes, reason }
}

/// Reports facts before the worker serves, such as why it cannot. Failures are ignored: a parent that expects a
/// report sees the end of the process.
pub fn report_early(
    descriptors: CommitDescriptors,
    reports: impl IntoIterator<Item = (Place, ReportedFact)>,
) {
    if !is_open(descriptors.write) {
        return;
    }
    // SAFETY: the descriptor is open, and its owner takes it over later, in the same thread.
    #[expect(unsafe_code, reason = "the parent hands over a descriptor by number")]
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptors.write) };
    for (at, fact) in reports {
        let line = WorkerMessage::Report(Report { at, fact }).to_line();
        if rustix::io::write(descriptor, &line).is_err() {
            return;
        }
    }
}

/// Reports the warnings about the settings, which are the same for all workers of a project.
pub fn report_warnings(descriptors: CommitDescriptors, warnings: &[String]) {
    let warned =
        |text: &String| ReportedFact::Warned { code: "settings".to_owned(), text: exit::redacted(text) };
    report_early(descriptors, warnings.iter().map(|text| (Place::Anywhere, warned(text))));
}

/// Reports that the worker cannot start, with `lines` of output about it.
pub fn report_failure(message: &str, lines: u64) {
    let mut args = std::env::args().skip_while(|arg| arg != "--commit-fd").skip(1);
    let Some(descriptors) = args.next().and_then(|text| descriptors(&text).ok()) else { return };
    let at = if lines > 0 { Place::Line(lines) } else { Place::After(0) };
    report_early(descriptors, [(at, ReportedFact::Failed { message: message.to_owned() })]);
}

fn is_open(number: RawFd) -> bool {
    number > 2 && std::path::Path::new(&format!("/proc/self/fd/{number}")).exists()
}

/// Takes over a descriptor that the parent passed by its number. Commands do not inherit it.
fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if !is_open(number) {
        return Err(io::Error::other(format!("descriptor {number} is not open")));
    }
    // SAFETY: the parent opened this descriptor for this purpose and named it on the command line; nothing
    // else in this process uses it, and it is adopted once.
    #[expect(unsafe_code, reason = "the parent hands over a descriptor by number")]
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&owned, FdFlags::CLOEXEC)?;
    Ok(owned)
}
