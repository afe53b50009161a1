//! Events as SSE: of one session, and of all.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use qwen_dialects::Dialect;
use qwen_dialects::acp::AcpClient;
use qwen_events::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::whole::MessageJoiner;
use crate::dialect::{DialectStream, StreamForm};
use crate::respond::{HttpReply, Refusal, event_stream};
use crate::server::{Call, Server};
use crate::sessions::{Line, Session, SessionLines, Sessions};

/// The client's delay before it reconnects, in milliseconds.
const RETRY: &str = "retry: 2000\n\n";

/// How many lines before its position a reader of whole messages begins.
const LOOK_BACK: u64 = 20_000;

/// How many pieces may wait for the connection.
const QUEUED: usize = 2;

/// About how many bytes a piece of the timeline has.
const PIECE: usize = 64 * 1024;

/// The form in which a reader receives the lines of a session.
enum Projection {
    /// As they are stored.
    Lines,
    Whole(MessageJoiner),
    Dialect(Box<DialectStream>),
}

impl Projection {
    fn new(session: &Session, dialect: Dialect, is_partial: bool) -> Self {
        match dialect {
            Dialect::Qwen if is_partial => Self::Lines,
            Dialect::Qwen => Self::Whole(MessageJoiner::default()),
            dialect => {
                let acp = AcpClient::default();
                let form = StreamForm { dialect, is_partial, shows_prompts: true, acp };
                Self::Dialect(Box::new(DialectStream::new(session, form)))
            }
        }
    }

    /// The number after which lines must be read to write those after `after`: a message is joined from its
    /// beginning, and a dialect's lines depend on all lines before them.
    fn start(&self, after: u64) -> u64 {
        match self {
            Self::Lines => after,
            Self::Whole(_) => after.saturating_sub(LOOK_BACK),
            Self::Dialect(_) => 0,
        }
    }

    /// Appends the events that a line becomes, if its number is above `skipped`.
    fn push(&mut self, line: Line, skipped: u64, out: &mut Vec<u8>) {
        let lines = match self {
            Self::Lines => vec![line],
            Self::Whole(joiner) => joiner.take(&line),
            Self::Dialect(stream) => {
                let mut text = Vec::new();
                stream.write(&line, &mut text);
                if text.pop().is_none() {
                    return;
                }
                vec![Line { number: line.number, text: text.into() }]
            }
        };
        for line in lines.iter().filter(|line| line.number > skipped) {
            push_event(out, &line.number.to_string(), &line.text);
        }
    }
}

/// The events of one session after the last one that the client has.
pub fn session(server: &Rc<Server>, call: &Call, session: Rc<Session>) -> Result<HttpReply, Refusal> {
    let (dialect, is_partial) = check_projection(call)?;
    let last = session.last();
    let after = match last_event_id(call) {
        None => last,
        Some(text) => text.parse::<u64>().map_err(|_| invalid_id())?,
    };
    let (pieces, stream) = SseWriter::new(&server.sessions);
    let projection = Projection::new(&session, dialect, is_partial);
    tokio::task::spawn_local(write_session(server.sessions.clone(), session, after, projection, pieces));
    Ok(event_stream(stream))
}

async fn write_session(
    sessions: Rc<Sessions>,
    session: Rc<Session>,
    after: u64,
    mut projection: Projection,
    mut writer: SseWriter,
) {
    // A number that was never assigned belongs to another life of the session.
    let is_future = after > session.last();
    let start = projection.start(after);
    // Lines up to this number are only read for those that follow.
    let mut skipped = if start < after && !is_future { after } else { 0 };
    let mut follower = sessions.follow(&session, start);
    if !writer.write(Bytes::from_static(RETRY.as_bytes())).await {
        return;
    }
    if is_future && !write_snapshot(&sessions, &session, &mut writer, &mut follower).await {
        return;
    }
    loop {
        let next = tokio::select! {
            next = follower.next() => next,
            () = tokio::time::sleep(writer.keep_alive) => {
                if writer.write(Bytes::from_static(b": keep-alive\n\n")).await { continue }
                return;
            }
            () = writer.closed() => return,
        };
        let written = match next {
            SessionLines::Lines(lines) => {
                let size = lines.iter().map(|line| line.text.len() + 40).sum();
                let mut text = Vec::with_capacity(size);
                for line in lines {
                    projection.push(line, skipped, &mut text);
                }
                if text.is_empty() {
                    // A long history that is only read must not hold up other clients.
                    tokio::task::yield_now().await;
                    true
                } else {
                    writer.write(text.into()).await
                }
            }
            SessionLines::TooOld { oldest } if oldest <= skipped + 1 => {
                follower.skip_to(oldest - 1);
                true
            }
            SessionLines::TooOld { .. } => {
                skipped = 0;
                write_snapshot(&sessions, &session, &mut writer, &mut follower).await
            }
            SessionLines::Ended => {
                if session.is_deleted.get() {
                    writer.write(Bytes::from_static(b"event: deleted\ndata: {}\n\n")).await;
                }
                return;
            }
        };
        if !written {
            return;
        }
    }
}

/// Sends the session so far to a reader whose position is no longer stored.
async fn write_snapshot(
    sessions: &Sessions,
    session: &Session,
    writer: &mut SseWriter,
    follower: &mut crate::sessions::SessionReader,
) -> bool {
    let snapshot = sessions.snapshot(session);
    let last = snapshot["last_event_id"].as_u64().unwrap_or_default();
    follower.skip_to(last);
    writer.write(snapshot_event(&last.to_string(), &snapshot)).await
}

/// The events of all sessions.
pub fn all(server: &Rc<Server>, call: &Call) -> Result<HttpReply, Refusal> {
    if check_projection(call)? != (Dialect::Qwen, true) {
        let message = "The events of all sessions come in pieces of the dialect qwen. Follow one session for another form.";
        return Err(Refusal::bad_request("invalid_projection", message));
    }
    let timeline = &server.sessions.timeline;
    let position = match last_event_id(call) {
        None => Some(timeline.end()),
        Some("0") => Some(0),
        Some(text) => {
            let (session, number) = text.rsplit_once(':').ok_or_else(invalid_id)?;
            let session = SessionId::parse(session).map_err(|_| invalid_id())?;
            timeline.position_after(&session, number.parse().map_err(|_| invalid_id())?)
        }
    };
    let (pieces, stream) = SseWriter::new(&server.sessions);
    tokio::task::spawn_local(write_all(server.clone(), position, pieces));
    Ok(event_stream(stream))
}

async fn write_all(server: Rc<Server>, position: Option<u64>, mut writer: SseWriter) {
    let timeline = &server.sessions.timeline;
    let mut ends = timeline.ends();
    let mut closing = server.sessions.closing();
    if !writer.write(Bytes::from_static(RETRY.as_bytes())).await {
        return;
    }
    let mut position = position;
    loop {
        ends.mark_unchanged();
        let read = position.and_then(|position| timeline.read(position, PIECE));
        let Some((entries, end)) = read else {
            position = Some(timeline.end());
            let sessions: Vec<Value> = server
                .sessions
                .all()
                .iter()
                .map(|session| super::sessions::session_json(&server, session))
                .collect();
            let snapshot = json!({"sessions": sessions, "approvals": server.sessions.approvals_json(None)});
            if !writer.write(snapshot_event("0", &snapshot)).await {
                return;
            }
            continue;
        };
        position = Some(end);
        if entries.is_empty() {
            if *closing.borrow() {
                return;
            }
            tokio::select! {
                changed = ends.changed() => if changed.is_err() { return },
                _ = closing.changed() => {}
                () = tokio::time::sleep(writer.keep_alive) => {
                    if !writer.write(Bytes::from_static(b": keep-alive\n\n")).await { return }
                }
                () = writer.closed() => return,
            }
            continue;
        }
        let mut text = Vec::new();
        for entry in entries {
            push_event(&mut text, &format!("{}:{}", entry.session, entry.line.number), &entry.line.text);
        }
        if !writer.write(text.into()).await {
            return;
        }
    }
}

/// The dialect that the client asks for, and whether messages come in pieces.
fn check_projection(call: &Call) -> Result<(Dialect, bool), Refusal> {
    let dialect = call.query("dialect").map_or(Some(Dialect::Qwen), Dialect::parse).ok_or_else(|| {
        let names: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
        let message = format!("`dialect` must be one of {}.", names.join(", "));
        Refusal::bad_request("invalid_dialect", message)
    })?;
    match call.query("partial") {
        None | Some("true" | "1") => Ok((dialect, true)),
        Some("false" | "0") => Ok((dialect, false)),
        Some(_) => Err(Refusal::bad_request("invalid_partial", "`partial` must be true or false.")),
    }
}

/// The id of the last event that the client has: from the header, or from `after` for clients that cannot set
/// the header of their first request.
fn last_event_id(call: &Call) -> Option<&str> {
    call.header("last-event-id").filter(|id| !id.is_empty()).or_else(|| call.query("after"))
}

fn invalid_id() -> Refusal {
    Refusal::bad_request("invalid_event_id", "The id of the last event is not one of this stream.")
}

fn push_event(out: &mut Vec<u8>, id: &str, data: &[u8]) {
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(id.as_bytes());
    // A line of the session can be several lines of a dialect; one event keeps them together.
    for line in data.split(|byte| *byte == b'\n') {
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(line);
    }
    out.extend_from_slice(b"\n\n");
}

fn snapshot_event(id: &str, snapshot: &Value) -> Bytes {
    format!("event: snapshot\nid: {id}\ndata: {snapshot}\n\n").into()
}

/// Writes pieces of an event stream. A reader that accepts nothing for a while is disconnected: it can
/// continue where it was.
pub struct SseWriter {
    pieces: mpsc::Sender<Bytes>,
    patience: Duration,
    pub keep_alive: Duration,
}

impl SseWriter {
    /// A writer, and the stream that it writes to.
    pub fn new(sessions: &Sessions) -> (Self, mpsc::Receiver<Bytes>) {
        let (pieces, stream) = mpsc::channel(QUEUED);
        let limits = &sessions.limits;
        (Self { pieces, patience: limits.stalled_reader, keep_alive: limits.keep_alive }, stream)
    }

    /// False if the reader is gone or accepts nothing.
    pub async fn write(&mut self, piece: Bytes) -> bool {
        matches!(tokio::time::timeout(self.patience, self.pieces.send(piece)).await, Ok(Ok(())))
    }

    /// Waits until the reader is gone.
    pub async fn closed(&self) {
        self.pieces.closed().await;
    }
}
