//! The directory of the logs: one file per session, `<home>/sessions/<session id>.jsonl`, readable only by
//! the user.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qwen_events::{Body, HistoryChange, Message, PromptId, SessionId, TurnEnd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::fold::point;
use super::fold::{Folded, Unfinished};
use super::recorder::Origin;
use super::{EntryBody, LogError, LogHeader, LogReader, Recorder};
use crate::agent::SearchAgents;
use crate::edit::{self, Edit};

/// The directory of the logs. It is created when the first log is written.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The logs below `home`.
    pub fn new(home: &Path) -> Self {
        Self { dir: home.join("sessions") }
    }

    /// The path of a session's log, whether it exists or not.
    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }

    /// The directory of a session's file backups.
    pub(crate) fn files(&self, id: &SessionId) -> PathBuf {
        self.dir.join(format!("{id}.files"))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// True if a log of this session exists.
    pub fn holds(&self, id: &SessionId) -> bool {
        fs::symlink_metadata(self.path(id)).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
    }

    /// Opens the log of a session for reading. A process that uses the session is not affected.
    pub fn read(&self, id: &SessionId) -> Result<LogReader, LogError> {
        LogReader::new(self.open_to_read(id)?, id, u64::MAX)
    }

    /// The end of the turn `prompt_id` of a session; `None` if it has not ended.
    pub fn turn_end(&self, id: &SessionId, prompt_id: &PromptId) -> Result<Option<TurnEnd>, LogError> {
        let mut reader = self.read(id)?;
        let mut found = None;
        while let Some(entry) = reader.next_entry()? {
            if let EntryBody::Event(Body::TurnEnd(end)) = entry.what
                && end.prompt_id == *prompt_id
            {
                found = Some(*end);
            }
        }
        if found.is_none() {
            let unfinished = self.fold(id)?.unfinished;
            found = unfinished.filter(|turn| turn.start.prompt_id == *prompt_id).map(Unfinished::end);
        }
        Ok(found)
    }

    /// Folds the whole log of a session.
    pub fn fold(&self, id: &SessionId) -> Result<Folded, LogError> {
        Folded::read(self.read(id)?)
    }

    /// Folds the log of a session up to and including `point`.
    pub fn fold_until(&self, id: &SessionId, point: &str) -> Result<Folded, LogError> {
        let until = point::find(self.read(id)?, point)?;
        Folded::read(LogReader::new(self.open_to_read(id)?, id, until)?)
    }

    /// Folds the log of a session up to the turn of `prompt`, without it.
    pub(crate) fn fold_before(&self, id: &SessionId, prompt: &PromptId) -> Result<Folded, LogError> {
        let until = point::find_start(self.read(id)?, prompt)?;
        Folded::read(LogReader::new(self.open_to_read(id)?, id, until)?)
    }

    /// Resumes a session and locks it until the recorder is dropped. An incomplete last line, left by a
    /// process that died, is cut off. A log that can be read but not written is resumed too; its recorder
    /// reports the error when the next turn starts.
    pub fn resume(&self, id: &SessionId) -> Result<(Recorder, Folded), LogError> {
        let file = match self.open_file(id, OFlags::RDWR | OFlags::APPEND) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(LogError::Unknown(id.clone())),
            Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::PERM)) => {
                let folded = self.fold(id)?;
                let error = LogError::io(id, "written", error.into());
                return Ok((Recorder::read_only(self.clone(), folded.header.clone(), error), folded));
            }
            Err(error) => return Err(LogError::io(id, "opened", error.into())),
        };
        lock(&file, id)?;
        let unusable = |error| LogError::io(id, "read", error);
        if file.metadata().map_err(unusable)?.nlink() == 0 {
            // It was deleted after we opened it and before we locked it.
            return Err(LogError::Unknown(id.clone()));
        }
        let folded = Folded::read(LogReader::new(file.try_clone().map_err(unusable)?, id, u64::MAX)?)?;
        let recorder = match file.set_len(folded.length) {
            Ok(()) => Recorder::append(self.clone(), folded.header.clone(), file, folded.length),
            Err(error) => {
                Recorder::read_only(self.clone(), folded.header.clone(), LogError::io(id, "written", error))
            }
        };
        Ok((recorder, folded))
    }

    /// A new session with the entries of `from` up to and including `point`, or all of them. It has its own
    /// copy, so that either session can be deleted without the other.
    pub fn fork(
        &self,
        from: &SessionId,
        point: Option<&str>,
        header: LogHeader,
    ) -> Result<(Recorder, Folded), LogError> {
        if self.holds(&header.session_id) {
            return Err(LogError::Exists(header.session_id));
        }
        let file = self.open_to_read(from)?;
        let again = |file: &File| file.try_clone().map_err(|error| LogError::io(from, "read", error));
        let first = LogReader::new(again(&file)?, from, u64::MAX)?;
        let start = first.offset();
        let until = match point {
            Some(point) => point::find(first, point)?,
            None => u64::MAX,
        };
        rewind(&file, from)?;
        let mut folded = Folded::read(LogReader::new(again(&file)?, from, until)?)?;
        folded.header = LogHeader { title: folded.header.title, ..header };
        // A fork always names its point, even if that is the end.
        if let Some(parent) = folded.header.parent.as_mut().filter(|parent| parent.point.is_none()) {
            parent.point = folded.prompt_ids.last().map(|prompt| prompt.as_str().into());
        }
        let origin = Origin { file, range: start..folded.length, files: self.files(from) };
        Ok((Recorder::fork(self.clone(), folded.header.clone(), origin), folded))
    }

    /// Creates a session from a conversation that took place elsewhere: its log starts with that
    /// conversation.
    pub fn import(&self, header: LogHeader, messages: Vec<Message>) -> Result<(), LogError> {
        if self.holds(&header.session_id) {
            return Err(LogError::Exists(header.session_id));
        }
        let change = Body::History(Box::new(HistoryChange::Replaced(messages)));
        Recorder::begin(Some(self.clone()), header).make_now(vec![change])
    }

    /// Like [`fork`](Self::fork), but created immediately, with its state changed by `edits`.
    pub fn fork_edited(
        &self,
        from: &SessionId,
        point: Option<&str>,
        header: LogHeader,
        edits: &[Edit],
        agents: &dyn SearchAgents,
    ) -> Result<(), LogError> {
        let (recorder, folded) = self.fork(from, point, header)?;
        let uneditable = |why| LogError::Uneditable { id: from.clone(), why };
        recorder.make_now(edit::apply(&folded, edits, agents).map_err(uneditable)?)
    }

    /// Locks a log: no other process can resume the session while the file is open.
    pub fn hold(&self, id: &SessionId) -> Result<File, LogError> {
        let file = self.open_to_read(id)?;
        lock(&file, id)?;
        Ok(file)
    }

    /// Deletes a session; fails while a process uses it.
    pub fn delete(&self, id: &SessionId) -> Result<(), LogError> {
        let _held = self.hold(id)?;
        let failed = |error| LogError::io(id, "deleted", error);
        match fs::remove_dir_all(self.files(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        // A hub stores the owner of a log next to it.
        match fs::remove_file(self.dir.join(format!("{id}.owner"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::remove_file(self.path(id)).map_err(failed)
    }

    /// Creates the file of a new session, locked and empty.
    pub(super) fn make(&self, id: &SessionId) -> Result<File, LogError> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let unusable = |error: io::Error| LogError::io(id, "written", error);
        loop {
            let file = match self.open_file(id, flags) {
                Err(Errno::NOENT) => {
                    DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(unusable)?;
                    self.open_file(id, flags)
                }
                opened => opened,
            };
            let file = file.map_err(|error| unusable(error.into()))?;
            lock(&file, id)?;
            let metadata = file.metadata().map_err(unusable)?;
            if metadata.nlink() == 0 {
                continue;
            }
            if metadata.len() > 0 {
                // A file whose first line is incomplete is empty and can be reused; any other belongs to a
                // session.
                match LogReader::new(file.try_clone().map_err(unusable)?, id, u64::MAX) {
                    Err(LogError::Unknown(_)) => file.set_len(0).map_err(unusable)?,
                    _ => return Err(LogError::Exists(id.clone())),
                }
            }
            return Ok(file);
        }
    }

    fn open_to_read(&self, id: &SessionId) -> Result<File, LogError> {
        self.open_file(id, OFlags::RDONLY).map_err(|error| match error {
            Errno::NOENT => LogError::Unknown(id.clone()),
            error => LogError::io(id, "read", error.into()),
        })
    }

    /// A symbolic link at the path of a log is not followed, because we never create one.
    fn open_file(&self, id: &SessionId, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::open(self.path(id), flags, Mode::from_raw_mode(0o600)).map(File::from)
    }
}

/// How long to wait for a lock: processes that a killed process had just started hold its files for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Locks a log for as long as the file is open; fails if another process holds the lock.
fn lock(file: &File, id: &SessionId) -> Result<(), LogError> {
    let started = Instant::now();
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if started.elapsed() < LOCK_TIMEOUT => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(LogError::InUse(id.clone())),
            // Some network file systems do not support locks; an unlocked session is better than none.
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

fn rewind(mut file: &File, id: &SessionId) -> Result<(), LogError> {
    io::Seek::rewind(&mut file).map_err(|error| LogError::io(id, "read", error))
}
