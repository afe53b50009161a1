//! Both streams of a session together: who owns it, and how it is taken over.

use std::io;
use std::rc::Rc;

use qwen_events::SessionId;
use qwen_kernel::store::{AsyncEvents, AsyncSessionLog, Claimed, LogPosition, SharedSessions, StoreFuture};

use crate::bus::{Bus, BusError};
use crate::events::BusEvents;
use crate::session_log::BusLog;
use crate::streams::{Shards, shards};

/// The sessions on a bus.
pub struct BusSessions {
    bus: Rc<Bus>,
    pub(crate) log: BusLog,
    pub(crate) events: BusEvents,
    pub(crate) shards: Shards,
}

impl BusSessions {
    /// Uses the streams of a bus, which `qwen bus init` has created, and answers the pings of other processes. It
    /// must be called on a `LocalSet`.
    pub async fn open(bus: Rc<Bus>) -> Result<Self, BusError> {
        let shards = shards(&bus).await?;
        bus.answer_pings().await?;
        let log = BusLog::new(bus.clone(), shards);
        let events = BusEvents::new(bus.clone(), shards);
        Ok(Self { bus, log, events, shards })
    }

    async fn claim_both(&self, session: &SessionId, by_force: bool) -> io::Result<Claimed> {
        loop {
            let end = self.log.read_end(session).await?;
            if let Some(end) = &end
                && !by_force
                && end.headers.is_owned_by_other(&self.bus.identity)
                && self.bus.is_alive(&end.headers.owner).await?
            {
                return Ok(Claimed::InUse { owner: end.headers.owner.clone() });
            }
            let end = end.unwrap_or_default();
            let is_ours = self.log.is_last_writer(session, &end);
            let Some(position) = self.log.take_at(session, &end).await? else { continue };
            let log = match end.bytes {
                _ if is_ours => None,
                // A log that this machine has already is committed with the next turn.
                0 => None,
                _ => Some(self.log.read(session, 0).await?),
            };
            // The epoch of the log orders the owners of both: whoever took the log later keeps the lines too.
            if let Some(taken) = self.events.take_at(session, position.epoch).await? {
                return Ok(Claimed::Ours { position, log, taken });
            }
            // A later owner has them, or an epoch was used up by an owner of the lines alone.
        }
    }
}

impl SharedSessions for BusSessions {
    fn events(&self) -> &dyn AsyncEvents {
        &self.events
    }

    fn log(&self) -> &dyn AsyncSessionLog {
        &self.log
    }

    fn claim<'a>(&'a self, session: &'a SessionId, by_force: bool) -> StoreFuture<'a, io::Result<Claimed>> {
        Box::pin(self.claim_both(session, by_force))
    }

    fn reclaim_log<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Option<LogPosition>>> {
        Box::pin(self.log.retake(session))
    }
}
