//! Stores that record what they were asked for, for `qwen check --history`.

use std::io;
use std::rc::Rc;

use qwen_events::SessionId;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::store::{
    Appended, AsyncEvents, AsyncSessionLog, Claimed, LogOwner, LogPosition, Read, SharedSessions,
    StoreFuture, Taken, count_lines,
};
use serde_json::{Value, json};

use super::record::MessageRecording;
use crate::runtime::clock;

/// Stores and the recording of their outcomes.
struct RecordedStores {
    inner: Rc<dyn SharedSessions>,
    recording: MessageRecording,
    /// The process, as NAME/INCARNATION.
    process: String,
    /// The tenant whose sessions these are; empty without tenants.
    tenant: String,
}

/// Returns the stores, recorded if there is a recording.
pub fn record_stores(
    inner: Rc<dyn SharedSessions>,
    recording: Option<&MessageRecording>,
    process: &str,
    tenant: &str,
) -> Rc<dyn SharedSessions> {
    match recording {
        None => inner,
        Some(recording) => Rc::new(RecordedStores {
            inner,
            recording: recording.clone(),
            process: process.to_owned(),
            tenant: tenant.to_owned(),
        }),
    }
}

impl RecordedStores {
    fn record(&self, session: &SessionId, mut entry: Value) {
        entry["at"] = clock::now().0.into();
        entry["process"] = self.process.as_str().into();
        self.recording.record_store(&self.tenant, session, &entry);
    }

    fn record_owner(&self, session: &SessionId, kind: &str, epoch: u64) {
        self.record(session, json!({"action": "take", "kind": kind, "epoch": epoch}));
        if kind == "lines" {
            self.recording.record_take(&self.tenant, session);
        }
    }
}

impl AsyncEvents for RecordedStores {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Taken>> {
        Box::pin(async move {
            let taken = self.inner.events().take(session).await?;
            self.record_owner(session, "lines", taken.epoch);
            Ok(taken)
        })
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        first: u64,
        lines: &'a [u8],
        open: Option<&'a str>,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let outcome = self.inner.events().append(id, epoch, first, lines, open).await;
            let count = count_lines(lines);
            self.record(
                id,
                json!({"action": "append", "kind": "lines", "epoch": epoch, "first": first, "count": count, "open": open, "outcome": outcome}),
            );
            outcome
        })
    }

    fn read<'a>(&'a self, session: &'a SessionId, after: u64, limit: usize) -> StoreFuture<'a, Read> {
        self.inner.events().read(session, after, limit)
    }

    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<u64>> {
        self.inner.events().last(session)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        self.inner.events().delete(session)
    }
}

impl AsyncSessionLog for RecordedStores {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<LogOwner>> {
        Box::pin(async move {
            let owner = self.inner.log().take(session).await?;
            self.record_owner(session, "log", owner.epoch);
            Ok(owner)
        })
    }

    fn read<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, io::Result<Vec<u8>>> {
        self.inner.log().read(session, from)
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        at: u64,
        lines: &'a [u8],
        reason: &'a CommitReason,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let outcome = self.inner.log().append(id, epoch, at, lines, reason).await;
            let mut entry = serde_json::to_value(reason).unwrap_or_default();
            entry["action"] = "append".into();
            entry["kind"] = "log".into();
            entry["epoch"] = epoch.into();
            entry["offset"] = at.into();
            entry["bytes"] = lines.len().into();
            entry["outcome"] = serde_json::to_value(outcome).unwrap_or_default();
            self.record(id, entry);
            outcome
        })
    }

    fn release<'a>(&'a self, session: &'a SessionId, epoch: u64) -> StoreFuture<'a, Appended> {
        self.inner.log().release(session, epoch)
    }

    fn list(&self) -> StoreFuture<'_, io::Result<Vec<SessionId>>> {
        self.inner.log().list()
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        self.inner.log().delete(session)
    }
}

impl SharedSessions for RecordedStores {
    fn events(&self) -> &dyn AsyncEvents {
        self
    }

    fn log(&self) -> &dyn AsyncSessionLog {
        self
    }

    fn claim<'a>(&'a self, session: &'a SessionId, by_force: bool) -> StoreFuture<'a, io::Result<Claimed>> {
        Box::pin(async move {
            let claimed = self.inner.claim(session, by_force).await?;
            if let Claimed::Ours { position, taken, .. } = &claimed {
                self.record_owner(session, "log", position.epoch);
                self.record_owner(session, "lines", taken.epoch);
            }
            Ok(claimed)
        })
    }

    fn reclaim_log<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Option<LogPosition>>> {
        Box::pin(async move {
            let position = self.inner.reclaim_log(session).await?;
            if let Some(position) = &position {
                self.record_owner(session, "log", position.epoch);
            }
            Ok(position)
        })
    }
}
