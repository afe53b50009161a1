//! Workers that exist only in memory, for tests: they keep the lines that they get.

use std::collections::HashMap;

use qwen_events::SessionId;

use super::{Granted, Lease, Offer, WorkerControl, Workers};

/// A number of slots.
#[derive(Debug)]
pub struct MemoryWorkers {
    slots: usize,
    incarnation: u64,
    last_epoch: u64,
    held: HashMap<SessionId, (Lease, Vec<u8>)>,
}

impl MemoryWorkers {
    pub fn new(slots: usize, incarnation: u64) -> Self {
        Self { slots, incarnation, last_epoch: 0, held: HashMap::new() }
    }

    /// The lines that the session's worker got.
    pub fn lines(&self, session: &SessionId) -> Option<&[u8]> {
        self.held.get(session).map(|(_, lines)| lines.as_slice())
    }

    fn is_valid(&self, session: &SessionId, lease: Lease) -> bool {
        self.held.get(session).is_some_and(|(held, _)| *held == lease)
    }
}

impl Workers for MemoryWorkers {
    type Profile = String;

    fn offer(&self) -> Offer {
        Offer { free: self.slots.saturating_sub(self.held.len()), warm: 0 }
    }

    fn claim(&mut self, session: &SessionId, _profile: &Self::Profile) -> Granted {
        if let Some((lease, _)) = self.held.get(session) {
            return Granted::Lease(*lease);
        }
        if self.held.len() >= self.slots {
            return Granted::Busy;
        }
        self.last_epoch += 1;
        let lease = Lease { epoch: self.last_epoch, incarnation: self.incarnation };
        self.held.insert(session.clone(), (lease, Vec::new()));
        Granted::Lease(lease)
    }

    fn input(&mut self, session: &SessionId, lease: Lease, lines: Vec<u8>) -> bool {
        match self.held.get_mut(session) {
            Some((held, got)) if *held == lease => {
                got.extend_from_slice(&lines);
                true
            }
            _ => false,
        }
    }

    fn control(&mut self, session: &SessionId, lease: Lease, control: WorkerControl) -> bool {
        let is_valid = self.is_valid(session, lease);
        if is_valid && control == WorkerControl::Terminate {
            self.held.remove(session);
        }
        is_valid
    }

    fn release(&mut self, session: &SessionId, lease: Lease) -> bool {
        let is_valid = self.is_valid(session, lease);
        if is_valid {
            self.held.remove(session);
        }
        is_valid
    }
}
