//! Commits workers' logs to the stores of session logs.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use qwen_events::SessionId;

use super::Hub;
use crate::store::{Appended, FileLog, LogCommit, SessionLog, commit, is_locked, written_bytes};
use crate::worker_pool::{WorkerId, WorkerKey};

/// The directory to which workers of a key write their logs; none if it is not known.
pub type SessionLogs = Box<dyn Fn(&WorkerKey) -> Option<PathBuf>>;

/// The stores that are open, by directory. A worker on this machine writes to the directory itself, so that
/// the store only records who owns a log and how far its turns are.
#[derive(Default)]
pub(super) struct LogStores(HashMap<PathBuf, Rc<dyn SessionLog>>);

impl LogStores {
    fn open(&mut self, directory: PathBuf) -> io::Result<Rc<dyn SessionLog>> {
        if let Some(open) = self.0.get(&directory) {
            return Ok(open.clone());
        }
        let store: Rc<dyn SessionLog> = Rc::new(FileLog::open(&directory)?);
        self.0.insert(directory, store.clone());
        Ok(store)
    }
}

impl Hub {
    pub(super) fn commit_log(&self, worker: WorkerId, wanted: &LogCommit) {
        let (position, outcome) = match self.log_directory(worker) {
            Some(directory) => match written_bytes(&directory, &wanted.log, wanted.bytes, wanted.bytes) {
                // The worker writes somewhere else, and only it knows where: its own sync must do.
                Ok(None) => (None, Appended::Ok),
                Ok(Some(_)) => match self.0.logs.borrow_mut().open(directory.clone()) {
                    Ok(store) => commit(&*store, wanted, |from, to| {
                        written_bytes(&directory, &wanted.log, from, to)?
                            .ok_or_else(|| io::ErrorKind::NotFound.into())
                    }),
                    Err(_) => (wanted.owned, Appended::Unknown),
                },
                Err(_) => (wanted.owned, Appended::Unknown),
            },
            None => (None, Appended::Ok),
        };
        self.0.router.borrow_mut().note_log_committed(worker, wanted, position, outcome);
    }

    pub(super) fn release_log(&self, worker: WorkerId, log: &SessionId, epoch: u64) {
        if let Some(directory) = self.log_directory(worker)
            && let Ok(store) = self.0.logs.borrow_mut().open(directory)
        {
            // A log that stays owned by a former epoch is taken by the next owner all the same.
            let _ = store.release(log, epoch);
        }
    }

    /// True if a process that is not ours owns the session's lines or has its log open.
    pub(super) fn is_driven_elsewhere(&self, session: &SessionId) -> bool {
        self.events_of(session).is_ok_and(|events| events.has_live_owner(session))
            || self.session_log_directory(session).is_some_and(|directory| is_locked(&directory, session))
    }

    /// True if the session has neither a log nor numbered lines.
    pub(super) fn is_new_session(&self, session: &SessionId) -> bool {
        let has_lines = || self.events_of(session).is_ok_and(|events| events.last(session) > 0);
        self.session_log_directory(session)
            .is_some_and(|directory| matches!(written_bytes(&directory, session, 0, 0), Ok(None)))
            && !has_lines()
    }

    /// Takes the session's log away from a former owner, unless it is ours already.
    pub(super) fn fence_log(&self, session: &SessionId) {
        if self.0.router.borrow().owns_log(session) {
            return;
        }
        if let Some(directory) = self.session_log_directory(session)
            && let Ok(Some(_)) = written_bytes(&directory, session, 0, 0)
            && let Ok(store) = self.0.logs.borrow_mut().open(directory)
            && let Ok(owner) = store.take(session)
        {
            // Nobody owns it until a worker of ours commits to it.
            let _ = store.release(session, owner.epoch);
        }
    }

    pub(super) fn session_log_directory(&self, session: &SessionId) -> Option<PathBuf> {
        let key = self.0.router.borrow().key_of(session)?;
        self.0.session_logs.as_ref()?(&key)
    }

    pub(super) fn log_directory(&self, worker: WorkerId) -> Option<PathBuf> {
        let directory_of = self.0.session_logs.as_ref()?;
        directory_of(&self.process(worker)?.key)
    }
}
