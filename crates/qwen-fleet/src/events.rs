//! Numbered lines on the bus.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use qwen_events::SessionId;
use qwen_kernel::store::{Appended, AsyncEvents, Read, StoreFuture, Taken, count_lines};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::headers::EventHeaders;
use crate::session_log::{PART_BYTES, STALE_READS, STALE_WAIT};
use crate::stream::{AppendOutcome, Stored, StreamSubject};
use crate::streams::Shards;
use crate::subjects::token;

/// Numbered lines. Batches are one message each, or several parts.
pub struct BusEvents {
    bus: Rc<Bus>,
    shards: Shards,
    owned: RefCell<HashMap<SessionId, Owned>>,
    /// When lines of a session were last stored.
    appended: RefCell<HashMap<SessionId, Instant>>,
    /// Where the last read of a session ended: the number of a line and the message that begins with it.
    cursors: RefCell<HashMap<SessionId, (u64, u64)>>,
}

/// The lines of a session that this process owns.
#[derive(Debug, Clone, Default)]
struct Owned {
    epoch: u64,
    /// The number of the last message.
    sequence: u64,
    /// The number of the last complete line.
    last: u64,
    open: Option<String>,
}

/// The content of a session's entry in the stream of turns. It outlives the lines, which expire.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TurnEntry {
    epoch: u64,
    /// The number that the next line gets.
    next: u64,
    /// The prompt whose turn is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<String>,
}

impl BusEvents {
    /// Uses the streams of a bus.
    pub fn new(bus: Rc<Bus>, shards: Shards) -> Self {
        Self {
            bus,
            shards,
            owned: RefCell::default(),
            appended: RefCell::default(),
            cursors: RefCell::default(),
        }
    }

    fn place(&self, session: &SessionId) -> StreamSubject {
        let shard = self.shards.shard_of(session);
        let names = &self.bus.names;
        StreamSubject {
            stream: names.event_stream(shard),
            subject: names.event_subject(shard, &token(session)),
        }
    }

    fn turn_place(&self, session: &SessionId) -> StreamSubject {
        let names = &self.bus.names;
        StreamSubject { stream: names.turn_stream(), subject: names.turn_subject(&token(session)) }
    }

    /// Reads the state of a session from the leaders of its streams.
    async fn read_state(&self, session: &SessionId) -> Result<Owned, BusError> {
        if let Some(last) = self.bus.await_last(&self.place(session)).await? {
            let headers = EventHeaders::parse(&last.headers).ok_or_else(|| {
                BusError::new("foreign_message", "The bus has a message of another program among the lines.")
            })?;
            let (epoch, last_line) = (headers.epoch, headers.last());
            return Ok(Owned { epoch, sequence: last.sequence, last: last_line, open: headers.open });
        }
        // The lines have expired, or there were none.
        let Some(entry) = self.bus.await_last(&self.turn_place(session)).await? else {
            return Ok(Owned::default());
        };
        let entry: TurnEntry = serde_json::from_slice(&entry.payload).unwrap_or_default();
        Ok(Owned { epoch: entry.epoch, sequence: 0, last: entry.next.saturating_sub(1), open: entry.open })
    }

    /// Makes this process the owner with an epoch of at least `least`; none if an owner with a higher one exists
    /// already.
    pub async fn take_at(&self, session: &SessionId, least: u64) -> io::Result<Option<Taken>> {
        loop {
            let state = self.read_state(session).await?;
            if state.epoch > least {
                return Ok(None);
            }
            if let Some(taken) = self.take_after(session, state, least).await? {
                return Ok(Some(taken));
            }
        }
    }

    async fn take_after(&self, session: &SessionId, state: Owned, least: u64) -> io::Result<Option<Taken>> {
        let headers = EventHeaders {
            epoch: least.max(state.epoch + 1),
            owner: self.bus.identity.to_string(),
            first: state.last + 1,
            count: 0,
            part: None,
            open: state.open.clone(),
        };
        match self.append_message(session, state.sequence, &headers, Bytes::new()).await {
            AppendOutcome::At(sequence) => {
                let taken =
                    Taken { epoch: headers.epoch, last: state.last, open: state.open.clone(), end: None };
                let owned = Owned { epoch: headers.epoch, sequence, ..state };
                self.owned.borrow_mut().insert(session.clone(), owned);
                Ok(Some(taken))
            }
            AppendOutcome::Refused => Ok(None),
            AppendOutcome::Unknown => Err(io::Error::other("the bus does not answer")),
        }
    }

    async fn take_by_force(&self, session: &SessionId) -> io::Result<Taken> {
        loop {
            let state = self.read_state(session).await?;
            if let Some(taken) = self.take_after(session, state, 0).await? {
                return Ok(taken);
            }
        }
    }

    async fn append_message(
        &self,
        session: &SessionId,
        expected: u64,
        headers: &EventHeaders,
        payload: Bytes,
    ) -> AppendOutcome {
        let is_ours = |stored: &_| EventHeaders::parse(stored).as_ref() == Some(headers);
        self.bus.append(&self.place(session), expected, headers.to_map(), payload, is_ours).await
    }

    /// Appends a message; if the lines before it have expired, as the first one.
    async fn append_part(
        &self,
        session: &SessionId,
        owned: &Owned,
        headers: &EventHeaders,
        payload: &Bytes,
    ) -> AppendOutcome {
        let outcome = self.append_message(session, owned.sequence, headers, payload.clone()).await;
        if outcome != AppendOutcome::Refused {
            return outcome;
        }
        match self.bus.read_last(&self.place(session)).await {
            Ok(None) => self.append_message(session, 0, headers, payload.clone()).await,
            Ok(Some(_)) => AppendOutcome::Refused,
            Err(_) => AppendOutcome::Unknown,
        }
    }

    async fn append_lines(
        &self,
        id: &SessionId,
        epoch: u64,
        first: u64,
        lines: &[u8],
        open: Option<&str>,
    ) -> Appended {
        let owned = self.owned.borrow().get(id).cloned();
        let Some(mut owned) = owned.filter(|owned| owned.epoch == epoch && first <= owned.last + 1) else {
            return Appended::Fenced;
        };
        if first <= owned.last {
            return Appended::Ok;
        }
        let count = count_lines(lines);
        if open.is_some() && !is_urgent(lines) {
            // Lines that arrive meanwhile are stored together.
            let last = self.appended.borrow().get(id).copied();
            if let Some(last) = last {
                tokio::time::sleep_until(last + self.bus.coalesce).await;
            }
        }
        let payload = Bytes::copy_from_slice(lines.strip_suffix(b"\n").unwrap_or(lines));
        let parts = payload.len().div_ceil(PART_BYTES).max(1);
        for part in 0..parts {
            let headers = EventHeaders {
                epoch,
                owner: self.bus.identity.to_string(),
                first,
                count,
                part: (parts > 1).then_some((part as u64 + 1, parts as u64)),
                // The turn is open until the last line is stored.
                open: if part + 1 < parts { owned.open.clone() } else { open.map(str::to_owned) },
            };
            let bytes = payload.slice(part * PART_BYTES..payload.len().min((part + 1) * PART_BYTES));
            match self.append_part(id, &owned, &headers, &bytes).await {
                AppendOutcome::At(sequence) => {
                    owned =
                        Owned { epoch, sequence, last: headers.last().max(owned.last), open: headers.open };
                    self.owned.borrow_mut().insert(id.clone(), owned.clone());
                }
                AppendOutcome::Refused => {
                    self.owned.borrow_mut().remove(id);
                    self.bus.metrics.fenced.increment();
                    return Appended::Fenced;
                }
                AppendOutcome::Unknown => return Appended::Unknown,
            }
        }
        self.bus.metrics.lines.add(count);
        if open.is_none() || count == 0 {
            self.appended.borrow_mut().remove(id);
            self.note_turn(id, &owned).await;
        } else {
            self.appended.borrow_mut().insert(id.clone(), Instant::now());
        }
        Appended::Ok
    }

    /// Notes the turn that is open and the next number where they do not expire. Between two such notes the lines
    /// themselves have both.
    async fn note_turn(&self, session: &SessionId, owned: &Owned) {
        let entry = TurnEntry { epoch: owned.epoch, next: owned.last + 1, open: owned.open.clone() };
        let Ok(payload) = serde_json::to_vec(&entry) else { return };
        let request = async_nats::Request::new().payload(payload.into());
        // Without an answer, the next line notes it. Only lines that expire before that would miss it.
        let _ = self.bus.client.send_request(self.turn_place(session).subject, request).await;
    }

    async fn read_page(&self, session: &SessionId, after: u64, limit: usize) -> Read {
        let owned = self.owned.borrow().get(session).map(|owned| owned.last);
        let last = match owned {
            Some(last) => last,
            None => match self.read_state(session).await {
                Ok(state) => state.last,
                Err(error) => return Read::Failed(error.to_string()),
            },
        };
        if after >= last {
            let none = Read::Lines { first: after + 1, lines: Vec::new(), last };
            return if after == last { none } else { Read::Future { last } };
        }
        for _ in 0..STALE_READS {
            match self.scan(session, after, last, limit).await {
                Err(error) => return Read::Failed(error.to_string()),
                Ok(Some(Found { oldest, .. })) if oldest > after + 1 => return Read::TooOld { oldest },
                Ok(Some(Found { page, .. })) if !page.is_empty() => {
                    return Read::Lines { first: after + 1, lines: page, last };
                }
                // The server that answered is behind the leader, or all lines have expired.
                Ok(_) => tokio::time::sleep(STALE_WAIT).await,
            }
            if let Ok(None) = self.bus.read_last(&self.place(session)).await {
                return Read::TooOld { oldest: last + 1 };
            }
        }
        Read::Failed("the bus does not send lines that it has".to_owned())
    }

    /// Collects the lines from `after` + 1 to `last`, about `limit` bytes. None if no line was found.
    async fn scan(
        &self,
        session: &SessionId,
        after: u64,
        last: u64,
        limit: usize,
    ) -> Result<Option<Found>, BusError> {
        let place = self.place(session);
        let cursor = self.cursors.borrow().get(session).copied().filter(|(line, _)| *line <= after + 1);
        let mut next = cursor.map_or(1, |(_, sequence)| sequence);
        let mut oldest = None;
        let mut pages = Pages { after, last, limit, page: Vec::new(), parts: Vec::new() };
        loop {
            let batch = self.bus.read_batch(&place, next).await?;
            let is_end = batch.is_empty();
            for message in batch {
                next = message.sequence + 1;
                let Some(headers) = EventHeaders::parse(&message.headers) else { continue };
                if headers.count == 0 {
                    continue;
                }
                oldest.get_or_insert(headers.first);
                if headers.part.is_none_or(|(part, _)| part == 1) && headers.first <= after + 1 {
                    self.cursors.borrow_mut().insert(session.clone(), (headers.first, message.sequence));
                }
                if pages.push(&headers, &message) {
                    return Ok(Some(Found { oldest: oldest.unwrap_or(1), page: pages.page }));
                }
            }
            if is_end {
                return Ok(oldest.map(|oldest| Found { oldest, page: pages.page }));
            }
        }
    }
}

/// Returns true for lines that someone waits for: requests to the client and answers.
fn is_urgent(lines: &[u8]) -> bool {
    let kind = b"\"type\":\"control_";
    lines.windows(kind.len()).any(|part| part == kind)
}

/// The lines that a scan found.
struct Found {
    /// The number of the first line that it met.
    oldest: u64,
    page: Vec<u8>,
}

/// Puts messages together to lines.
struct Pages {
    after: u64,
    last: u64,
    limit: usize,
    page: Vec<u8>,
    /// The parts of a long line so far.
    parts: Vec<Bytes>,
}

impl Pages {
    /// Adds a message. Returns true once the page is complete.
    fn push(&mut self, headers: &EventHeaders, message: &Stored) -> bool {
        if headers.part.is_none_or(|(part, _)| part == 1) {
            self.parts.clear();
        }
        self.parts.push(message.payload.clone());
        let is_whole =
            headers.part.is_none_or(|(part, parts)| part == parts && self.parts.len() as u64 == parts);
        if !is_whole {
            return false;
        }
        let whole = match &*std::mem::take(&mut self.parts) {
            [only] => only.clone(),
            parts => parts.concat().into(),
        };
        for (number, line) in (headers.first..).zip(whole.split(|byte| *byte == b'\n')) {
            if number <= self.after {
                continue;
            }
            if number > self.last || !self.page.is_empty() && self.page.len() + line.len() + 1 > self.limit {
                return true;
            }
            self.page.extend_from_slice(line);
            self.page.push(b'\n');
        }
        headers.first + headers.count > self.last || self.page.len() >= self.limit
    }
}

impl AsyncEvents for BusEvents {
    fn take<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<Taken>> {
        Box::pin(self.take_by_force(session))
    }

    fn append<'a>(
        &'a self,
        id: &'a SessionId,
        epoch: u64,
        first: u64,
        lines: &'a [u8],
        open: Option<&'a str>,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(self.append_lines(id, epoch, first, lines, open))
    }

    fn read<'a>(&'a self, session: &'a SessionId, after: u64, limit: usize) -> StoreFuture<'a, Read> {
        Box::pin(self.read_page(session, after, limit))
    }

    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<u64>> {
        Box::pin(async move { Ok(self.read_state(session).await?.last) })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.owned.borrow_mut().remove(session);
            self.cursors.borrow_mut().remove(session);
            self.bus.purge(&self.place(session)).await?;
            Ok(self.bus.purge(&self.turn_place(session)).await?)
        })
    }
}
