//! Both streams of a session together: who owns it, and how it is taken over.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_events::SessionId;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::store::{
    AsyncEvents, AsyncSessionLog, Claimed, LogPosition, Read, SharedSessions, StoreFuture, count_lines,
};
use serde_json::{Value, json};

use crate::bus::{Bus, BusError};
use crate::events::BusEvents;
use crate::session_log::BusLog;
use crate::streams::{Shards, StreamReport, report, shards};

/// The size of a page of stored lines, in bytes.
const PAGE: usize = 1 << 20;

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
            let end = self.log.await_end(session).await?;
            if let Some(end) = &end
                && !by_force
                && end.headers.is_owned_by_other(&self.bus.identity)
                && self.bus.is_alive(&end.headers.owner).await?
            {
                return Ok(Claimed::InUse { owner: end.headers.owner.clone() });
            }
            let end = end.unwrap_or_default();
            let is_foreign = end.sequence > 0 && end.headers.is_owned_by_other(&self.bus.identity);
            let is_ours = self.log.is_last_writer(session, &end);
            let Some(position) = self.log.take_at(session, &end).await? else { continue };
            let log = match end.bytes {
                _ if is_ours => None,
                // A log that this machine has already is committed with the next turn.
                0 => None,
                _ => Some(self.log.read(session, 0).await?),
            };
            // The epoch of the log orders the owners of both: whoever took the log later keeps the lines too.
            if let Some(mut taken) = self.events.take_at(session, position.epoch).await? {
                if is_foreign {
                    let metrics = &self.bus.metrics;
                    let counter = if by_force { &metrics.takeovers_forced } else { &metrics.takeovers_dead };
                    counter.increment();
                }
                if let (None, Some(CommitReason::Start { prompt_id }), false) =
                    (&taken.open, &end.headers.last, is_ours)
                {
                    // The owner may have died after the start was in the log, before the lines had it.
                    let is_ended = self.has_end(session, prompt_id).await?;
                    taken.open = (!is_ended).then(|| prompt_id.clone());
                }
                return Ok(Claimed::Ours { position, log, taken });
            }
            // A later owner has them, or an epoch was used up by an owner of the lines alone.
        }
    }
}

impl BusSessions {
    /// Lists the sessions on the bus.
    pub async fn list(&self) -> io::Result<Vec<SessionId>> {
        AsyncSessionLog::list(&self.log).await
    }

    /// Writes the log of a session to a directory, as a store of this machine has it. A session without a log has
    /// no file.
    pub async fn save_log(&self, session: &SessionId, directory: &Path) -> io::Result<()> {
        match self.log.read(session, 0).await {
            Ok(log) if log.is_empty() => Ok(()),
            Ok(log) => write_log(directory, session, &log),
            // It was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Describes who owns a session; none if there is no such session.
    pub async fn describe(&self, session: &SessionId) -> io::Result<Option<Value>> {
        let Some(end) = self.log.read_end(session).await? else { return Ok(None) };
        let owner = (!end.headers.is_released).then_some(end.headers.owner);
        Ok(Some(json!({
            "session_id": session.as_str(), "owner": owner, "epoch": end.headers.epoch,
            "shard": self.shards.shard_of(session), "workspace": end.headers.workspace, "bytes": end.bytes,
        })))
    }

    /// Describes up to `limit` of these sessions.
    pub async fn describe_all(&self, sessions: &[SessionId], limit: usize) -> io::Result<Vec<Value>> {
        let mut described = Vec::new();
        for session in sessions.iter().take(limit) {
            described.extend(self.describe(session).await?);
        }
        Ok(described)
    }

    /// Describes the streams and their leaders.
    pub async fn describe_streams(&self) -> Result<Vec<Value>, BusError> {
        let streams = report(&self.bus).await?;
        let describe = |stream: &StreamReport| {
            json!({
                "stream": stream.name, "leader": stream.leader, "replicas": stream.replicas,
                "lagging": stream.lagging, "messages": stream.messages,
            })
        };
        Ok(streams.iter().map(describe).collect())
    }

    /// Deletes the sessions that were idle for longer than the bus keeps them. Returns how many there were.
    pub async fn delete_idle(&self) -> io::Result<usize> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let oldest = i64::try_from(now.saturating_sub(self.bus.log_retention.as_secs())).unwrap_or(0);
        let mut count = 0;
        for session in self.list().await? {
            let last = self.log.last_stored_at(&session).await?;
            if last.is_some_and(|last| last > 0 && last < oldest) && self.delete(&session).await?.is_none() {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Deletes a session with everything that the bus has of it. Returns the process that is using it, if any; then
    /// nothing is deleted.
    pub async fn delete(&self, session: &SessionId) -> io::Result<Option<String>> {
        match self.claim_both(session, false).await? {
            Claimed::InUse { owner } => Ok(Some(owner)),
            Claimed::Ours { .. } => {
                // The log is last: as long as it is there, the session is listed and can be deleted again.
                self.events.delete(session).await?;
                self.log.delete(session).await?;
                Ok(None)
            }
        }
    }

    /// True if the lines of a session have the end of a prompt, or if it may have expired.
    async fn has_end(&self, session: &SessionId, prompt_id: &str) -> io::Result<bool> {
        let mut after = 0;
        loop {
            match AsyncEvents::read(&self.events, session, after, PAGE).await {
                Read::Lines { lines, .. } if !lines.is_empty() => {
                    if lines.split(|byte| *byte == b'\n').any(|line| is_end_of(line, prompt_id)) {
                        return Ok(true);
                    }
                    after += count_lines(&lines);
                }
                Read::Lines { .. } | Read::Future { .. } => return Ok(false),
                Read::TooOld { .. } => return Ok(true),
                Read::Failed(why) => return Err(io::Error::other(why)),
            }
        }
    }
}

/// Writes a log as a store of this machine has it.
pub fn write_log(directory: &Path, session: &SessionId, log: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join(format!("{session}.jsonl"));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, log)
}

/// True for the terminal record of a prompt.
fn is_end_of(line: &[u8], prompt_id: &str) -> bool {
    serde_json::from_slice::<Value>(line)
        .is_ok_and(|line| line["prompt_id"] == prompt_id && line["metadata"]["turn"].is_object())
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
