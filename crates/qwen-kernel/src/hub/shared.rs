//! Actions on stores that several machines share. Such a store answers later, so the actions of each session are
//! executed one after the other by a task, in the order in which the router requested them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use qwen_events::SessionId;

use super::Hub;
use crate::action::RouterAction;
use crate::front::OpenParts;
use crate::router::PAGE_BYTES;
use crate::store::{
    Appended, Claimed, LogCommit, LogPosition, Read, SharedSessions, count_lines, is_locked, written_bytes,
};
use crate::worker_pool::WorkerId;

/// How long the workers of a process that was killed on this machine may have a log open.
const DYING: Duration = Duration::from_secs(2);

/// The stores, and the actions that wait for them.
pub(super) struct SharedStores {
    sessions: Rc<dyn SharedSessions>,
    /// By session. A session that is in the map has a task.
    waiting: RefCell<HashMap<SessionId, VecDeque<RouterAction>>>,
}

impl SharedStores {
    pub fn new(sessions: Rc<dyn SharedSessions>) -> Self {
        Self { sessions, waiting: RefCell::default() }
    }

    /// Removes the next action of a session; without one, its task ends.
    fn next_action(&self, session: &SessionId) -> Option<RouterAction> {
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.get_mut(session).and_then(VecDeque::pop_front);
        if next.is_none() {
            waiting.remove(session);
        }
        next
    }
}

/// The session whose stores an action is about.
fn session_of(action: &RouterAction) -> Option<&SessionId> {
    match action {
        RouterAction::TakeEvents { session, .. }
        | RouterAction::Append { session, .. }
        | RouterAction::ReadEvents { session, .. }
        | RouterAction::CheckDriver { session, .. } => Some(session),
        RouterAction::CommitLog { commit, .. } => Some(&commit.log),
        RouterAction::ReleaseLog { log, .. } => Some(log),
        _ => None,
    }
}

impl Hub {
    pub(super) fn queue_for_store(&self, stores: &SharedStores, action: RouterAction) {
        let Some(session) = session_of(&action).cloned() else { return };
        let mut queues = stores.waiting.borrow_mut();
        if let Some(waiting) = queues.get_mut(&session) {
            return waiting.push_back(action);
        }
        queues.insert(session.clone(), VecDeque::from([action]));
        tokio::task::spawn_local(self.clone().run_store_actions(session));
    }

    async fn run_store_actions(self, session: SessionId) {
        let Some(stores) = &self.0.shared else { return };
        while let Some(action) = stores.next_action(&session) {
            self.act_on_shared(&*stores.sessions, action).await;
            self.apply();
        }
    }

    async fn act_on_shared(&self, shared: &dyn SharedSessions, action: RouterAction) {
        match action {
            RouterAction::TakeEvents { session, from_driver, .. } => {
                self.claim_shared(shared, &session, from_driver).await;
            }
            RouterAction::Append { session, epoch, first, lines, open } => {
                let outcome = shared.events().append(&session, epoch, first, &lines, open.as_deref()).await;
                self.0.router.borrow_mut().note_appended(&session, first, outcome);
            }
            RouterAction::ReadEvents { session, after, limit } => {
                let read = shared.events().read(&session, after, limit).await;
                self.0.router.borrow_mut().send_events(&session, read);
            }
            // The session was claimed before its worker was sent anything.
            RouterAction::CheckDriver { worker, session, commit, prompt_id } => {
                let mut router = self.0.router.borrow_mut();
                let is_elsewhere = !router.owns_log(&session);
                router.note_driver_checked(worker, &session, commit, &prompt_id, is_elsewhere);
            }
            RouterAction::CommitLog { worker, commit } => {
                let (position, outcome) = self.commit_shared(shared, worker, &commit).await;
                self.0.router.borrow_mut().note_log_committed(worker, &commit, position, outcome);
            }
            RouterAction::ReleaseLog { log, epoch, .. } => {
                // A log that stays owned is claimed by the next owner all the same.
                let _ = shared.log().release(&log, epoch).await;
            }
            _ => {}
        }
    }

    /// Claims a session, writes its log to this machine's disk, and finds the end of a turn that is open.
    async fn claim_shared(&self, shared: &dyn SharedSessions, session: &SessionId, by_force: bool) {
        let by_force = by_force && !self.0.router.borrow().owns_log(session);
        match shared.claim(session, by_force).await {
            Err(error) => {
                let mut router = self.0.router.borrow_mut();
                router.note_events_taken(session, Err(error.to_string()), &OpenParts::default());
            }
            Ok(Claimed::InUse { owner }) => {
                self.log(|| serde_json::json!({"event": "session_in_use", "session_id": session.as_str(), "owner": owner}));
                self.0.router.borrow_mut().note_events_in_use(session);
            }
            Ok(Claimed::Ours { position, log, mut taken }) => {
                let restored = match (&log, self.session_log_directory(session)) {
                    (Some(log), Some(directory)) => restore_unlocked(&directory, session, log).await,
                    _ => Ok(()),
                };
                if let Err(error) = restored {
                    let why = format!("the session's log cannot be written to this machine: {error}");
                    let mut router = self.0.router.borrow_mut();
                    return router.note_events_taken(session, Err(why), &OpenParts::default());
                }
                let mut open = OpenParts::default();
                if let Some(turn) = &taken.open {
                    taken.end = self.logged_end(session, turn);
                    open = self.parts_in(shared, session).await;
                }
                let mut router = self.0.router.borrow_mut();
                router.note_log_claimed(session, position);
                router.note_events_taken(session, Ok(taken), &open);
            }
        }
    }

    /// The parts that are open after a session's stored lines.
    async fn parts_in(&self, shared: &dyn SharedSessions, session: &SessionId) -> OpenParts {
        let mut open = OpenParts::default();
        let mut after = 0;
        loop {
            match shared.events().read(session, after, PAGE_BYTES).await {
                Read::Lines { lines, .. } if !lines.is_empty() => {
                    self.0.router.borrow().note_stored_parts(&lines, &mut open);
                    after += count_lines(&lines);
                }
                Read::TooOld { oldest } if oldest > after + 1 => after = oldest - 1,
                Read::Lines { .. } | Read::TooOld { .. } | Read::Future { .. } | Read::Failed(_) => {
                    return open;
                }
            }
        }
    }

    async fn commit_shared(
        &self,
        shared: &dyn SharedSessions,
        worker: WorkerId,
        wanted: &LogCommit,
    ) -> (Option<LogPosition>, Appended) {
        let Some(directory) = self.log_directory(worker) else { return (None, Appended::Ok) };
        let owned = match wanted.owned {
            Some(owned) => owned,
            // The session rested: it is still ours unless another process has written to it since.
            None => match shared.reclaim_log(&wanted.log).await {
                Ok(Some(position)) => position,
                Ok(None) => return (None, Appended::Fenced),
                Err(_) => return (None, Appended::Unknown),
            },
        };
        let from = owned.bytes.min(wanted.bytes);
        let lines = match written_bytes(&directory, &wanted.log, from, wanted.bytes) {
            Ok(Some(lines)) => lines,
            // The worker writes somewhere else, and only it knows where: its own sync must do.
            Ok(None) => return (Some(owned), Appended::Ok),
            Err(_) => return (Some(owned), Appended::Unknown),
        };
        match shared.log().append(&wanted.log, owned.epoch, from, &lines, &wanted.reason).await {
            Appended::Ok => (Some(LogPosition { bytes: wanted.bytes, ..owned }), Appended::Ok),
            Appended::Unknown => (Some(owned), Appended::Unknown),
            Appended::Fenced => (None, Appended::Fenced),
        }
    }
}

/// Restores a log once no process has it open: the workers of a hub that was killed here need a moment to end.
async fn restore_unlocked(directory: &Path, session: &SessionId, log: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + DYING;
    while is_locked(directory, session) {
        if Instant::now() >= deadline {
            return Err(io::Error::other("another process on this machine has it open"));
        }
        tokio::time::sleep(DYING / 40).await;
    }
    restore(directory, session, log)
}

/// Replaces the log on this machine by the stored one, unless it is the same. A log with bytes that were not stored
/// is kept under another name.
fn restore(directory: &Path, session: &SessionId, log: &[u8]) -> io::Result<()> {
    let path = directory.join(format!("{session}.jsonl"));
    match fs::read(&path) {
        Ok(there) if there == log => return Ok(()),
        Ok(there) if log.starts_with(&there) => {}
        Ok(_) => fs::rename(&path, directory.join(format!("{session}.jsonl.local")))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let next = directory.join(format!("{session}.jsonl.{:016x}", fastrand::u64(..)));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
    let written = file.write_all(log).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&next, &path));
    if written.is_err() {
        let _ = fs::remove_file(&next);
    }
    written
}
