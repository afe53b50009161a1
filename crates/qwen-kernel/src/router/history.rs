//! What the router remembers of sessions that are not open.

use std::collections::{HashMap, VecDeque};

use qwen_events::SessionId;

/// How many sessions of each kind are remembered, so that late lines get a specific error.
const LIMIT: usize = 4096;

/// A session that was closed: its id stays with its tenant.
#[derive(Debug)]
struct ClosedSession {
    id: SessionId,
    tenant: String,
}

/// Sessions that were closed, refused or continued in a fork.
#[derive(Debug, Default)]
pub(super) struct SessionHistory {
    /// Closed sessions, the most recent last.
    closed: VecDeque<ClosedSession>,
    /// The sessions whose `open` was refused, the most recent last: lines that were sent with it do not open
    /// them with other options.
    refused: VecDeque<SessionId>,
    /// The sessions that continue in a fork after a crash, and the fork of each.
    forks: HashMap<SessionId, SessionId>,
}

impl SessionHistory {
    /// The tenant of a closed session.
    pub fn closed_tenant(&self, id: &SessionId) -> Option<&str> {
        self.closed.iter().rev().find(|closed| closed.id == *id).map(|closed| closed.tenant.as_str())
    }

    /// Remembers a closed session, and the sessions that had continued in it.
    pub fn note_closed(&mut self, id: SessionId, tenant: &str) {
        let forked = self.forks.extract_if(|_, fork| *fork == id).map(|(original, _)| original);
        let forked: Vec<SessionId> = forked.collect();
        for id in [id].into_iter().chain(forked) {
            self.closed.push_back(ClosedSession { id, tenant: tenant.to_owned() });
            if self.closed.len() > LIMIT {
                self.closed.pop_front();
            }
        }
    }

    pub fn is_refused(&self, id: &SessionId) -> bool {
        self.refused.contains(id)
    }

    /// Remembers a session that was not opened.
    pub fn note_refused(&mut self, id: SessionId) {
        if self.is_refused(&id) {
            return;
        }
        self.refused.push_back(id);
        if self.refused.len() > LIMIT {
            self.refused.pop_front();
        }
    }

    /// Forgets that a session was closed or refused: it is open.
    pub fn reopen(&mut self, id: &SessionId) {
        self.forget_closed(id);
        self.refused.retain(|refused| refused != id);
    }

    pub fn forget_closed(&mut self, id: &SessionId) {
        self.closed.retain(|closed| closed.id != *id);
    }

    /// Remembers that a session continues in a fork.
    pub fn note_fork(&mut self, id: SessionId, fork: SessionId) {
        self.forks.insert(id, fork);
    }

    /// Forgets the fork of a session: the client means the original.
    pub fn forget_fork(&mut self, id: &SessionId) {
        self.forks.remove(id);
    }

    /// The session in which a session continues after crashes; itself if it was not forked.
    pub fn follow_forks(&self, id: SessionId) -> SessionId {
        let mut last = id;
        while let Some(fork) = self.forks.get(&last) {
            last = fork.clone();
        }
        last
    }
}
