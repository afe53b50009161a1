//! One worker process: its pipes and its end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};

use super::Hub;
use crate::action::ProcessSignal;
use crate::ipc::{FramedLine, LineBuffer, Tail, WorkerMessage};
use crate::process_manager::{Child, ExitCause, WorkerExit, kill_group};
use crate::worker_pool::{WorkerId, WorkerKey};

/// How long a process whose output closed may take to exit by itself.
const AFTER_OUTPUT: Duration = Duration::from_millis(100);
/// How long to read after the exit: output may remain in the pipe, or children may still hold it open.
const AFTER_EXIT: Duration = Duration::from_millis(200);

pub(super) struct Process {
    pub id: WorkerId,
    pub key: Arc<WorkerKey>,
    pid: Cell<Option<i32>>,
    stdin: RefCell<Option<Rc<pipe::Sender>>>,
    /// Bytes that the pipe has not accepted yet.
    unwritten: RefCell<VecDeque<u8>>,
    closing: Cell<bool>,
    started: Cell<bool>,
    wake: Notify,
    stderr: RefCell<Tail>,
    /// A signal that was requested before the process was started.
    early: Cell<Option<ProcessSignal>>,
    /// The commit socket, and the incomplete message that was read from it.
    socket: RefCell<Option<(std::os::unix::net::UnixStream, LineBuffer)>>,
    /// Messages for the commit socket.
    replies: RefCell<Option<mpsc::UnboundedSender<Vec<u8>>>>,
}

impl Process {
    /// The pid, once the process is started.
    pub fn pid(&self) -> Option<i32> {
        self.pid.get()
    }

    pub fn new(id: WorkerId, key: Arc<WorkerKey>) -> Self {
        Self {
            id,
            key,
            pid: Cell::new(None),
            stdin: RefCell::default(),
            unwritten: RefCell::default(),
            closing: Cell::new(false),
            started: Cell::new(false),
            wake: Notify::new(),
            stderr: RefCell::default(),
            early: Cell::new(None),
            socket: RefCell::default(),
            replies: RefCell::default(),
        }
    }

    /// Sends messages on the commit socket.
    pub fn reply(&self, lines: Vec<u8>) {
        if let Some(replies) = &*self.replies.borrow() {
            // The worker may have exited at this moment.
            let _ = replies.send(lines);
        }
    }

    /// Writes as much as the pipe accepts at once; the rest follows when the pipe is writable.
    pub fn write(&self, bytes: &[u8]) {
        let mut unwritten = self.unwritten.borrow_mut();
        let mut rest = bytes;
        if unwritten.is_empty()
            && let Some(stdin) = &*self.stdin.borrow()
        {
            while !rest.is_empty() {
                match stdin.try_write(rest) {
                    Ok(written) => rest = &rest[written..],
                    // The exit of the process reports a broken pipe.
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                    Err(_) => break,
                }
            }
        }
        if !rest.is_empty() {
            unwritten.extend(rest);
            self.wake.notify_one();
        }
    }

    /// The resident memory of the process, in bytes.
    pub fn memory(&self) -> Option<u64> {
        crate::metrics::memory_of(&self.pid.get()?.to_string())
    }

    /// Closes standard input after the pending bytes.
    pub fn close_input(&self) {
        self.closing.set(true);
        if self.started.get() && self.unwritten.borrow().is_empty() {
            self.stdin.borrow_mut().take();
        }
        self.wake.notify_one();
    }

    pub fn signal(&self, signal: ProcessSignal) {
        let Some(pid) = self.pid.get() else {
            if !self.started.get() {
                self.early.set(Some(signal));
            }
            return;
        };
        let signal = match signal {
            ProcessSignal::Terminate => Signal::TERM,
            ProcessSignal::Interrupt => Signal::INT,
            ProcessSignal::Abort => Signal::ABORT,
            ProcessSignal::Kill => Signal::KILL,
        };
        kill_group(pid, signal);
    }

    /// Writes the bytes that [`Process::write`] could not.
    async fn run_writer(self: Rc<Self>) {
        loop {
            if self.unwritten.borrow().is_empty() {
                if self.closing.get() {
                    self.stdin.borrow_mut().take();
                }
                if self.stdin.borrow().is_none() {
                    return;
                }
                self.wake.notified().await;
                continue;
            }
            let Some(stdin) = self.stdin.borrow().clone() else { return };
            if stdin.writable().await.is_err() {
                return;
            }
            let mut unwritten = self.unwritten.borrow_mut();
            match stdin.try_write(unwritten.as_slices().0) {
                Ok(written) => {
                    unwritten.drain(..written);
                    if unwritten.is_empty() {
                        *unwritten = VecDeque::new();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// Runs one worker from start to exit.
pub(super) async fn run(hub: Hub, process: Rc<Process>) {
    let key = process.key.clone();
    let child = match hub.0.spawner.spawn(key.spec.clone()).await {
        Ok(child) => child,
        Err(error) => return hub.report_failed_start(process.id, &error),
    };
    let pid = child.pid;
    process.pid.set(Some(pid));
    process.started.set(true);
    hub.log(|| {
        let profile = key.profile.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let profile: Option<serde_json::Value> = profile;
        serde_json::json!({"event": "worker_start", "worker": process.id.to_string(), "pid": pid, "tenant": key.tenant, "profile": profile})
    });
    if let Some(signal) = process.early.take() {
        process.signal(signal);
    }
    let cause = match watch(&hub, &process, child).await {
        Ok(cause) => cause,
        Err(error) => {
            kill_group(pid, Signal::KILL);
            process.stderr.borrow_mut().push(error.to_string().as_bytes());
            ExitCause::Ended("io")
        }
    };
    process.pid.set(None);
    process.stdin.borrow_mut().take();
    process.wake.notify_one();
    let detail = process.stderr.borrow().text();
    hub.finish_exit(process.id, &WorkerExit { cause, detail });
}

async fn watch(hub: &Hub, process: &Rc<Process>, child: Child) -> io::Result<ExitCause> {
    let stdin = pipe::Sender::from_owned_fd(child.stdin)?;
    let mut stdout = pipe::Receiver::from_owned_fd(child.stdout)?;
    let stderr = pipe::Receiver::from_owned_fd(child.stderr)?;
    // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives, and the `AsyncFd` owns it.
    #[expect(
        unsafe_code,
        reason = "tokio asks for this promise, which an owned descriptor keeps by its nature"
    )]
    // SAFETY: the descriptor is owned by the value that is registered and stays open as long as it.
    let ended = unsafe { AsyncFd::register_with_interest(child.pidfd, Interest::READABLE) }?;
    *process.stdin.borrow_mut() = Some(Rc::new(stdin));
    let early = std::mem::take(&mut *process.unwritten.borrow_mut());
    process.write(&Vec::from(early));
    let writer = tokio::task::spawn_local(process.clone().run_writer());
    let errors = tokio::task::spawn_local(read_stderr(hub.clone(), process.clone(), stderr));
    let socket = std::os::unix::net::UnixStream::from(child.commits);
    socket.set_nonblocking(true)?;
    *process.socket.borrow_mut() = Some((socket.try_clone()?, LineBuffer::default()));
    let commits = tokio::task::spawn_local(serve_commits(hub.clone(), process.clone(), socket));
    let mut lines = LineBuffer::default();
    let mut open = true;
    let mut is_closed_reported = false;
    loop {
        tokio::select! {
            biased;
            read = relay_output(hub, process, &mut stdout, &mut lines), if open => open = read,
            ready = ended.readable() => {
                ready?.retain_ready();
                break;
            }
            () = tokio::time::sleep(AFTER_OUTPUT), if !open && !is_closed_reported => {
                is_closed_reported = true;
                hub.drive(|router, now| router.note_output_closed(process.id, now));
            }
        }
    }
    // The leader is a zombie until it is reaped, so its group id cannot have been reused.
    kill_group(child.pid, Signal::KILL);
    let rest = async {
        while open {
            open = relay_output(hub, process, &mut stdout, &mut lines).await;
        }
        let _ = errors.await;
    };
    let _ = tokio::time::timeout(AFTER_EXIT, rest).await;
    writer.abort();
    commits.abort();
    // What it reported last decides how its turn is recovered. Its guardians may hold the socket open for a
    // moment, so the end of the socket is not waited for.
    read_messages(hub, process);
    hub.apply();
    process.socket.borrow_mut().take();
    reap(ended.get_ref())
}

/// Reads once and passes the lines on. False at the end of the output.
async fn relay_output(
    hub: &Hub,
    process: &Process,
    stdout: &mut pipe::Receiver,
    lines: &mut LineBuffer,
) -> bool {
    let id = process.id;
    while !hub.has_room(id) {
        let room = hub.0.room.notified();
        if hub.has_room(id) {
            break;
        }
        room.await;
    }
    let read = poll_fn(|context| {
        let mut scratch = hub.0.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut *stdout).poll_read(context, &mut buffer))?;
        let bytes = buffer.filled();
        if !bytes.is_empty() {
            // What the worker reported before it wrote these lines must be known when they are relayed.
            read_messages(hub, process);
            let now = hub.now();
            let mut router = hub.0.router.borrow_mut();
            router.note_worker_output(id, now);
            lines.push(bytes, |piece| match piece {
                FramedLine::Line(line) => router.handle_worker_line(id, line, now),
                FramedLine::TooLong => router.note_line_too_long(id, now),
            });
        }
        Poll::Ready(io::Result::Ok(bytes.len()))
    });
    if read.await.unwrap_or(0) == 0 {
        return false;
    }
    hub.0.polling.stop();
    hub.apply();
    true
}

/// Serves the worker's commit socket until its end.
async fn serve_commits(
    hub: Hub,
    process: Rc<Process>,
    socket: std::os::unix::net::UnixStream,
) -> io::Result<()> {
    let (reader, mut writer) = UnixStream::from_std(socket)?.into_split();
    let (sender, mut replies) = mpsc::unbounded_channel::<Vec<u8>>();
    *process.replies.borrow_mut() = Some(sender);
    loop {
        tokio::select! {
            biased;
            ready = reader.ready(Interest::READABLE) => {
                let is_closed = ready?.is_read_closed();
                // Reading through the reader clears its readiness.
                let read = reader.as_ref().try_io(Interest::READABLE, || {
                    read_messages(&hub, &process);
                    Err::<(), _>(io::ErrorKind::WouldBlock.into())
                });
                debug_assert!(read.is_err());
                hub.apply();
                if is_closed {
                    return Ok(());
                }
            }
            Some(reply) = replies.recv() => {
                // A worker that is gone needs no answer, but what it reported is still read.
                let _ = writer.write_all(&reply).await;
            }
        }
    }
}

/// Reads everything that the worker has written to its commit socket.
fn read_messages(hub: &Hub, process: &Process) {
    let mut socket = process.socket.borrow_mut();
    let Some((socket, lines)) = &mut *socket else { return };
    let mut bytes = [0; 4096];
    loop {
        let count = match socket.read(&mut bytes) {
            Ok(count) if count > 0 => count,
            // Nothing more now, or the end of the socket.
            Ok(_) | Err(_) => return,
        };
        let now = hub.now();
        let mut router = hub.0.router.borrow_mut();
        lines.push(&bytes[..count], |piece| {
            if let FramedLine::Line(line) = piece
                && let Some(message) = WorkerMessage::parse(line)
            {
                router.handle_worker_message(process.id, message, now);
            }
        });
        if count < bytes.len() {
            return;
        }
    }
}

/// The most lines of standard error that are passed on from one read. A worker that floods its standard error
/// must not keep the hub from its other work.
const MAX_STDERR_LINES: usize = 1000;

/// Drains standard error, stores its tail and logs its lines.
async fn read_stderr(hub: Hub, process: Rc<Process>, stderr: pipe::Receiver) {
    let mut lines = LineBuffer::default();
    while stderr.readable().await.is_ok() {
        match read_errors(&hub, &process, &mut lines, &stderr) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        tokio::task::yield_now().await;
    }
}

/// Reads once from standard error. Returns the number of bytes.
fn read_errors(
    hub: &Hub,
    process: &Process,
    lines: &mut LineBuffer,
    stderr: &pipe::Receiver,
) -> io::Result<usize> {
    let mut scratch = hub.0.scratch.borrow_mut();
    let read = stderr.try_read(&mut scratch)?;
    process.stderr.borrow_mut().push(&scratch[..read]);
    if hub.0.log.is_none() && hub.0.worker_stderr.is_none() {
        return Ok(read);
    }
    let mut count = 0;
    lines.push(&scratch[..read], |piece| {
        count += 1;
        if let FramedLine::Line(line) = piece
            && count <= MAX_STDERR_LINES
        {
            pass_on(hub, process.id, &String::from_utf8_lossy(&line[..line.len().min(4096)]));
        }
    });
    if let Some(dropped) = count.checked_sub(MAX_STDERR_LINES).filter(|dropped| *dropped > 0) {
        let text = format!("qwen: {dropped} lines of a worker's standard error were left out");
        pass_on(hub, process.id, &text);
    }
    Ok(read)
}

/// Passes a line of a worker's standard error on, and logs it.
fn pass_on(hub: &Hub, worker: WorkerId, text: &str) {
    if let Some(pass_on) = &hub.0.worker_stderr {
        pass_on(text);
    }
    hub.log(|| {
        let session = hub.0.router.try_borrow().ok();
        let session = session.and_then(|router| router.session_of(worker).map(ToString::to_string));
        serde_json::json!({"event": "worker_stderr", "worker": worker.to_string(), "session_id": session, "text": text})
    });
}

fn reap(pidfd: &OwnedFd) -> io::Result<ExitCause> {
    let status = waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(pidfd)), WaitIdOptions::EXITED)?;
    Ok(match status {
        Some(status) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitCause::Code(code),
            (_, Some(signal)) => ExitCause::Signal(signal),
            _ => ExitCause::Ended("unknown"),
        },
        None => ExitCause::Ended("unknown"),
    })
}
