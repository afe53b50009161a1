//! Writes a log: a reader of the same events as every dialect, which converts the events to log into lines.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use qwen_events::{
    Body, Event, Journal, PromptId, Scope, SessionId, call_progress, channel_events, message_pieces, notices,
};

use super::entry::{self, LoggedConnection, LoggedContext, is_main};
use super::file_backups::FileBackup;
use super::header::derive_title;
use super::output::Outputs;
use super::sync::synced;
use super::{LogError, LogHeader, Store, file_backups};
use crate::emitter::now;
use crate::host::{Host, SyncPoint, SyncReason};
use crate::redact::{EventRedactor, Redacted, Redactor};

/// Writes the log of one session and locks it, so that no other process writes it too.
///
/// No file exists before the first turn starts. Lines are passed to the system before anything that they
/// announce can take effect, so they survive the death of the process; they are on disk before the end of a
/// turn is reported.
pub struct Recorder {
    store: Option<Store>,
    header: LogHeader,
    state: State,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    context: LoggedContext,
    outputs: Outputs,
    /// The next turn start continues this turn.
    going_on: Option<PromptId>,
    /// Entries that are written together with the next turn start.
    beginning: Vec<Body>,
    /// The end of a turn was written but is not synced to disk yet.
    sync_due: bool,
}

/// Lines that are written but not synced to disk yet.
pub(crate) struct Unsynced(Arc<File>);

impl Unsynced {
    /// Waits for the disk without blocking other tasks.
    pub async fn sync(self) -> io::Result<()> {
        synced(&self.0).await
    }
}

enum State {
    /// Nothing was logged yet. A fork starts with the entries of its parent.
    Waiting(Option<Origin>),
    /// The file, and its length up to the last complete line.
    Open(Arc<File>, u64),
    /// It cannot be written, and the error is not reported yet.
    Unwritable(LogError),
    /// It could not be written, and the error was reported.
    Off {
        /// The file stays locked: the session continues and still belongs to this process.
        _held: Option<Arc<File>>,
    },
}

/// What a fork copies from its parent, regardless of later changes to the parent.
pub(super) struct Origin {
    pub file: File,
    /// The offsets after the parent's header line and after the last line that is copied.
    pub range: std::ops::Range<u64>,
    /// The directory of the parent's file backups.
    pub files: PathBuf,
}

impl Recorder {
    /// A log that starts with the session's first turn. Without a `store`, that turn gets an error that there
    /// is no directory.
    pub fn begin(store: Option<Store>, header: LogHeader) -> Self {
        Self::new(store, header, State::Waiting(None))
    }

    /// A log that starts with the entries of another session.
    pub(super) fn fork(store: Store, header: LogHeader, origin: Origin) -> Self {
        Self::new(Some(store), header, State::Waiting(Some(origin)))
    }

    /// A log that continues after the first `length` bytes of a file that is locked and open for appending.
    pub(super) fn append(store: Store, header: LogHeader, file: File, length: u64) -> Self {
        Self::new(Some(store), header, State::Open(Arc::new(file), length))
    }

    /// A log that could be read but cannot be written.
    pub(super) fn read_only(store: Store, header: LogHeader, error: LogError) -> Self {
        Self::new(Some(store), header, State::Unwritable(error))
    }

    fn new(store: Option<Store>, header: LogHeader, state: State) -> Self {
        Self {
            store,
            header,
            state,
            pending: Vec::new(),
            context: LoggedContext::default(),
            outputs: Outputs::default(),
            going_on: None,
            sync_due: false,
            beginning: Vec::new(),
        }
    }

    /// Creates the file of a fork immediately, with `bodies` after the copied entries.
    pub(super) fn make_now(mut self, bodies: Vec<Body>) -> Result<(), LogError> {
        self.open("")?;
        for body in bodies {
            self.put(&Event { at: now(), scope: Scope::default(), body })?;
        }
        self.sync()
    }

    /// Logs an event. An error is returned once; after it nothing is logged and no further error is returned.
    pub fn record(&mut self, event: &Event) -> Result<(), LogError> {
        if matches!(self.state, State::Off { .. }) || !entry::is_logged(&event.body) {
            return Ok(());
        }
        let recorded = self.try_record(event);
        if recorded.is_err() {
            self.discard_incomplete();
        }
        recorded
    }

    /// Logs that a file is about to change.
    fn record_file(&mut self, file: &FileBackup) -> Result<(), LogError> {
        if matches!(self.state, State::Off { .. }) {
            return Ok(());
        }
        let written = entry::write_file(now(), file, &mut self.pending);
        let recorded = written.map_err(|error| self.unwritable(error.into())).and_then(|()| self.flush());
        if recorded.is_err() {
            self.discard_incomplete();
        }
        recorded
    }

    fn record_connection(
        &mut self,
        connection: &LoggedConnection,
        redactor: &Redactor,
    ) -> Result<(), LogError> {
        if matches!(self.state, State::Off { .. }) {
            return Ok(());
        }
        let written = entry::write_connection(now(), connection, redactor, &mut self.pending);
        let recorded = written.map_err(|error| self.unwritable(error.into())).and_then(|()| self.flush());
        if recorded.is_err() {
            self.discard_incomplete();
        }
        recorded
    }

    fn try_record(&mut self, event: &Event) -> Result<(), LogError> {
        let main = is_main(&event.scope);
        match &event.body {
            Body::ToolOutput { .. } => {
                self.outputs.push(event);
                return Ok(());
            }
            Body::TurnStart(start) if main => {
                self.open(&start.message)?;
                if let Some(prompt_id) = self.going_on.take() {
                    let written = entry::write_resumed(event.at, &prompt_id, &mut self.pending);
                    written.map_err(|error| self.unwritable(error.into()))?;
                    self.context.note(&event.scope, &event.body);
                    return self.flush();
                }
            }
            Body::ToolEnd(end) => {
                for output in self.outputs.take(&end.call.id) {
                    self.put(&output)?;
                }
            }
            _ => {}
        }
        self.put(event)?;
        self.context.note(&event.scope, &event.body);
        if matches!(event.body, Body::TurnStart(_)) && main {
            for body in std::mem::take(&mut self.beginning) {
                self.put(&Event { at: event.at, scope: Scope::default(), body })?;
            }
        }
        match &event.body {
            Body::TurnEnd(_) if main => {
                self.sync_due = true;
                self.flush()
            }
            // A step is logged together with the exit of its node, or not at all.
            Body::Journal(journal) if matches!(**journal, Journal::Step { .. }) => Ok(()),
            Body::TurnStart(_)
            | Body::NodeExit { .. }
            | Body::ToolStart(_)
            | Body::ToolEnd(_)
            | Body::Journal(_)
            | Body::History(_)
            | Body::Error(_)
            | Body::TurnEnd(_)
            | Body::CommandResult(_) => self.flush(),
            Body::Ready
            | Body::NodeEnter
            | message_pieces!()
            | Body::MessageEnd(..)
            | call_progress!()
            | Body::State(..)
            | Body::Checkpoint(..)
            | Body::Thinking(..)
            | Body::ThoughtUsage(..)
            | Body::Session(..)
            | notices!()
            | Body::Custom(..)
            | channel_events!()
            | Body::Fatal(..) => Ok(()),
        }
    }

    fn put(&mut self, event: &Event) -> Result<(), LogError> {
        entry::write(event, &self.context, &mut self.pending).map_err(|error| self.unwritable(error.into()))
    }

    /// Creates the file for the first entry.
    fn open(&mut self, message: &str) -> Result<(), LogError> {
        let origin = match &mut self.state {
            State::Waiting(origin) => origin.take(),
            State::Unwritable(error) => return Err(std::mem::replace(error, LogError::NotOnDisk)),
            State::Open(..) | State::Off { .. } => return Ok(()),
        };
        let store = self.store.as_ref().ok_or(LogError::NotOnDisk)?;
        let mut file = store.make(&self.header.session_id)?;
        if self.header.title.is_empty() {
            self.header.title = derive_title(message);
        }
        let mut head = Vec::new();
        self.header.write(&mut head).map_err(|error| self.unwritable(error.into()))?;
        let mut length = 0;
        if let Some(origin) = origin {
            // A missing copy is reported when a rewind needs it.
            let _ = file_backups::share(&origin.files, &store.files(&self.header.session_id));
            let copied = file.write_all(&head).and_then(|()| origin.copy_to(&mut file));
            length = head.len() as u64 + copied.map_err(|error| self.unwritable(error))?;
        } else {
            // Entries from before the first turn follow its start, in the same write.
            head.append(&mut self.pending);
            self.pending = head;
        }
        self.state = State::Open(Arc::new(file), length);
        Ok(())
    }

    /// Passes the lines to the system.
    fn flush(&mut self) -> Result<(), LogError> {
        let State::Open(file, length) = &mut self.state else { return Ok(()) };
        let written = (&**file).write_all(&self.pending);
        *length += if written.is_ok() { self.pending.len() as u64 } else { 0 };
        written.map_err(|error| self.unwritable(error))?;
        self.pending.clear();
        self.pending.shrink_to(64 * 1024);
        Ok(())
    }

    /// The file whose lines must still be synced, so that they survive a system crash too. A sync may be
    /// slow, so the caller runs it where it does not block others.
    fn take_unsynced(&mut self) -> Option<Unsynced> {
        let due = std::mem::take(&mut self.sync_due);
        match &self.state {
            State::Open(file, _) if due => Some(Unsynced(file.clone())),
            _ => None,
        }
    }

    /// Syncs in place, for callers that block no one else.
    fn sync(&mut self) -> Result<(), LogError> {
        self.flush()?;
        match &self.state {
            State::Open(file, _) => file.sync_data().map_err(|error| self.unwritable(error)),
            _ => Ok(()),
        }
    }

    fn unwritable(&self, error: io::Error) -> LogError {
        LogError::io(&self.header.session_id, "written", error)
    }

    /// Writes the pending lines and then stops logging; the session stays locked.
    fn seal(&mut self) {
        // If writing fails now, it would fail later too.
        let _ = self.sync();
        self.discard_incomplete();
    }

    /// Truncates the file to complete lines.
    fn discard_incomplete(&mut self) {
        self.pending = Vec::new();
        self.state = match std::mem::replace(&mut self.state, State::Off { _held: None }) {
            State::Open(file, length) => {
                // If even that fails, the next reader of the log discards the incomplete line.
                let _ = file.set_len(length);
                State::Off { _held: Some(file) }
            }
            _ => State::Off { _held: None },
        };
    }
}

impl Origin {
    fn copy_to(mut self, file: &mut File) -> io::Result<u64> {
        self.file.seek(SeekFrom::Start(self.range.start))?;
        io::copy(&mut io::Read::take(&mut self.file, self.range.end - self.range.start), file)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // There is no one left to report an error to.
        let _ = self.flush();
    }
}

/// A recorder shared by all emitters of a session.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Shared>>);

/// A log reference that does not keep the file locked.
pub(crate) struct WeakLog(Weak<Mutex<Shared>>);

impl WeakLog {
    /// The log, if it is still held elsewhere.
    pub fn upgrade(&self) -> Option<Log> {
        self.0.upgrade().map(Log)
    }
}

struct Shared {
    recorder: Recorder,
    redactor: Arc<Redactor>,
    /// An error that could not be reported yet.
    untold: Option<LogError>,
    /// Commits the log at sync points.
    host: Option<Arc<dyn Host>>,
}

impl Log {
    /// A log whose entries `redactor` cleans of secrets.
    pub fn new(recorder: Recorder, redactor: Arc<Redactor>) -> Self {
        Self(Arc::new(Mutex::new(Shared { recorder, redactor, untold: None, host: None })))
    }

    /// Lets `host` commit the log at sync points.
    pub fn set_host(&self, host: Arc<dyn Host>) {
        self.lock().host = Some(host);
    }

    /// True if both refer to the same log.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn downgrade(&self) -> WeakLog {
        WeakLog(Arc::downgrade(&self.0))
    }

    /// Logs an event. An error is returned once, and the caller reports it to the session's readers. A
    /// returned `Unsynced` must be synced before readers get the event.
    pub fn record(&self, event: &Event) -> Result<Option<Unsynced>, LogError> {
        // Most events are pieces of text, which are not logged; they skip the lock too.
        if !entry::is_logged(&event.body) {
            return Ok(None);
        }
        let mut shared = self.lock();
        let recorded = shared.recorder.record(event);
        shared.untold.take().map_or(recorded, Err)?;
        Ok(shared.recorder.take_unsynced())
    }

    /// The host that must commit the log before `event` takes effect or reaches readers, and the point.
    pub fn sync_point(&self, event: &Event) -> Option<(Arc<dyn Host>, SyncPoint)> {
        let main = is_main(&event.scope);
        let reason = match &event.body {
            Body::TurnStart(start) if main => SyncReason::Start { prompt_id: start.prompt_id.clone() },
            Body::ToolStart(call) => SyncReason::Effect { tool: call.name.clone(), call_id: call.id.clone() },
            Body::TurnEnd(end) if main => SyncReason::End { prompt_id: end.prompt_id.clone() },
            _ => return None,
        };
        let shared = self.lock();
        let host = shared.host.clone().filter(|host| host.commits())?;
        let bytes = match &shared.recorder.state {
            State::Open(_, length) => *length,
            State::Waiting(_) | State::Unwritable(_) | State::Off { .. } => 0,
        };
        let session_id = shared.recorder.header.session_id.clone();
        Some((host, SyncPoint { session_id, bytes, reason }))
    }

    /// Stops logging after a failed sync. The returned error is for the session's readers.
    pub fn unsynced(&self, error: io::Error) -> LogError {
        let mut shared = self.lock();
        let error = shared.recorder.unwritable(error);
        shared.recorder.discard_incomplete();
        error
    }

    /// Logs an entry that readers do not get. An error is returned with the next event that they do get.
    pub fn note(&self, body: Body) {
        let mut shared = self.lock();
        let event = Event { at: now(), scope: Scope::default(), body };
        // Events for readers were redacted before they arrive here; this body was not.
        let Redacted { before, event } = EventRedactor::new(shared.redactor.clone()).redact(event);
        for event in before.into_iter().chain(event) {
            if let Err(error) = shared.recorder.record(&event) {
                shared.untold = Some(error);
            }
        }
    }

    /// Logs that a file is about to change. An error is returned with the next event that readers get.
    pub fn note_file(&self, file: &FileBackup) {
        let mut shared = self.lock();
        if let Err(error) = shared.recorder.record_file(file) {
            shared.untold = Some(error);
        }
    }

    /// Logs connections of sandboxed programs. An error is returned with the next event that readers get.
    pub fn note_connection(&self, connection: &LoggedConnection) {
        let mut shared = self.lock();
        let redactor = shared.redactor.clone();
        if let Err(error) = shared.recorder.record_connection(connection, &redactor) {
            shared.untold = Some(error);
        }
    }

    /// True if events are currently being logged.
    pub fn is_written(&self) -> bool {
        matches!(self.lock().recorder.state, State::Open(..))
    }

    /// The store and the session's id.
    pub fn location(&self) -> (Option<Store>, SessionId) {
        let shared = self.lock();
        (shared.recorder.store.clone(), shared.recorder.header.session_id.clone())
    }

    /// Stops logging: later events belong to the end of this process, not to the session.
    pub fn seal(&self) {
        self.lock().recorder.seal();
    }

    /// The next turn start continues the unfinished turn `prompt_id`.
    pub fn record_resumed(&self, prompt_id: PromptId) {
        self.lock().recorder.going_on = Some(prompt_id);
    }

    /// The next turn start is followed by `bodies`; both are logged, or neither.
    pub fn begin_with(&self, bodies: Vec<Body>) {
        self.lock().recorder.beginning = bodies;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
