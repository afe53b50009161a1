//! Session logs on the bus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use qwen_events::SessionId;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::store::{Appended, AsyncSessionLog, Judged, LogOwner, LogPosition, StoreFuture, judge};
use serde_json::json;

use crate::bus::Bus;
use crate::headers::LogHeaders;
use crate::stream::{AppendOutcome, Stored, StreamSubject, refusal};
use crate::streams::Shards;
use crate::subjects::{session_of_token, token};

/// The largest payload of a message, in bytes. The default limit of a server is 1 MB with headers.
pub const PART_BYTES: usize = 512 * 1024;

/// How often and how long apart a read asks again for what the server that answered does not have yet.
pub const STALE_READS: u32 = 200;
pub const STALE_WAIT: Duration = Duration::from_millis(5);

/// Session logs. A take is a message with the next epoch; what the former owner sends afterwards does not follow the
/// message that it expects, so that the bus refuses it.
pub struct BusLog {
    bus: Rc<Bus>,
    shards: Shards,
    owned: RefCell<HashMap<SessionId, Owned>>,
}

/// A log that this process wrote last, as far as it knows.
#[derive(Debug, Clone)]
struct Owned {
    /// The number of the last message.
    sequence: u64,
    headers: LogHeaders,
    /// The length of the log.
    bytes: u64,
}

/// The end of a log as the bus has it.
#[derive(Debug, Clone, Default)]
pub struct LogEnd {
    pub sequence: u64,
    pub headers: LogHeaders,
    pub bytes: u64,
}

impl LogEnd {
    /// Reads the last message of a log.
    fn parse(last: &Stored) -> io::Result<Self> {
        let headers = LogHeaders::parse(&last.headers)
            .ok_or_else(|| io::Error::other("the bus has a message of another program in this place"))?;
        let bytes = headers.length(last.payload.len());
        Ok(Self { sequence: last.sequence, headers, bytes })
    }
}

impl BusLog {
    /// Uses the streams of a bus.
    pub fn new(bus: Rc<Bus>, shards: Shards) -> Self {
        Self { bus, shards, owned: RefCell::default() }
    }

    fn place(&self, session: &SessionId) -> StreamSubject {
        let shard = self.shards.shard_of(session);
        let names = &self.bus.names;
        StreamSubject { stream: names.log_stream(shard), subject: names.log_subject(shard, &token(session)) }
    }

    fn find_owned(&self, session: &SessionId) -> Option<Owned> {
        self.owned.borrow().get(session).cloned()
    }

    /// Reads the end of a log; none if there is none.
    pub async fn read_end(&self, session: &SessionId) -> io::Result<Option<LogEnd>> {
        let last = self.bus.read_last(&self.place(session)).await?;
        last.as_ref().map(LogEnd::parse).transpose()
    }

    /// Reads the end of a log as [`BusLog::read_end`] does, and waits for the stream's leader.
    pub async fn await_end(&self, session: &SessionId) -> io::Result<Option<LogEnd>> {
        let last = self.bus.await_last(&self.place(session)).await?;
        last.as_ref().map(LogEnd::parse).transpose()
    }

    /// Returns when a session's log was last written, in seconds since 1970.
    pub async fn last_stored_at(&self, session: &SessionId) -> io::Result<Option<i64>> {
        Ok(self.bus.read_last(&self.place(session)).await?.map(|last| last.stored_at))
    }

    /// True if this process wrote the last message of a log.
    pub fn is_last_writer(&self, session: &SessionId, end: &LogEnd) -> bool {
        self.find_owned(session).is_some_and(|owned| owned.sequence == end.sequence)
    }

    /// Takes a log whose end is known. None if another process was faster.
    pub async fn take_at(&self, session: &SessionId, end: &LogEnd) -> io::Result<Option<LogPosition>> {
        let headers = LogHeaders {
            epoch: end.headers.epoch + 1,
            owner: self.bus.identity.to_string(),
            workspace: self.bus.place_of(session, end.headers.workspace.as_ref()),
            is_released: false,
            offset: end.bytes,
            base: None,
            last: end.headers.last.clone(),
        };
        match self.append_message(session, end.sequence, &headers, Bytes::new()).await {
            AppendOutcome::At(sequence) => {
                let position = LogPosition { epoch: headers.epoch, bytes: end.bytes };
                let owned = Owned { sequence, headers, bytes: end.bytes };
                self.owned.borrow_mut().insert(session.clone(), owned);
                Ok(Some(position))
            }
            AppendOutcome::Refused => Ok(None),
            AppendOutcome::Unknown => Err(io::Error::other("the bus does not answer")),
        }
    }

    /// Takes a log again that this process released; none if another one has written to it since.
    pub async fn retake(&self, session: &SessionId) -> io::Result<Option<LogPosition>> {
        let Some(owned) = self.find_owned(session) else { return Ok(None) };
        let end = LogEnd { sequence: owned.sequence, headers: owned.headers, bytes: owned.bytes };
        let taken = self.take_at(session, &end).await?;
        if taken.is_none() {
            self.owned.borrow_mut().remove(session);
        }
        Ok(taken)
    }

    async fn append_message(
        &self,
        session: &SessionId,
        expected: u64,
        headers: &LogHeaders,
        payload: Bytes,
    ) -> AppendOutcome {
        let is_ours = |stored: &_| LogHeaders::parse(stored).as_ref() == Some(headers);
        self.bus.append(&self.place(session), expected, headers.to_map(), payload, is_ours).await
    }

    /// Reads a whole log. A message replaces what earlier ones have from its offset on.
    async fn read_all(&self, session: &SessionId) -> io::Result<Vec<u8>> {
        let end = self.read_end(session).await?.ok_or(io::ErrorKind::NotFound)?;
        let place = self.place(session);
        let mut log = Vec::new();
        let mut next = 1;
        let mut empty_reads = 0;
        while next <= end.sequence {
            let batch = self.bus.read_batch(&place, next).await?;
            if batch.is_empty() {
                // The server that answered is behind the leader, or the log was deleted meanwhile.
                empty_reads += 1;
                if empty_reads > STALE_READS {
                    return Err(io::Error::other("the bus does not send a log that it has"));
                }
                tokio::time::sleep(STALE_WAIT).await;
            }
            for message in batch.iter().filter(|message| message.sequence <= end.sequence) {
                next = message.sequence + 1;
                if let Some(headers) = LogHeaders::parse(&message.headers) {
                    let offset = usize::try_from(headers.offset).map_err(io::Error::other)?;
                    if offset > log.len() {
                        return Err(io::Error::other("a part of the log is missing on the bus"));
                    }
                    log.truncate(offset);
                    log.extend_from_slice(&message.payload);
                }
            }
        }
        log.truncate(usize::try_from(end.bytes).map_err(io::Error::other)?);
        Ok(log)
    }

    async fn append_lines(
        &self,
        id: &SessionId,
        epoch: u64,
        at: u64,
        lines: &[u8],
        reason: &CommitReason,
    ) -> Appended {
        let is_ours = |owned: &Owned| owned.headers.epoch == epoch && !owned.headers.is_released;
        let Some(mut owned) = self.find_owned(id).filter(is_ours) else { return Appended::Fenced };
        let length = owned.bytes;
        let stored = if at < length {
            let Ok(log) = self.read_all(id).await else { return Appended::Unknown };
            let start = usize::try_from(at).unwrap_or(usize::MAX).min(log.len());
            let end = start.saturating_add(lines.len()).min(log.len());
            log[start..end].to_vec()
        } else {
            Vec::new()
        };
        match judge(length, at, lines, &stored) {
            Judged::Impossible => return Appended::Fenced,
            Judged::Done if at + (lines.len() as u64) < length || lines.is_empty() && at < length => {
                return Appended::Ok;
            }
            // Its acknowledgement was lost to the caller.
            Judged::Done if !lines.is_empty() => return Appended::Ok,
            Judged::Done | Judged::New => {}
        }
        let parts: Vec<&[u8]> =
            if lines.is_empty() { vec![lines] } else { lines.chunks(PART_BYTES).collect() };
        let mut offset = at;
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let headers = LogHeaders {
                epoch,
                owner: self.bus.identity.to_string(),
                workspace: owned.headers.workspace.clone(),
                is_released: false,
                offset,
                base: (!is_last).then_some(at),
                last: if is_last { Some(reason.clone()) } else { owned.headers.last.clone() },
            };
            let payload = Bytes::copy_from_slice(part);
            match self.append_message(id, owned.sequence, &headers, payload).await {
                AppendOutcome::At(sequence) => {
                    offset += part.len() as u64;
                    let bytes = if is_last { offset } else { at };
                    owned = Owned { sequence, headers, bytes };
                    self.owned.borrow_mut().insert(id.clone(), owned.clone());
                }
                AppendOutcome::Refused => {
                    self.owned.borrow_mut().remove(id);
                    return Appended::Fenced;
                }
                AppendOutcome::Unknown => return Appended::Unknown,
            }
        }
        Appended::Ok
    }

    async fn take_by_force(&self, session: &SessionId) -> io::Result<LogOwner> {
        loop {
            let end = self.read_end(session).await?.unwrap_or_default();
            if let Some(position) = self.take_at(session, &end).await? {
                return Ok(LogOwner { epoch: position.epoch, bytes: position.bytes, last: end.headers.last });
            }
        }
    }

    async fn give_up(&self, session: &SessionId, epoch: u64) -> Appended {
        let Some(owned) = self.find_owned(session).filter(|owned| owned.headers.epoch == epoch) else {
            return Appended::Fenced;
        };
        if owned.headers.is_released {
            return Appended::Ok;
        }
        let headers =
            LogHeaders { is_released: true, offset: owned.bytes, base: None, ..owned.headers.clone() };
        match self.append_message(session, owned.sequence, &headers, Bytes::new()).await {
            AppendOutcome::At(sequence) => {
                let owned = Owned { sequence, headers, ..owned };
                self.owned.borrow_mut().insert(session.clone(), owned);
                Appended::Ok
            }
            AppendOutcome::Refused => {
                self.owned.borrow_mut().remove(session);
                Appended::Fenced
            }
            AppendOutcome::Unknown => Appended::Unknown,
        }
    }

    async fn list_all(&self) -> io::Result<Vec<SessionId>> {
        let mut sessions = Vec::new();
        for shard in 0..self.shards.count() {
            let stream = self.bus.names.log_stream(shard);
            let filter = self.bus.names.log_subject(shard, "*");
            let mut offset = 0;
            loop {
                let body = json!({"subjects_filter": filter, "offset": offset});
                let reply = self.bus.ask(&format!("STREAM.INFO.{stream}"), &body).await?;
                if reply["error"].is_object() {
                    return Err(refusal(&stream, &reply).into());
                }
                let Some(found) = reply["state"]["subjects"].as_object() else { break };
                let ids = found.keys().filter_map(|subject| subject.rsplit('.').next());
                sessions.extend(ids.filter_map(session_of_token));
                offset += found.len();
                if found.is_empty() || offset as u64 >= reply["total"].as_u64().unwrap_or(0) {
                    break;
                }
            }
        }
        sessions.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        Ok(sessions)
    }
}

impl AsyncSessionLog for BusLog {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<LogOwner>> {
        Box::pin(self.take_by_force(session))
    }

    fn read<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(async move {
            let mut log = self.read_all(session).await?;
            log.drain(..usize::try_from(from).unwrap_or(usize::MAX).min(log.len()));
            Ok(log)
        })
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        at: u64,
        lines: &'a [u8],
        reason: &'a CommitReason,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(self.append_lines(id, epoch, at, lines, reason))
    }

    fn release<'a>(&'a self, session: &'a SessionId, epoch: u64) -> StoreFuture<'a, Appended> {
        Box::pin(self.give_up(session, epoch))
    }

    fn list(&self) -> StoreFuture<'_, io::Result<Vec<SessionId>>> {
        Box::pin(self.list_all())
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.owned.borrow_mut().remove(session);
            Ok(self.bus.purge(&self.place(session)).await?)
        })
    }
}
