//! Writing a log: a reader of the same events as every dialect, which turns those worth keeping into lines.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use qwen_events::{Body, Event, Journal, PromptId, Scope, SessionId};

use super::entry::{self, LoggedContext, is_main};
use super::file_backups::FileBackup;
use super::header::title;
use super::output::Outputs;
use super::sync::synced;
use super::{LogError, LogHeader, Store, file_backups};
use crate::emitter::now;
use crate::redact::{EventRedactor, Redacted, Redactor};

/// Writes the log of one session and holds it, so that no other process writes it too.
///
/// Nothing is on disk before the first turn starts. What was written is handed to the system before anything that it
/// announces can have an effect, so that it survives the death of the process; it is on disk before the end of a turn
/// is told to anyone.
pub struct Recorder {
    store: Option<Store>,
    header: LogHeader,
    state: State,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    told: LoggedContext,
    outputs: Outputs,
    /// The next start of a turn goes on with this one.
    going_on: Option<PromptId>,
    /// What is said in one breath with the next start of a turn.
    beginning: Vec<Body>,
    /// The end of a turn was written, and is not on disk yet.
    sync_due: bool,
}

/// Lines that are written and not on disk yet.
pub(crate) struct Unsynced(Arc<File>);

impl Unsynced {
    /// Waits for the disk; everything else goes on meanwhile.
    pub async fn sync(self) -> io::Result<()> {
        synced(&self.0).await
    }
}

enum State {
    /// Nothing was said yet. A fork brings along what its parent said.
    Waiting(Option<Origin>),
    /// The file, and how much of it is whole lines.
    Open(Arc<File>, u64),
    /// It cannot be written, which is still to be told.
    Unwritable(LogError),
    /// It could not be written, which was told.
    Off {
        /// The file stays locked: the session goes on, and is still ours.
        _held: Option<Arc<File>>,
    },
}

/// What a fork takes over from its parent, whatever becomes of that meanwhile.
pub(super) struct Origin {
    pub file: File,
    /// The offsets behind the parent's own first line, and behind the last line that is taken over.
    pub range: std::ops::Range<u64>,
    /// Where the parent keeps files.
    pub files: PathBuf,
}

impl Recorder {
    /// A log that begins with the session's first turn. Without a `store` that turn is told that there is no place.
    pub fn begin(store: Option<Store>, header: LogHeader) -> Self {
        Self::new(store, header, State::Waiting(None))
    }

    /// A log that takes over what another session said.
    pub(super) fn fork(store: Store, header: LogHeader, origin: Origin) -> Self {
        Self::new(Some(store), header, State::Waiting(Some(origin)))
    }

    /// A log that goes on behind the first `length` bytes of a file that is locked and open for appending.
    pub(super) fn append(store: Store, header: LogHeader, file: File, length: u64) -> Self {
        Self::new(Some(store), header, State::Open(Arc::new(file), length))
    }

    /// A log that could be read and cannot be written.
    pub(super) fn read_only(store: Store, header: LogHeader, error: LogError) -> Self {
        Self::new(Some(store), header, State::Unwritable(error))
    }

    fn new(store: Option<Store>, header: LogHeader, state: State) -> Self {
        Self {
            store,
            header,
            state,
            pending: Vec::new(),
            told: LoggedContext::default(),
            outputs: Outputs::default(),
            going_on: None,
            sync_due: false,
            beginning: Vec::new(),
        }
    }

    /// Makes the file of a fork now, with `bodies` behind what was taken over.
    pub(super) fn make_now(mut self, bodies: Vec<Body>) -> Result<(), LogError> {
        self.open("")?;
        for body in bodies {
            self.put(&Event { at: now(), scope: Scope::default(), body })?;
        }
        self.sync()
    }

    /// Keeps an event. After an error, which comes once, nothing is kept any more and nothing is said about it.
    pub fn record(&mut self, event: &Event) -> Result<(), LogError> {
        if matches!(self.state, State::Off { .. }) || !entry::is_kept(&event.body) {
            return Ok(());
        }
        let recorded = self.try_record(event);
        if recorded.is_err() {
            self.give_up();
        }
        recorded
    }

    /// Says that a file is about to change.
    fn record_file(&mut self, file: &FileBackup) -> Result<(), LogError> {
        if matches!(self.state, State::Off { .. }) {
            return Ok(());
        }
        let written = entry::write_file(now(), file, &mut self.pending);
        let recorded = written.map_err(|error| self.unwritable(error.into())).and_then(|()| self.flush());
        if recorded.is_err() {
            self.give_up();
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
                    self.told.note(&event.scope, &event.body);
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
        self.told.note(&event.scope, &event.body);
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
            // A step is kept together with the exit of its node, or not at all.
            Body::Journal(journal) if matches!(**journal, Journal::Step { .. }) => Ok(()),
            Body::TurnStart(_)
            | Body::ToolStart(_)
            | Body::ToolEnd(_)
            | Body::NodeExit { .. }
            | Body::History(_)
            | Body::Journal(_)
            | Body::Error(_)
            | Body::TurnEnd(_)
            | Body::CommandResult(_) => self.flush(),
            _ => Ok(()),
        }
    }

    fn put(&mut self, event: &Event) -> Result<(), LogError> {
        entry::write(event, &self.told, &mut self.pending).map_err(|error| self.unwritable(error.into()))
    }

    /// Makes the file, now that there is something to say.
    fn open(&mut self, message: &str) -> Result<(), LogError> {
        let origin = match &mut self.state {
            State::Waiting(origin) => origin.take(),
            State::Unwritable(error) => return Err(std::mem::replace(error, LogError::NotOnDisk)),
            State::Open(..) | State::Off { .. } => return Ok(()),
        };
        let store = self.store.as_ref().ok_or(LogError::NotOnDisk)?;
        let mut file = store.make(&self.header.session_id)?;
        if self.header.title.is_empty() {
            self.header.title = title(message);
        }
        let mut head = Vec::new();
        self.header.write(&mut head).map_err(|error| self.unwritable(error.into()))?;
        let mut length = 0;
        if let Some(origin) = origin {
            // A copy that is missing is told when somebody wants to go back to it.
            let _ = file_backups::share(&origin.files, &store.files(&self.header.session_id));
            let copied = file.write_all(&head).and_then(|()| origin.copy_to(&mut file));
            length = head.len() as u64 + copied.map_err(|error| self.unwritable(error))?;
        } else {
            // What was said before the first turn comes behind it, in the same write.
            head.append(&mut self.pending);
            self.pending = head;
        }
        self.state = State::Open(Arc::new(file), length);
        Ok(())
    }

    /// Hands the lines to the system.
    fn flush(&mut self) -> Result<(), LogError> {
        let State::Open(file, length) = &mut self.state else { return Ok(()) };
        let written = (&**file).write_all(&self.pending);
        *length += if written.is_ok() { self.pending.len() as u64 } else { 0 };
        written.map_err(|error| self.unwritable(error))?;
        self.pending.clear();
        self.pending.shrink_to(64 * 1024);
        Ok(())
    }

    /// The file whose lines must still be brought to the disk, so that they survive the end of the system too. That may
    /// take long, so it is left to whoever can wait for it without holding up others.
    fn take_unsynced(&mut self) -> Option<Unsynced> {
        let due = std::mem::take(&mut self.sync_due);
        match &self.state {
            State::Open(file, _) if due => Some(Unsynced(file.clone())),
            _ => None,
        }
    }

    /// Waits for the disk, where there is nobody to hold up.
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

    /// Writes what there is, and nothing any more; the session stays ours.
    fn seal(&mut self) {
        // What cannot be written now could not be written later either.
        let _ = self.sync();
        self.give_up();
    }

    /// Leaves whole lines behind.
    fn give_up(&mut self) {
        self.pending = Vec::new();
        self.state = match std::mem::replace(&mut self.state, State::Off { _held: None }) {
            State::Open(file, length) => {
                // Where even that fails, the half line is cut off by whoever reads the log next.
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
        // Nobody is left to be told.
        let _ = self.flush();
    }
}

/// A recorder that everything which speaks in a session shares.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Shared>>);

/// A log that others hold.
pub(super) struct WeakLog(Weak<Mutex<Shared>>);

impl WeakLog {
    /// The log, while somebody holds it.
    pub fn upgrade(&self) -> Option<Log> {
        self.0.upgrade().map(Log)
    }
}

struct Shared {
    recorder: Recorder,
    redactor: Arc<Redactor>,
    /// What went wrong when nobody could be told.
    untold: Option<LogError>,
}

impl Log {
    /// A log from which `redactor` keeps secrets.
    pub fn new(recorder: Recorder, redactor: Arc<Redactor>) -> Self {
        Self(Arc::new(Mutex::new(Shared { recorder, redactor, untold: None })))
    }

    /// Whether it is the same log.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The log, without holding it.
    pub(super) fn downgrade(&self) -> WeakLog {
        WeakLog(Arc::downgrade(&self.0))
    }

    /// Keeps an event; an error comes once, and whoever gets it tells the session's readers. What comes back must be
    /// brought to the disk before they are told the event.
    pub fn record(&self, event: &Event) -> Result<Option<Unsynced>, LogError> {
        // Most events are pieces of text, which are not kept; they do not pay for the lock either.
        if !entry::is_kept(&event.body) {
            return Ok(None);
        }
        let mut shared = self.lock();
        let recorded = shared.recorder.record(event);
        shared.untold.take().map_or(recorded, Err)?;
        Ok(shared.recorder.take_unsynced())
    }

    /// The disk did not take what was written: nothing is kept any more. The error is for the session's readers.
    pub fn unsynced(&self, error: io::Error) -> LogError {
        let mut shared = self.lock();
        let error = shared.recorder.unwritable(error);
        shared.recorder.give_up();
        error
    }

    /// Keeps what no reader is told. An error waits for the next event that they are told.
    pub fn note(&self, body: Body) {
        let mut shared = self.lock();
        let event = Event { at: now(), scope: Scope::default(), body };
        // What readers are told was cleaned on its way; this takes another.
        let Redacted { before, event } = EventRedactor::new(shared.redactor.clone()).redact(event);
        for event in before.into_iter().chain(event) {
            if let Err(error) = shared.recorder.record(&event) {
                shared.untold = Some(error);
            }
        }
    }

    /// Says that a file is about to change. An error waits for the next event that readers are told.
    pub fn note_file(&self, file: &FileBackup) {
        let mut shared = self.lock();
        if let Err(error) = shared.recorder.record_file(file) {
            shared.untold = Some(error);
        }
    }

    /// Whether what is said is on its way to the disk.
    pub fn is_written(&self) -> bool {
        matches!(self.lock().recorder.state, State::Open(..))
    }

    /// Where the log is, and whose it is.
    pub fn place(&self) -> (Option<Store>, SessionId) {
        let shared = self.lock();
        (shared.recorder.store.clone(), shared.recorder.header.session_id.clone())
    }

    /// Keeps nothing from here on: what is still said belongs to the end of this process, not to the session.
    pub fn seal(&self) {
        self.lock().recorder.seal();
    }

    /// The next start of a turn goes on with the unfinished turn `prompt_id`.
    pub fn go_on_with(&self, prompt_id: PromptId) {
        self.lock().recorder.going_on = Some(prompt_id);
    }

    /// The next start of a turn is followed by `bodies`, or is not kept at all.
    pub fn begin_with(&self, bodies: Vec<Body>) {
        self.lock().recorder.beginning = bodies;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
